"""`make lines` counts code, and only code, and says which part is above its goal."""

import pytest
from lines import GROUPS, PARTS, beside_goal, count, counts, part_of, table

SOURCE = '''"""A module docstring
over two lines."""
import math    # 1

# a comment
def area(r):   # 2
    """A docstring."""

    return (   # 3
        math.pi * r ** 2  # 4
    )          # the formatter's


TEXT = """     # 5
# not a comment, 6
"""            # 7
'''


def test_blank_lines_comments_docstrings_and_closing_brackets_are_not_code():
    assert count(SOURCE) == 7


@pytest.mark.parametrize(
    "module, part",
    [
        ("core.op", "core"),
        ("core", "core"),
        ("ops.shapes", "ops"),
        ("ops.cpu.products", "codegen"),
        ("ops.ctc", "mxnet"),
        ("formats.c", "formats"),
        ("view.hybrid_view", "view"),
        ("minihybrid_course.exercises.ch00", "course"),
        ("minihybrid_course.grading.grade", "course"),
    ],
)
def test_a_module_is_in_the_part_of_the_smallest_package_that_is_named(module, part):
    assert part_of(module).name == part


def test_a_module_of_no_part_is_refused():
    with pytest.raises(LookupError, match=r"corelike is in no part; name it .* in PARTS"):
        part_of("corelike")


def test_each_module_is_in_a_part_and_each_name_of_a_part_is_one():
    counted = counts()
    assert {part_of(module) for module in counted} == set(PARTS)
    for part in PARTS:
        for name in part.modules.split():
            assert any(f"{module}.".startswith(f"{name}.") for module in counted), name
    assert {part.group for part in PARTS} == GROUPS.keys()


def test_the_table_has_every_part_beside_its_goal():
    lines = table({"core.op": 5_000, "ops.shapes": 4, "core.nd": 2, "view.viz": 9})
    words = [" ".join(line.split()) for line in lines]
    assert words[:4] == ["core: 2 modules", "core.op 5,000", "core.nd 2", ""]
    assert "core 5,002 of 4,900, over by 102" in words
    assert "view 9 of 1,400" in words
    assert "engine 5,006 of 23,000" in words
    assert words[-1] == "total 5,015 in 4 modules"
    assert beside_goal(6, 6) == "      6 of      6"
