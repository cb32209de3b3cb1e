"""MXNet's operators for oneDNN: fused layers, and int8 operators whose ranges are arrays.

Uses:    a node of a file.
Defines: `OPERATORS`, name -> operator; `of_entry`, the operator of a fused layer.

A quantized value is three arrays: integers q, and the two ends of a range. It represents
q / scale, where scale = steps / max(|ends|). Each operator is decomposed into float32 operators,
in which sums of integers are exact up to 2**24. A fused layer computes

    weight, bias = BatchNorm folded into both
    q_w, q_b     = round(weight * scale_w), round(bias * scale_w * scale)
    x            = activation(layer(q, q_w, q_b) / (scale_w * scale) + other)
    q_out        = round(x * scale_out), saturated

Source:  MXNet 1.9.1's src/operator/quantization and src/operator/subgraph/mkldnn.
Not supported: training; quantized activations other than relu and clip.
Limits: on a processor without VNNI, oneDNN itself is less exact: it halves the weights for int8
         data, and saturates sums of two products for uint8.
"""

from collections.abc import Callable, Sequence

import numpy as np

from minihybrid.core.files import FileError
from minihybrid.core.graph import Graph, auxiliary, infer
from minihybrid.core.op import (
    REQUIRED,
    AttrError,
    DTypeError,
    Node,
    Op,
    Spec,
    boolean,
    choice,
    count,
    finite,
    optional,
)
from minihybrid.core.sym import replay
from minihybrid.ops import OPS
from minihybrid.ops.elementwise import cast
from minihybrid.ops.filled import full, make
from minihybrid.ops.infix import Value
from minihybrid.ops.layout import flatten, reshape
from minihybrid.ops.quantize import FLOAT, HALF, INT8, INT32
from minihybrid.passes.foreach import in_json, subgraphs_of
from minihybrid.passes.scan import GraphOp

UINT8, INT32_MAX = np.dtype("uint8"), 2**31 - 1
STEPS = {INT8: 127.5, UINT8: 255.5, INT32: INT32_MAX}  # from 0 to the end of a range
TINY = 1e-15  # the end of a range of zeros, so that its scale is finite
ENDS = [Spec((1,), FLOAT)] * 2
CALIB = {key: (optional(finite), None) for key in ("min_calib_range", "max_calib_range")}


def largest(low: Value, high: Value) -> Value:
    """Return the largest absolute value of a range."""
    return low.abs().broadcast_maximum(high.abs())


def per_unit(steps: float, end: Value) -> Value:
    """Return the scale that maps `end` to `steps`."""
    return steps / OPS["_maximum_scalar"](end, scalar=TINY)


def real(data: Value, dtype: np.dtype, *ends: Value) -> Value:
    """Return the values that integers represent; without a range, the integers as floats."""
    data = cast(data, dtype="float32")
    return data.broadcast_div(per_unit(STEPS[dtype], largest(*ends))) if ends else data


def rounded(data: Value, dtype: np.dtype) -> Value:
    """Round to integers, and saturate; halves go to the even one, if they fit a byte."""
    if dtype == INT32:
        return cast(data.rint(), dtype="int32")
    return cast(data.clip(np.iinfo(dtype).min, np.iinfo(dtype).max) + HALF - HALF, dtype=dtype.name)


def constants(like: Value, *values: float) -> list[Value]:
    """Return constant ends of a range."""
    return [make(like, full, shape=(1,), value=value) for value in values]


def as_floats(who: str, specs: Sequence[Spec], dtypes: Sequence[np.dtype]) -> list[Spec]:
    """Return specs with the dtype float32, after a check of their own."""
    for spec in specs:
        if spec.dtype not in (None, *dtypes):
            raise DTypeError(
                f"{who}: the data is {spec.dtype}, but {' or '.join(d.name for d in dtypes)} is "
                "needed; connect the operators as MXNet's quantization does"
            )
    return [Spec(spec.shape, spec.dtype and FLOAT) for spec in specs]


