"""Transforms of images between a dataset and a network.

Uses:    arrays of shape (height, width, channels), usually uint8.
Defines: `Compose`; `ToTensor`, `Normalize`, `Cast`, which are made of operators and can be
         hybridized; `Resize`, `CenterCrop`, `CropResize`, `RandomCrop`, `RandomResizedCrop`,
         flips, color changes, `RandomApply`.

Random results are reproducible with `mx.random.seed`.
Source:  names and constants are MXNet 1.9.1's. Its `RandomSaturation` computes a pixel's gray
         from blue only. Here, all three colors contribute.
Not supported: rotations.
"""

import itertools

import numpy as np

from minihybrid.core.block import Block, HybridBlock
from minihybrid.core.convert import dtype_of
from minihybrid.core.hooks import own_names
from minihybrid.core.layers import HybridSequential, Sequential
from minihybrid.core.op import (
    boolean,
    checked,
    finite,
    items,
    length,
    not_negative,
    optional,
    share,
    unfit,
)
from minihybrid.gluon.data.vision.image import (
    center_crop,
    draws,
    fixed_crop,
    imresize,
    like,
    pair,
    picture,
    random_crop,
    random_size_crop,
    resize_short,
)

GREY = np.float32([0.299, 0.587, 0.114])  # luma of red, green and blue
# Principal components of the colors of photographs, times their eigenvalues.
LIGHTING = np.float32(
    [
        [55.46 * -0.5675, 4.794 * 0.7192, 1.148 * 0.4009],
        [55.46 * -0.5808, 4.794 * -0.0045, 1.148 * -0.8140],
        [55.46 * -0.5836, 4.794 * -0.6948, 1.148 * 0.4203],
    ]
)


class Compose(Sequential):
    """Apply transforms in sequence. Consecutive hybridizable ones form one block, as in MXNet,
    where each block gets a name.

    >>> from minihybrid import nd
    >>> Compose([Resize(2), ToTensor()])(nd.ones((4, 6, 3), dtype="uint8")).shape
    (3, 2, 2)
    """

    def __init__(self, transforms):
        super().__init__()
        if not isinstance(transforms, (list, tuple)):
            raise unfit("Compose", "", transforms, "a list of transforms is needed")
        for hybrid, some in itertools.groupby(transforms, lambda t: isinstance(t, HybridBlock)):
            row = list(some)
            if hybrid and len(row) > 1:
                block = HybridSequential()
                block.add(*row)
                row = [block]
            self.add(*row)


class RandomApply(Block):
    """Apply a transform with probability p."""

    def __init__(self, transforms, p=0.5):
        super().__init__()
        self.transforms = transforms
        self.p = checked("RandomApply", "p", p, share)
        if not callable(transforms):
            raise unfit("RandomApply", "", transforms, "a transform is needed")

    def forward(self, x):
        """Return the image, possibly transformed."""
        return self.transforms(x) if draws().random() < self.p else x


# -- tensors ---------------------------------------------------------------------------
class Cast(HybridBlock):
    """Convert to another dtype."""

    def __init__(self, dtype="float32"):
        super().__init__()
        self._dtype = dtype_of("Cast", dtype)

    def hybrid_forward(self, F, x):
        """Return the array in the dtype."""
        return F.cast(x, dtype=self._dtype)


class ToTensor(HybridBlock):
    """Convert (height, width, channels) in [0, 255] to (channels, height, width) in [0, 1].

    Shapes:  (..., H, W, C) -> (..., C, H, W), float32
    """

    def hybrid_forward(self, F, x):
        """Return the tensor."""
        return F.swapaxes(F.swapaxes(F.cast(x, dtype="float32"), -1, -3), -1, -2) / 255


def numbers(value):
    """A number, or one for each channel."""
    return tuple([finite(v) for v in items(value)])


