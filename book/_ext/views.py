"""Sphinx extension: what a few lines of Python show in a notebook, made with the page.

    ```{view}
    from minihybrid_course import packing

    packing({"a": (0, 1, 128), "b": (1, 2, 64)})
    ```

The lines run while the book is built, so what the page shows is what the engine does.
"""

import ast
import linecache

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


def shown(source, name="<view>"):
    """Run Python; the HTML of its last line, which is an expression."""
    tree = ast.parse(source, name)
    *body, last = tree.body
    # From here `inspect` reads the text of the functions that are defined.
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    scope = {"__name__": "__main__"}
    exec(compile(ast.Module(body, []), name, "exec"), scope)
    value = eval(compile(ast.Expression(last.value), name, "eval"), scope)
    return value._repr_html_()


class View(SphinxDirective):
    """The HTML of a program's last value; it says what it is in words, too."""

    has_content = True

    def run(self):
        html = shown("\n".join(self.content) + "\n", f"<view {self.env.docname}>")
        return [nodes.raw("", html, format="html")]


def setup(app):
    app.add_directive("view", View)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
