"""Image augmenters for `image.ImageIter`: functions applied in sequence.

Uses:    arrays of shape (height, width, 3) in RGB order; `CastAug` converts bytes to float32.
Defines: `CreateAugmenter`, which returns a list of them for a net's input; `Augmenter`, the
         base class, and its subclasses.

Random choices are reproducible with `mx.random.seed`. Unlike in the transforms of
`gluon.data.vision`, color values may leave [0, 255]: they aren't clipped.
Source:  MXNet's mxnet.image, with the same names, order and constants.
Not supported: object detection (`DetAugmenter`).
"""

import json

import numpy as np

from minihybrid.core.checked_call import CheckedCall
from minihybrid.core.convert import dtype_of
from minihybrid.core.hooks import own_names
from minihybrid.core.nd import NDArray
from minihybrid.core.op import AttrError, boolean, checked, described, length, not_negative, share
from minihybrid.core.op import shape as shape_of
from minihybrid.gluon.data.vision.image import (
    center_crop,
    draws,
    imresize,
    like,
    random_crop,
    random_size_crop,
    resize_short,
)
from minihybrid.gluon.data.vision.transforms import GREY, LIGHTING

MEAN, STD = (123.68, 116.28, 103.53), (58.395, 57.12, 57.375)  # of ImageNet
YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
OF_YIQ = np.array([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]])
TO_GREY = np.float32([[0.21] * 3, [0.72] * 3, [0.07] * 3])


class Augmenter(metaclass=CheckedCall):
    """The base class: a subclass is a function of an image; its settings are attributes."""

    def __init__(self, **kwargs):
        self._kwargs = kwargs
        vars(self).update(kwargs)

    def dumps(self):
        """Return the name and the settings as JSON.

        >>> ResizeAug(256).dumps()
        '["resizeaug", {"size": 256, "interp": 2}]'
        """
        return json.dumps([type(self).__name__.lower(), self._kwargs], default=_plain)

    def __call__(self, src):
        """Return the augmented image."""
        raise NotImplementedError


def _plain(value):
    return value.asnumpy().tolist() if isinstance(value, NDArray) else np.asarray(value).tolist()


class SequentialAug(Augmenter):
    """Applies augmenters in sequence."""

    def __init__(self, ts):
        super().__init__()
        if not isinstance(ts, (list, tuple)):
            raise AttrError(
                f"{type(self).__name__}: ts={described(ts)}, but a list of augmenters is needed"
            )
        self.ts = list(ts)

    def dumps(self):
        """Return the name, and the settings of all augmenters."""
        return [type(self).__name__.lower(), [t.dumps() for t in self.ts]]

    def __call__(self, src):
        """Return the augmented image."""
        for change in self.ts:
            src = change(src)
        return src


class RandomOrderAug(SequentialAug):
    """Applies augmenters in random order."""

    def __call__(self, src):
        """Return the augmented image."""
        for i in draws().permutation(len(self.ts)):
            src = self.ts[i](src)
        return src


# -- sizes -----------------------------------------------------------------------------
class ResizeAug(Augmenter):
    """Resizes the shorter edge to a length."""

    def __init__(self, size, interp=2):
        super().__init__(size=size, interp=interp)

    def __call__(self, src):
        """Return the resized image."""
        return resize_short(src, self.size, self.interp)


class ForceResizeAug(ResizeAug):
    """Resizes to (width, height)."""

    def __call__(self, src):
        """Return the resized image."""
        return imresize(src, *self.size, self.interp)


class RandomCropAug(ResizeAug):
    """Crops (width, height) at a random position."""

    def __call__(self, src):
        """Return the crop."""
        return random_crop(src, self.size, self.interp)[0]


class CenterCropAug(ResizeAug):
    """Crops (width, height) at the center."""

    def __call__(self, src):
        """Return the crop."""
        return center_crop(src, self.size, self.interp)[0]


