"""Small faults, one at a time: what is changed, and where.

The changes are cosmic-ray's, and one of ours: the texts that become kernels are Python
too, so their operators are exchanged like those of the code around them.
What is left out: messages of errors, docstrings, and what only the type checker reads.
"""

import ast
import re
from pathlib import Path
from random import Random
from typing import NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator

PACKAGE = Path(__file__).parents[2] / "minihybrid"

AREAS = {  # area -> its modules
    "records": ["core/op.py", "ops/**/*.py"],
    "passes": ["core/passes/*.py", "passes/*.py"],
    "code generation": ["core/numpy_target.py", "codegen/**/*.py"],
    "readers": [
        "core/files.py",
        "core/params.py",
        "formats/legacy.py",
        "core/serial.py",
        "formats/onnx/load/*.py",
    ],
}

CHANGES = """
    Binary: Add_Sub Sub_Add Mul_Add Div_Mul FloorDiv_Mul Mod_Mul Pow_Mul BitOr_BitAnd
            BitAnd_BitOr LShift_RShift RShift_LShift
    Comparison: Eq_NotEq NotEq_Eq Lt_LtE LtE_Lt Gt_GtE GtE_Gt Lt_GtE Gt_LtE Is_IsNot
                IsNot_Is
    Unary: USub_UAdd Delete_USub Delete_Not
""".split()


def _operators():
    kind = ""
    for word in CHANGES:
        if word.endswith(":"):
            kind = word[:-1]
        else:
            yield get_operator(f"core/Replace{kind}Operator_{word}")()
    for name in (
        "AddNot",
        "ReplaceTrueWithFalse",
        "ReplaceFalseWithTrue",
        "ReplaceAndWithOr",
        "ReplaceOrWithAnd",
        "ReplaceBreakWithContinue",
        "ReplaceContinueWithBreak",
        "NumberReplacer",
        "ZeroIterationForLoop",
    ):
        yield get_operator(f"core/{name}")()
    yield KernelText()


class KernelText(Operator):
    """Another operator, or another number, in a text that becomes part of a kernel."""

    SWAPS = {
        " + ": " - ",
        " - ": " + ",
        " * ": " + ",
        " / ": " * ",
        " // ": " * ",
        " % ": " * ",
        " < ": " <= ",
        " <= ": " < ",
        " > ": " >= ",
        " >= ": " > ",
        " == ": " != ",
        " and ": " or ",
        "T(0)": "T(1)",
        "T(1)": "T(0)",
        "[0]": "[1]",
        "range(1,": "range(",
    }
    FOUND = re.compile("|".join(map(re.escape, SWAPS)))

    def mutation_positions(self, node):
        """One change each operator in the text."""
        if node.type in ("string", "fstring_string"):
            for _ in self.FOUND.finditer(node.value):
                yield node.start_pos, node.end_pos

    def mutate(self, node, index):
        """The text with one operator exchanged."""
        old = list(self.FOUND.finditer(node.value))[index]
        node.value = node.value[: old.start()] + self.SWAPS[old.group()] + node.value[old.end() :]
        return node

    @classmethod
    def examples(cls):
        """None; the tests of this tool have their own."""
        return ()


class Mutant(NamedTuple):
    """One change: the module from the package on, the line, and both texts of it."""

    area: str
    module: str
    line: int
    before: str
    after: str
    source: str  # of the changed module

    def __str__(self):
        return f"{self.module}:{self.line}\n    - {self.before}\n    + {self.after}"


def places(area):
    """Every place in an area where something can be changed: (module, operator, n)."""
    result = []
    for pattern in AREAS[area]:
        for path in sorted(PACKAGE.glob(pattern)):
            source = path.read_text("utf-8")
            silent, nodes = _silent(source), [*ast_nodes(get_ast(source))]
            for operator in _operators():
                if isinstance(operator, KernelText) and area not in ("records", "code generation"):
                    continue
                lines = [
                    start[0] for node in nodes for start, _ in operator.mutation_positions(node)
                ]
                result += [
                    (path, operator, n) for n, line in enumerate(lines) if line not in silent
                ]
    return result


def _silent(source):
    """Lines of docstrings, errors and doctests: no change there is a fault."""
    lines = set()
    for node in ast.walk(ast.parse(source)):
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        doc = isinstance(node, ast.keyword) and node.arg == "doc"
        if text or doc or isinstance(node, (ast.Raise, ast.Assert)):
            lines.update(range(node.lineno, node.end_lineno + 1))
    return lines


def draw(area, count, seed):
    """So many different mutants of an area, the same for the same seed and source."""
    everywhere, random, mutants = places(area), Random(f"{area} {seed}"), []
    random.shuffle(everywhere)
    for path, operator, n in everywhere:
        if len(mutants) == count:
            break
        made = mutant(area, path, operator, n)
        if made:
            mutants.append(made)
    return mutants


def mutant(area, path, operator, n):
    """The n-th change of an operator in a module; None if it means the same."""
    source = path.read_text("utf-8")
    changed = mutate_code(source, operator, n)
    try:
        same = changed is None or ast.dump(ast.parse(changed)) == ast.dump(ast.parse(source))
    except SyntaxError:
        same = True
    if same:
        return None
    old, new = source.splitlines(), changed.splitlines()
    line = next(i for i, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1])
    return Mutant(
        area,
        path.relative_to(PACKAGE).as_posix(),
        line + 1,
        old[line].strip(),
        new[line].strip(),
        changed,
    )
