"""Post-training quantization of dense layers and convolutions to int8.

Defines: `quantize_net`, as in `mx.contrib.quantization`; `data_scales`, the calibration.

Not supported: entropy calibration, uint8, and quantization-aware training.
"""

from collections.abc import Iterable

import numpy as np

from minihybrid.core.block import HybridBlock, SymbolBlock
from minihybrid.core.hooks import own_names
from minihybrid.core.nd import NDArray, array
from minihybrid.core.op import AttrError, HybridError, described
from minihybrid.core.sym import Group, Symbol, var
from minihybrid.core.tape import modes
from minihybrid.passes.int8 import STEPS, int8_layers, layers_of


def data_scales(layers: list, run: HybridBlock, batches: Iterable, most: int | None) -> dict:
    """Return layer -> scale of its input: the largest absolute value becomes 127.

    run:     computes the inputs of all layers.
    most:    the number of samples to use, or None for all.
    """
    largest, seen = np.zeros(len(layers)), 0
    for batch in batches:
        data = batch[0] if isinstance(batch, (list, tuple)) else batch
        outs = run(data)
        outs = outs if isinstance(outs, (list, tuple)) else [outs]
        now = [abs(out).max().item() if out.size else 0.0 for out in outs]
        largest, seen = np.maximum(largest, now), seen + len(data)
        if most is not None and seen >= most:
            break
    if not np.isfinite(largest).all():
        name = layers[int(np.argmin(np.isfinite(largest)))].name
        raise HybridError(
            f"quantize_net: the data of '{name}' is not finite in a calibration batch; leave that "
            "batch out, or exclude the layer"
        )
    return {layer: float(x) / STEPS if x else 1.0 for layer, x in zip(layers, largest, strict=True)}


def quantize_net(
    network: HybridBlock,
    quantized_dtype: str = "int8",
    exclude_layers: list | tuple | None = None,
    calib_data: Iterable | None = None,
    calib_mode: str = "naive",
    num_calib_examples: int | None = None,
) -> SymbolBlock:
    """Return a copy of `network` with dense layers and convolutions quantized to int8.

    exclude_layers: names of layers that stay float32, such as "dense0".
    calib_data: typical batches, such as a DataLoader; a batch's first array is the input.
    calib_mode: "naive": the largest absolute value of a layer's input in these batches
             becomes 127.
    num_calib_examples: the number of samples to use, by default all.

    Raises:  HybridError if the net has no layer to quantize; AttrError for other modes.
    Source:  MXNet's mxnet.contrib.quantization; Jacob and others, CVPR 2018.

    >>> from minihybrid.core import nd
    >>> from minihybrid.gluon import nn
    >>> net = nn.Dense(1, in_units=2, prefix="fc_"); net.initialize("ones")
    >>> small = quantize_net(net, calib_data=[nd.array([[1, 3]])])
    >>> small.collect_params()["fc_weight_quantize"].data().dtype, small(nd.array([[1, 3]])).item()
    (<class 'numpy.int8'>, 3.992125988006592)
    """
    if quantized_dtype not in ("int8", "auto") or calib_mode != "naive":
        raise AttrError(
            f"quantize_net: quantized_dtype={quantized_dtype!r} and calib_mode={calib_mode!r} "
            "don't fit; needed: 'int8' and 'naive'"
        )
    if not isinstance(network, HybridBlock):
        raise AttrError(f"quantize_net: a HybridBlock is needed, found {described(network)}")
    batches = [] if calib_data is None else list(calib_data)
    first = batches[0] if batches else None
    first = first[0] if isinstance(first, (list, tuple)) else first
    if not isinstance(first, NDArray):
        raise AttrError(
            "quantize_net: calib_data holds no batch of NDArrays, but the scales of the data are "
            "measured with some; pass a DataLoader or a list of arrays"
        )
    with modes(recording=False, training=False):
        entry = network._new_hybrid().entry_for((first,))
        params = dict(entry.params)
        inputs = [var(name) for name in entry.names]
        layers = layers_of(entry.graph, tuple(exclude_layers or ()))
        if not layers:
            raise HybridError(
                f"quantize_net: '{network.name}' has no float32 dense layer or convolution that "
                "isn't excluded; pass a net that has one"
            )
        heads = Group([Symbol([layer.inputs[0]]) for layer in layers])
        scales = data_scales(
            layers, SymbolBlock(heads, inputs, params), batches, num_calib_examples
        )
    weights = {name: param.data().asnumpy() for name, param in params.items()}
    graph, new = int8_layers(entry.graph, scales, weights)
    arrays = {name: array(values, dtype=values.dtype) for name, values in new.items()}
    net = SymbolBlock(Symbol(graph.heads), inputs, params | arrays)
    for name in new:  # integers have no gradient
        net.collect_params()[name].grad_req = "null"
    return net


__dir__ = own_names(globals())
