"""Chapter 07. Losses: one value per sample that measures its error.

Each loss is a hybrid block of a few operators, so it's traced and differentiated like a
network, and fused with it. Predictions and labels have samples along the first axis. Names,
arguments and values are those of MXNet 1.9's `gluon.loss`. All constructors accept:

weight:      a factor for all losses, or None.
batch_axis:  the axis of the samples; the loss is averaged over all others.

All calls except those of TripletLoss and SDMLLoss accept `sample_weight`, an array that
broadcasts to the loss.
Not supported: checks of labels in compiled code.
"""

import math

import numpy as np

from minihybrid.core.block import HybridBlock
from minihybrid.core.hooks import own_names
from minihybrid.core.nd import NDArray
from minihybrid.core.op import (
    PlaceError,
    ShapeError,
    checked,
    choice,
    finite,
    integer,
    optional,
    positive,
    rate,
)


class Loss(HybridBlock):
    """The base class: a weight for all samples, and a mean over all axes except the first."""

    def __init__(self, weight=None, batch_axis=0, **kwargs):
        super().__init__(**kwargs)
        self._weight = self.setting("weight", weight, optional(finite))
        self._batch_axis = self.setting("batch_axis", batch_axis, integer)

    def setting(self, name, value, kind):
        """Validate and return a setting."""
        return checked(type(self).__name__, name, value, kind)

    def __repr__(self):
        return f"{type(self).__name__}(batch_axis={self._batch_axis}, w={self._weight})"

    def like(self, F, **pair):
        """Return the first of two arrays, given by name, in the shape of the second."""
        with _Shapes(self, "both must have the same number of elements", **pair):
            return F.reshape_like(*pair.values())

    def scale(self, F, values, **factor):
        """Multiply by an array of factors, given by name."""
        need = (
            f"a shape that broadcasts to {_shape_of(values)} is needed; reshape it, for example to "
            "(-1, 1) for one factor per row"
        )
        with _Shapes(self, need, **factor):
            return F.broadcast_mul(values, *factor.values())

    def weigh(self, F, loss, sample_weight=None):
        """Multiply the losses by the samples' weights and the common weight."""
        if sample_weight is not None:
            loss = self.scale(F, loss, sample_weight=sample_weight)
        return loss if self._weight is None else loss * self._weight

    def per_sample(self, F, loss, sample_weight):
        """Weight the losses and average them per sample: (N, ...) -> (N,)."""
        loss = self.weigh(F, loss, sample_weight)
        return F.mean(loss, axis=self._batch_axis, exclude=True)


class _Shapes:
    """A context in which a ShapeError names a loss, and the shapes of its arguments.

    need:    what is needed, and the remedy;  values: name -> argument.
    """

    def __init__(self, loss, need, **values):
        self.loss, self.need, self.values = loss, need, values

    def __enter__(self):
        """Do nothing before the block."""

    def __exit__(self, kind, error, traceback):
        """Raise another ShapeError in place of an operator's."""
        if isinstance(error, ShapeError):
            shapes = " and ".join(f"{n} has shape {_shape_of(v)}" for n, v in self.values.items())
            raise ShapeError(f"{type(self.loss).__name__}: {shapes}, but {self.need}") from None


def _shape_of(value):
    """Return the shape of an array or, as far as it is known, of a symbol."""
    return (value.spec if value.level else value).shape


# -- regression ------------------------------------------------------------------------
class L2Loss(Loss):
    """Half the squared distance: 0.5 * weight * (pred - label)^2, averaged per sample.

    >>> from minihybrid.core import nd
    >>> L2Loss()(nd.array([[1, 3]]), nd.array([[1, 1]])).item()
    1.0
    """

    def __init__(self, weight=1.0, batch_axis=0, **kwargs):
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F, pred, label, sample_weight=None):
        """Return the loss of each sample."""
        loss = F.square(self.like(F, label=label, pred=pred) - pred) * 0.5
        return self.per_sample(F, loss, sample_weight)


class L1Loss(Loss):
    """The absolute distance |pred - label|, averaged per sample."""

    def hybrid_forward(self, F, pred, label, sample_weight=None):
        """Return the loss of each sample."""
        loss = F.abs(self.like(F, label=label, pred=pred) - pred)
        return self.per_sample(F, loss, sample_weight)


