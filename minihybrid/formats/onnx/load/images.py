"""ONNX import rules for padding, resizing and depth/space rearrangement.

Defines: `IMAGES`: ONNX name -> function of a `Call` that returns the outputs.

Not supported: linear or cubic interpolation, and downsampling.
"""

from minihybrid.formats.onnx.load.elementwise import renamed
from minihybrid.formats.onnx.load.shapes import codes, reshaped
from minihybrid.ops import OPS


def padded(call, data, widths, mode="constant", value=0.0):
    """Pad the data; negative widths crop it."""
    if any(w < 0 for pair in widths for w in pair):
        data = OPS["slice"](
            data,
            begin=tuple(max(-a, 0) for a, _ in widths),
            end=tuple(b if b < 0 else None for _, b in widths),
        )
    pad_width = tuple(max(w, 0) for pair in widths for w in pair)
    if not any(pad_width):
        return data
    return OPS["Pad"](data, mode=mode, pad_width=pad_width, constant_value=value)


def _pad(call):
    ndim, mode = call.ndim(0), call.attr("mode")
    pads = call.setting("pads", 11, 1, call.numbers) or ()
    value = call.setting("value", 11, 2, call.scalar)
    axes = range(ndim) if call.get(3) is None else call.numbers(3, "the axes")
    if len(pads) != 2 * len(axes):
        call.fail(f"{len(pads)} widths for {len(axes)} axes; two an axis are needed")
    widths = [(0, 0)] * ndim
    for i, axis in enumerate(axes):
        widths[call.axis(axis, ndim)] = pads[i], pads[i + len(axes)]
    return padded(call, call.sym(0), widths, mode, 0.0 if value is None else value)


def _scales(call):
    """Return the integer scale of each axis."""
    ndim = call.ndim(0)
    axes = [call.axis(a, ndim) for a in call.attr("axes") or range(ndim)]
    if call.node.op == "Upsample" and call.opset < 9:
        scales = call.attr("scales")
    elif call.get(3) is not None:
        sizes = call.trials(3, "the size")
        candidates = {
            tuple(int(n) / max(old[a], 1) for n, a in zip(size, axes, strict=True))
            for size, old in zip(sizes, call.shapes(0), strict=True)
        }
        scales = candidates.pop() if len(candidates) == 1 else ()
    else:
        place = 1 if call.opset < 11 else 2
        scales = call.fixed(place, "the scale").ravel().tolist()
    if len(scales) != len(axes) or any(s < 1 or s != int(s) for s in scales):
        call.fail(
            f"the scales are {tuple(scales)!s:.60}, but one whole number for each axis is needed"
        )
    by_axis = dict(zip(axes, scales, strict=True))
    return [int(by_axis.get(axis, 1)) for axis in range(ndim)]


def _resize(call):
    """Resize by repeating rows and columns (nearest neighbor)."""
    mode, scales = call.attr("mode"), _scales(call)
    place = call.attr("coordinate_transformation_mode") or "asymmetric"
    rounding = call.attr("nearest_mode") or "floor"
    centered = place in ("half_pixel", "pytorch_half_pixel")
    repeats = (
        rounding in ("round_prefer_floor", "round_prefer_ceil")
        if centered
        else place == "asymmetric"
        and (rounding == "floor" or (rounding == "round_prefer_floor" and max(scales) == 2))
    )
    for unused in ("cubic_coeff_a", "extrapolation_value"):
        call.attr(unused)
    for name in ("exclude_outside", "antialias"):
        if call.attr(name):
            call.fail(f"{name}=1 is not supported; needed: 0")
    if call.attr("keep_aspect_ratio_policy") not in (None, "stretch"):
        call.fail("keep_aspect_ratio_policy must be stretch")
    if mode != "nearest" or not repeats:
        call.fail(
            f"mode '{mode:.20}' with '{place:.40}' and '{rounding:.40}' is not "
            "supported; needed: nearest, which repeats rows and columns"
        )
    data = call.sym(0)
    if len(scales) == 4 and scales[:2] == [1, 1] and scales[2] == scales[3]:
        return OPS["UpSampling"](data, scale=scales[2], sample_type="nearest")
    for axis, scale in enumerate(scales):
        if scale > 1:
            data = OPS["repeat"](data, repeats=scale, axis=axis)
    return data


def _depth_to_space(call):
    """DepthToSpace; DCR is MXNet's order, CRD that of PyTorch's PixelShuffle."""
    size, data = call.attr("blocksize"), call.sym(0)
    if call.attr("mode") in (None, "DCR"):
        return OPS["depth_to_space"](data, block_size=size)
    shapes = call.shapes(0)
    split = [(n, c // size**2, size, size, h, w) for n, c, h, w in shapes]
    out = OPS["Reshape"](data, shape=codes(call, split, shapes))
    out = OPS["transpose"](out, axes=(0, 1, 4, 2, 5, 3))
    turned = [(n, c, h, size, w, size) for n, c, _, _, h, w in split]
    target = [(n, c, h * size, w * size) for n, c, h, _, w, _ in turned]
    return reshaped(call, out, target, turned)


IMAGES = {
    "Pad": _pad,
    "Resize": _resize,
    "Upsample": _resize,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": renamed("space_to_depth", block_size="blocksize"),
}
