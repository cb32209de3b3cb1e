"""Chapter 07. Metrics: how good a net is, added up over batches.

Takes:   lists of labels and of predictions, batch by batch: `update(labels, preds)`.
Gives:   `get()`, a name and a number; `create`, which finds a metric by its name.

Names, arguments and numbers are those of MXNet 1.9's `metric`.
What is left out: counts that outlive `reset`, the coefficients of Matthews and others.
"""

import math

import numpy as np

from minihybrid.core.mistake import Signed
from minihybrid.core.nd import NDArray
from minihybrid.core.op import (
    UNEXPECTED,
    AttrError,
    HybridError,
    ShapeError,
    checked,
    described,
    integer,
)
from minihybrid.ops.shown import own_names

REGISTRY = {}  # name in lower case -> class


def register(*names):
    """Enter a metric's class under its own name and others, in lower case."""

    def enter(klass):
        for name in (klass.__name__, *names):
            REGISTRY[name.lower()] = klass
        return klass

    return enter


def create(metric, *args, **kwargs):
    """The metric with a name; of a list, all of them; of a function, its mean.

    Raises:  AttrError if no metric has the name.

    >>> create("acc").get()
    ('accuracy', nan)
    """
    if isinstance(metric, EvalMetric):
        return metric
    if callable(metric):
        return CustomMetric(metric, *args, **kwargs)
    if isinstance(metric, (list, tuple)):
        return CompositeEvalMetric([create(m, *args, **kwargs) for m in metric])
    if str(metric).lower() not in REGISTRY:
        raise AttrError(f"metric '{metric}' is unknown; there are {', '.join(sorted(REGISTRY))}")
    return REGISTRY[metric.lower()](*args, **kwargs)


class EvalMetric(metaclass=Signed):
    """The parent: a sum and the number of things in it, whose quotient is the metric.

    A child gives `measure`: one batch -> what is added to the sum and to the number.
    """

    def __init__(self, name, output_names=None, label_names=None, **kwargs):
        self.name, self._kwargs = str(name), kwargs
        self.output_names, self.label_names = output_names, label_names
        self.reset()

    def __repr__(self):
        shown = ", ".join(f"{name}={value:.6g}" for name, value in self.get_name_value())
        return f"{type(self).__name__}({shown})"

    def __str__(self):
        return f"EvalMetric: {dict(self.get_name_value())}"

    def reset(self):
        """Forget all batches."""
        self.num_inst, self.sum_metric = 0, 0.0

    def reset_local(self):
        """Forget all batches: `callback.Speedometer` asks so."""
        self.reset()

    def measure(self, label, pred):
        """(added to the sum, added to the number) for NumPy arrays of one batch."""
        raise NotImplementedError

    def update(self, labels, preds):
        """Add batches: arrays, or lists of as many labels as predictions."""
        labels, preds = self.pairs(labels, preds)
        for label, pred in zip(labels, preds, strict=True):
            label, pred = as_numpy(label), as_numpy(pred)
            try:
                total, count = self.measure(label, pred)
            except HybridError:
                raise
            except UNEXPECTED:
                raise ShapeError(
                    f"{self.name}: labels of shape {label.shape} and predictions of "
                    f"shape {pred.shape} do not go together; update(labels, predictions) takes "
                    "the labels first"
                ) from None
            self.sum_metric += float(total)  # in double precision
            self.num_inst += int(count)

    def pairs(self, labels, preds):
        """Labels and predictions as lists of one length.

        Raises:  ShapeError if there are more of one than of the other.
        """
        for given in (labels, preds):
            if not isinstance(given, (NDArray, list, tuple, np.ndarray)):
                raise AttrError(
                    f"{self.name}: {described(given)} is given, but arrays of labels and of "
                    "predictions, or lists of them, are needed"
                )
        labels = [labels] if isinstance(labels, NDArray) else list(labels)
        preds = [preds] if isinstance(preds, NDArray) else list(preds)
        if len(labels) != len(preds):
            raise ShapeError(
                f"{self.name}: {len(labels)} labels for {len(preds)} "
                "predictions; give as many of both"
            )
        return labels, preds

    def update_dict(self, label, pred):
        """Add a batch given by names; `label_names` and `output_names` choose."""
        self.update(
            [label[n] for n in self.label_names or label],
            [pred[n] for n in self.output_names or pred],
        )

    def get(self):
        """(name, value); NaN before the first batch."""
        if self.num_inst == 0:
            return self.name, float("nan")
        return self.name, float(self.value())

    def value(self):
        """The metric of all batches."""
        return self.sum_metric / self.num_inst

    def get_name_value(self):
        """[(name, value)]."""
        name, value = self.get()
        return list(zip(name, value, strict=True)) if isinstance(name, list) else [(name, value)]

    def get_config(self):
        """What `create` needs to make this metric again."""
        return {
            "metric": type(self).__name__,
            "name": self.name,
            "output_names": self.output_names,
            "label_names": self.label_names,
            **self._kwargs,
        }

    def same_length(self, label, pred):
        """Raise a ShapeError unless there is one label for each prediction."""
        if len(label) != len(pred):
            raise ShapeError(
                f"{self.name}: {len(label)} labels for {len(pred)} "
                "predictions; give one label for each"
            )


