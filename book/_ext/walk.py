"""Sphinx extension: the lines that one call runs, in reading order, folded by stage."""

import ast
import re
import sys
from pathlib import Path
from textwrap import dedent

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))


def chapter_of(source):
    """The notebook whose number a module's first line names, or `None`."""
    number = re.match(r'"""Chapter (\d\d)\. ', source)
    found = sorted(ROOT.glob(f"notebooks/{number[1]}_*.ipynb")) if number else []
    return found[0].stem if found else None


def definitions(tree: ast.Module) -> dict[int, str]:
    """Line number -> name of the innermost function that holds the line, as `Block.__call__`."""
    found = {}

    def enter(node, name):
        for child in ast.iter_child_nodes(node):
            own = name
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                own = f"{name}.{child.name}".lstrip(".")
                found.update(dict.fromkeys(range(child.lineno, child.end_lineno + 1), own))
            enter(child, own)

    enter(tree, "")
    return found


def excerpt(source: str, numbers: list[int]) -> str:
    """Lines of a module, each function's below its name; line numbers change too easily."""
    lines, names, parts = source.splitlines(), definitions(ast.parse(source)), {}
    for n in numbers:
        parts.setdefault(names.get(n, ""), []).append(lines[n - 1])
    return "\n\n".join(f"# {name}\n" + dedent("\n".join(own)) for name, own in parts.items())


def piece(module, numbers):
    """A module's lines, in HTML, under its name and the chapter that opens it."""
    from reading_order import path_of

    source = path_of(module).read_text(encoding="utf-8")
    chapter = chapter_of(source)
    path = path_of(module).relative_to(ROOT).as_posix()
    link = f', <a href="../notebooks/{chapter}.html">chapter {chapter[:2]}</a>' if chapter else ""
    code = highlight(excerpt(source, numbers), PythonLexer(), HtmlFormatter(nowrap=True))
    head = f"<p><code>{path}</code>{link}, {len(numbers)} lines</p>"
    return f'{head}<div class="highlight"><pre class="wide" tabindex="0">{code}</pre></div>'


class Road(SphinxDirective):
    """The stages of a net's life, each folded, and how many lines they run."""

    def run(self):
        """Walk the road now, and write down what was run."""
        from call_trace import count, walked

        road = walked()
        core, records, rest = count(road)
        n_lines = sum(len(numbers) for _, lines in road for numbers in lines.values())
        found = [
            nodes.paragraph(
                text=(
                    f"{core + records + rest} statements in {n_lines} lines: {core} of the core, "
                    f"{records} of the operators' records, {rest} of other modules."
                )
            )
        ]
        for name, modules in road:
            n = sum(map(len, modules.values()))
            title = (
                f"{name[0].upper()}{name[1:]}: {n} new line{'s' * (n != 1)} in "
                f"{len(modules)} module{'s' * (len(modules) != 1)}"
            )
            body = "".join(piece(m, numbers) for m, numbers in modules.items())
            found.append(
                nodes.raw("", f"<details><summary>{title}</summary>{body}</details>", format="html")
            )
        return found


def setup(app):
    app.add_directive("road", Road)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
