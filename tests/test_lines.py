"""`make lines` counts code, and only code."""
from lines import count

SOURCE = '''"""A module docstring
over two lines."""
import math    # 1

# a comment
def area(r):   # 2
    """A docstring."""

    return (   # 3
        math.pi * r ** 2  # 4
    )          # 5


TEXT = """     # 6
# not a comment, 7
"""            # 8
'''


def test_blank_lines_comments_and_docstrings_are_not_code():
    assert count(SOURCE) == 8
