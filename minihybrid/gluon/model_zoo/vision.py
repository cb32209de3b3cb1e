"""Image classifiers.

Defines: `get_model("resnet18_v1")`, and a function and class per family, with MXNet's
         structure and parameter names, so that MXNet's files load.

A network has two children: `features`, up to the last vector, and `output`, the classifier.
Not supported: trained weights, DenseNet and Inception.
"""

from functools import partial, wraps

from minihybrid.core.block import HybridBlock
from minihybrid.core.context import check_context
from minihybrid.core.hooks import own_names
from minihybrid.core.layers import Activation, Dense, HybridSequential
from minihybrid.core.op import AttrError, HybridError
from minihybrid.gluon.contrib.nn import HybridConcurrent
from minihybrid.gluon.conv_layers import AvgPool2D, Conv2D, GlobalAvgPool2D, MaxPool2D
from minihybrid.gluon.init import Xavier
from minihybrid.gluon.nn import Dropout, Flatten
from minihybrid.gluon.norm_layers import BatchNorm


def chain(*blocks):
    """Return a sequence of blocks without a prefix."""
    net = HybridSequential(prefix="")
    net.add(*blocks)
    return net


class Classifier(HybridBlock):
    """A network of `features` and `output`: (N, channels, height, width) -> (N, classes).

    Subclasses create both in their constructor.
    """

    def hybrid_forward(self, F, x):
        """Return the scores of all classes."""
        return self.output(self.features(x))