class Normalize(HybridBlock):
    """Return (x - mean) / std for each channel.

    mean, std:  a scalar for all channels, or one per channel.
    Shapes:     (..., C, H, W), as `ToTensor` returns it.
    """

    def __init__(self, mean=0.0, std=1.0):
        super().__init__()
        self._mean = checked("Normalize", "mean", mean, numbers)
        self._std = checked("Normalize", "std", std, numbers)

    def hybrid_forward(self, F, x):
        """Return the normalized array."""
        mean, std = (
            F.concat(*(F.full((1, 1, 1), v) for v in values), dim=0)
            for values in (self._mean, self._std)
        )
        return F.broadcast_div(F.broadcast_sub(x, mean), std)


# -- sizes -----------------------------------------------------------------------------
class Resize(Block):
    """Resize an image or a batch of images.

    size:        (width, height), or an integer for both. With keep_ratio, an integer is the
                 length of the shorter edge.
    Shapes:      (H, W, C) or (N, H, W, C)
    """

    def __init__(self, size, keep_ratio=False, interpolation=1):
        super().__init__()
        pair("Resize", size)
        self._size, self._interpolation = size, interpolation
        self._keep = checked("Resize", "keep_ratio", keep_ratio, boolean)

    def forward(self, x):
        """Return the resized image."""
        if self._keep and not np.iterable(self._size):
            return resize_short(x, self._size, self._interpolation)
        return imresize(x, *pair("Resize", self._size), self._interpolation)


class CenterCrop(Block):
    """Crop the center of an image, enlarged if the image is too small."""

    def __init__(self, size, interpolation=1):
        super().__init__()
        self._size, self._interpolation = pair("CenterCrop", size), interpolation

    def forward(self, x):
        """Return the center."""
        return center_crop(x, self._size, self._interpolation)[0]


class CropResize(Block):
    """Crop a region starting at column x and row y, then resize it if a size is given."""

    def __init__(self, x, y, width, height, size=None, interpolation=None):
        super().__init__()
        self._place = x, y, width, height
        self._size = None if size is None else pair("CropResize", size)
        self._interpolation = 1 if interpolation is None else interpolation

    def forward(self, x):
        """Return the region."""
        return fixed_crop(x, *self._place, self._size, self._interpolation)


class RandomCrop(Block):
    """Crop a random region of one size, enlarged if the image is too small.

    pad:  pixels of value pad_value to add on each side first.
    """

    def __init__(self, size, pad=None, pad_value=0, interpolation=1):
        super().__init__()
        self._size, self._interpolation = pair("RandomCrop", size), interpolation
        self._pad, self._value = checked("RandomCrop", "pad", pad, optional(length)), pad_value

    def forward(self, x):
        """Return the region."""
        if self._pad:
            sides = [(self._pad, self._pad)] * 2 + [(0, 0)]
            values = picture("RandomCrop", x).asnumpy()
            x = like(x, np.pad(values, sides, constant_values=self._value))
        return random_crop(x, self._size, self._interpolation)[0]


class RandomResizedCrop(Block):
    """Crop a random region and resize it.

    scale:  the range of the region's fraction of the image;  ratio: of width over height.
    """

    def __init__(self, size, scale=(0.08, 1.0), ratio=(3 / 4, 4 / 3), interpolation=1):
        super().__init__()
        self._args = pair("RandomResizedCrop", size), scale, ratio, interpolation

    def forward(self, x):
        """Return the region."""
        return random_size_crop(x, *self._args)[0]


# -- flips and colors -----------------------------------------------------------------
class RandomFlipLeftRight(Block):
    """Mirror the image with probability 1/2."""

    AXIS = 1

    def forward(self, x):
        """Return the image, possibly mirrored."""
        picture(type(self).__name__, x)
        return x.flip(axis=self.AXIS) if draws().random() < 0.5 else x


class RandomFlipTopBottom(RandomFlipLeftRight):
    """Flip the image vertically with probability 1/2."""

    AXIS = 0


class _Colors(Block):
    """The base class. A subclass defines `changed(values, factor)` for float32."""

    SMALLEST = 0.0  # lower bound of the factor

    def __init__(self, amount):
        super().__init__()
        name = type(self).__name__
        amount = checked(name, name.removeprefix("Random").lower(), amount, not_negative)
        self._range = max(self.SMALLEST, 1 - amount), 1 + amount

    def forward(self, x):
        """Return the image with changed colors."""
        values = picture(type(self).__name__, x).asnumpy()
        result = self.changed(values.astype(np.float32), np.float32(draws().uniform(*self._range)))
        return like(x, limited(result, values.dtype))


