"""Files as MXNet 0.8 to 1.0 wrote them, by hand: their form is in MXNet's sources.

Graphs:  NNVM's saveload_json.cc, and src/nnvm/legacy_json_util.cc, which upgrades them.
Arrays:  NDArray::Load and NDArray::LegacyLoad in src/ndarray/ndarray.cc.
"""

import struct

import numpy as np

LIST, V1, V2 = 0x112, 0xF993FAC8, 0xF993FAC9
DTYPES = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool")
VALUES = np.array([[1, 2, 3], [0, 5, 6]])


def file_of(bodies):
    """The bytes of a dict of arrays, each given as bytes."""
    data = struct.pack("<QQQ", LIST, 0, len(bodies)) + b"".join(bodies.values())
    data += struct.pack("<Q", len(bodies))
    return data + b"".join(struct.pack("<Q", len(n)) + n.encode() for n in bodies)


def head(version, shape):
    """What stands before the device: the mark and the shape of each version."""
    if version == 0:
        return struct.pack(f"<{1 + len(shape)}I", len(shape), *shape)
    mark = struct.pack("<I", V1) if version == 1 else struct.pack("<Ii", V2, 0)
    return mark + struct.pack(f"<I{len(shape)}q", len(shape), *shape)


def arrays():
    """file name -> bytes: all dtypes, on a processor and on a graphics card."""
    return {
        f"v{version}_{device}.params": file_of(
            {
                dtype: head(version, VALUES.shape)
                + struct.pack("<iii", kind, 3, flag)
                + VALUES.astype(dtype).tobytes()
                for flag, dtype in enumerate(DTYPES)
            }
        )
        for version in (0, 1, 2)
        for device, kind in (("cpu", 1), ("gpu", 2))
    }


class Writer:
    """Nodes of a graph, in the order in which they are made."""

    def __init__(self, key, entry):
        self.nodes, self.key, self.entry = [], key, entry

    def var(self, name, **attr):
        """A variable, with attributes of the user."""
        return self.node("null", name, attr=attr)

    def node(self, op, name, *inputs, param=None, attr=None):
        """An operator; in 0.8, its attributes are `param`, the user's are `attr`."""
        node = {
            "op": op,
            "name": name,
            "inputs": [
                (i if isinstance(i, tuple) else (i, 0)) + (0,) * (self.entry - 2) for i in inputs
            ],
        }
        if self.key == "param":
            node |= {"param": param or {}, "backward_source_id": -1}
            node |= {"attr": attr} if attr else {}
        elif param or attr:
            node[self.key] = {**(param or {}), **(attr or {})}
        self.nodes.append(node)
        return len(self.nodes) - 1

    def graph(self, *heads, version=None):
        """The whole file; `node_row_ptr` came with 0.9."""
        graph = {
            "nodes": self.nodes,
            "heads": [[h, 0] + [0] * (self.entry - 2) for h in heads],
            "arg_nodes": [i for i, node in enumerate(self.nodes) if node["op"] == "null"],
        }
        if version is not None:
            graph["attrs"] = {"mxnet_version": ["int", version]}
        return graph


def numbers(*shape):
    count = int(np.prod(shape))
    return (np.arange(count) * 7 % 11 - 5).reshape(shape) / 8


