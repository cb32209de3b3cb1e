"""Chapter 13. ONNX operators with weights or windows, in our layers' operators.

Takes:   one node at a time, as a `Call`.
Gives:   `LAYERS`: ONNX name -> function of the call that gives the outputs.

Weights are brought into the layout in which our kernels read them, once, here.
What is left out: recurrent layers.
"""

from minihybrid.onnx.load_elementwise import label
from minihybrid.op import OPS


def _dense(call, weight, bias):
    """`x W^T + b` with W (outputs, inputs), given as parameters."""
    more = {"num_hidden": weight.shape[0], "flatten": False, "no_bias": bias is None}
    symbol = call.scope.parameter(call.need(1), weight)
    return OPS["FullyConnected"](call.sym(0), symbol, *([] if bias is None else [bias]),
                                 **more, name=label(call))


def _gemm(call):
    """Y = alpha A' B' + beta C."""
    alpha, beta = call.number("alpha", 1.0), call.number("beta", 1.0)
    turned = bool(call.integer("transA", 0)), bool(call.integer("transB", 0))
    weight, bias = call.need(1).fixed, call.get(2)
    if alpha == beta == 1 and not turned[0] and weight is not None and weight.ndim == 2:
        weight = weight if turned[1] else weight.T
        row = None if bias is None else bias.fixed
        if bias is None:
            return _dense(call, weight, None)
        if row is not None and row.shape in ((len(weight),), (1, len(weight))):
            return _dense(call, weight, call.scope.parameter(bias, row.ravel()))
    out = OPS["dot"](call.sym(0), call.sym(1), transpose_a=turned[0],
                     transpose_b=turned[1])
    out = out if alpha == 1 else OPS["_mul_scalar"](out, scalar=alpha)
    if bias is None:
        return out
    bias = call.sym(2)
    bias = bias if beta == 1 else OPS["_mul_scalar"](bias, scalar=beta)
    return OPS["broadcast_add"](out, bias, name=label(call))


def _matmul(call):
    weight = call.need(1).fixed
    if weight is not None and weight.ndim == 2 and call.ndim(0) > 1:
        return _dense(call, weight.T, None)
    return OPS["_npi_matmul"](call.sym(0), call.sym(1), name=label(call))


LAYERS = {"Gemm": _gemm, "MatMul": _matmul}
