"""Memory that plans get is full of NaN, or of -1: what nobody writes is seen.

Fresh memory holds zeros as a rule, and an arena that was used before holds the numbers
of the last call: both look like answers. (The simulated GPU fills its memory itself.)
"""

from contextlib import contextmanager
from unittest import mock

import numpy as np

from minihybrid.core import placement, plan
from minihybrid.runtime import donation


def poisoned(array):
    """The array, all bits set."""
    array.reshape(-1).view(np.uint8)[...] = 255
    return array


def aligned(shape, dtype):
    """A new arena."""
    return poisoned(placement.aligned(shape, dtype))


class Pool(list):
    """Arenas; one that was used before is as unknown as a new one."""

    def pop(self):
        """An arena that nobody uses."""
        return poisoned(super().pop())


class Reuse(donation.Reuse):
    """Memory of results, whose old numbers are gone."""

    def __call__(self):
        return poisoned(super().__call__())


class NumPy:
    """NumPy, whose empty arrays are full of poison."""

    empty = staticmethod(lambda *args, **kwargs: poisoned(np.empty(*args, **kwargs)))

    def __getattr__(self, name):
        return getattr(np, name)


@contextmanager
def plans():
    """Inside this `with` block all memory of plans is poisoned before each call."""

    def runner(self, function, make=plan.Plan._runner):
        self.pool = Pool(self.pool)
        return make(self, function)

    with (
        mock.patch.object(plan, "np", NumPy()),
        mock.patch.object(donation, "Reuse", Reuse),
        mock.patch.object(plan.Plan, "_runner", runner),
        mock.patch.object(plan, "aligned", aligned),
    ):
        yield