def convolutions(key, version, entry=2):
    """A net of the time: states are not mentioned in 0.8, and parameters that nobody
    named; rates of learning stand with the operator.
    """
    w = Writer(key, entry)
    data = w.var("data")
    weight, bias = w.var("conv_weight", lr_mult="2"), w.var("conv_bias")
    x = w.node(
        "Convolution",
        "conv",
        data,
        weight,
        bias,
        param={
            "kernel": "(3,3)",
            "num_filter": "2",
            "pad": "(1,1)",
            "workspace": "512",
            "cudnn_tune": "off",
            "no_bias": "False",
            "num_group": "1",
            "stride": "(1,1)",
            "dilate": "(1,1)",
        },
        attr={"weight_wd_mult": "0.5", "ctx_group": "stage1"},
    )
    norm = [w.var("bn_gamma"), w.var("bn_beta")]
    if version is not None and version >= 900:
        norm += [w.var("bn_moving_mean"), w.var("bn_moving_var")]
    x = w.node(
        "BatchNorm",
        "bn",
        x,
        *norm,
        param={"eps": "0.001", "fix_gamma": "False", "momentum": "0.9"},
        attr={"gamma_lr_mult": "3"},
    )
    x = w.node(
        "LeakyReLU",
        "prelu",
        x,
        w.var("prelu_gamma"),
        param={
            "act_type": "prelu",
            "slope": "0.25",
            "lower_bound": "0.125",
            "upper_bound": "0.334",
        },
    )
    x = w.node(
        "Pooling",
        "pool",
        x,
        param={
            "kernel": "(2,2)",
            "pool_type": "max",
            "stride": "(2,2)",
            "pad": "(0,0)",
            "global_pool": "False",
            "pooling_convention": "valid",
        },
    )
    x = w.node("Flatten", "flatten", x)
    dense = [] if version is None else [w.var("fc_weight"), w.var("fc_bias")]
    x = w.node("FullyConnected", "fc", x, *dense, param={"num_hidden": "3", "no_bias": "False"})
    out = w.node(
        "SoftmaxOutput" if version else "Softmax",
        "softmax",
        x,
        w.var("softmax_label"),
        param={
            "grad_scale": "1",
            "ignore_label": "-1",
            "multi_output": "False",
            "use_ignore": "False",
        },
    )
    values = {
        "data": numbers(2, 2, 4, 4),
        "conv_weight": numbers(2, 2, 3, 3),
        "conv_bias": numbers(2),
        "bn_gamma": numbers(2),
        "bn_beta": numbers(2),
        "bn_moving_mean": numbers(2),
        "bn_moving_var": np.array([1.5, 0.5]),
        "prelu_gamma": numbers(2),
        "fc_weight": numbers(3, 8),
        "fc_bias": numbers(3),
        "softmax_label": np.array([0, 1]),
    }
    return w.graph(out, version=version), values


def names_of_old():
    """Operators and attributes under the names that they had in 0.8."""
    w = Writer("param", 2)
    x, y = w.var("x"), w.var("y")
    total = w.node("_Plus", "plus", x, y)
    total = w.node("_Minus", "minus", total, w.node("_Mul", "mul", x, y))
    total = w.node(
        "_Div",
        "div",
        total,
        w.node("_PlusScalar", "more", w.node("square", "square", y), param={"scalar": "1.5"}),
    )
    total = w.node("ElementWiseSum", "sum", total, x, y, param={"num_args": "3"})
    total = w.node(
        "_Maximum", "max", total, w.node("_RMinusScalar", "less", x, param={"scalar": "1"})
    )
    total = w.node("_PowerScalar", "power", total, param={"scalar": "2"})
    total = w.node("_CrossDeviceCopy", "copy", total)
    wide = w.node("Reshape", "wide", total, param={"target_shape": "(2, 0)"})
    kept = w.node(
        "Reshape", "kept", total, param={"target_shape": "(0, 0)", "keep_highest": "True"}
    )
    parts = w.node(
        "SliceChannel",
        "parts",
        total,
        param={"num_outputs": "2", "axis": "1", "squeeze_axis": "False"},
    )
    both = w.node("Concat", "both", (parts, 1), (parts, 0), param={"num_args": "2", "dim": "1"})
    most = w.node("argmax", "most", wide, param={"axis": "-1", "keepdims": "False"})
    turned = w.node("SwapAxis", "turned", both, param={"dim1": "1", "dim2": "2"})
    gone = w.node("BlockGrad", "gone", turned)
    cast = w.node("Cast", "cast", gone, param={"dtype": "float64"})
    values = {"x": numbers(2, 4, 3), "y": numbers(2, 4, 3)[::-1]}
    return w.graph(wide, kept, both, most, cast), values


def graphs():
    """name -> (graph, values of its inputs)."""
    return {
        "net_0.8": convolutions("param", None),
        "net_0.9": convolutions("attr", 903, 3),
        "net_0.11": convolutions("attr", 1100, 3),
        "net_1.0": convolutions("attrs", 10000, 3),
        "names_0.8": names_of_old(),
    }
