"""Chapter 12. An operator that is made of one other: which one, and with which attributes.

Takes:   records, and the specs and attributes of an application.
Gives:   `only_step`, for whoever wants to go to that operator at once.

What is left out: operators that are made of several.
"""

from minihybrid.core.op import UNEXPECTED


class Probe:
    """Stands for an array where `only_step` looks at what is done with it."""

    level = 2

    def __init__(self, *step):
        self.step = step

    @staticmethod
    def interpret(op, inputs, attrs, name=None):
        """Note down what is applied to what."""
        return Probe(op, inputs, attrs)


def only_step(op, specs, attrs):
    """(operator, attributes) of the one step that an operator is made of, or its own, and
    how many of the inputs that step reads: the first ones.

    >>> from minihybrid.core.op import Spec
    >>> from minihybrid.ops import OPS
    >>> matrix, attrs = Spec((2, 2), None), {"transpose_a": False, "transpose_b": False}
    >>> only_step(OPS["dot"], [matrix, matrix], attrs)[::2]
    (<Op _matmul>, 2)
    >>> ranges = dict.fromkeys(("lhs_begin", "lhs_end", "rhs_begin", "rhs_end"))
    >>> only_step(OPS["reshape_like"], [matrix, matrix], ranges)[::2]
    (<Op Reshape>, 1)
    """
    own = op, attrs, len(specs)
    if op.eager or op.modal or op.aux:
        return own
    probes = [Probe() for _ in specs]
    try:
        inner, inputs, given = op.expand(specs, *probes, **attrs).step
    except (AttributeError, *UNEXPECTED):  # it does more than apply operators
        return own
    n = len(inputs)
    return only_step(inner, specs[:n], given) if inputs == probes[:n] else own
