"""Print the lines of code per module, in reading order: core, records, extensions.

Blank lines, comments and docstrings are not code, nor are lines of nothing but closing
brackets, which the formatter puts there.
"""

import ast
import io
import tokenize

from modules import READING_ORDER, path_of

NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
CLOSING = (")", "]", "}", ",", ":")  # with what stands behind them


def count(source):
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


def room(module):
    """What a module belongs to."""
    rooms = {"core": "the core", "ops": "records"}
    return rooms.get(module.split(".")[0], "extensions")


def table(counts):
    """The lines of a table of module -> lines of code, with a sum for each room."""
    width, lines = max(map(len, counts)), []
    for name in ("the core", "records", "extensions"):
        own = {m: n for m, n in counts.items() if room(m) == name}
        lines += [f"{m:{width}} {n:6d}" for m, n in own.items()]
        lines += [f"{name:{width}} {sum(own.values()):6d} in {len(own)} modules", ""]
    return [*lines, f"{'total':{width}} {sum(counts.values()):6d} in {len(counts)}"]


if __name__ == "__main__":
    print(
        *table({m: count(path_of(m).read_text(encoding="utf-8")) for m in READING_ORDER}), sep="\n"
    )
