"""Constant folding of shape computations in an ONNX graph.

Defines: `fold`, which computes a node if all its inputs are known.

Exporters write a reshape as a dozen nodes that take a shape apart and reassemble it; these
are all folded. The rule that makes symbols of a node also computes it, because operators run
on arrays, too.
Not supported: operators other than the few that exporters use for shapes.
"""

from minihybrid.formats.onnx.load.values import Call, Value

FOLDED = frozenset(
    """Abs Add And Cast Ceil Concat ConstantOfShape Div Equal Exp Expand Floor Gather Greater
    GreaterOrEqual Less LessOrEqual Max Min Mod Mul Neg Not Or Pow Range Reciprocal ReduceProd
    Reshape Slice Sqrt Squeeze Sub Tile Transpose Unsqueeze Where Xor""".split()
)
# Two trials can't decide these for every length: it may be 1 or 10 ** 9.
UNSURE = frozenset(("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min"))


def fold(call, rule):
    """Return a node's output in both trials; `None` if it can't be folded."""
    inputs = [v for v in call.inputs if v is not None]
    if call.node.op not in FOLDED or not inputs or any(v.arrays is None for v in inputs):
        return None
    same = all(v.fixed is not None for v in inputs)
    first = rule(Trial(call, 0)).data
    value = Value("", (first, first if same else rule(Trial(call, 1)).data))
    value.trained = any(v.trained for v in inputs)
    if (
        call.node.op in UNSURE
        and not same
        and value.fixed is not None
        and any(v.fixed is not None and (v.fixed > 1).any() for v in inputs)
    ):
        call.fail(
            "it compares a length that the file leaves open with a number; fix "
            "it when exporting (no dynamic axes)"
        )
    return value


class Trial(Call):
    """A node with the arrays of one trial as inputs: its rule computes instead of tracing."""

    def __init__(self, call, trial):
        vars(self).update(vars(call))
        self.inputs = [v and Value(v.name, (v.arrays[trial],) * 2) for v in call.inputs]

    def symbol_of(self, value):
        """Return a value as an array on which operators run."""
        return self.scope.known(value.arrays[0])
