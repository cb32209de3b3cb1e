"""What changes pictures for `image.ImageIter`: functions, one after the other.

Takes:   arrays of shape (height, width, 3), red first; `CastAug` makes float32 of bytes.
Gives:   `CreateAugmenter`, a list of them for a net's input; `Augmenter`, the parent, and
         its children.

What is drawn at random repeats after `mx.random.seed`. Unlike the transforms of
`gluon.data.vision`, colours may leave 0 to 255 here: nothing is cut off.
Source:  MXNet's mxnet.image, whose names, order and numbers these are.
What is left out: pictures with boxes (`DetAugmenter`).
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

MEAN, STD = (123.68, 116.28, 103.53), (58.395, 57.12, 57.375)  # of ImageNet's pictures
YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
OF_YIQ = np.array([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]])
TO_GREY = np.float32([[0.21] * 3, [0.72] * 3, [0.07] * 3])


class Augmenter(metaclass=CheckedCall):
    """The parent: a child is a function of a picture; its settings are attributes."""

    def __init__(self, **kwargs):
        self._kwargs = kwargs
        vars(self).update(kwargs)

    def dumps(self):
        """The name and the settings as JSON text.

        >>> ResizeAug(256).dumps()
        '["resizeaug", {"size": 256, "interp": 2}]'
        """
        return json.dumps([type(self).__name__.lower(), self._kwargs], default=_plain)

    def __call__(self, src):
        """The picture, changed."""
        raise NotImplementedError


def _plain(value):
    return value.asnumpy().tolist() if isinstance(value, NDArray) else np.asarray(value).tolist()


class SequentialAug(Augmenter):
    """Some augmenters, one after the other."""

    def __init__(self, ts):
        super().__init__()
        if not isinstance(ts, (list, tuple)):
            raise AttrError(
                f"{type(self).__name__}: ts={described(ts)}, but a list of augmenters is needed"
            )
        self.ts = list(ts)

    def dumps(self):
        """The name, and the texts of all."""
        return [type(self).__name__.lower(), [t.dumps() for t in self.ts]]

    def __call__(self, src):
        """The picture, changed by all."""
        for change in self.ts:
            src = change(src)
        return src


class RandomOrderAug(SequentialAug):
    """Some augmenters, in any order."""

    def __call__(self, src):
        """The picture, changed by all."""
        for i in draws().permutation(len(self.ts)):
            src = self.ts[i](src)
        return src


# -- sizes -----------------------------------------------------------------------------
class ResizeAug(Augmenter):
    """The shorter edge gets this length."""

    def __init__(self, size, interp=2):
        super().__init__(size=size, interp=interp)

    def __call__(self, src):
        """The resized picture."""
        return resize_short(src, self.size, self.interp)


class ForceResizeAug(ResizeAug):
    """The picture gets this (width, height)."""

    def __call__(self, src):
        """The resized picture."""
        return imresize(src, *self.size, self.interp)


class RandomCropAug(ResizeAug):
    """A part of this (width, height) from anywhere."""

    def __call__(self, src):
        """The part."""
        return random_crop(src, self.size, self.interp)[0]


class CenterCropAug(ResizeAug):
    """The middle, of this (width, height)."""

    def __call__(self, src):
        """The middle."""
        return center_crop(src, self.size, self.interp)[0]


class RandomSizedCropAug(Augmenter):
    """A part of any size from anywhere, as `random_size_crop`, then of this size."""

    def __init__(self, size, area, ratio, interp=2):
        super().__init__(size=size, area=area, ratio=ratio, interp=interp)

    def __call__(self, src):
        """The part, resized."""
        return random_size_crop(src, self.size, self.area, self.ratio, self.interp)[0]


class HorizontalFlipAug(Augmenter):
    """With probability p the mirror image."""

    def __init__(self, p):
        super().__init__(p=checked("HorizontalFlipAug", "p", p, share))

    def __call__(self, src):
        """The picture, mirrored or not."""
        return src.flip(axis=1) if draws().random() < self.p else src


# -- colours ---------------------------------------------------------------------------
class CastAug(Augmenter):
    """The same numbers in another dtype."""

    def __init__(self, typ="float32"):
        super().__init__(type=dtype_of("CastAug", typ).name)

    def __call__(self, src):
        """The array in the dtype."""
        return src.astype(self.type)


class _Jitter(Augmenter):
    """The parent of what draws a factor; a child gives `changed(values, amount)`."""

    NAME = ""

    def __init__(self, amount):
        super().__init__(
            **{self.NAME: checked(type(self).__name__, self.NAME, amount, not_negative)}
        )

    def __call__(self, src):
        """The picture in other colours."""
        most = getattr(self, self.NAME)
        values = src.asnumpy().astype(np.float32)
        return like(src, self.changed(values, draws().uniform(-most, most)).astype(np.float32))


class BrightnessJitterAug(_Jitter):
    """All numbers times a factor between 1 - brightness and 1 + brightness."""

    NAME = "brightness"

    def __init__(self, brightness):
        super().__init__(brightness)

    def changed(self, values, amount):
        """Brighter or darker."""
        return values * (1 + amount)


class ContrastJitterAug(_Jitter):
    """Differences to the mean grey times a factor near 1."""

    NAME = "contrast"

    def __init__(self, contrast):
        super().__init__(contrast)

    def changed(self, values, amount):
        """Of more or less contrast."""
        return values * (1 + amount) - amount * (values @ GREY).mean()


class SaturationJitterAug(_Jitter):
    """Differences of the colours to the grey of each pixel times a factor near 1."""

    NAME = "saturation"

    def __init__(self, saturation):
        super().__init__(saturation)

    def changed(self, values, amount):
        """More or less coloured."""
        return values * (1 + amount) - amount * (values @ GREY)[..., None]


class HueJitterAug(_Jitter):
    """All hues turned by up to `hue` half circles, in the plane of two of YIQ's axes."""

    NAME = "hue"

    def __init__(self, hue):
        super().__init__(hue)

    def changed(self, values, amount):
        """Of other hues."""
        u, w = np.cos(amount * np.pi), np.sin(amount * np.pi)
        return values @ (OF_YIQ @ np.array([[1, 0, 0], [0, u, -w], [0, w, u]]) @ YIQ).T


