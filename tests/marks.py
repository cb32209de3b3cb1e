"""Which cases are for which tier: `make quick`, `make test`, `make test-all`."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings

from minihybrid import random


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


def for_each(values, size=20):
    """Try a law of one value on all of them, `size` in a test: pytest needs 3 ms for each test.

    The law takes a value, and fixtures behind it. Random numbers start anew for each value,
    and a failure names the values that break the law.
    """

    def batched(law):
        def test(values, **fixtures):
            failures = []
            for value in values:
                random.seed(0)
                np.random.seed(0)
                try:
                    law(value, **fixtures)
                except Exception as error:
                    error.add_note(f"so {name_of(value)} breaks the law")
                    failures.append(error)
            if failures:
                raise ExceptionGroup("values that break the law", failures)

        _, *fixtures = inspect.signature(law).parameters.values()
        first = inspect.Parameter("values", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        test.__signature__ = inspect.Signature([first, *fixtures])
        test.__name__, test.__doc__, test.__module__ = law.__name__, law.__doc__, law.__module__
        return pytest.mark.parametrize("values", parts, ids=lambda p: "-".join(map(name_of, p)))(
            test
        )

    values = list(values)
    parts = [values[i : i + size] for i in range(0, len(values), size)]
    return batched


def name_of(value):
    return getattr(value, "name", str(value))