# -- operators on quantized values -----------------------------------------------------
def operator(
    kind: str,
    base: str,
    dtype_of: Callable,
    range_of: Callable | None = None,
    takes: Sequence[np.dtype] = (INT8, UINT8),
    inputs: tuple | Callable = ("data", "data_min", "data_max"),
    n_outputs: int = 3,
    **attrs: tuple,
) -> Op:
    """Return the quantized form of an operator.

    base:    the operator for floats.
    dtype_of: (dtypes of the data, attributes) -> dtype of the output.
    range_of: (dtype, output as floats, ranges, attributes) -> its range; without it, the
             operator is applied to the integers, and their range doesn't change.
    """
    name, op = f"_contrib_{kind}", OPS[base]
    attrs = {**attrs, **op.attrs}

    def parts(values):
        n = max(1, len(values) // 3)
        return values[:n], [*zip(values[n::2], values[n + 1 :: 2], strict=True)]

    def rule(specs, **attrs):
        datas, ranges = parts(specs)
        settings = {key: attrs[key] for key in op.attrs}
        _, (out,) = op.infer(as_floats(name, datas, takes), **settings)
        dtypes = [spec.dtype for spec in datas]
        outs = [Spec(out.shape, None if None in dtypes else dtype_of(dtypes, attrs)), *ENDS]
        return [*datas, *ENDS * len(ranges)], outs[:n_outputs]

    def expand(specs, *inputs, **attrs):
        datas, ranges = parts(inputs)
        dtypes = [spec.dtype for spec in specs[: len(datas)]]
        dtype, ends = dtype_of(dtypes, attrs), ranges if range_of else [()] * len(datas)
        if dtypes != [FLOAT]:
            datas = [real(*each, *pair) for *each, pair in zip(datas, dtypes, ends, strict=True)]
        out = op(*datas, **{key: attrs[key] for key in op.attrs})
        if dtype == FLOAT:
            return out
        if not range_of:
            return rounded(out, dtype), *ranges[0]
        low, high = range_of(dtype, out, ranges, attrs)
        steps = np.iinfo(dtype).max if dtypes == [INT32] else STEPS[dtype]
        return rounded(out.broadcast_mul(per_unit(steps, largest(low, high))), dtype), low, high

    doc = f"{base} in MXNet's int8 graphs."
    return Op(name, rule, doc, attrs=attrs, inputs=inputs, expand=expand, n_outputs=n_outputs)


def calibrated(attrs: dict) -> list[float] | None:
    """Return the calibrated range, if there is one."""
    ends = [attrs[key] for key in CALIB]
    return None if None in ends else ends


def out_type(dtypes: list, attrs: dict) -> np.dtype:
    """Return the dtype in the attributes; "auto" depends on the sign of the range."""
    if attrs["out_type"] != "auto":
        return np.dtype(attrs["out_type"])
    return UINT8 if (calibrated(attrs) or [-1])[0] >= 0 else INT8


def measured(dtype: np.dtype, out: Value, ranges: list, attrs: dict) -> Sequence[Value]:
    """Return the calibrated range, or that of the data; for int8, a symmetric one."""
    if ends := calibrated(attrs):
        low, high = constants(out, *ends)
    else:
        low, high = (reshape(OPS[name](out), shape=(1,)) for name in ("min", "max"))
    end = largest(low, high)
    return (low, high) if dtype == UINT8 else (-end, end)


def joined(dtypes: list, attrs: dict) -> np.dtype:
    """Return uint8 if there is no int8."""
    return INT8 if INT8 in dtypes else UINT8


def hull(dtype: np.dtype, out: Value, ranges: list, attrs: dict) -> Sequence[Value]:
    """Return the range that contains all, and zero."""
    low, high = constants(out, 0, 0)
    for one, other in ranges:
        low, high = low.broadcast_minimum(one), high.broadcast_maximum(other)
    return low, high


def summed(dtype: np.dtype, out: Value, ranges: list, attrs: dict) -> Sequence[Value]:
    """Return the calibrated range, or one that contains every sum."""
    if ends := calibrated(attrs):
        return constants(out, *ends)
    end = largest(*ranges[0]) + largest(*ranges[1])
    return -end, end


def names(attrs: dict | None) -> tuple[str, ...]:
    """Return the inputs of a concatenation: arrays, then their ranges."""
    places = range(attrs["num_args"]) if attrs else ()
    ends = [f"arg{i}_{end}" for i in places for end in ("min", "max")]
    return (*(f"arg{i}" for i in places), *ends)


def n_arrays(value: int) -> int:
    """A number of arrays, at most 4096."""
    if count(value) > 2**12:
        raise ValueError
    return count(value)


OUT_TYPE = {"out_type": (choice("auto", "int8", "uint8"), "int8"), **CALIB}
PAIR = ("lhs", "rhs", "lhs_min", "lhs_max", "rhs_min", "rhs_max")
OPERATORS = {
    op.name: op
    for op in (
        operator("quantize_v2", "_copy", out_type, measured, (FLOAT,), ("data",), **OUT_TYPE),
        operator("requantize", "_copy", out_type, measured, (INT32,), **OUT_TYPE),
        operator("dequantize", "_copy", lambda *_: FLOAT, lambda *_: (), n_outputs=1),
        operator("quantized_pooling", "Pooling", joined),
        operator("quantized_flatten", "Flatten", joined),
        operator("quantized_act", "Activation", joined),
        operator(
            "quantized_concat", "Concat", joined, hull, inputs=names, num_args=(n_arrays, REQUIRED)
        ),
        operator(
            "quantized_elemwise_add",
            "elemwise_add",
            lambda dtypes, attrs: joined(dtypes, attrs) if calibrated(attrs) else INT32,
            summed,
            inputs=PAIR,
            **CALIB,
        ),
    )
}


# -- fused layers ----------------------------------------------------------------------
FUSED = ("_sg_mkldnn_conv", "_sg_mkldnn_fully_connected")
DENSE = "FullyConnected"
LAYERS = ("Convolution", DENSE)
FLAGS = ("quantized", "channel_wise_quantize", "enable_float_output")
SETTINGS = {**{key: (optional(boolean), None) for key in FLAGS}, **CALIB}
READER = Op("fused layer", None, "The attributes that its graph doesn't imply.", attrs=SETTINGS)


class Fused(GraphOp):
    """A layer, and the BatchNorm, sum and activation that follow it.

    body:    all of them as a graph, whose variables are the first inputs.
    ranged:  the quantized ones of these variables; their ranges are the last inputs.
    after:   what follows `sums`, the output of the layer with its BatchNorm.
    """

    doc, variadic = "A layer that MXNet fused for oneDNN.", False

    def __init__(self, name: str, body: Graph, settings: dict) -> None:
        super().__init__()
        self.name, self.body, self.calib = name, body, calibrated(settings)
        self.more = {"subgraphs": [in_json(body)]}
        self.layer, *norm = (n for n in body.nodes if n.op and n.op.name in (*LAYERS, "BatchNorm"))
        self.norm, self.sums = (*norm, None)[0], Node(None, name="sums")
        now, others = {self.norm or self.layer: self.sums}, []
        for node in body.nodes:
            if any(n in now for n, _ in node.inputs):
                now[node] = node.reading(tuple((now.get(n, n), i) for n, i in node.inputs))
                others += [n for n, _ in node.inputs if n.op is None]
        self.after = [(now[n], i) for n, i in body.heads]
        operands = [n for n, _ in self.layer.inputs]
        self.stored = self.layer.op.name == DENSE and not settings["channel_wise_quantize"]
        self.ranged = operands if self.stored else [operands[0], *others]
        self.ranged = self.ranged if settings["quantized"] else []
        unsigned = body.heads[0][0].op.name in ("Activation", "clip")
        self.dtype = (UINT8 if unsigned else INT8) if self.calib else INT32
        if not self.ranged or settings["enable_float_output"]:
            self.dtype = FLOAT
        self.n_outputs = 1 if self.dtype == FLOAT else 3
        ends = [f"{v.name}_{end}" for v in self.ranged for end in ("min", "max")]
        self.inputs = (*(v.name for v in body.variables), *ends)
        self.aux = tuple(v.name for v in body.variables if v in auxiliary(body.nodes))

    def infer(self, specs: Sequence[Spec]) -> tuple[list[Spec], list[Spec]]:
        """Infer shapes as the body does for float32 data."""
        spec_of = dict(zip(self.body.variables, specs, strict=False))
        dtype_of = {v: spec_of[v].dtype for v in self.ranged}
        floats = as_floats(self.name, [spec_of[v] for v in dtype_of], (INT8, UINT8))
        spec_of |= zip(dtype_of, floats, strict=True)
        inside = infer(self.body, {v.name: spec for v, spec in spec_of.items()})
        ins = [Spec(inside[v][0].shape, dtype_of.get(v, inside[v][0].dtype)) for v in spec_of]
        outs = [Spec(inside[n][i].shape, self.dtype) for n, i in self.body.heads]
        return [*ins, *ENDS * len(dtype_of)], [*outs, *ENDS][: self.n_outputs]

    def expand(self, specs: Sequence[Spec], *inputs: Value) -> Value | tuple[Value, ...]:
        """Return the output; if it's quantized, also its range."""
        values = dict(zip(self.body.variables, inputs, strict=False))
        dtypes = {v: spec.dtype for v, spec in zip(values, specs, strict=False)}
        ends = iter(inputs[len(values) :])
        ranges = dict(zip(self.ranged, zip(ends, ends, strict=True), strict=True))
        first, *others = (v for v, _ in self.layer.inputs)
        for v in self.ranged:
            values[v] = real(values[v], dtypes[v], *(ranges[v] if v is not first else ()))
        weight, *bias = (values[v] for v in others)
        if self.norm:
            weight, bias = self.folded(weight, bias, [values[v] for v, _ in self.norm.inputs[1:]])
        if self.ranged:
            end, size = largest(*ranges[first]), weight.abs().max()
            size = largest(*ranges[others[0]]) if self.stored else size
            scale = per_unit(STEPS[dtypes[first]], end)
            weight, bias, scale = self.integers(weight, bias, size, scale)
        attrs = {**self.layer.attrs, "no_bias": not bias}
        out = self.layer.op(values[first], weight, *bias, **attrs)
        out = out.broadcast_div(scale) if self.ranged else out
        (out,) = replay(self.after, values | {self.sums: out})
        if self.dtype == FLOAT:
            return out
        if self.dtype == INT32:  # one scale for all channels
            end = end * size * (INT32_MAX / np.iinfo(INT8).max / np.iinfo(dtypes[first]).max)
            return rounded(out.broadcast_mul(scale), INT32), -end, end
        low, high = constants(out, *self.calib)
        scale = per_unit(STEPS[self.dtype], largest(low, high))
        return rounded(out.broadcast_mul(scale), self.dtype), low, high

    def column(self, scale: Value, axis: int) -> Value:
        """Return one element per channel with the axes of the weight (0) or the output (1)."""
        n = len(self.layer.attrs.get("kernel", ())) + 2
        return reshape(scale, shape=tuple(-1 if i == axis else 1 for i in range(n)))

    def folded(self, weight: Value, bias: list, norm: list) -> tuple[Value, list]:
        """Fold the BatchNorm into (weight, [bias])."""
        gamma, beta, mean, var = norm
        root = (var + self.norm.attrs["eps"]).sqrt()
        factor = 1 / root if self.norm.attrs["fix_gamma"] else gamma / root
        offset = bias[0] - mean if bias else -mean
        return weight.broadcast_mul(self.column(factor, 0)), [beta + factor * offset]

    def integers(self, weight: Value, bias: list, size: Value, scale: Value) -> tuple:
        """Return (weight, [bias], scale of the sums): integers as float32.

        size:    the largest weight, for one scale. The output is rounded with a scale per channel.
        scale:   of the data. That of the weight is limited, so that the bias fits int32.
        """
        by_channel = not self.stored and self.dtype != INT32
        scales = per_unit(STEPS[INT8], flatten(weight).abs().max(axis=1) if by_channel else size)
        if bias:
            most = bias[0].abs() if by_channel else bias[0].abs().max()
            scales = scales.broadcast_minimum(per_unit(INT32_MAX / 2, most.broadcast_mul(scale)))
        scale = scales.broadcast_mul(scale)
        weight = real(rounded(weight.broadcast_mul(self.column(scales, 0)), INT8), INT8)
        return weight, [b.broadcast_mul(scale).rint() for b in bias], self.column(scale, 1)


def of_entry(entry: dict) -> Fused | None:
    """Return the fused layer that a node of a file describes; `None` if it isn't supported.

    Raises:  FileError for attributes and graphs that don't match.
    """
    who = f"{entry['op']} {entry['name'][:60]!r}"
    attrs, (body,) = subgraphs_of({"attrs": {}, "subgraphs": None, **entry}, who, 1)
    try:
        settings = READER.read({k: v for k, v in attrs.items() if k in SETTINGS})
    except AttrError as error:
        raise FileError(f"{who}: {error}") from None
    nodes = [n for n in body.nodes if n.op is not None]
    layers, norms = ([n for n in nodes if n.op.name in kinds] for kinds in (LAYERS, ("BatchNorm",)))
    after = [n for n in nodes if n not in (*layers, *norms)]
    if not (
        len(layers) == 1 >= len(norms)
        and all(n.inputs[0][0] is layers[0] and n.attrs["axis"] == 1 for n in norms)
        and all(n.op is None for layer in layers for n, _ in layer.inputs)
        and all(n.op is None for norm in norms for n, _ in norm.inputs[1:])
        and all(any(n in nodes for n, _ in node.inputs) for node in after)
        and all(i == 0 for node in nodes for _, i in node.inputs)
        and [i for _, i in body.heads] == [0]
    ):
        raise FileError(
            f"{who}: its graph needs one {' or '.join(LAYERS)} of variables, followed by at most a "
            "BatchNorm, activations and a sum, with one output"
        )
    supported = (
        n.op.name in ("clip", "elemwise_add") or n.attrs.get("act_type") == "relu" for n in after
    )
    refused = settings["quantized"] and not all(supported)
    return None if refused else Fused(entry["op"], body, settings)