class ColorJitterAug(RandomOrderAug):
    """Brightness, contrast and saturation, in any order; those of 0 are left out."""

    def __init__(self, brightness, contrast, saturation):
        kinds = BrightnessJitterAug, ContrastJitterAug, SaturationJitterAug
        amounts = brightness, contrast, saturation
        super().__init__([kind(a) for kind, a in zip(kinds, amounts, strict=True) if a > 0])


class LightingAug(Augmenter):
    """Noise along the main directions of colours: `eigvec` by `eigval`, as AlexNet's."""

    def __init__(self, alphastd, eigval, eigvec):
        super().__init__(alphastd=alphastd, eigval=eigval, eigvec=eigvec)

    def __call__(self, src):
        """The picture in another light."""
        drawn = draws().normal(0, self.alphastd, 3)
        added = (np.asarray(self.eigvec) * drawn) @ np.asarray(self.eigval)
        return like(src, src.asnumpy() + added.astype(np.float32))


class ColorNormalizeAug(Augmenter):
    """(picture - mean) / std, one of each for all channels or one for each channel."""

    def __init__(self, mean, std):
        super().__init__(mean=_channels("mean", mean), std=_channels("std", std))

    def __call__(self, src):
        """The normalised picture."""
        values = src.asnumpy()
        values = values if self.mean is None else values - self.mean
        return like(src, values if self.std is None else values / self.std)


def _channels(name, value):
    """One number for each channel, or one for all; None stays."""
    try:
        return None if value is None else np.asarray(_plain(value), np.float32).reshape(-1)
    except (TypeError, ValueError):
        raise AttrError(
            f"ColorNormalizeAug: {name}={described(value)}, but numbers are needed"
        ) from None


class RandomGrayAug(Augmenter):
    """With probability p in grey, which all three channels have then."""

    def __init__(self, p):
        super().__init__(p=checked("RandomGrayAug", "p", p, share))

    def __call__(self, src):
        """The picture, grey or not."""
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
    """A list of augmenters that ends in pictures of float32 with a net's size.

    data_shape:   (3, height, width).
    resize:       the length that the shorter edge gets first; 0 leaves it.
    rand_crop, rand_resize:  the part is from anywhere, and of any size; else the middle.
    mean, std:    one for each channel; True: those of ImageNet.

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
    """(channels, height, width).

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
