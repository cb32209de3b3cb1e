"""Signatures of operators' functions, for editors and `help`.

Defines: `signature`; `Called`, a lazily computed `__signature__`.

Limits: no types; a wrong argument is explained when it is used.
"""

from inspect import Parameter, Signature

import numpy as np

from minihybrid.core.op import REQUIRED

POSITIONAL, KEYWORD = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY


class Needed:
    """The default of a required parameter after optional ones; prints as `...`."""

    def __repr__(self):
        return "..."


NEEDED = Needed()
# Further parameters of functions in `nd` and `sym`.
MORE = [Parameter(name, KEYWORD, default=None) for name in ("name", "out", "ctx", "attr")]


def signature(op, symbolic=False, method=False, more=MORE):
    """Return an operator's signature: its inputs, then its attributes with defaults.

    symbolic: all inputs but the first are optional and become variables.
    method:  the first input is `self`, and there are no further parameters.
    more:    further parameters of a function.

    >>> from minihybrid.ops import OPS
    >>> signature(OPS["FullyConnected"], method=True)
    <Signature (self, weight, bias=None, num_hidden=..., no_bias=False, flatten=True)>
    """
    fixed = isinstance(op.inputs, tuple)
    names = op.inputs if fixed else op.inputs(None)
    needed = 1 if symbolic or not fixed else len(names)
    if not fixed and len(names) > 2:  # the last of data, weight and bias
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
    kind = KEYWORD if op.variadic else POSITIONAL
    for name, (_, default) in op.attrs.items():
        if default is REQUIRED:
            optional = parameters and parameters[-1].default is not Parameter.empty
            default = NEEDED if optional else Parameter.empty
        elif isinstance(default, np.dtype):
            default = default.name
        parameters.append(Parameter(name, kind, default=default))
    return Signature(parameters if method else [*parameters, *more], __validate_parameters__=False)


class Called:
    """Computes the signature of an operator's function when `inspect` reads it."""

    def __init__(self, op, **how):
        self.op, self.how = op, how

    @property
    def __signature__(self):
        return signature(self.op, **self.how)
