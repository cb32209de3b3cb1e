"""Print the lines of code per module, in reading order, and each ring beside its goal.

A ring is a part of the house: modules import their own ring and those above it. The goals
are where the code should get to, and a ring that is larger says by how much. Blank lines,
comments and docstrings are not code, nor are lines of nothing but closing brackets, which
the formatter puts there.
"""

import ast
import io
import tokenize
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


class Ring(NamedTuple):
    """A part of the house.

    group:    what is installed for whom: the engine, its shelf, or the course.
    goal:     the most lines of code.
    modules:  modules and packages of minihybrid/, and `minihybrid_course`; a module belongs to
              the ring that names it, or the smallest package around it.
    """

    name: str
    group: str
    goal: int
    modules: str


RINGS = (
    Ring("core", "engine", 4_900, "core registrations __init__ __main__"),
    Ring("ops", "engine", 7_000, "ops"),
    Ring("passes", "engine", 1_100, "passes"),
    Ring("codegen", "engine", 3_600, "codegen ops.cpu ops.gpu ops.loops"),
    Ring("runtime", "engine", 1_600, "runtime"),
    Ring("gluon, np", "engine", 5_300, "gluon np"),
    Ring("formats", "shelf", 2_600, "formats"),
    Ring("simt", "shelf", 1_600, "simt"),
    Ring("view", "shelf", 1_400, "view"),
    Ring("mxnet", "shelf", 3_400, "mxnet ops.anchors ops.boxes ops.regions ops.ctc"),
    Ring("course", "course", 6_000, "minihybrid_course"),
)
GROUPS = {"engine": 23_000, "shelf": 9_000, "course": 6_000}  # the most lines of code


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


def ring_of(module: str) -> Ring:
    """The ring of a module: of all names that fit, the longest counts."""
    fits = [
        (len(name), ring)
        for ring in RINGS
        for name in ring.modules.split()
        if f"{module}.".startswith(f"{name}.")
    ]
    if not fits:
        raise LookupError(
            f"{module} is in no ring; name it or its package in RINGS (tools/lines.py)"
        )
    return max(fits)[1]


def beside_goal(n_lines: int, goal: int) -> str:
    """A number of lines, the goal, and by how much that is exceeded."""
    return f"{n_lines:7,} of {goal:6,}" + (n_lines > goal) * f", over by {n_lines - goal:,}"


def table(counted: dict[str, int]) -> list[str]:
    """The modules of each ring with their lines, then all rings and groups, and their goals."""
    width, lines, sums = max(map(len, counted)), [], {}
    for ring in RINGS:
        own = {m: n for m, n in counted.items() if ring_of(m) is ring}
        sums[ring] = sum(own.values())
        lines += [f"{ring.name}: {len(own)} modules"] if own else []
        lines += [f"  {m:{width}} {n:7,}" for m, n in own.items()] + [""] * bool(own)
    lines += [f"{ring.name:10} {beside_goal(n, ring.goal)}" for ring, n in sums.items()] + [""]
    for group, goal in GROUPS.items():
        n_lines = sum(n for ring, n in sums.items() if ring.group == group)
        lines.append(f"{group:10} {beside_goal(n_lines, goal)}")
    return [*lines, f"{'total':10} {sum(counted.values()):7,} in {len(counted)} modules"]


if __name__ == "__main__":
    print(*table(counts()), sep="\n")