def as_numpy(array):
    """The numbers of an NDArray, or of anything NumPy understands."""
    return array.asnumpy() if isinstance(array, NDArray) else np.asarray(array)


@register("composite")
class CompositeEvalMetric(EvalMetric):
    """Several metrics as one; `get` gives a list of names and a list of values."""

    def __init__(self, metrics=None, name="composite", output_names=None, label_names=None):
        metrics = [] if metrics is None else metrics
        if not isinstance(metrics, (list, tuple)):
            raise AttrError(
                f"CompositeEvalMetric: metrics={described(metrics)}, but a "
                "list of metrics or of their names is needed"
            )
        self.metrics = [create(m) for m in metrics]
        super().__init__(name, output_names, label_names)

    def add(self, metric):
        """Add a metric, or one by its name."""
        self.metrics.append(create(metric))

    def get_metric(self, index):
        """One of the metrics."""
        return self.metrics[index]

    def reset(self):
        """Forget all batches."""
        for metric in self.metrics:
            metric.reset()

    def update(self, labels, preds):
        """Add batches to every metric."""
        for metric in self.metrics:
            metric.update(labels, preds)

    def get(self):
        """(names, values)."""
        found = [pair for metric in self.metrics for pair in metric.get_name_value()]
        return [name for name, _ in found], [value for _, value in found]

    def get_config(self):
        """What `create` needs to make this metric again."""
        return {**super().get_config(), "metrics": [metric.get_config() for metric in self.metrics]}


# -- classes ---------------------------------------------------------------------------
@register("acc")
class Accuracy(EvalMetric):
    """The share of predictions that are right: classes, or scores along `axis`."""

    def __init__(self, axis=1, name="accuracy", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names, axis=axis)
        self.axis = axis

    def measure(self, label, pred):
        """(right ones, all)."""
        if pred.shape != label.shape:
            pred = pred.argmax(axis=self.axis)
        label, pred = label.astype(np.int32).ravel(), pred.astype(np.int32).ravel()
        self.same_length(label, pred)
        return (label == pred).sum(), len(label)


