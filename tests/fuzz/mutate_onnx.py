"""Small changes to ONNX files: one field of one message is another.

Takes:   the bytes of a file, a `random.Random`.
Gives:   `mutate_onnx`; what is no model changes byte by byte.
"""

from fuzz.words import NUMBERS, WORDS

SMALL = [0, 1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3]
ATTRIBUTES = [
    "axis",
    "axes",
    "kernel_shape",
    "strides",
    "pads",
    "dilations",
    "group",
    "auto_pad",
    "ceil_mode",
    "count_include_pad",
    "perm",
    "to",
    "value",
    "alpha",
    "beta",
    "transA",
    "transB",
    "keepdims",
    "mode",
    "split",
    "num_outputs",
    "epsilon",
    "momentum",
    "shape",
    "allowzero",
    "starts",
    "ends",
    "blocksize",
    "size",
    "output_padding",
    "training_mode",
    "exclusive",
    "largest",
    "noop_with_empty_axes",
    "coordinate_transformation_mode",
    "select_last_index",
    "storage_order",
    *WORDS,
]


def mutate_onnx(data, rng):
    """One to three messages of a model change."""
    import onnx
    from google.protobuf.message import DecodeError, EncodeError

    from minihybrid.formats.onnx.load.model import OPERATORS

    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        return mutate_bytes(data, rng)
    for _ in range(rng.randint(1, 3)):
        how = rng.choices(list(CHANGES), CHANGES.values())[0]
        try:
            how(model.graph, rng, sorted(OPERATORS))
        except (IndexError, ValueError, TypeError, EncodeError):
            continue  # nothing there to change, or a number too large for its field
    if rng.random() < 0.02:
        for opset in model.opset_import:
            opset.version = rng.choice((*range(5, 30), *SMALL))
    made = model.SerializeToString()
    return mutate_bytes(made, rng) if rng.random() < 0.1 else made


def mutate_bytes(data, rng):
    """Bytes are others, gone, or written twice."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at, n = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 8, 100))
        how = rng.randrange(4)
        if how == 0 and data:
            data[at % len(data)] = rng.randrange(256)
        elif how == 1:
            del data[at : at + n]
        elif how == 2:
            data[at:at] = data[at : at + n]
        elif data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
    return bytes(data)


def _number(rng):
    return rng.choice(SMALL if rng.random() < 0.7 else NUMBERS)


def _names(graph):
    return [
        *(v.name for v in graph.input),
        *(t.name for t in graph.initializer),
        *(name for node in graph.node for name in node.output),
        "",
    ]


def _operator(graph, rng, operators):
    rng.choice(graph.node).op_type = rng.choice([*operators, "If", "Loop", "LSTM", ""])


def _input(graph, rng, _):
    """A node reads another value, one more, or one less."""
    node, how = rng.choice(graph.node), rng.randrange(3)
    if how == 0:
        node.input[rng.randrange(len(node.input))] = rng.choice(_names(graph))
    elif how == 1:
        node.input.append(rng.choice(_names(graph)))
    else:
        del node.input[rng.randrange(len(node.input))]


def _attribute(graph, rng, _):
    """An attribute has another number, kind or name; or there is a new one, or none."""
    node, how = rng.choice(graph.node), rng.randrange(6)
    if how == 0:
        attr = node.attribute.add()
        attr.name = rng.choice(ATTRIBUTES)
    else:
        attr = rng.choice(node.attribute)
    if how == 1:
        node.attribute.remove(attr)
    elif how == 2:
        attr.type = rng.randrange(1, 15)
    elif how == 3:
        attr.name = rng.choice(ATTRIBUTES)
    else:
        _value(attr, rng)


def _value(attr, rng):
    attr.type = rng.choice((attr.type or 2, 1, 2, 3, 4, 6, 7, 8))
    attr.i, attr.f = (
        _number(rng) if attr.type == 2 else 0,
        float(rng.choice((*SMALL, 0.5, 1e30, -1e30, float("nan"), float("inf")))),
    )
    attr.s = rng.choice(
        ("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", "linear", "nearest", "tanh", *WORDS)
    ).encode(errors="surrogatepass")
    if attr.ints and rng.random() < 0.7:
        attr.ints[rng.randrange(len(attr.ints))] = _number(rng)
    elif attr.type == 7:
        attr.ints.extend(_number(rng) for _ in range(rng.randint(0, 6)))
    if attr.type == 4:
        _change_tensor(attr.t, rng)


def _tensor(graph, rng, _):
    """Numbers that the file holds: another shape, type, or other values."""
    tensors = [
        *graph.initializer,
        *(a.t for n in graph.node for a in n.attribute if a.HasField("t")),
    ]
    _change_tensor(rng.choice(tensors), rng)


def _change_tensor(tensor, rng):
    how = rng.randrange(5)
    if how == 0:
        tensor.dims[rng.randrange(len(tensor.dims))] = _number(rng)
    elif how == 1:
        tensor.data_type = rng.randrange(0, 24)
    elif how == 2:
        tensor.dims.append(_number(rng))
    elif tensor.data_type == 7:  # axes, shapes, places
        size = max(len(tensor.raw_data) // 8, len(tensor.int64_data))
        numbers = [_number(rng) for _ in range(size)]
        tensor.ClearField("int64_data")
        tensor.raw_data = b"".join((n % 2**64).to_bytes(8, "little") for n in numbers)
    else:
        tensor.raw_data = mutate_bytes(tensor.raw_data, rng)


def _declared(graph, rng, _):
    """An input or output says another shape, type or name."""
    value = rng.choice([*graph.input, *graph.output])
    tensor = value.type.tensor_type
    how = rng.randrange(4)
    if how == 0:
        rng.choice(tensor.shape.dim).dim_value = _number(rng)
    elif how == 1:
        tensor.elem_type = rng.randrange(0, 24)
    elif how == 2:
        tensor.shape.dim.add().dim_param = rng.choice(WORDS[:8])
    else:
        value.name = rng.choice(_names(graph) + WORDS)


def _node(graph, rng, _):
    """A node is there twice, is gone, or stands elsewhere."""
    at, how = rng.randrange(len(graph.node)), rng.randrange(4)
    if how == 0:
        del graph.node[at]
    elif how == 1:
        graph.node.add().CopyFrom(graph.node[at])
    else:  # a chain of copies, each reading the one before
        for i in range(rng.choice((1, 2, 70))):
            node = graph.node.add()
            node.CopyFrom(graph.node[at])
            before = graph.output[0].name if i == 0 else f"new{i - 1}"
            node.input[:] = [before] * len(node.input)
            node.output[:] = [f"new{i}"]
        graph.output[0].name = graph.node[-1].output[0]


def _name(graph, rng, _):
    rng.choice([*graph.node, *graph.initializer]).name = rng.choice(_names(graph) + WORDS)


CHANGES = {_operator: 4, _input: 4, _attribute: 6, _tensor: 5, _declared: 3, _node: 2, _name: 1}
