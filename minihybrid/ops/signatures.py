"""What editors and `help` show: how an operator is called.

Takes:   records.
Gives:   `signature`; `Called`, which a function made of a record wears.

What is left out: what an argument may be; that is said when it is not.
"""

from inspect import Parameter, Signature

import numpy as np

from minihybrid.core.op import REQUIRED

POSITIONAL, NAMED = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY


class Needed:
    """Stands for a value that must be given, though one before it may be left out."""

    def __repr__(self):
        return "..."


NEEDED = Needed()
# What the functions of `nd` and `sym` take beside.
MORE = [Parameter(name, NAMED, default=None) for name in ("name", "out", "ctx", "attr")]


def signature(op, symbolic=False, method=False, more=MORE):
    """How an operator is called: its inputs, then its attributes with their defaults.

    symbolic: all inputs but the first may be left out, and become variables.
    method:  the first input is `self`, and nothing else is taken beside.
    more:    parameters that a function takes beside.

    >>> from minihybrid.ops import OPS
    >>> signature(OPS["FullyConnected"], method=True)
    <Signature (self, weight, bias=None, num_hidden=..., no_bias=False, flatten=True)>
    """
    fixed = isinstance(op.inputs, tuple)
    names = op.inputs if fixed else op.inputs(None)
    needed = 1 if symbolic or not fixed else len(names)
    if not fixed and len(names) > 2:  # of data, weight and bias the last
        needed = 1 if symbolic else 2
    if op.variadic:
        parameters = [Parameter("data", Parameter.VAR_POSITIONAL)]
    else:
        free = [Parameter.empty] * needed + [None] * len(names)
        parameters = [
            Parameter(n, POSITIONAL, default=d) for n, d in zip(names, free, strict=False)
        ]
    if method and op.variadic:
        parameters.insert(0, Parameter("self", Parameter.POSITIONAL_ONLY))
    elif method:
        parameters[0] = parameters[0].replace(name="self")
    kind = NAMED if op.variadic else POSITIONAL
    for name, (_, default) in op.attrs.items():
        if default is REQUIRED:
            optional = parameters and parameters[-1].default is not Parameter.empty
            default = NEEDED if optional else Parameter.empty
        elif isinstance(default, np.dtype):
            default = default.name
        parameters.append(Parameter(name, kind, default=default))
    return Signature(parameters if method else [*parameters, *more], __validate_parameters__=False)


class Called:
    """Tells `inspect`, when it asks, how a function is called that was made of a record."""

    def __init__(self, op, **how):
        self.op, self.how = op, how

    @property
    def __signature__(self):
        return signature(self.op, **self.how)