def limited(values, dtype):
    """Clip values to the range of a dtype, such as 0 to 255 for bytes."""
    if np.dtype(dtype).kind in "iu":
        limits = np.iinfo(dtype)
        values = np.clip(values, limits.min, limits.max)  # astype truncates
    return values.astype(dtype)


class RandomBrightness(_Colors):
    """Multiply all values by a factor between 1 - brightness and 1 + brightness."""

    def __init__(self, brightness):
        super().__init__(brightness)

    def changed(self, values, factor):
        """Return the values, brighter or darker."""
        return values * factor


class RandomContrast(_Colors):
    """Multiply the difference from the mean gray by a factor near 1."""

    def __init__(self, contrast):
        super().__init__(contrast)

    def changed(self, values, factor):
        """Return the values with more or less contrast."""
        grey = values @ GREY if values.shape[-1] == 3 else values
        return values * factor + (1 - factor) * grey.mean(dtype=np.float32)


class RandomSaturation(_Colors):
    """Multiply the difference from each pixel's gray by a factor near 1."""

    def __init__(self, saturation):
        super().__init__(saturation)

    def changed(self, values, factor):
        """Return the values, more or less saturated."""
        if values.shape[-1] != 3:
            return values
        return values * factor + (1 - factor) * (values @ GREY)[..., None]


class RandomHue(_Colors):
    """Rotate all hues by up to `hue` of the color circle."""

    def __init__(self, hue):
        super().__init__(hue)

    def changed(self, values, factor):
        """Return the values with rotated hues; a factor of 1 is the whole circle."""
        return turned(values, factor) if values.shape[-1] == 3 else values


def turned(values, part):
    """Rotate the hue of colors from 0 to 255 by a fraction of the circle.

    Shapes:  (..., 3), red, green and blue, both
    """
    high, low = values.max(-1) / 255, values.min(-1) / 255
    red, green, blue = np.moveaxis(values / 255, -1, 0)
    light, spread = (high + low) / 2, high - low
    unit = np.where(spread > np.finfo(np.float32).eps, spread, np.inf)
    hue = np.select(
        [high == red, high == green],
        [(green - blue) / unit, (blue - red) / unit + 2],
        (red - green) / unit + 4,
    )
    wide = np.where(np.isinf(unit), 0, spread)  # the range of lightness
    hue = (hue + 6 * part) % 6
    # How near each color is to the hue: 1 at most one step away, 0 from two steps on.
    steps = np.stack([(hue - center + 3) % 6 - 3 for center in (0, 2, 4)], -1)
    near = np.clip(2 - np.abs(steps), 0, 1)
    return ((light - wide / 2)[..., None] + wide[..., None] * near) * 255


class RandomColorJitter(Block):
    """Change brightness, contrast, saturation and hue at random, in random order."""

    def __init__(self, brightness=0, contrast=0, saturation=0, hue=0):
        super().__init__()
        kinds = RandomBrightness, RandomContrast, RandomSaturation, RandomHue
        amounts = brightness, contrast, saturation, hue
        for kind, amount in zip(kinds, amounts, strict=True):
            if (child := kind(amount))._range != (1, 1):
                self.register_child(child)

    def forward(self, x):
        """Return the image with changed colors."""
        changes = list(self._children.values())
        for i in draws().permutation(len(changes)):
            x = changes[i](x)
        return x


class RandomLighting(Block):
    """Add noise along the principal components of colors, as in AlexNet.

    Source:  Krizhevsky, Sutskever and Hinton, NeurIPS 2012.
    """

    def __init__(self, alpha):
        super().__init__()
        self._alpha = checked("RandomLighting", "alpha", alpha, not_negative)

    def forward(self, x):
        """Return the image with changed lighting."""
        values = picture("RandomLighting", x).asnumpy()
        if values.shape[-1] != 3:
            return x
        added = LIGHTING @ draws().normal(0, self._alpha, 3).astype(np.float32)
        return like(x, limited(values + added, values.dtype))


__dir__ = own_names(globals())