class HuberLoss(Loss):
    """L2 for distances up to `rho`, L1 beyond, with a continuous derivative.

    With d = |pred - label|:   d^2 / (2 rho) if d <= rho, else d - rho / 2.
    Source:  Huber, Annals of Mathematical Statistics 1964, divided by rho.
    """

    def __init__(self, rho=1, weight=None, batch_axis=0, **kwargs):
        super().__init__(weight, batch_axis, **kwargs)
        self._rho = self.setting("rho", rho, positive)

    def hybrid_forward(self, F, pred, label, sample_weight=None):
        """Return the loss of each sample."""
        d = F.abs(self.like(F, label=label, pred=pred) - pred)
        small, large = F.square(d) * (0.5 / self._rho), d - 0.5 * self._rho
        loss = F.where(d > self._rho, large, small)
        return self.per_sample(F, loss, sample_weight)


class PoissonNLLLoss(Loss):
    """The negative log-likelihood of counts with a Poisson distribution, of shape (1,).

    from_logits:   whether `pred` is the logarithm of the expected count.
    compute_full:  add Stirling's approximation of log(target!), for targets above 1.

    For a target of 0, MXNet 1.9.1 returns NaN with `compute_full`. Here the term is 0.
    """

    def __init__(self, weight=None, from_logits=True, batch_axis=0, compute_full=False, **kwargs):
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits, self._compute_full = from_logits, compute_full

    def hybrid_forward(self, F, pred, target, sample_weight=None, epsilon=1e-8):
        """Return the mean loss of all samples, (1,)."""
        target = self.like(F, target=target, pred=pred)
        if self._from_logits:
            loss = F.exp(pred) - target * pred
        else:
            loss = pred - target * F.log(pred + epsilon)
        if self._compute_full:
            n = F.maximum(target, 1.0)
            stirling = n * F.log(n) - n + 0.5 * F.log(2 * math.pi * n)
            loss = loss + stirling * (target > 1)
        return F.mean(self.weigh(F, loss, sample_weight))


# -- classification --------------------------------------------------------------------
class SoftmaxCrossEntropyLoss(Loss):
    """-log(softmax(pred)[label]).

    sparse_label: whether labels are class indices (N,), or probabilities shaped like `pred`.
    from_logits:  whether `pred` already contains log-probabilities.

    Raises:  PlaceError for a class that doesn't exist, if the loss isn't hybridized and has
             no sample weights. Otherwise the nearest class is used, as in MXNet,
             because a compiled plan can't raise.
    """

    def __init__(
        self, axis=-1, sparse_label=True, from_logits=False, weight=None, batch_axis=0, **kwargs
    ):
        super().__init__(weight, batch_axis, **kwargs)
        self._axis = self.setting("axis", axis, integer)
        self._sparse_label = sparse_label
        self._from_logits = from_logits

    def hybrid_forward(self, F, pred, label, sample_weight=None):
        """Return the loss of each sample."""
        if not self._from_logits:
            pred = F.log_softmax(pred, axis=self._axis)
        if self._sparse_label:
            if sample_weight is None and isinstance(label, NDArray):
                check_classes(self.name, label, pred.shape[self._axis])
            need = (
                "one class index per sample is needed; for probabilities, pass sparse_label=False"
            )
            with _Shapes(self, need, label=label, pred=pred):
                loss = -F.pick(pred, label, axis=self._axis, keepdims=True)
        else:
            label = self.like(F, label=label, pred=pred)
            loss = -F.sum(pred * label, axis=self._axis, keepdims=True)
        return self.per_sample(F, loss, sample_weight)


def check_classes(name, label, count, first=0):
    """Reject labels that aren't class indices. Labels on a GPU aren't checked."""
    labels = label.data
    if (
        type(labels) is np.ndarray
        and labels.size
        and not (labels.min() >= first and labels.max() < count)
    ):
        raise PlaceError(
            f"{name}: the labels go from {labels.min()} to {labels.max()}, but there are {count} "
            f"classes; needed: numbers from {first} to {count - 1}"
        )


