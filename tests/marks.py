"""Which cases are for which tier: `make quick`, `make test`, `make test-all`."""

import pytest
from hypothesis import given, settings


def marked(mark):
    """Makes cases of a parameter, marked; cases may be of `pytest.param`."""

    def make(*cases):
        return [
            pytest.param(*getattr(case, "values", [case]), id=getattr(case, "id", None), marks=mark)
            for case in cases
        ]

    return make


slow = marked(pytest.mark.slow)  # not for `make quick`
external = marked(pytest.mark.external)  # for `make test-all`: more of the same


def numbers_drawn(few, many):
    """How many examples a law is tried on, by `try_law`."""
    return pytest.mark.parametrize("n_drawn", [few, *external(many)], ids=["few", "many"])


def try_law(law, strategy, n_drawn, **more):
    """Draw examples, and try the law on each."""
    settings(max_examples=n_drawn, **more)(given(strategy)(law))()
