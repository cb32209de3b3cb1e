"""Resizing of images (N, C, H, W): `AdaptiveAvgPooling2D`, `BilinearResize2D`.

Both multiply rows, then columns, by a matrix that depends only on the lengths: two
products, with their gradients.
Limits: the zeros of these matrices aren't skipped.
"""

from minihybrid.core.op import (
    AttrError,
    ShapeError,
    Spec,
    boolean,
    choice,
    length,
    optional,
    positive,
    shape,
)
from minihybrid.ops.elementwise import cast
from minihybrid.ops.filled import arange, make
from minihybrid.ops.layout import reshape, swapaxes
from minihybrid.ops.neural import fully_connected
from minihybrid.ops.registry import register
from minihybrid.ops.shapes import floating, known


def _resized(op, specs, size):
    """Apply the shape rule: float images (N, C, *size)."""
    kind = floating(specs[0].dtype)
    if not known(specs):
        return specs, [Spec(None, kind)]
    shapes = [s.shape for s in specs]
    for old in shapes:
        if len(old) != 4:
            raise ShapeError(f"{op}: data has shape {old}, but images (N, C, H, W) are needed")
    size = size(shapes)
    if min(*size, *shapes[0][2:]) < 1:
        raise ShapeError(
            f"{op}: {shapes[0]} cannot become {size[0]} x {size[1]}; height and width must be at "
            "least 1"
        )
    return specs, [Spec((*shapes[0][:2], *size), kind)]


def _mixed(data, spec, size, weights):
    """Multiply columns, then rows, by `weights(output indices, input indices, n, m)`."""
    kind = floating(spec.dtype)
    data = cast(data, dtype=kind)
    for n, m in zip(size[::-1], spec.shape[:1:-1], strict=True):
        to = reshape(make(data, arange, start=0, stop=n, dtype="float64"), shape=(-1, 1))
        at = reshape(make(data, arange, start=0, stop=m, dtype="float64"), shape=(1, -1))
        matrix = cast(weights(to, at, n, m), dtype=kind)
        data = fully_connected(data, matrix, num_hidden=n, no_bias=True, flatten=False)
        data = swapaxes(data, dim1=2, dim2=3)
    return data


def _mean_weights(to, at, n, m):
    """Return 1 / count inside an output's window, floor(i m / n) to ceil((i + 1) m / n)."""
    low, high = (to * m / n).floor(), ((to + 1) * m / n).ceil()
    inside = at.broadcast_greater_equal(low) * at.broadcast_lesser(high)
    return inside.broadcast_div(high - low)


def _pooled_size(output_size):
    if len(output_size) > 2 or min(output_size, default=1) < 1:
        raise AttrError(
            f"_contrib_AdaptiveAvgPooling2D: output_size={output_size}, but one or two whole "
            "numbers of at least 1 are needed"
        )
    return (*output_size, *output_size)[:2] or (1, 1)


adaptive_avg_pooling = register(
    "_contrib_AdaptiveAvgPooling2D",
    attrs={"output_size": (shape, ())},
    infer=lambda specs, output_size: _resized(
        "_contrib_AdaptiveAvgPooling2D", specs, lambda _: _pooled_size(output_size)
    ),
    expand=lambda specs, data, output_size: _mixed(
        data, specs[0], _pooled_size(output_size), _mean_weights
    ),
    doc="Means of windows that share an image out, (N, C, H, W) -> (N, C, *output_size); "
    "one number stands for both lengths, none for 1.",
)

EVEN = {"to_even_down": (0, -1), "to_even_up": (0, 1), "to_odd_down": (1, -1), "to_odd_up": (1, 1)}
MODES = ("size", "odd_scale", "like", *EVEN)


def _new_length(old, length, scale, mode):
    """Return the new length of an axis by MXNet's modes."""
    if mode in EVEN:
        parity, step = EVEN[mode]
        return old + step * (old % 2 != parity)
    if mode == "odd_scale" and scale is None:
        raise AttrError(
            "_contrib_BilinearResize2D: mode='odd_scale' needs scale_height and scale_width, "
            "found None"
        )
    odd = mode == "odd_scale" and old % 2
    return length if scale is None else int((old - odd) * scale) + odd


def _new_size(shapes, height, width, scale_height, scale_width, mode, align_corners):
    if mode == "like":
        return shapes[1][2:]
    axes = zip(shapes[0][2:], (height, width), (scale_height, scale_width), strict=True)
    return tuple(_new_length(*each_axis, mode) for each_axis in axes)


def _resize_infer(specs, mode, **attrs):
    return _resized("_contrib_BilinearResize2D", specs, lambda s: _new_size(s, mode=mode, **attrs))


def _resize_expand(specs, data, *like, align_corners, **attrs):
    def weights(to, at, n, m):
        """Return the interpolation weights: 1 - distance, at least 0."""
        if n == 1 or align_corners:  # a single output takes the first element, as in MXNet
            place = to * ((m - 1) / max(n - 1, 1))
        else:
            place = ((to + 0.5) * (m / n) - 0.5).clip(0, m - 1)
        return (1 - at.broadcast_sub(place).abs()).relu()

    size = _new_size([s.shape for s in specs], align_corners=align_corners, **attrs)
    return _mixed(data, specs[0], size, weights)


bilinear_resize = register(
    "_contrib_BilinearResize2D",
    inputs=lambda attrs: ("data",) if attrs and attrs["mode"] != "like" else ("data", "like"),
    attrs={
        "height": (length, 1),
        "width": (length, 1),
        "scale_height": (optional(positive), None),
        "scale_width": (optional(positive), None),
        "mode": (choice(*MODES), "size"),
        "align_corners": (boolean, True),
    },
    infer=_resize_infer,
    expand=_resize_expand,
    doc="Images of another height and width; a new number lies between four old ones.",
)
