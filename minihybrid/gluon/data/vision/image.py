"""Images: decode, crop and resize.

Uses:    files and bytes (JPEG, PNG, BMP, PPM, TIFF, WebP); arrays of shape
         (height, width, channels), usually uint8.
Defines: `imread`, `imdecode`; `imresize`, `resize_short`; `fixed_crop`, `center_crop`,
         `random_crop`, `random_size_crop`; `color_normalize`, `scale_down`.

Files are decoded by Pillow, if it's installed. Resizing is implemented here, with the
weights of MXNet's OpenCV. Random results are reproducible with `mx.random.seed`.
Not supported: rotations, and MXNet's `ImageIter` with its augmenters.
"""

import io
import warnings

import numpy as np

from minihybrid.core import lazy, nd
from minihybrid.core.files import FileError, read_whole
from minihybrid.core.hooks import own_names
from minihybrid.core.nd import NDArray
from minihybrid.core.op import AttrError, ShapeError, checked, count, integer, items, unfit
from minihybrid.core.parameter import in_world
from minihybrid.ops.random import STREAM

BATCHES = "read gluon.data.vision.ImageRecordDataset, with transforms, by a gluon.data.DataLoader"
INSTEAD = {"ImageIter": BATCHES, "CreateAugmenter": "use gluon.data.vision.transforms"}
__getattr__ = lazy.face(globals(), {}, INSTEAD)

FORMATS = ("JPEG", "PNG", "BMP", "PPM", "TIFF", "WEBP")  # other formats may start external programs
# Limits of pixels per image, because a short file may claim any size. Beyond SMALL, the limit
# is proportional to the file's length, at the formats' best compression.
MAX_PIXELS, SMALL, PACKED = 1 << 26, 1 << 24, 8 * 1032
BITS = 11  # OpenCV resizes bytes in fixed point; weights have this many fractional bits


# -- files -----------------------------------------------------------------------------
def imread(filename, flag=1, to_rgb=True):
    """Read an image file: a uint8 array of shape (height, width, channels).

    flag:    1 for three channels, 0 for one (gray).
    to_rgb:  whether the order of channels is RGB, else BGR.
    Raises:  FileError if it isn't an image; ImportError without Pillow.
    """
    return _decoded(read_whole(filename), f"'{filename}'", flag, to_rgb)


def imdecode(buf, flag=1, to_rgb=True):
    """Decode the bytes of an image file, like `imread`.

    >>> imdecode(b"P6 2 1 255 " + bytes(6)).shape
    (1, 2, 3)
    """
    if isinstance(buf, NDArray):
        buf = buf.asnumpy().astype(np.uint8).tobytes()
    elif isinstance(buf, np.ndarray):
        buf = buf.astype(np.uint8).tobytes()
    elif not isinstance(buf, (bytes, bytearray, memoryview)):
        need = "the bytes of a file are needed; mx.image.imread reads a file"
        raise unfit("imdecode", "", buf, need)
    return _decoded(bytes(buf), "the bytes", flag, to_rgb)


def import_pillow():
    """Return Pillow, which decodes image formats."""
    try:
        import PIL.Image
    except ImportError:
        raise ImportError(
            "files of pictures need the library 'pillow', which is not installed; "
            'pip install "minihybrid[image]"'
        ) from None
    return PIL.Image


def _decoded(data, source, flag, to_rgb):
    if checked("imdecode", "flag", flag, integer) not in (0, 1):
        raise AttrError(f"imdecode: flag={flag}, but 1 (colors) or 0 (grey) is needed")
    array = pixels(data, source, flag)
    return in_world(nd.array(array if to_rgb else array[:, :, ::-1], dtype="uint8"))