# -- plain stacks of convolutions ------------------------------------------------------
class LeNet(Classifier):
    """LeNet for digits of 28 x 28: two convolutions with pooling, two dense layers.

    Source:  LeCun et al., Proc. IEEE 1998; widths as in MXNet's tutorials.
    """

    def __init__(self, classes=10, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = chain(
                Conv2D(20, 5, activation="relu"),
                MaxPool2D(2, 2),
                Conv2D(50, 5, activation="relu"),
                MaxPool2D(2, 2),
                Flatten(),
                Dense(500, activation="relu"),
            )
            self.output = Dense(classes)


class AlexNet(Classifier):
    """AlexNet, the variant for one device, for images of 224 x 224.

    Source:  Krizhevsky, arXiv:1404.5997.
    """

    def __init__(self, classes=1000, **kwargs):
        super().__init__(**kwargs)
        conv = partial(Conv2D, activation="relu")
        with self.name_scope():
            self.features = chain(
                conv(64, 11, 4, 2),
                MaxPool2D(3, 2),
                conv(192, 5, padding=2),
                MaxPool2D(3, 2),
                conv(384, 3, padding=1),
                conv(256, 3, padding=1),
                conv(256, 3, padding=1),
                MaxPool2D(3, 2),
                Flatten(),
                Dense(4096, activation="relu"),
                Dropout(0.5),
                Dense(4096, activation="relu"),
                Dropout(0.5),
            )
            self.output = Dense(classes)


VGG_STAGES = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


class VGG(Classifier):
    """Stages of 3 x 3 convolutions, each ended by pooling, then three dense layers.

    layers, filters: the number of convolutions and of channels per stage.
    Source:  Simonyan, Zisserman, arXiv:1409.1556.
    """

    def __init__(self, layers, filters, classes=1000, batch_norm=False, **kwargs):
        super().__init__(**kwargs)
        start = Xavier(rnd_type="gaussian", factor_type="out", magnitude=2)
        dense = partial(Dense, weight_initializer="normal")
        with self.name_scope():
            self.features = chain()
            for count, channels in zip(layers, filters, strict=True):
                for _ in range(count):
                    self.features.add(Conv2D(channels, 3, padding=1, weight_initializer=start))
                    if batch_norm:
                        self.features.add(BatchNorm())
                    self.features.add(Activation("relu"))
                self.features.add(MaxPool2D(strides=2))
            for _ in range(2):
                self.features.add(dense(4096, activation="relu"), Dropout(0.5))
            self.output = dense(classes)


# -- residual nets ---------------------------------------------------------------------
def conv1x1(channels, stride=1, in_channels=0, use_bias=False):
    """Return a 1 x 1 convolution, which only mixes channels."""
    return Conv2D(channels, 1, stride, use_bias=use_bias, in_channels=in_channels)


def conv3x3(channels, stride, in_channels):
    """Return a 3 x 3 convolution that preserves height and width, except for its stride."""
    return Conv2D(channels, 3, stride, 1, use_bias=False, in_channels=in_channels)


class BasicBlockV1(HybridBlock):
    """relu(x + f(x)), where f is two convolutions with normalization.

    downsample: pass x through a convolution, because the shape changes.
    Source:  He et al., arXiv:1512.03385.
    """

    def __init__(self, channels, stride, downsample=False, in_channels=0, **kwargs):
        super().__init__(**kwargs)
        self.body, self.downsample = chain(), None
        for conv in self.convolutions(channels, stride, in_channels):
            self.body.add(*([Activation("relu")] if len(self.body) else []), conv, BatchNorm())
        if downsample:
            self.downsample = chain(conv1x1(channels, stride, in_channels), BatchNorm())

    @staticmethod
    def convolutions(channels, stride, in_channels):
        """Return the convolutions of f."""
        return conv3x3(channels, stride, in_channels), conv3x3(channels, 1, channels)

    def hybrid_forward(self, F, x):
        """Apply the block."""
        shortcut = x if self.downsample is None else self.downsample(x)
        return F.relu(self.body(x) + shortcut)


class BottleneckV1(BasicBlockV1):
    """A basic block with three convolutions, the middle one narrow."""

    @staticmethod
    def convolutions(channels, stride, in_channels):
        """Return the convolutions of f."""
        narrow = channels // 4
        first = conv1x1(narrow, stride, use_bias=True)
        return first, conv3x3(narrow, 1, narrow), conv1x1(channels, use_bias=True)


class BasicBlockV2(HybridBlock):
    """x + f(x), where f normalizes and activates before each convolution.

    Source:  He et al., arXiv:1603.05027.
    """

    def __init__(self, channels, stride, downsample=False, in_channels=0, **kwargs):
        super().__init__(**kwargs)
        self.make(channels, stride, in_channels)
        self.downsample = conv1x1(channels, stride, in_channels) if downsample else None

    def make(self, channels, stride, in_channels):
        """Create the layers of f."""
        self.bn1, self.conv1 = BatchNorm(), conv3x3(channels, stride, in_channels)
        self.bn2, self.conv2 = BatchNorm(), conv3x3(channels, 1, channels)

    def hybrid_forward(self, F, x):
        """Apply the block."""
        out = F.relu(self.bn1(x))
        shortcut = x if self.downsample is None else self.downsample(out)
        return self.rest(F, self.conv1(out)) + shortcut

    def rest(self, F, x):
        """Return f after its first convolution."""
        return self.conv2(F.relu(self.bn2(x)))


class BottleneckV2(BasicBlockV2):
    """A basic block with three convolutions, the middle one narrow."""

    def make(self, channels, stride, in_channels):
        """Create the layers of f."""
        narrow = channels // 4
        self.bn1, self.conv1 = BatchNorm(), conv1x1(narrow)
        self.bn2, self.conv2 = BatchNorm(), conv3x3(narrow, stride, narrow)
        self.bn3, self.conv3 = BatchNorm(), conv1x1(channels)

    def rest(self, F, x):
        """Return f after its first convolution."""
        return self.conv3(F.relu(self.bn3(super().rest(F, x))))


def _stages(block, layers, channels):
    """Return stages of residual blocks. All except the first halve height and width."""
    for i, count in enumerate(layers):
        stage = HybridSequential(prefix=f"stage{i + 1}_")
        before, now = channels[i : i + 2]
        with stage.name_scope():
            stage.add(block(now, 1 if i == 0 else 2, now != before, before, prefix=""))
            stage.add(*(block(now, 1, False, now, prefix="") for _ in range(count - 1)))
        yield stage


class ResNetV1(Classifier):
    """A residual network: stages of blocks that add to their input.

    block, layers, channels: the class of the blocks, their number per stage, and the
             channels before and after each stage.
    thumbnail: for small images: no downsampling at the start.
    """

    def __init__(self, block, layers, channels, classes=1000, thumbnail=False, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = chain(*self.first(channels[0], thumbnail))
            self.features.add(*_stages(block, layers, channels), *self.last())
            self.output = Dense(classes, in_units=channels[-1])

    def first(self, channels, thumbnail):
        """Return the layers before the stages."""
        if thumbnail:
            return [conv3x3(channels, 1, 0)]
        conv = Conv2D(channels, 7, 2, 3, use_bias=False)
        return [conv, BatchNorm(), Activation("relu"), MaxPool2D(3, 2, 1)]

    def last(self):
        """Return the layers after the stages."""
        return [GlobalAvgPool2D()]


class ResNetV2(ResNetV1):
    """ResNetV1 with normalization first."""

    def first(self, channels, thumbnail):
        """Return the layers before the stages."""
        return [BatchNorm(scale=False, center=False), *super().first(channels, thumbnail)]

    def last(self):
        """Return the layers after the stages."""
        return [BatchNorm(), Activation("relu"), GlobalAvgPool2D(), Flatten()]


RESNETS = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}
RESNET_KINDS = {
    1: (ResNetV1, BasicBlockV1, BottleneckV1),
    2: (ResNetV2, BasicBlockV2, BottleneckV2),
}


# -- small nets ------------------------------------------------------------------------
class Relu6(HybridBlock):
    """max(0, min(x, 6)), which suits 8-bit quantization."""

    def hybrid_forward(self, F, x):
        """Apply the function."""
        return F.clip(x, 0, 6)


def normal_conv(channels, kernel=1, stride=1, groups=1, act=None):
    """Return [convolution, normalization] and possibly an activation."""
    conv = Conv2D(channels, kernel, stride, kernel // 2, groups=groups, use_bias=False)
    return [conv, BatchNorm(), *([act()] if act else ())]


class MobileNet(Classifier):
    """MobileNet: depthwise separable convolutions.

    multiplier: scales the number of channels.
    Source:  Howard et al., arXiv:1704.04861.
    """

    def __init__(self, multiplier=1.0, classes=1000, **kwargs):
        super().__init__(**kwargs)
        widths = [int(c * multiplier) for c in (32, 64, 128, 128, 256, 256, *[512] * 6, 1024, 1024)]
        strides = (1, 2, 1, 2, 1, 2, *[1] * 5, 2, 1)
        conv = partial(normal_conv, act=partial(Activation, "relu"))
        with self.name_scope():
            self.features = chain(*conv(widths[0], 3, 2))
            for before, now, stride in zip(widths, widths[1:], strides, strict=False):
                self.features.add(*conv(before, 3, stride, before), *conv(now))
            self.features.add(GlobalAvgPool2D(), Flatten())
            self.output = Dense(classes)


class LinearBottleneck(HybridBlock):
    """Expand, filter each channel, project; add the input if the shapes match."""

    def __init__(self, in_channels, channels, t, stride, **kwargs):
        super().__init__(**kwargs)
        self.use_shortcut = stride == 1 and in_channels == channels
        wide = in_channels * t
        with self.name_scope():
            self.out = HybridSequential()
            self.out.add(
                *normal_conv(wide, act=Relu6),
                *normal_conv(wide, 3, stride, wide, act=Relu6),
                *normal_conv(channels),
            )

    def hybrid_forward(self, F, x):
        """Apply the block."""
        return self.out(x) + x if self.use_shortcut else self.out(x)


# per group of bottlenecks: (channels, number of blocks, stride of the first)
BOTTLENECKS = ((16, 1, 1), (24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1))


class MobileNetV2(Classifier):
    """MobileNet with inverted bottlenecks.

    Source:  Sandler et al., arXiv:1801.04381.
    """

    def __init__(self, multiplier=1.0, classes=1000, **kwargs):
        super().__init__(**kwargs)
        before = int(32 * multiplier)
        with self.name_scope():
            self.features = HybridSequential(prefix="features_")
            with self.features.name_scope():
                self.features.add(*normal_conv(before, 3, 2, act=Relu6))
                for channels, count, first in BOTTLENECKS:
                    now = int(channels * multiplier)
                    for i in range(count):
                        t, stride = 1 if channels == 16 else 6, first if i == 0 else 1
                        self.features.add(LinearBottleneck(before, now, t, stride))
                        before = now
                self.features.add(
                    *normal_conv(int(1280 * max(multiplier, 1)), act=Relu6), GlobalAvgPool2D()
                )
            self.output = HybridSequential(prefix="output_")
            with self.output.name_scope():
                self.output.add(Conv2D(classes, 1, use_bias=False, prefix="pred_"), Flatten())


def fire(squeeze, expand):
    """Squeeze to few channels, then expand: half with 1 x 1, half with 3 x 3 convolutions."""

    def conv(*args):
        return chain(Conv2D(*args), Activation("relu"))

    first, both = conv(squeeze, 1), HybridConcurrent(axis=1, prefix="")
    both.add(conv(expand, 1), conv(expand, 3, 1, 1))
    return chain(first, both)


# version -> the first convolution, then the squeezed widths; 0 means pooling
SQUEEZENETS = {
    "1.0": ((96, 7, 2), (0, 16, 16, 32, 0, 32, 48, 48, 64, 0, 64)),
    "1.1": ((64, 3, 2), (0, 16, 16, 0, 32, 32, 0, 48, 48, 64, 64)),
}


class SqueezeNet(Classifier):
    """AlexNet's accuracy with 50 times fewer parameters.

    version: "1.0", or "1.1", which needs less computation; for images of 224 x 224.
    Source:  Iandola et al., arXiv:1602.07360.
    """

    def __init__(self, version, classes=1000, **kwargs):
        super().__init__(**kwargs)
        first, widths = _entry(SQUEEZENETS, version, "SqueezeNet: version")
        with self.name_scope():
            self.features = chain(
                Conv2D(*first),
                Activation("relu"),
                *(fire(n, 4 * n) if n else MaxPool2D(3, 2, ceil_mode=True) for n in widths),
                Dropout(0.5),
            )
            self.output = chain(Conv2D(classes, 1), Activation("relu"), AvgPool2D(13), Flatten())


# -- by name ---------------------------------------------------------------------------
def _entry(table, key, what):
    if key not in table:
        raise AttrError(f"{what} {key!r} is not known; there are {', '.join(map(str, table))}")
    return table[key]


def _untrained(make):
    """Accept MXNet's arguments for trained weights; raise an error if any are requested."""

    @wraps(make)
    def call(*args, pretrained=False, ctx=None, root=None, **kwargs):
        check_context(ctx)
        if pretrained:
            raise HybridError(
                f"{make.__name__}: pretrained=True, but no weights come with this package; train "
                "the net, or read a file that you have by net.load_parameters(file)"
            )
        return make(*args, **kwargs)

    return call


@_untrained
def get_resnet(version, num_layers, **kwargs):
    """Create a residual network: version 1 or 2; 18, 34, 50, 101 or 152 layers.

    >>> get_resnet(1, 18, classes=10).output
    Dense(512 -> 10, linear)
    """
    net, basic, bottleneck = _entry(RESNET_KINDS, version, "get_resnet: version")
    layers = _entry(RESNETS, num_layers, "get_resnet: num_layers")
    wide = num_layers >= 50
    channels = [64, *(64 * 2**i * (4 if wide else 1) for i in range(4))]
    return net(bottleneck if wide else basic, layers, channels, **kwargs)


@_untrained
def get_vgg(num_layers, **kwargs):
    """Create a VGG network with 11, 13, 16 or 19 layers; batch normalization is optional."""
    layers = _entry(VGG_STAGES, num_layers, "get_vgg: num_layers")
    return VGG(layers, (64, 128, 256, 512, 512), **kwargs)


get_mobilenet, get_mobilenet_v2 = _untrained(MobileNet), _untrained(MobileNetV2)
get_squeezenet = _untrained(SqueezeNet)

MULTIPLIERS = (1.0, 0.75, 0.5, 0.25)
MODELS = {
    "lenet": _untrained(LeNet),
    "alexnet": _untrained(AlexNet),
    **{f"vgg{n}": partial(get_vgg, n) for n in VGG_STAGES},
    **{f"vgg{n}_bn": partial(get_vgg, n, batch_norm=True) for n in VGG_STAGES},
    **{f"resnet{n}_v{v}": partial(get_resnet, v, n) for v in (1, 2) for n in RESNETS},
    **{f"mobilenet{m}": partial(get_mobilenet, m) for m in MULTIPLIERS},
    **{f"mobilenetv2_{m}": partial(get_mobilenet_v2, m) for m in MULTIPLIERS},
    **{f"squeezenet{v}": partial(get_squeezenet, v) for v in SQUEEZENETS},
}
# the models as functions: resnet18_v1, mobilenet0_5, mobilenet_v2_0_5, ...
NAMES = {name.replace("tv2_", "t_v2_").replace(".", "_"): make for name, make in MODELS.items()}


def __getattr__(name):
    if name in NAMES:
        return NAMES[name]
    raise AttributeError(f"model_zoo.vision has no net '{name}'; dir(vision) lists all")


__dir__ = own_names(globals(), *NAMES)


def get_model(name, **kwargs):
    """Create a network by name, such as "resnet18_v1", "vgg16_bn" or "mobilenet0.5".

    classes: the number of scores, by default 1000.

    >>> get_model("squeezenet1.1", classes=10).name.rstrip("0123456789")
    'squeezenet'
    """
    return _entry(MODELS, name.lower(), "get_model: the net")(**kwargs)
