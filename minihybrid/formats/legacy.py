"""Chapter 22. Upgrades of graph files written by old versions of MXNet.

Uses:    a node's fields in a file, and the MXNet version that wrote it.
Defines: `operator_of`, `upgraded`, `pinned` and `completed`, which the graph reader calls in
         this order.

MXNet stays backward compatible: it upgrades old files while reading, and so do we.
Source:  MXNet 1.9's src/nnvm/legacy_json_util.cc, and its operator aliases.
Not supported: files of versions before 0.8.
"""

import re
from importlib import import_module

from minihybrid.core.attribute import KNOWN, written
from minihybrid.core.op import UNKNOWN, AttrError, Node
from minihybrid.formats import onednn
from minihybrid.passes import control, foreach

# Operator aliases in files, except regular ones (`spelled`).
NAMES = dict(
    pair.split(":")
    for pair in """
    _Plus:elemwise_add _Minus:elemwise_sub _Mul:elemwise_mul _Div:elemwise_div
    broadcast_plus:broadcast_add broadcast_minus:broadcast_sub crop:slice
    _CrossDeviceCopy:_copy _copyto:_copy _npi_copyto:_copy _np_amax:_np_max _np_amin:_np_min
    _np_product:_np_prod _np_repeat:repeat _np_sometrue:_np_any _npi_argsort:argsort
    _npi_cast:Cast _npi_clip:clip _npi_det:_linalg_det _npi_expand_dims:expand_dims
    _npi_full:_full _npi_gather_nd:gather_nd _npi_histogram:_histogram _npi_inv:_linalg_inverse
    _npi_linspace:_linspace _npi_random_randint:_random_randint
    _npi_rnn_param_concat:_rnn_param_concat _npi_shuffle:_shuffle _npi_slice:slice
    _npi_slogdet:_linalg_slogdet _npi_sort:sort _npi_split:_split_v2 _npi_swapaxes:SwapAxis
    _npi_take:take _npi_tile:tile _npx_arange_like:_contrib_arange_like
    _npx_batch_flatten:Flatten _npx_cast:Cast
    _npx_multibox_detection:_contrib_MultiBoxDetection
    _npx_multibox_prior:_contrib_MultiBoxPrior _npx_multibox_target:_contrib_MultiBoxTarget
    _npx_softmax:softmax
    """.split()
)
# Attributes that change what an operator computes, and the only supported values.
ONLY = {
    "initial": ("None",),
    "repeat": ("1",),
    "use_length": ("False", "0"),
    "reflect_type": ("even",),
    "returned": ("False", "0"),
}
# Operator -> input -> the initializer that MXNet stores with it since 0.9.4.
INITIALIZERS = {
    "BatchNorm": {"moving_mean": '["zero", {}]', "moving_var": '["one", {}]'},
    "LeakyReLU": {"gamma": '["Constant", {"value": 0.25}]'},
}


def spelled(kind, ops):
    """Return an operator's name in another spelling: `_PlusScalar`, `_npx_batch_norm`.

    >>> spelled("_RMinusScalar", ()), spelled("_npx_batch_norm", ["BatchNorm"])
    ('_rminus_scalar', 'BatchNorm')
    """
    if kind.startswith("_npx_"):
        name = kind.removeprefix("_npx_").replace("_", "")
        return next((n for n in ops if n.replace("_", "").lower() == name), None)
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", kind).lower() if kind.startswith("_") else None


def operator_of(kind, ops, entry=None):
    """Return the operator of this name in any version; `None` if it's unsupported.

    entry:   the node in its file, with the subgraphs of a loop or branch.
    """
    if kind in ("_foreach", "_cond", "_while_loop"):
        return entry and (foreach if kind == "_foreach" else control).of_entry(entry)
    if kind in onednn.FUSED:
        return entry and onednn.of_entry(entry)
    if kind.startswith("_np") and kind not in ops:
        import_module("minihybrid.np")  # defines operators that occur in files
    for name in (kind, kind.removeprefix("_sparse_")):
        op = ops.get(NAMES.get(name, name)) or ops.get(spelled(name, ops))
        if op is not None:
            return op
    return onednn.OPERATORS.get(kind)


def upgraded(attrs, op, version):
    """Return an operator's attributes in today's form.

    Raises:  AttrError for an unsupported value.
    """
    attrs = dict(attrs)
    if version < 905 and op.name in ("argmax", "argmin") and attrs.get("axis") == "-1":
        del attrs["axis"]  # the old encoding of "over all axes"
    if op.name == "Reshape" and attrs.get("shape") in (None, "()", "[]"):
        keep = attrs.pop("keep_highest", "False") in ("True", "true", "1")
        old = op.read({"shape": attrs.pop("target_shape", "()")})["shape"]
        if old:  # in `target_shape`, 0 meant the length to infer
            attrs["shape"] = str(
                tuple([0 if keep and i == 0 else n or -1 for i, n in enumerate(old)])
            )
    for key, values in ONLY.items():
        if key in attrs and key not in op.attrs and attrs[key] not in values:
            raise AttrError(
                f"{op.name}: {key}={attrs[key]:.60} cannot be computed here; {key}={values[0]} can"
            )
    return attrs


def pinned(info, names=(), inputs=()):
    """Return a node's user attributes in today's form.

    `lr_mult` became `__lr_mult__`, and an operator's `weight_lr_mult` moved to the variable
    that is its weight.
    """
    places = dict(zip(names, (node for node, _ in inputs), strict=False))
    attributes = {}
    for key, value in info.items():
        hidden = next((k for k in KNOWN if key.endswith(f"_{k}")), "")
        node = places.get(key.removesuffix(f"_{hidden}"))
        if hidden and node is not None and node.op is None:
            node.info = {**(node.info or {}), written(hidden): value}
        else:
            attributes[written(key)] = value
    return attributes


def completed(inputs, op, name, names, info, version):
    """The inputs, with variables for those that old files did not mention.

    Those are an operator's states, and parameters that nobody had named.
    """
    if version < 900:
        label = f"{name}_" if name else ""
        inputs = inputs + [
            (Node(None, name=label + n, specs=(UNKNOWN,), info=dict(info) or None), 0)
            for n in names[len(inputs) :]
        ]
    if version < 904:
        for n, (node, _) in zip(names, inputs, strict=False):
            init = INITIALIZERS.get(op.name, {}).get(n)
            if init and node.op is None:
                node.info = {"__init__": init, **(node.info or {})}
    return inputs
