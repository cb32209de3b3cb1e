"""The names that public Gluon programs use are here, and tests use them."""

import ast

import api_names
import pytest


@pytest.fixture(scope="module")
def report():
    return api_names.report()


def test_no_core_name_is_missing_but_those_out_of_scope(report):
    _, missing, _ = report["core"]
    gone = {path: what for path, _, what in missing}
    wrong = [f"{path}: {what}" for path, what in gone.items() if path not in api_names.OUT_OF_SCOPE]
    assert not wrong, "\n".join(wrong)
    assert not api_names.OUT_OF_SCOPE.keys() - gone.keys(), "reasons for no core name"


def test_every_core_name_that_is_here_is_tested(report):
    _, _, untested = report["core"]
    assert not untested, ", ".join(untested)


def test_the_list_is_what_it_should_be():
    for section, kinds in api_names.NAMES.items():
        assert kinds.keys() <= {"core", "wider"}, section
        for name, (count, *keywords) in (e for k in kinds.values() for e in k.items()):
            assert isinstance(count, int) and all(k.isidentifier() for k in keywords), name


@pytest.mark.parametrize(
    "path, keywords, what",
    [
        ("nd.relu", [], None),
        ("nd.no_such", [], "missing"),
        ("nd.relu", ["name", "slope"], "does not take slope"),
        ("nd.NDArray.asnumpy", [], None),
        ("nd.NDArray.sum", ["axis", "no_such"], "does not take no_such"),
        ("sym.FullyConnected", ["num_hidden", "name", "slope"], "does not take slope"),
        ("gluon.nn.Dense", ["units", "prefix", "spam"], "does not take spam"),
        ("gluon.nn.Dense.weight", [], None),
        ("gluon.nn.Dense.spam", [], "missing"),
        ("gluon.Trainer.__lt__", [], "missing"),  # only what `object` has
        ("gluon.Parameter.grad_req (set)", [], None),
        ("optimizer.Adam", ["lazy_update", "wd", "spam"], "does not take spam"),
    ],
)
def test_what_is_missing_is_found(path, keywords, what):
    assert api_names.state(path, keywords) == what


def test_words_of_a_test_are_names_and_signs():
    source = "2 * x; x += mx.nd.relu(y, out=z); -x; a < b; x[0] = len(x)"
    assert set(api_names.words(ast.parse(source))) >= {
        "relu",
        "out",
        "__rmul__",
        "__iadd__",
        "__neg__",
        "__lt__",
        "__setitem__",
        "__len__",
    }
    assert not api_names.is_tested("no.test.says_this" + "_word")