def pixels(data, source, flag):
    """Decode the bytes of an image file into a NumPy uint8 array (height, width, channels).

    source:  a description of the bytes, for errors.
    flag:    1 for RGB, 0 for gray, -1 for the file's own channels: gray, RGB or RGBA.
    Raises:  FileError if it isn't an image, or is too large for its number of bytes.
    """
    pillow = import_pillow()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns about sizes and metadata
            picture = pillow.open(io.BytesIO(data), formats=FORMATS)
            width, height = picture.size
            most = min(MAX_PIXELS, SMALL + PACKED * len(data))
            if width * height > most:
                raise FileError(
                    f"{source} says that it is a picture of {width} x {height} pixels; of its "
                    f"{len(data)} bytes at most {most} pixels are read"
                )
            if not flag:
                picture.draft("L", picture.size)  # a JPEG contains a gray channel
            if picture.mode.startswith("I;16"):  # the upper byte of 16 bits
                picture = pillow.fromarray((np.asarray(picture) >> 8).astype(np.uint8))
            mode = "L" if picture.mode in ("1", "L") else "RGB"
            mode = "RGBA" if picture.has_transparency_data else mode
            array = np.asarray(picture.convert({1: "RGB", 0: "L", -1: mode}[flag]))
    except FileError:
        raise
    except Exception as error:  # Pillow's readers raise many types
        raise FileError(
            f"{source} cannot be read as a picture ({', '.join(FORMATS)}): "
            f"{' '.join(str(error).split())[:100]}"
        ) from None
    return array.reshape(height, width, -1)


# -- sizes -----------------------------------------------------------------------------
def imresize(src, w, h, interp=1):
    """Resize an image or a batch of images, (..., height, width, channels).

    interp:  0 nearest neighbor, 1 linear, 2 cubic, 3 mean over the area, 4 Lanczos;
             9 chooses 2 to enlarge, 3 to shrink, else 1; 10 chooses at random.

    >>> imresize(nd.array([[[0], [4]]]), 4, 1).asnumpy().ravel().tolist()
    [0.0, 1.0, 3.0, 4.0]
    """
    picture("imresize", src, (3, 4))
    w, h = (checked("imresize", name, value, count) for name, value in (("w", w), ("h", h)))
    values = src.asnumpy()
    kind = _interpolation(interp, (*values.shape[-3:-1], h, w))
    return like(src, resized(values, h, w, kind))


def picture(owner, src, axes=(3,)):
    """Return the array if it's an image (or a batch of images, with 4 axes).

    Raises:  ShapeError for another number of axes, or without pixels.
    """
    if not isinstance(src, NDArray):
        raise unfit(owner, "", src, "an array of a picture is needed")
    if src.ndim not in axes or 0 in src.shape:
        raise ShapeError(
            f"{owner}: the array has shape {src.shape}; needed: a picture of shape "
            "(height, width, channels)" + ", or (N, height, width, channels)" * (4 in axes)
        )
    return src


def like(src, values):
    """Convert NumPy values to an array on the device of `src`, np or nd."""
    return in_world(nd.array(values, src.context, values.dtype))


def _interpolation(interp, sizes):
    """Return the interpolation's code; `sizes`: old height, old width, new height, new width."""
    interp = checked("interpolation", "interp", interp, integer)
    if interp == 9:
        old_h, old_w, h, w = sizes
        return 2 if h > old_h and w > old_w else 3 if h < old_h and w < old_w else 1
    if interp == 10:
        return int(draws().integers(5))
    if interp not in (0, 1, 2, 3, 4):
        raise AttrError(
            f"interpolation: {interp} is unknown; there are 0 (nearest), 1 (linear), 2 (cubic), "
            "3 (area), 4 (Lanczos), 9 (by the sizes) and 10 (at random)"
        )
    return interp


