"""Which of the names that public Gluon programs use are here, and which are tested.

`python tests/api_names.py` prints the counts and the names that are missing.

golden/api_names.json lists the names as interfaces state them, by module or class:
"core" (everyday Gluon) and "wider"; after each name how many programs use it, and the
keyword arguments that they pass.
"""

import ast
import inspect
import json
import re
from functools import cache
from pathlib import Path

from minihybrid.attribute import KNOWN

import minihybrid as mx
from minihybrid.ops import OPS
from minihybrid.ops.signatures import Called

HERE = Path(__file__).parent
NAMES = json.loads((HERE / "golden" / "api_names.json").read_text("utf-8"))

# Core names that this engine leaves out on purpose: name -> the reason. Some are there
# and say so when they are called; they count as missing.
OUT_OF_SCOPE = {
    "nd.sparse.csr_matrix": "sparse storage",
    "nd.sparse.CSRNDArray": "sparse storage",
    "nd.NDArray.tostype": "sparse storage",
    "nd.broadcast_maximum": "it has no axis; MXNet ignores the argument",
    "sym.Reshape": "target_shape, which MXNet warns against; shape says the same",
}

# What an attribute is looked for on if the class itself lacks it.
EXAMPLES = {
    "Block": lambda: mx.gluon.Block(),
    "HybridBlock": lambda: mx.gluon.HybridBlock(),
    "SymbolBlock": lambda: mx.gluon.SymbolBlock(mx.sym.var("x"), mx.sym.var("x")),
    "Parameter": lambda: mx.gluon.Parameter("p", shape=(1,)),
    "Trainer": lambda: mx.gluon.Trainer([], "sgd"),
    "Dense": lambda: mx.gluon.nn.Dense(1),
    "Conv2D": lambda: mx.gluon.nn.Conv2D(1, 1),
    "BatchNorm": lambda: mx.gluon.nn.BatchNorm(),
    "Executor": lambda: mx.sym.var("x").bind(mx.cpu(), {"x": mx.nd.ones(1)}),
    "Function": lambda: mx.autograd.Function(),
    "Optimizer": lambda: mx.optimizer.SGD(),
    "FactorScheduler": lambda: mx.lr_scheduler.FactorScheduler(1),
    "Context": lambda: mx.cpu(),
    "Constant": lambda: mx.init.Constant(1),
    "F1": lambda: mx.metric.F1(),
}


def full_name(section, name):
    """`nd.NDArray.shape`; a class's own entry repeats the section's name."""
    return name if section in ("mx", name) else f"{section}.{name}"


def resolve(path):
    """What a dotted path under minihybrid means.

    Raises:  AttributeError if there is no such name; what Python's `object` gives to
             every class does not count.
    """
    actual = mx
    for part in path.removesuffix(" (set)").split("."):
        if isinstance(actual, type):
            if getattr(actual, part, None) is getattr(object, part, mx):
                raise AttributeError(f"{path}: inherited from object only")
            if not hasattr(actual, part) and actual.__name__ in EXAMPLES:
                actual = EXAMPLES[actual.__name__]()
        owner, actual = actual, getattr(actual, part)
    if path.endswith(" (set)"):
        example = EXAMPLES[owner.__name__]() if isinstance(owner, type) else owner
        setattr(example, part, getattr(example, part))
    return actual


def refused(path, actual, keywords):
    """The keywords that a call would not accept, as far as signatures tell."""
    names, free = set(), True
    for function in inspect.getmro(actual) if isinstance(actual, type) else [actual]:
        if (
            function is object
            or not free
            or isinstance(actual, type)
            and "__init__" not in vars(function)
        ):
            continue
        # What is taken, not what is shown: a record's function takes attributes of nodes, too.
        if isinstance(getattr(function, "__wrapped__", None), Called):
            parameters = inspect.signature(function, follow_wrapped=False).parameters
        else:
            parameters = inspect.signature(function).parameters
        names |= set(parameters)
        free = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    op = OPS.get(path.rpartition(".")[2])
    if free and op and path.startswith(("nd.", "sym.")):  # it passes them to its record
        inputs = op.inputs if isinstance(op.inputs, tuple) else op.inputs(None)
        names |= {*inputs, *op.attrs, "name", *["num_args"] * op.variadic}
        names |= KNOWN if path.startswith("sym.") else set()  # attributes of any node
        free = False
    return [] if free else [k for k in keywords if k not in names]