class SigmoidBinaryCrossEntropyLoss(Loss):
    """-label log(p) - (1 - label) log(1 - p), where p = sigmoid(pred).

    from_sigmoid:  whether `pred` is p itself. 1e-12 keeps its logarithm finite.
    pos_weight:    an array of factors for the first term, for rare positives.

    Without `from_sigmoid`, no sigmoid is computed: -log(p) = softrelu(-pred), which is
    differentiable at 0. There, MXNet's form with relu and |pred| is off by 0.5.
    """

    def __init__(self, from_sigmoid=False, weight=None, batch_axis=0, **kwargs):
        super().__init__(weight, batch_axis, **kwargs)
        self._from_sigmoid = from_sigmoid

    def hybrid_forward(self, F, pred, label, sample_weight=None, pos_weight=None):
        """Return the loss of each sample."""
        label = self.like(F, label=label, pred=pred)
        if self._from_sigmoid:
            hit = F.log(pred + 1e-12) * label
            if pos_weight is not None:
                hit = self.scale(F, hit, pos_weight=pos_weight)
            loss = -(hit + F.log(1 - pred + 1e-12) * (1 - label))
        else:
            hit = F.Activation(-pred, act_type="softrelu") * label
            if pos_weight is not None:
                hit = self.scale(F, hit, pos_weight=pos_weight)
            loss = hit + F.Activation(pred, act_type="softrelu") * (1 - label)
        return self.per_sample(F, loss, sample_weight)


class KLDivLoss(Loss):
    """The Kullback-Leibler divergence: label * (log(label) - log(prediction)).

    label:        probabilities in the shape of `pred`.
    from_logits:  whether `pred` contains log-probabilities. Otherwise a softmax is applied.

    It's summed over all axes except the first, as in MXNet 1.9, and not averaged.
    """

    def __init__(self, from_logits=True, axis=-1, weight=None, batch_axis=0, **kwargs):
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits = from_logits
        self._axis = self.setting("axis", axis, integer)

    def hybrid_forward(self, F, pred, label, sample_weight=None):
        """Return the loss of each sample."""
        if not self._from_logits:
            pred = F.log_softmax(pred, axis=self._axis)
        with _Shapes(self, "one shape is needed for both", label=label, pred=pred):
            loss = label * (F.log(label + 1e-12) - pred)
        loss = self.weigh(F, loss, sample_weight)
        return F.sum(loss, axis=self._batch_axis, exclude=True)


class HingeLoss(Loss):
    """max(0, margin - pred * label), with labels -1 and 1."""

    def __init__(self, margin=1, weight=None, batch_axis=0, **kwargs):
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = self.setting("margin", margin, finite)

    def hybrid_forward(self, F, pred, label, sample_weight=None):
        """Return the loss of each sample."""
        loss = F.relu(self._margin - pred * self.like(F, label=label, pred=pred))
        return self.per_sample(F, loss, sample_weight)


class SquaredHingeLoss(HingeLoss):
    """max(0, margin - pred * label)^2, with labels -1 and 1."""

    def hybrid_forward(self, F, pred, label, sample_weight=None):
        """Return the loss of each sample."""
        loss = F.square(F.relu(self._margin - pred * self.like(F, label=label, pred=pred)))
        return self.per_sample(F, loss, sample_weight)


class LogisticLoss(Loss):
    """log(1 + exp(-pred * label)), with labels -1 and 1.

    label_format:  "signed", or "binary" for labels 0 and 1.
    """

    def __init__(self, weight=None, batch_axis=0, label_format="signed", **kwargs):
        super().__init__(weight, batch_axis, **kwargs)
        formats = choice("signed", "binary")
        self._label_format = self.setting("label_format", label_format, formats)

    def hybrid_forward(self, F, pred, label, sample_weight=None):
        """Return the loss of each sample."""
        label = self.like(F, label=label, pred=pred)
        if self._label_format == "signed":
            label = (label + 1) / 2
        hit = F.Activation(-pred, act_type="softrelu") * label
        loss = hit + F.Activation(pred, act_type="softrelu") * (1 - label)
        return self.per_sample(F, loss, sample_weight)


# -- embeddings ------------------------------------------------------------------------
class TripletLoss(Loss):
    """The positive example must be closer than the negative one by a margin.

    max(0, margin + sum((pred - positive)^2 - (pred - negative)^2)), (N, ...) -> (N,)
    """

    def __init__(self, margin=1, weight=None, batch_axis=0, **kwargs):
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = self.setting("margin", margin, finite)

    def hybrid_forward(self, F, pred, positive, negative):
        """Return the loss of each sample."""
        near = F.square(self.like(F, positive=positive, pred=pred) - pred)
        far = F.square(self.like(F, negative=negative, pred=pred) - pred)
        distance = F.sum(near - far, axis=self._batch_axis, exclude=True)
        return self.weigh(F, F.relu(distance + self._margin))


