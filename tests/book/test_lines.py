"""`make lines` counts code, and only code."""

from lines import count, table

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


def test_the_core_is_counted_apart():
    lines = table({"core.op": 3, "ops.shapes": 4, "core.nd": 2, "viz": 9})
    assert [" ".join(line.split()) for line in lines if line] == [
        "core.op 3",
        "core.nd 2",
        "the core 5 in 2 modules",
        "ops.shapes 4",
        "records 4 in 1 modules",
        "viz 9",
        "extensions 9 in 1 modules",
        "total 18 in 4",
    ]