class RandomSizedCropAug(Augmenter):
    """Crops a random area and aspect ratio, as `random_size_crop`, then resizes."""

    def __init__(self, size, area, ratio, interp=2):
        super().__init__(size=size, area=area, ratio=ratio, interp=interp)

    def __call__(self, src):
        """Return the crop, resized."""
        return random_size_crop(src, self.size, self.area, self.ratio, self.interp)[0]


class HorizontalFlipAug(Augmenter):
    """Flips horizontally with probability p."""

    def __init__(self, p):
        super().__init__(p=checked("HorizontalFlipAug", "p", p, share))

    def __call__(self, src):
        """Return the image, flipped or unchanged."""
        return src.flip(axis=1) if draws().random() < self.p else src


# -- colors ----------------------------------------------------------------------------
class CastAug(Augmenter):
    """Casts to another dtype."""

    def __init__(self, typ="float32"):
        super().__init__(type=dtype_of("CastAug", typ).name)

    def __call__(self, src):
        """Return the array in the dtype."""
        return src.astype(self.type)


class _Jitter(Augmenter):
    """The base class of random jitter; a subclass defines `changed(values, amount)`."""

    NAME = ""

    def __init__(self, amount):
        super().__init__(
            **{self.NAME: checked(type(self).__name__, self.NAME, amount, not_negative)}
        )

    def __call__(self, src):
        """Return the image with jittered colors."""
        most = getattr(self, self.NAME)
        values = src.asnumpy().astype(np.float32)
        return like(src, self.changed(values, draws().uniform(-most, most)).astype(np.float32))


class BrightnessJitterAug(_Jitter):
    """Scales all values by a factor in [1 - brightness, 1 + brightness]."""

    NAME = "brightness"

    def __init__(self, brightness):
        super().__init__(brightness)

    def changed(self, values, amount):
        """Return the scaled image."""
        return values * (1 + amount)


class ContrastJitterAug(_Jitter):
    """Scales differences from the mean gray by a factor near 1."""

    NAME = "contrast"

    def __init__(self, contrast):
        super().__init__(contrast)

    def changed(self, values, amount):
        """Return the image with another contrast."""
        return values * (1 + amount) - amount * (values @ GREY).mean()


class SaturationJitterAug(_Jitter):
    """Scales differences from each pixel's gray by a factor near 1."""

    NAME = "saturation"

    def __init__(self, saturation):
        super().__init__(saturation)

    def changed(self, values, amount):
        """Return the image with another saturation."""
        return values * (1 + amount) - amount * (values @ GREY)[..., None]


class HueJitterAug(_Jitter):
    """Rotates hues by up to `hue` half turns, in the IQ plane of YIQ."""

    NAME = "hue"

    def __init__(self, hue):
        super().__init__(hue)

    def changed(self, values, amount):
        """Return the image with rotated hues."""
        u, w = np.cos(amount * np.pi), np.sin(amount * np.pi)
        return values @ (OF_YIQ @ np.array([[1, 0, 0], [0, u, -w], [0, w, u]]) @ YIQ).T


class ColorJitterAug(RandomOrderAug):
    """Jitters brightness, contrast and saturation in random order; skips those of 0."""

    def __init__(self, brightness, contrast, saturation):
        kinds = BrightnessJitterAug, ContrastJitterAug, SaturationJitterAug
        amounts = brightness, contrast, saturation
        super().__init__([kind(a) for kind, a in zip(kinds, amounts, strict=True) if a > 0])


class LightingAug(Augmenter):
    """Adds noise along the principal components of colors (AlexNet): `eigvec`, `eigval`."""

    def __init__(self, alphastd, eigval, eigvec):
        super().__init__(alphastd=alphastd, eigval=eigval, eigvec=eigvec)

    def __call__(self, src):
        """Return the image with noise added."""
        drawn = draws().normal(0, self.alphastd, 3)
        added = (np.asarray(self.eigvec) * drawn) @ np.asarray(self.eigval)
        return like(src, src.asnumpy() + added.astype(np.float32))