@register("top_k_accuracy", "top_k_acc")
class TopKAccuracy(EvalMetric):
    """The share of samples whose label is among the k highest scores, (N, C)."""

    def __init__(self, top_k=1, name="top_k_accuracy", output_names=None, label_names=None):
        if checked("TopKAccuracy", "top_k", top_k, integer) <= 1:
            raise AttrError(
                f"TopKAccuracy: top_k={top_k}, but more than 1 is needed; use Accuracy for 1"
            )
        super().__init__(f"{name}_{top_k}", output_names, label_names, top_k=top_k)
        self.top_k = top_k
        self._kwargs["name"] = name  # to make it again: the number is added again

    def measure(self, label, pred):
        """(right ones, all)."""
        if pred.ndim != 2:
            raise ShapeError(
                f"{self.name}: predictions have shape {pred.shape}, but scores (N, C) are needed"
            )
        self.same_length(label, pred)
        best = np.argsort(-pred, axis=1, kind="stable")[:, : self.top_k]
        return (best == label.astype(np.int32).reshape(-1, 1)).sum(), len(label)


@register()
class F1(EvalMetric):
    """2 precision recall / (precision + recall) of two classes, scores (N, 2).

    average:  "macro" is the mean over batches, "micro" that of all samples together.
    """

    def __init__(self, name="f1", output_names=None, label_names=None, average="macro"):
        super().__init__(name, output_names, label_names, average=average)
        self.average = average

    def reset(self):
        """Forget all batches."""
        super().reset()
        self.counts = np.zeros(3)  # hits, false alarms, misses

    def measure(self, label, pred):
        """(score, 1) of a batch, or of all batches since the start."""
        label, hit = label.astype(np.int32).ravel(), pred.argmax(axis=1) == 1
        self.same_length(label, pred)
        if len(np.unique(label)) > 2:
            raise ShapeError(
                f"{self.name}: labels of {len(np.unique(label))} classes, but two are needed"
            )
        counts = np.array(
            [(hit & (label == 1)).sum(), (hit & (label != 1)).sum(), (~hit & (label == 1)).sum()]
        )
        self.counts += counts
        return self.score(counts), 1 if self.average == "macro" else len(label)

    @staticmethod
    def score(counts):
        """The score of (hits, false alarms, misses); 0 without any hit."""
        hits, alarms, misses = counts
        return 2 * hits / (2 * hits + alarms + misses) if hits else 0.0

    def value(self):
        """The mean over batches, or the score of all samples."""
        return super().value() if self.average == "macro" else self.score(self.counts)


@register("ce")
class CrossEntropy(EvalMetric):
    """The mean of -log(probability of the label), predictions (N, C)."""

    def __init__(self, eps=1e-12, name="cross-entropy", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names, eps=eps)
        self.eps = eps

    def measure(self, label, pred):
        """(sum over the samples, samples)."""
        label = label.ravel().astype(np.int64)
        self.same_length(label, pred)
        return -np.log(pred[np.arange(len(label)), label] + self.eps).sum(), len(label)


@register("nll_loss")
class NegativeLogLikelihood(CrossEntropy):
    """The same number as CrossEntropy under another name."""

    def __init__(self, eps=1e-12, name="nll-loss", output_names=None, label_names=None):
        super().__init__(eps, name, output_names, label_names)


@register()
class Perplexity(EvalMetric):
    """e to the power of the mean cross-entropy; `ignore_label` does not count."""

    def __init__(
        self, ignore_label, axis=-1, name="perplexity", output_names=None, label_names=None
    ):
        super().__init__(name, output_names, label_names, ignore_label=ignore_label)
        self.ignore_label, self.axis = ignore_label, axis

    def measure(self, label, pred):
        """(sum of the cross-entropies, samples)."""
        scores = np.moveaxis(pred, self.axis, -1).reshape(-1, pred.shape[self.axis])
        label = label.ravel().astype(np.int64)
        self.same_length(label, scores)
        kept = label != self.ignore_label  # every label differs from None
        chosen = scores[np.arange(len(label)), label][kept]
        return -np.log(np.maximum(chosen, 1e-10)).sum(), kept.sum()

    def value(self):
        """The perplexity of all samples."""
        return math.exp(super().value())