def resized(values, h, w, kind):
    """Resize axes -3 and -2 of a NumPy array to lengths h and w.

    In loops:   for each row y, column x: sum over taps of weight * values[place]
    """
    old_h, old_w = values.shape[-3:-1]
    shrinks = old_h >= h and old_w >= w
    rows, columns = taps(old_h, h, kind, shrinks), taps(old_w, w, kind, shrinks)
    if kind == 0:
        return values.take(rows[0][:, 0], -3).take(columns[0][:, 0], -2)
    if values.dtype == np.uint8 and not (kind == 3 and shrinks):
        if (kind, old_h, old_w) != (1, 2 * h, 2 * w):
            return _resized_bytes(values, rows, columns, kind != 2 and kind != 4)
    wide = np.float32 if values.dtype in (np.uint8, np.float16, np.float32) else np.float64
    result = _weighed(_weighed(values.astype(wide), -2, *columns), -3, *rows)
    if values.dtype.kind not in "iu":
        return result.astype(values.dtype)
    limits = np.iinfo(values.dtype)
    halves = (old_h, old_w) == (2 * h, 2 * w)  # then OpenCV rounds halves up, else to even
    result = np.floor(result + 0.5) if halves else np.rint(result)
    return np.clip(result, limits.min, limits.max).astype(values.dtype)


def _resized_bytes(values, rows, columns, linear):
    """Resize uint8 in fixed point, bit for bit like OpenCV."""
    rows, columns = (
        (places, np.rint(weights * (1 << BITS)).astype(np.int64))
        for places, weights in (rows, columns)
    )
    result = _weighed(values.astype(np.int64), -2, *columns)
    if linear:  # products are truncated, their sum is rounded
        result = sum(
            (result.take(rows[0][:, k], -3) >> 4) * _along(rows[1][:, k], -3) >> 16 for k in (0, 1)
        )
        return ((result + 2) >> 2).astype(np.uint8)
    result = _weighed(result, -3, *rows) + (1 << 2 * BITS - 1) >> 2 * BITS
    return np.clip(result, 0, 255).astype(np.uint8)


def _weighed(values, axis, places, weights):
    """Sum `weights[:, k]` times the values at `places[:, k]` over k, along an axis."""
    return sum(
        values.take(places[:, k], axis) * _along(weights[:, k], axis)
        for k in range(places.shape[1])
    )


def _along(weights, axis):
    """Reshape weights to broadcast along the axis -3 or -2."""
    return weights.reshape((-1,) + (1,) * (-1 - axis))


def taps(n_old, n_new, kind, shrinks):
    """Return (places, weights): the old pixels of each new one, with their weights.

    Shapes:  (n_new, k) both; places outside are clipped to the edge.
    """
    scale = n_old / n_new
    new = np.arange(n_new)
    if kind == 3 and shrinks:
        first = np.floor(new * scale)
        places = first[:, None] + np.arange(int(np.ceil(scale)) + 1)
        ends = np.minimum(places + 1, (new[:, None] + 1) * scale)
        weights = np.clip(ends - np.maximum(places, new[:, None] * scale), 0, None) / scale
        weights[weights < 1e-6] = 0  # overlaps due to rounding
    elif kind == 0 or kind == 3:
        first = np.floor(new * scale)
        part = np.clip(new + 1 - (first + 1) / scale, 0, None)
        part -= np.floor(part)
        places = first[:, None] + np.arange(2)
        weights = np.stack([1 - part, part], 1)
    else:
        middle = ((new + 0.5) * scale - 0.5).astype(np.float32)
        first = np.floor(middle)
        places, weights = WEIGHTS[kind](first, (middle - first).astype(np.float64))
    places = np.clip(places, 0, n_old - 1).astype(np.intp)
    return places, weights.astype(np.float32)


def _linear(first, part):
    return first[:, None] + np.arange(2), np.stack([1 - part, part], 1)


def _cubic(first, part, a=-0.75):
    distance = np.abs(part[:, None] - np.arange(-1, 3))
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((distance - 5) * distance + 8) * distance * a - 4 * a
    return first[:, None] + np.arange(-1, 3), np.where(distance <= 1, near, far)


def _lanczos(first, part):
    distance = part[:, None] - np.arange(-3, 5)
    weights = np.sinc(distance) * np.sinc(distance / 4)
    return first[:, None] + np.arange(-3, 5), weights / weights.sum(1, keepdims=True)


WEIGHTS = {1: _linear, 2: _cubic, 4: _lanczos}