class ColorNormalizeAug(Augmenter):
    """Computes (image - mean) / std, with scalars or one value per channel."""

    def __init__(self, mean, std):
        super().__init__(mean=_channels("mean", mean), std=_channels("std", std))

    def __call__(self, src):
        """Return the normalized image."""
        values = src.asnumpy()
        values = values if self.mean is None else values - self.mean
        return like(src, values if self.std is None else values / self.std)


def _channels(name, value):
    """Return a value per channel, or one for all; None stays None."""
    try:
        return None if value is None else np.asarray(_plain(value), np.float32).reshape(-1)
    except (TypeError, ValueError):
        raise AttrError(
            f"ColorNormalizeAug: {name}={described(value)}, but numbers are needed"
        ) from None


class RandomGrayAug(Augmenter):
    """Converts to gray, in all three channels, with probability p."""

    def __init__(self, p):
        super().__init__(p=checked("RandomGrayAug", "p", p, share))

    def __call__(self, src):
        """Return the image, gray or unchanged."""
        return like(src, src.asnumpy() @ TO_GREY) if draws().random() < self.p else src


def CreateAugmenter(  # noqa: N802  (MXNet's name)
    data_shape,
    resize=0,
    rand_crop=False,
    rand_resize=False,
    rand_mirror=False,
    mean=None,
    std=None,
    brightness=0,
    contrast=0,
    saturation=0,
    hue=0,
    pca_noise=0,
    rand_gray=0,
    inter_method=2,
):
    """Return augmenters that produce float32 images of a net's input size.

    data_shape:   (3, height, width).
    resize:       the new length of the shorter edge, applied first; 0 means no resizing.
    rand_crop, rand_resize:  crop at a random position, of random size; else at the center.
    mean, std:    one per channel; True: those of ImageNet.

    >>> [type(a).__name__ for a in CreateAugmenter((3, 4, 4), resize=5, mean=True)]
    ['ResizeAug', 'CenterCropAug', 'CastAug', 'ColorNormalizeAug']
    """
    owner = "CreateAugmenter"
    _, height, width = picture_shape(owner, data_shape)
    augmenters, size = [], (width, height)
    if checked(owner, "resize", resize, length):
        augmenters.append(ResizeAug(resize, inter_method))
    rand_crop = checked(owner, "rand_crop", rand_crop, boolean)
    if checked(owner, "rand_resize", rand_resize, boolean):
        if not rand_crop:
            raise AttrError(f"{owner}: rand_resize=True needs rand_crop=True")
        augmenters.append(RandomSizedCropAug(size, 0.08, (3 / 4, 4 / 3), inter_method))
    else:
        augmenters.append((RandomCropAug if rand_crop else CenterCropAug)(size, inter_method))
    if checked(owner, "rand_mirror", rand_mirror, boolean):
        augmenters.append(HorizontalFlipAug(0.5))
    augmenters.append(CastAug())
    if brightness or contrast or saturation:
        augmenters.append(ColorJitterAug(brightness, contrast, saturation))
    if hue:
        augmenters.append(HueJitterAug(hue))
    if pca_noise:
        lengths = np.linalg.norm(LIGHTING, axis=0)
        augmenters.append(LightingAug(pca_noise, lengths, LIGHTING / lengths))
    if rand_gray:
        augmenters.append(RandomGrayAug(rand_gray))
    mean, std = (usual if v is True else v for v, usual in ((mean, MEAN), (std, STD)))
    if mean is not None or std is not None:
        augmenters.append(ColorNormalizeAug(mean, std))
    return augmenters


def picture_shape(owner, data_shape, channels=(3,)):
    """Check and return (channels, height, width).

    Raises:  AttrError for another shape.
    """
    shape = checked(owner, "data_shape", data_shape, shape_of)
    if len(shape) != 3 or shape[0] not in channels or min(shape) < 1:
        raise AttrError(
            f"{owner}: data_shape={described(data_shape)}, but (channels, height, width) with "
            f"{' or '.join(map(str, channels))} channels is needed"
        )
    return shape


def __dir__():
    return own_names(globals())
