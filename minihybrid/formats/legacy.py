"""Chapter 22. Upgrades of graph files written by old versions of MXNet.

Uses:    a node's fields in a file, and the MXNet version that wrote it.
Defines: `operator_of`, `upgraded`, `pinned` and `completed`, which the graph reader calls in
         this order.

MXNet stays backward compatible: it upgrades old files while reading, and so do we.
Source:  MXNet 1.9's src/nnvm/legacy_json_util.cc, and its operator aliases.
Not supported: files of versions before 0.8.
"""

from importlib import import_module

from minihybrid.core.attribute import KNOWN, written
from minihybrid.core.op import UNKNOWN, AttrError, Node
from minihybrid.formats import onednn
from minihybrid.passes import control, foreach

# Operator aliases in files; a prefix `_sparse_` is dropped as well.
NAMES = dict(
    pair.split(":")
    for pair in """
    _Plus:elemwise_add _Minus:elemwise_sub _Mul:elemwise_mul _Div:elemwise_div
    _Mod:_mod _Maximum:_maximum _Minimum:_minimum _Hypot:_hypot _Equal:_equal
    _Not_Equal:_not_equal _Greater:_greater _Greater_Equal:_greater_equal
    _Lesser:_lesser _Lesser_Equal:_lesser_equal _Logical_And:_logical_and
    _Logical_Or:_logical_or _Logical_Xor:_logical_xor _PlusScalar:_plus_scalar
    _MinusScalar:_minus_scalar _RMinusScalar:_rminus_scalar _MulScalar:_mul_scalar
    _DivScalar:_div_scalar _RDivScalar:_rdiv_scalar _ModScalar:_mod_scalar
    _RModScalar:_rmod_scalar _PowerScalar:_power_scalar _RPowerScalar:_rpower_scalar
    _MaximumScalar:_maximum_scalar _MinimumScalar:_minimum_scalar
    _HypotScalar:_hypot_scalar _EqualScalar:_equal_scalar
    _NotEqualScalar:_not_equal_scalar _GreaterScalar:_greater_scalar
    _GreaterEqualScalar:_greater_equal_scalar _LesserScalar:_lesser_scalar
    _LesserEqualScalar:_lesser_equal_scalar _LogicalAndScalar:_logical_and_scalar
    _LogicalOrScalar:_logical_or_scalar _LogicalXorScalar:_logical_xor_scalar
    broadcast_plus:broadcast_add broadcast_minus:broadcast_sub crop:slice
    _CrossDeviceCopy:_copy _copyto:_copy _npi_copyto:_copy
    _np_amax:_np_max _np_amin:_np_min _np_product:_np_prod _np_repeat:repeat
    _np_sometrue:_np_any _npi_argsort:argsort _npi_cast:Cast _npi_clip:clip
    _npi_det:_linalg_det _npi_expand_dims:expand_dims _npi_full:_full
    _npi_gather_nd:gather_nd _npi_histogram:_histogram _npi_inv:_linalg_inverse
    _npi_linspace:_linspace _npi_random_randint:_random_randint
    _npi_rnn_param_concat:_rnn_param_concat _npi_shuffle:_shuffle
    _npi_slice:slice _npi_slogdet:_linalg_slogdet _npi_sort:sort _npi_split:_split_v2
    _npi_swapaxes:SwapAxis _npi_take:take _npi_tile:tile _npx_activation:Activation
    _npx_arange_like:_contrib_arange_like
    _npx_batch_dot:batch_dot _npx_batch_flatten:Flatten _npx_batch_norm:BatchNorm
    _npx_cast:Cast _npx_convolution:Convolution _npx_deconvolution:Deconvolution
    _npx_dropout:Dropout _npx_embedding:Embedding _npx_erf:erf _npx_erfinv:erfinv
    _npx_fully_connected:FullyConnected _npx_gamma:gamma _npx_gammaln:gammaln
    _npx_gather_nd:gather_nd _npx_layer_norm:LayerNorm _npx_leaky_relu:LeakyReLU
    _npx_log_softmax:log_softmax
    _npx_multibox_detection:_contrib_MultiBoxDetection
    _npx_multibox_prior:_contrib_MultiBoxPrior
    _npx_multibox_target:_contrib_MultiBoxTarget _npx_one_hot:one_hot _npx_pick:pick
    _npx_pooling:Pooling _npx_reshape_like:reshape_like _npx_rnn:RNN
    _npx_roi_pooling:ROIPooling
    _npx_sequence_mask:SequenceMask _npx_shape_array:shape_array _npx_slice:slice
    _npx_smooth_l1:smooth_l1 _npx_softmax:softmax _npx_topk:topk
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
        op = ops.get(NAMES.get(name, name))
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
