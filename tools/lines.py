"""Print the lines of code per module, in reading order, and each part beside its goal.

A part is one or more packages: modules import their own part and those above it. The goals
are where the code should get to, and a part that is larger says by how much. Blank lines,
comments and docstrings are not code, nor are lines of nothing but closing brackets, which
the formatter puts there.
"""

import ast
import io
import tokenize
from functools import cache
from typing import NamedTuple

from reading_order import PACKAGE, READING_ORDER, path_of

NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
CLOSING = (")", "]", "}", ",", ":")  # with the text after them


class Part(NamedTuple):
    """One or more packages of the code.

    group:    what is installed for whom: the engine, its shelf, or the course.
    goal:     the most lines of code.
    modules:  modules and packages of minihybrid/, and `minihybrid_course`; a module belongs to
              the part that names it, or the smallest package around it.
    """

    name: str
    group: str
    goal: int
    modules: str


PARTS = (
    Part("core", "engine", 4_900, "core registrations __init__ __main__"),
    Part("ops", "engine", 7_000, "ops"),
    Part("passes", "engine", 1_100, "passes"),
    Part("codegen", "engine", 3_600, "codegen ops.cpu ops.gpu ops.loops"),
    Part("runtime", "engine", 1_600, "runtime"),
    Part("gluon, np", "engine", 5_300, "gluon np"),
    Part("formats", "shelf", 2_600, "formats"),
    Part("simt", "shelf", 1_600, "simt"),
    Part("view", "shelf", 1_400, "view"),
    Part("mxnet", "shelf", 3_400, "mxnet ops.anchors ops.boxes ops.regions ops.ctc"),
    Part("course", "course", 6_000, "minihybrid_course"),
)
GROUPS = {"engine": 23_000, "shelf": 9_000, "course": 6_000}  # the most lines of code


@cache
def count(source: str) -> int:
    """Return the number of lines of `source` that hold code."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NOT_CODE and token.string not in CLOSING:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):  # a docstring
                lines.difference_update(range(node.lineno, node.end_lineno + 1))
    return len(lines)


def counts() -> dict[str, int]:
    """Module -> lines of code, of the engine in reading order, then of the course."""
    paths = {module: path_of(module) for module in READING_ORDER}
    folder = PACKAGE.parent / "course"
    for path in sorted((folder / "minihybrid_course").rglob("*.py")):
        if "data" not in path.parts:  # scripts in cells, for other libraries
            parts = path.relative_to(folder).with_suffix("").parts
            paths[".".join(parts).removesuffix(".__init__")] = path
    return {m: count(path.read_text(encoding="utf-8")) for m, path in paths.items()}


def part_of(module: str) -> Part:
    """The part of a module: of all names that fit, the longest counts."""
    fits = [
        (len(name), part)
        for part in PARTS
        for name in part.modules.split()
        if f"{module}.".startswith(f"{name}.")
    ]
    if not fits:
        raise LookupError(
            f"{module} is in no part; name it or its package in PARTS (tools/lines.py)"
        )
    return max(fits)[1]


def beside_goal(n_lines: int, goal: int) -> str:
    """A number of lines, the goal, and by how much that is exceeded."""
    return f"{n_lines:7,} of {goal:6,}" + (n_lines > goal) * f", over by {n_lines - goal:,}"


def table(counted: dict[str, int]) -> list[str]:
    """The modules of each part with their lines, then all parts and groups, and their goals."""
    width, lines, sums = max(map(len, counted)), [], {}
    for part in PARTS:
        own = {m: n for m, n in counted.items() if part_of(m) is part}
        sums[part] = sum(own.values())
        lines += [f"{part.name}: {len(own)} modules"] if own else []
        lines += [f"  {m:{width}} {n:7,}" for m, n in own.items()] + [""] * bool(own)
    lines += [f"{part.name:10} {beside_goal(n, part.goal)}" for part, n in sums.items()] + [""]
    for group, goal in GROUPS.items():
        n_lines = sum(n for part, n in sums.items() if part.group == group)
        lines.append(f"{group:10} {beside_goal(n_lines, goal)}")
    return [*lines, f"{'total':10} {sum(counted.values()):7,} in {len(counted)} modules"]


if __name__ == "__main__":
    print(*table(counts()), sep="\n")