class CosineEmbeddingLoss(Loss):
    """1 - cos for pairs with label 1, max(0, cos - margin) for pairs with label -1.

    cos is the cosine of the angle between two vectors: (N, K), (N, K), (N,) -> (N, 1).
    """

    def __init__(self, weight=None, batch_axis=0, margin=0, **kwargs):
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = self.setting("margin", margin, finite)

    def hybrid_forward(self, F, input1, input2, label, sample_weight=None):
        """Return the loss of each pair."""
        input1 = self.like(F, input1=input1, input2=input2)
        label = F.reshape(label, shape=(-1, 1))

        def over_last(x):
            return F.reshape(F.sum(x, axis=-1), shape=(-1, 1))

        squares = over_last(F.square(input1)) * over_last(F.square(input2))
        cos = over_last(input1 * input2) / F.sqrt(F.maximum(squares, 1e-24))
        with _Shapes(self, "one label per pair is needed", label=label, input1=input1):
            loss = (1 - cos) * (label == 1) + F.relu((cos - self._margin) * (label == -1))
        return self.weigh(F, loss, sample_weight)


class SDMLLoss(Loss):
    """Each vector of the first batch must be closest to its counterpart in the second.

    (N, K), (N, K) -> (N,): the divergence of softmax(-squared distances) from labels with
    1 - smoothing_parameter for the counterpart, and the rest split equally among the others.

    MXNet 1.9.1 ignores `weight`, and can't hybridize it.
    Source:  Bonadiman et al., Smoothed Deep Metric Learning (2019).
    """

    def __init__(self, smoothing_parameter=0.3, weight=1.0, batch_axis=0, **kwargs):
        super().__init__(weight, batch_axis, **kwargs)
        self.smoothing_parameter = self.setting("smoothing_parameter", smoothing_parameter, rate)

    def hybrid_forward(self, F, x1, x2):
        """Return the loss of each pair."""
        with _Shapes(self, "one shape (N, K) is needed for both", x1=x1, x2=x2):
            apart = F.broadcast_sub(F.expand_dims(x1, axis=1), F.expand_dims(x2, axis=0))
        logits = F.log_softmax(-F.sum(F.square(apart), axis=2), axis=1)
        numbers = F.contrib.arange_like(logits, axis=0)
        twin = F.broadcast_equal(F.expand_dims(numbers, axis=1), F.expand_dims(numbers, axis=0))
        other = F.broadcast_div(1 - twin, F.sum(1 - twin, axis=1, keepdims=True))
        labels = twin * (1 - self.smoothing_parameter) + other * self.smoothing_parameter
        return self.weigh(F, F.sum(labels * (F.log(labels + 1e-12) - logits), axis=1))


# -- sequences -------------------------------------------------------------------------
class CTCLoss(Loss):
    """The negative log-likelihood of label sequences without alignment.

    layout:         of the scores: NTC or TNC. The last of the C characters is the blank.
    label_layout:   of the labels: NT or TN. Characters are 0 to C - 2, padded with -1.
    pred_lengths:   the number of valid steps per sequence, (N,), by default all.
    label_lengths:  the number of characters per label, (N,), by default up to the first -1.

    The loss of a label that needs more steps than there are is 0, as in MXNet.

    Raises:  PlaceError for a character that doesn't exist, if the loss isn't hybridized and
             has no `label_lengths`.
    """

    def __init__(self, layout="NTC", label_layout="NT", weight=None, **kwargs):
        self._layout = self.setting("layout", layout, choice("NTC", "TNC"))
        self._label_layout = self.setting("label_layout", label_layout, choice("NT", "TN"))
        super().__init__(weight, label_layout.find("N"), **kwargs)

    def hybrid_forward(
        self, F, pred, label, pred_lengths=None, label_lengths=None, sample_weight=None
    ):
        """Return the loss of each label sequence."""
        if label_lengths is None and isinstance(label, NDArray) and len(pred.shape) == 3:
            check_classes(self.name, label, pred.shape[2] - 1, first=-1)
        need = (
            f"{self._layout} and {self._label_layout} are needed, and no label may be longer than "
            "its prediction"
        )
        with _Shapes(self, need, pred=pred, label=label):
            loss = F.CTCLoss(
                F.swapaxes(pred, dim1=0, dim2=1) if self._layout == "NTC" else pred,
                F.swapaxes(label, dim1=0, dim2=1) if self._label_layout == "TN" else label,
                pred_lengths,
                label_lengths,
                use_data_lengths=pred_lengths is not None,
                use_label_lengths=label_lengths is not None,
                blank_label="last",
            )
        return self.weigh(F, loss, sample_weight)


SoftmaxCELoss = SoftmaxCrossEntropyLoss
SigmoidBCELoss = SigmoidBinaryCrossEntropyLoss

__dir__ = own_names(globals())
