"""What `help`, `dir()` and completion are told by objects: signatures, public names."""

import inspect
import sys
import types

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import nd, sym
from minihybrid.core.op import REQUIRED
from minihybrid.ops import OPS
from minihybrid.ops.signatures import NEEDED, signature


def public_modules():
    """Every module of ours that one meets by `dir()`, from the package on: path -> module."""
    actual, todo = {}, [("", mx)]
    while todo:
        path, module = todo.pop()
        for name in dir(module):
            thing = getattr(module, name)
            if isinstance(thing, types.ModuleType) and thing not in actual.values():
                actual[f"{path}{name}"] = thing
                todo.append((f"{path}{name}.", thing))
    return actual


PUBLIC = public_modules()


@pytest.mark.parametrize("space", [nd, sym], ids=["nd", "sym"])
def test_every_function_shows_inputs_and_defaults_of_its_record(space):
    tried = 0
    for name in set(OPS) & set(dir(space)):
        function, op = getattr(space, name), OPS[name]
        if getattr(function, "__module__", "") != "minihybrid.ops.infix":
            continue  # written by hand, as nd.zeros
        shown = inspect.signature(function).parameters
        inputs = ["data"] if op.variadic else op.input_names(None)
        assert list(shown) == [*inputs, *op.attrs, "name", "out", "ctx", "attr"], name
        for key, (_, default) in op.attrs.items():
            actual = shown[key].default
            if default is REQUIRED:
                assert actual in (inspect.Parameter.empty, NEEDED), (name, key)
            else:
                assert actual == (default.name if isinstance(default, np.dtype) else default)
        tried += 1
    assert tried > 200


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("method", [False, True])
def test_every_signature_is_one_that_python_allows(symbolic, method):
    for op in set(OPS.values()):
        if op.inputs:
            actual = signature(op, symbolic, method).parameters.values()
            inspect.Signature(list(actual))  # raises where a default stands before none


def test_methods_show_what_the_functions_do():
    """MXNet's names and defaults, without the array itself."""
    shown = str(inspect.signature(nd.ones(1).softmax))
    assert shown == "(length=None, axis=-1, temperature=None, dtype=None, use_length=False)"
    assert "num_hidden=..." in str(inspect.signature(nd.FullyConnected))


def test_public_modules_are_found():
    assert len(PUBLIC) > 45
    assert {"context", "runtime", "gluon.block", "gluon.data.vision.transforms"} <= set(PUBLIC)


@pytest.mark.parametrize("path", PUBLIC)
def test_dir_shows_public_names_only(path):
    module = PUBLIC[path]
    shown = [name for name in dir(module) if not name.startswith("__")]
    assert shown and not [name for name in shown if name.startswith("_")]
    for name in shown:
        thing = getattr(module, name)  # all are there
        if isinstance(thing, types.ModuleType):
            assert thing.__name__.startswith("minihybrid."), name
        elif path != "np" and inspect.isroutine(thing) or inspect.isclass(thing):
            home = thing.__module__
            ours = home.startswith("minihybrid") or home in ("_operator", "functools")
            assert ours or isinstance(thing, type) and issubclass(thing, np.generic | bool), name


def test_dir_of_the_package_is_what_it_offers():
    assert dir(mx) == sorted(mx.__all__)
    assert mx.passes is sys.modules["minihybrid.passes"]  # there, and not shown


def test_what_modules_import_is_not_shown():
    assert "Integral" not in dir(mx.gluon.nn) and "Dense" in dir(mx.gluon.nn)
    assert "deque" not in dir(mx.gluon.data) and "DataLoader" in dir(mx.gluon.data)
    assert {"softmax", "array", "NDArray", "random", "linalg"} <= set(dir(nd))
    assert {"onp", "fitted", "OPS"}.isdisjoint(dir(nd))