def resize_short(src, size, interp=2):
    """Resize an image so that its shorter edge has this length, preserving the aspect ratio."""
    h, w, _ = picture("resize_short", src).shape
    size = checked("resize_short", "size", size, count)
    new_h, new_w = (size * h // w, size) if h > w else (size, size * w // h)
    return imresize(src, new_w, new_h, interp)


# -- crops -----------------------------------------------------------------------------
def draws():
    """Return a generator from the package's random stream, for one image."""
    return np.random.default_rng(STREAM.take(1))


def _sides(size):
    """(width, height), whole numbers of at least 1, or one for both."""
    width, height = items(size) if np.iterable(size) else (size, size)
    return count(width), count(height)


def pair(owner, size):
    """Return (width, height) of a size; a single integer means a square."""
    return checked(owner, "size", size, _sides)


def scale_down(src_size, size):
    """Scale a size down, in proportion, to fit into another; both are (width, height).

    >>> scale_down((640, 480), (720, 120))
    (640, 106)
    """
    (w, h), (src_w, src_h) = pair("scale_down", size), pair("scale_down", src_size)
    if src_h < h:
        w, h = w * src_h / h, src_h
    if src_w < w:
        w, h = src_w, h * src_w / w
    return int(w), int(h)


def fixed_crop(src, x0, y0, w, h, size=None, interp=2):
    """Crop a region starting at column x0, row y0; resize it if `size` is given."""
    height, width = picture("fixed_crop", src, (3, 4)).shape[-3:-1]
    x0, y0 = (checked("fixed_crop", n, v, integer) for n, v in (("x0", x0), ("y0", y0)))
    w, h = (checked("fixed_crop", n, v, count) for n, v in (("w", w), ("h", h)))
    if x0 < 0 or y0 < 0 or x0 + w > width or y0 + h > height:
        raise ShapeError(
            f"fixed_crop: a part of {w} x {h} at ({x0}, {y0}) does not lie in a picture of "
            f"{width} x {height} (widths first)"
        )
    part = src[..., y0 : y0 + h, x0 : x0 + w, :]
    if size is None or pair("fixed_crop", size) == (w, h):
        return part
    return imresize(part, *pair("fixed_crop", size), interp)


def center_crop(src, size, interp=2):
    """Return (center crop, (x, y, width, height)); enlarge the crop if it's too small."""
    h, w, _ = picture("center_crop", src).shape
    new_w, new_h = scale_down((w, h), size)
    place = (w - new_w) // 2, (h - new_h) // 2, new_w, new_h
    return fixed_crop(src, *place, pair("center_crop", size), interp), place


def random_crop(src, size, interp=2):
    """Return (random crop, (x, y, width, height))."""
    h, w, _ = picture("random_crop", src).shape
    new_w, new_h = scale_down((w, h), size)
    draw = draws()
    place = (*(int(draw.integers(n + 1)) for n in (w - new_w, h - new_h)), new_w, new_h)
    return fixed_crop(src, *place, pair("random_crop", size), interp), place


def random_size_crop(src, size, area, ratio, interp=2):
    """Return (random crop of random size, resized, (x, y, width, height)).

    area:   the range of the crop's fraction of the image; a scalar means from it to 1.
    ratio:  the range of its width over its height.
    """
    h, w, _ = picture("random_size_crop", src).shape
    size = pair("random_size_crop", size)
    low, high = items(area) if np.iterable(area) else (area, 1.0)
    draw = draws()
    for _ in range(10):
        share, wide = draw.uniform(low, high) * h * w, np.exp(draw.uniform(*np.log(ratio)))
        new_w, new_h = (round(float(np.sqrt(share * wide))), round(float(np.sqrt(share / wide))))
        if 0 < new_w <= w and 0 < new_h <= h:
            place = (*(int(draw.integers(n + 1)) for n in (w - new_w, h - new_h)), new_w, new_h)
            return fixed_crop(src, *place, size, interp), place
    return center_crop(src, size, interp)


def color_normalize(src, mean, std=None):
    """Return (src - mean) / std; both broadcast over the channels, and either may be None."""
    if mean is not None:
        src = src - mean
    return src if std is None else src / std


__dir__ = own_names(globals())
