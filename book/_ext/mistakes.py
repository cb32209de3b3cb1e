"""Sphinx extension: what goes wrong and what goes right, run while the book is built.

    ```{mistakes} rules
    ```

`book/mistakes.toml` holds pairs of small programs. The page shows the wrong one with the
error it raises, or its output if it raises none, then the cause, the remedy, and the right
program, which must run.
"""

import contextlib
import io
import linecache
import os
import re
import tempfile
import tomllib
import warnings
from pathlib import Path

import numpy as np
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import minihybrid as mx
from minihybrid import autograd, gluon, nd, sym
from minihybrid.gluon import nn

FILE = Path(__file__).resolve().parents[1] / "mistakes.toml"
AT_HAND = dict(mx=mx, nd=nd, sym=sym, autograd=autograd, gluon=gluon, nn=nn, np=np)


def table():
    """All mistakes, in the order of the file."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))["mistake"]


def ran(program, name="your.py"):
    """(what a program prints, the error that ends it or `None`), in an empty folder."""
    printed, error, here = io.StringIO(), None, os.getcwd()
    # From here errors read the line at fault.
    linecache.cache[name] = len(program), None, program.splitlines(keepends=True), name
    mx.random.seed(0)
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(printed),
        warnings.catch_warnings(record=True) as warned,
    ):
        os.chdir(folder)
        warnings.simplefilter("always")
        try:
            exec(compile(program, name, "exec"), {"__name__": "__main__", **AT_HAND})
        except Exception as caught:
            error = caught
        finally:
            os.chdir(here)
    warnings_shown = [f"{w.category.__name__}: {w.message}\n" for w in warned]
    return printed.getvalue() + "".join(warnings_shown), error


def output_of(program):
    """What the reader sees: what is printed, and the error in one line."""
    printed, error = ran(program)
    return printed.rstrip() + f"\n{type(error).__name__}: {error}" * (error is not None)


def prose(text, label=""):
    """A paragraph of text in which `this` is code, behind a label."""
    paragraph = nodes.paragraph()
    paragraph += [nodes.strong(text=label)] * bool(label)
    for i, part in enumerate(text.split("`")):
        paragraph += nodes.literal(text=part) if i % 2 else nodes.Text(part)
    return paragraph


def code(text, language, *classes):
    text = text.strip("\n")  # once: a block whose two texts differ gets no colors
    return nodes.literal_block(text, text, language=language, classes=list(classes))


class Mistakes(SphinxDirective):
    """The mistakes of one page, each a section."""

    required_arguments = 1

    def run(self):
        self.env.note_dependency(str(FILE))
        return [self.entry(m) for m in table() if m["page"] == self.arguments[0]]

    def entry(self, mistake):
        title = mistake["title"]
        section = nodes.section(ids=[re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")])
        section += nodes.title("", "", *prose(title).children)
        section += code(mistake["wrong"], "python")
        section += code(output_of(mistake["wrong"]), "text", "told")
        section += prose(mistake["why"], "Cause: ")
        section += prose(mistake["cure"], "Remedy: ")
        section += code(mistake["right"], "python")
        if printed := output_of(mistake["right"]):
            section += code(printed, "text", "told", "right")
        return section


def setup(app):
    app.add_directive("mistakes", Mistakes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