def state(path, keywords):
    """`None` if the name is there and takes the keywords, else what is missing."""
    try:
        actual = resolve(path)
    except (AttributeError, TypeError) as error:
        return f"missing ({error})" if isinstance(error, TypeError) else "missing"
    if keywords and callable(actual):
        wrong = refused(path, actual, keywords)
        return f"does not take {', '.join(wrong)}" if wrong else None
    return None


# -- is it tested? ---------------------------------------------------------------------
SIGNS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.USub: "neg",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}


def words(tree):
    """Every name, attribute, keyword and sign in some source, signs as `__add__`."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=word, ctx=ast.Store()):
                yield from (word, "__setattr__")
            case ast.Attribute(attr=word) | ast.Name(id=word) | ast.keyword(arg=word):
                yield word
            case ast.Constant(value=str(word)):
                yield word
            case ast.BinOp(left=left, op=sign) if type(sign) in SIGNS:
                r = "r" * isinstance(left, ast.Constant)
                yield f"__{r}{SIGNS[type(sign)]}__"
            case ast.AugAssign(op=sign) if type(sign) in SIGNS:
                yield f"__i{SIGNS[type(sign)]}__"
            case ast.UnaryOp(op=ast.USub()):
                yield "__neg__"
            case ast.Compare(ops=signs):
                yield from (f"__{SIGNS[type(s)]}__" for s in signs if type(s) in SIGNS)
            case ast.Subscript(ctx=ast.Store()):
                yield "__setitem__"
            case ast.Subscript():
                yield "__getitem__"
            case ast.For() | ast.comprehension():
                yield "__iter__"
            case ast.Call(func=ast.Name(id="len" | "abs" | "repr" as function)):
                yield f"__{function}__"
            case ast.Call():
                yield "__call__"
            case ast.ClassDef(bases=bases):
                yield from (b.attr for b in bases if isinstance(b, ast.Attribute))


@cache
def tested_words():
    """All words of all tests but this one, and of the cases that they read."""
    actual = {
        w
        for file in HERE.rglob("*.py")
        if file != Path(__file__)
        for w in words(ast.parse(file.read_text("utf-8")))
    }
    for file in HERE.glob("golden/*/*.json"):
        actual |= set(re.findall(r"\w+", file.read_text("utf-8")))
    return actual


def is_tested(path):
    """Whether tests use the last part of the name, or it is an operator's.

    Laws quantify over all operators. For other names this is no more than a search for
    the word: it finds what no test ever mentions.
    """
    last = path.removesuffix(" (set)").rpartition(".")[2]
    return last in OPS or last in tested_words()


def report():
    """kind -> (number listed, [(name, use, what is missing)], [untested names])."""
    actual = {}
    for kind in "core", "wider":
        listed = [
            (full_name(section, name), *entry)
            for section, kinds in NAMES.items()
            for name, entry in kinds.get(kind, {}).items()
        ]
        missing = [
            (path, count, what)
            for path, count, *keywords in listed
            if (what := "left out" if path in OUT_OF_SCOPE else state(path, keywords))
        ]
        gone = {path for path, *_ in missing}
        untested = [path for path, *_ in listed if path not in gone and not is_tested(path)]
        actual[kind] = len(listed), missing, untested
    return actual


def main():
    """Print counts first, then names."""
    actual = report()
    for kind, (listed, missing, untested) in actual.items():
        present = listed - len(missing)
        print(
            f"{kind}: {present} present / {listed} listed, "
            f"{present - len(untested)} present and tested / {listed} listed"
        )
    for kind, (_, missing, untested) in actual.items():
        for path, count, what in missing:
            reason = OUT_OF_SCOPE.get(path)
            print(
                f"{kind}: {path} ({count} programs): {what}"
                + f"; out of scope: {reason}" * bool(reason)
            )
        for path in untested:
            print(f"{kind}: {path}: no test uses it")


if __name__ == "__main__":
    main()
