"""Print the lines of code per module, in reading order.

Blank lines, comments and docstrings are not code.
"""
import ast
import io
import tokenize

from test_layout import READING_ORDER, path_of

NOT_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENCODING, tokenize.ENDMARKER,
}


def count(source):
    """Return the number of lines of `source` that hold code."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):   # a docstring
                lines.difference_update(range(node.lineno, node.end_lineno + 1))
    return len(lines)


if __name__ == "__main__":
    counts = {m: count(path_of(m).read_text(encoding="utf-8")) for m in READING_ORDER}
    width = max(map(len, counts))
    for module, n_lines in counts.items():
        print(f"{module:{width}} {n_lines:5d}")
    print(f"{'total':{width}} {sum(counts.values()):5d}")