# -- numbers ---------------------------------------------------------------------------
class _Distance(EvalMetric):
    """The parent of metrics that average a distance over batches."""

    def measure(self, label, pred):
        """(distance, 1); of one-dimensional arrays, each number is a row."""
        label = label.reshape(-1, 1) if label.ndim == 1 else label
        pred = pred.reshape(-1, 1) if pred.ndim == 1 else pred
        return self.distance(label - pred), 1


@register()
class MAE(_Distance):
    """The mean of |label - pred|, averaged over batches."""

    def __init__(self, name="mae", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)

    def distance(self, difference):
        """Of one batch."""
        return np.abs(difference).mean()


@register()
class MSE(_Distance):
    """The mean of (label - pred)^2, averaged over batches."""

    def __init__(self, name="mse", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)

    def distance(self, difference):
        """Of one batch."""
        return (difference**2).mean()


@register()
class RMSE(_Distance):
    """The root of a batch's mean of (label - pred)^2, averaged over batches."""

    def __init__(self, name="rmse", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)

    def distance(self, difference):
        """Of one batch."""
        return np.sqrt((difference**2).mean())


@register("pearsonr")
class PearsonCorrelation(EvalMetric):
    """The correlation of labels and predictions.

    average:  "macro" is the mean over batches, "micro" that of all numbers together, by
              merging each batch's means and products of deviations.
    """

    def __init__(self, name="pearsonr", output_names=None, label_names=None, average="macro"):
        super().__init__(name, output_names, label_names, average=average)
        self.average = average

    def reset(self):
        """Forget all batches."""
        super().reset()
        self.count, self.means, self.products = 0, np.zeros(2), np.zeros((2, 2))

    def measure(self, label, pred):
        """(correlation, 1) of a batch."""
        if label.shape != pred.shape:
            raise ShapeError(
                f"{self.name}: labels of shape {label.shape} for "
                f"predictions of shape {pred.shape}; one shape is needed"
            )
        both = np.float64([label.ravel(), pred.ravel()])
        means, n = both.mean(axis=1), both.shape[1]
        away, shift = both - means[:, None], means - self.means
        self.products += away @ away.T + np.outer(shift, shift) * self.count * n / (self.count + n)
        self.means += shift * n / (self.count + n)
        self.count += n
        return np.corrcoef(both)[0, 1] if self.average == "macro" else 0.0, 1

    def value(self):
        """The mean over batches, or the correlation of all numbers."""
        if self.average == "macro":
            return super().value()
        (aa, ab), (_, bb) = self.products
        return ab / math.sqrt(aa * bb)


@register()
class Loss(EvalMetric):
    """The mean of the predictions, which are losses; labels are not read."""

    def __init__(self, name="loss", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)

    def update(self, _, preds):
        """Add losses: an array or a list of arrays."""
        preds = [preds] if isinstance(preds, NDArray) else preds
        for pred in map(as_numpy, preds):
            self.sum_metric += float(pred.sum())
            self.num_inst += pred.size


class CustomMetric(EvalMetric):
    """The mean of feval(label, pred), a function of NumPy arrays.

    feval:  gives a number, or (sum, count).
    """

    def __init__(
        self, feval, name=None, allow_extra_outputs=False, output_names=None, label_names=None
    ):
        if not callable(feval):
            raise AttrError(
                f"CustomMetric: feval={described(feval)}, but a function "
                "of labels and predictions is needed"
            )
        if name is None:
            name = f"custom({getattr(feval, '__name__', 'function')})"
        super().__init__(name, output_names, label_names)
        self._feval, self._extra = feval, allow_extra_outputs

    def pairs(self, labels, preds):
        """As many predictions as labels; more may be allowed."""
        return super().pairs(labels, preds[: len(labels)] if self._extra else preds)

    def measure(self, label, pred):
        """(sum, count)."""
        result = self._feval(label, pred)
        return result if isinstance(result, tuple) else (result, 1)


def __dir__():
    return own_names(globals())
