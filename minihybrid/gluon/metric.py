"""Evaluation metrics, accumulated over batches.

`update(labels, preds)` adds a batch, `get()` returns a name and a value, and `create` finds a
metric by name.

Names, arguments and values are those of MXNet 1.9's `metric`. Each accumulates twice: since
the last `reset_local`, which `callback.Speedometer` calls every few batches, and since `reset`.
Not supported: metrics from JSON.
"""

import math

import numpy

from minihybrid.core.checked_call import CheckedCall
from minihybrid.core.convert import to_numpy
from minihybrid.core.hooks import own_names
from minihybrid.core.nd import NDArray
from minihybrid.core.op import (
    UNEXPECTED,
    AttrError,
    HybridError,
    ShapeError,
    checked,
    integer,
    unfit,
)

REGISTRY = {}  # name in lower case -> class


def register(klass):
    """Register a metric's class under its lower-case name (a decorator)."""
    return alias(klass.__name__)(klass)


def alias(*names):
    """Register a class under further names (a decorator)."""

    def enter(klass):
        REGISTRY.update(dict.fromkeys(map(str.lower, names), klass))
        return klass

    return enter


def create(metric, *args, **kwargs):
    """Create a metric by name; a list makes a composite, a function a `CustomMetric`.

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
        raise AttrError(
            f"metric.create: '{metric}' is unknown; there are {', '.join(sorted(REGISTRY))}"
        )
    return REGISTRY[metric.lower()](*args, **kwargs)


class EvalMetric(metaclass=CheckedCall):
    """The base class: a sum divided by a count.

    A subclass defines `measure`: one batch -> increments of the sum and the count. One that
    defines `update` instead, as in MXNet, adds to `sum_metric` and `num_inst`; if it also adds
    to `global_sum_metric` and `global_num_inst`, it passes has_global_stats=True.
    """

    def __init__(self, name=None, output_names=None, label_names=None, **kwargs):
        self.name = type(self).__name__.lower() if name is None else str(name)
        self._kwargs = kwargs
        self.output_names, self.label_names = output_names, label_names
        ours = type(self).update.__module__ == __name__  # they add to both
        self._has_global_stats = kwargs.pop("has_global_stats", ours)
        self.reset()

    def __repr__(self):
        pairs = ", ".join(f"{name}={value:.6g}" for name, value in self.get_name_value())
        return f"{type(self).__name__}({pairs})"

    def __str__(self):
        return f"EvalMetric: {dict(self.get_name_value())}"

    def reset(self):
        """Reset the local and global sums."""
        self.num_inst, self.sum_metric = 0, 0.0
        self.global_num_inst, self.global_sum_metric = 0, 0.0

    def reset_local(self):
        """Reset the local sums, but not those of `get_global`."""
        self.num_inst, self.sum_metric = 0, 0.0

    def add_up(self, total, count):
        """Add to the sum and the count, both local and global."""
        self.sum_metric += total
        self.num_inst += count
        self.global_sum_metric += total
        self.global_num_inst += count

    def measure(self, label, pred):
        """Return increments of (sum, count) for NumPy arrays of one batch."""
        raise NotImplementedError(
            f"{type(self).__name__} has no measure method; write measure(self, label, pred)"
        )

    def update(self, labels, preds):
        """Add a batch: arrays, or equally long lists of labels and predictions."""
        for total, count in self.each(self.measure, labels, preds):
            self.add_up(float(total), int(count))  # accumulate in float64

    def each(self, measure, labels, preds):
        """Yield `measure(label, prediction)` for each pair, as NumPy arrays."""
        labels, preds = self.pairs(labels, preds)
        labels, preds = ([as_numpy(v, self.name) for v in values] for values in (labels, preds))
        for label, pred in zip(labels, preds, strict=True):
            try:
                yield measure(label, pred)
            except HybridError:
                raise
            except UNEXPECTED:
                raise ShapeError(
                    f"{self.name}: labels of shape {label.shape} and predictions of "
                    f"shape {pred.shape} do not go together; update(labels, predictions) takes "
                    "the labels first"
                ) from None

    def pairs(self, labels, preds):
        """Return labels and predictions as lists of equal length.

        Raises:  ShapeError if their lengths differ.
        """
        must_be_arrays(self.name, labels, preds)
        labels = [labels] if isinstance(labels, NDArray) else list(labels)
        preds = [preds] if isinstance(preds, NDArray) else list(preds)
        if len(labels) != len(preds):
            raise ShapeError(
                f"{self.name}: {len(labels)} labels for {len(preds)} "
                "predictions; give as many of both"
            )
        return labels, preds

    def update_dict(self, label, pred):
        """Add a batch given by names, selected by `label_names` and `output_names`."""
        self.update(
            [label[n] for n in self.label_names or label],
            [pred[n] for n in self.output_names or pred],
        )

    def get(self):
        """Return (name, value) since `reset_local`; NaN before the first batch."""
        return self.name, self.value(self.sum_metric, self.num_inst)

    def get_global(self):
        """Return (name, value) since `reset`."""
        if not self._has_global_stats:
            return self.get()
        return self.name, self.value(self.global_sum_metric, self.global_num_inst)

    def value(self, total, count):
        """Return the metric for a sum and a count."""
        return float(total / count) if count else float("nan")

    def get_name_value(self):
        """Return [(name, value)] since `reset_local`."""
        return _pairs(*self.get())

    def get_global_name_value(self):
        """Return [(name, value)] since `reset`."""
        return _pairs(*self.get_global())

    def get_config(self):
        """Return the arguments with which `create` recreates this metric."""
        names = {"output_names": self.output_names, "label_names": self.label_names}
        return {"metric": type(self).__name__, "name": self.name, **names, **self._kwargs}

    def same_length(self, label, pred):
        """Raise a ShapeError unless there is one label per prediction."""
        if len(label) != len(pred):
            raise ShapeError(
                f"{self.name}: {len(label)} labels for {len(pred)} "
                "predictions; give one label for each"
            )


def must_be_arrays(owner, *values):
    """Raise an AttrError unless all values are arrays or lists."""
    for value in values:
        if not isinstance(value, (NDArray, list, tuple, numpy.ndarray, numpy.flatiter)):
            need = "arrays of labels and of predictions, or lists of them, are needed"
            raise unfit(owner, "", value, need)


def _pairs(name, value):
    """Return [(name, value)] for one name and value, or for lists of them."""
    return list(zip(name, value, strict=True)) if isinstance(name, list) else [(name, value)]


def as_numpy(array, owner="metric"):
    """Convert an NDArray, or numbers that NumPy accepts, to a NumPy array."""
    if isinstance(array, NDArray):
        return array.asnumpy()
    to_numpy(owner, array, "float64")  # raises for others
    return numpy.asarray(array)


@alias("composite")
class CompositeEvalMetric(EvalMetric):
    """Several metrics as one; `get` returns a list of names and a list of values."""

    def __init__(self, metrics=None, name="composite", output_names=None, label_names=None):
        metrics = [] if metrics is None else metrics
        if not isinstance(metrics, (list, tuple)):
            need = "a list of metrics or of their names is needed"
            raise unfit("CompositeEvalMetric", "metrics", metrics, need)
        self.metrics = [create(m) for m in metrics]
        super().__init__(name, output_names, label_names)

    def add(self, metric):
        """Add a metric, given as an object or by name."""
        self.metrics.append(create(metric))

    def get_metric(self, index):
        """Return a metric by its index."""
        return self.metrics[index]

    def reset(self):
        """Reset the local and global sums."""
        for metric in self.metrics:
            metric.reset()

    def reset_local(self):
        """Reset the local sums, but not those of `get_global`."""
        for metric in self.metrics:
            metric.reset_local()

    def update(self, labels, preds):
        """Update every metric."""
        for metric in self.metrics:
            metric.update(labels, preds)

    def update_dict(self, labels, preds):
        """Update every metric with a batch given by names, selected first here, then by each."""
        labels = {n: labels[n] for n in self.label_names or labels}
        preds = {n: preds[n] for n in self.output_names or preds}
        for metric in self.metrics:
            metric.update_dict(labels, preds)

    def get(self):
        """Return (names, values) since `reset_local`."""
        return _lists(pair for metric in self.metrics for pair in metric.get_name_value())

    def get_global(self):
        """Return (names, values) since `reset`."""
        return _lists(pair for metric in self.metrics for pair in metric.get_global_name_value())

    def get_config(self):
        """Return the arguments with which `create` recreates this metric."""
        return {**super().get_config(), "metrics": [metric.get_config() for metric in self.metrics]}


def _lists(pairs):
    """Return (names, values) from pairs."""
    pairs = list(pairs)
    return [name for name, _ in pairs], [value for _, value in pairs]


# -- classification --------------------------------------------------------------------
@alias("acc")
class Accuracy(EvalMetric):
    """The fraction of correct predictions: classes, or scores along `axis`."""

    def __init__(self, axis=1, name="accuracy", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names, axis=axis)
        self.axis = axis

    def measure(self, label, pred):
        """Return (number of correct predictions, number of predictions)."""
        if pred.shape != label.shape:
            pred = pred.argmax(axis=self.axis)
        label, pred = label.astype(numpy.int32).ravel(), pred.astype(numpy.int32).ravel()
        self.same_length(label, pred)
        return (label == pred).sum(), len(label)


@alias("top_k_accuracy", "top_k_acc")
class TopKAccuracy(EvalMetric):
    """The fraction of samples whose label is among the k highest scores, (N, C)."""

    def __init__(self, top_k=1, name="top_k_accuracy", output_names=None, label_names=None):
        if checked("TopKAccuracy", "top_k", top_k, integer) <= 1:
            raise AttrError(
                f"TopKAccuracy: top_k={top_k}, but more than 1 is needed; use Accuracy for 1"
            )
        super().__init__(f"{name}_{top_k}", output_names, label_names, top_k=top_k)
        self.top_k = top_k
        self._kwargs["name"] = name  # for `get_config`: the constructor appends k again

    def measure(self, label, pred):
        """Return (number of correct predictions, number of predictions)."""
        if pred.ndim != 2:
            raise ShapeError(
                f"{self.name}: predictions have shape {pred.shape}, but scores (N, C) are needed"
            )
        self.same_length(label, pred)
        best = numpy.argsort(-pred, axis=1, kind="stable")[:, : self.top_k]
        return (best == label.astype(numpy.int32).reshape(-1, 1)).sum(), len(label)


class _Table(EvalMetric):
    """The base class of scores of a confusion matrix (predicted class, label).

    average:  "macro" is the mean over calls of `update`, "micro" is over all samples.
    """

    average = "micro"

    def reset(self):
        """Reset the local and global sums."""
        super().reset()
        self.table = self.global_table = numpy.zeros((2, 2))

    def reset_local(self):
        """Reset the local sums, but not those of `get_global`."""
        super().reset_local()
        self.table = numpy.zeros((2, 2))

    def update(self, labels, preds):
        """Add a batch: arrays, or equally long lists of labels and predictions."""
        batch = _sum_of_tables(self.each(self.count, labels, preds))
        self.table = _sum_of_tables([self.table, batch])
        self.global_table = _sum_of_tables([self.global_table, batch])
        if self.average == "macro":
            return self.add_up(self.score(batch), 1)
        self.num_inst, self.global_num_inst = self.table.sum(), self.global_table.sum()
        self.sum_metric = self.score(self.table) * self.num_inst
        self.global_sum_metric = self.score(self.global_table) * self.global_num_inst

    def count(self, label, pred):
        """Return the confusion matrix of a batch; `pred`: scores (N, C), or classes as labels."""
        chosen = pred.argmax(axis=1) if pred.shape != label.shape else pred
        label, chosen = label.astype(numpy.int32).ravel(), chosen.astype(numpy.int32).ravel()
        self.same_length(label, chosen)
        size = max(2, *(int(v.max(initial=0)) + 1 for v in (label, chosen)))
        table = numpy.zeros((size, size))
        numpy.add.at(table, (chosen, label), 1)
        return table


def _sum_of_tables(tables):
    """Add confusion matrices, padded with zeros to the same size."""
    tables = [numpy.zeros((2, 2)), *tables]
    size = max(map(len, tables))
    return sum(numpy.pad(t, (0, size - len(t))) for t in tables)


class _TwoClasses(_Table):
    """The base class of binary scores, from scores (N, 2); class 1 is the positive class."""

    def __init__(self, name=None, output_names=None, label_names=None, average="macro"):
        self.average = average
        super().__init__(name, output_names, label_names, average=average)

    def count(self, label, pred):
        """Return the confusion matrix of a batch: all classes except 1 are 0."""
        label = label.astype(numpy.int32).ravel()
        self.same_length(label, pred)
        if len(numpy.unique(label)) > 2:
            raise ShapeError(
                f"{self.name}: labels of {len(numpy.unique(label))} classes, but two are needed"
            )
        return super().count(label == 1, pred.argmax(axis=1) == 1)


class F1(_TwoClasses):
    """The F1 score, 2 precision recall / (precision + recall), from scores (N, 2).

    average:  "macro" is the mean over batches, "micro" is over all samples.
    """

    @staticmethod
    def score(table):
        """Return the score of a confusion matrix; 0 without true positives."""
        (_, misses), (alarms, hits) = table
        return 2 * hits / (2 * hits + alarms + misses) if hits else 0.0


class MCC(_TwoClasses):
    """Matthews correlation coefficient, scores (N, 2): 1 all correct, 0 chance, -1 all wrong.

    average:  "macro" is the mean over batches, "micro" is over all samples.

    >>> from minihybrid.core import nd
    >>> mcc = MCC()
    >>> mcc.update(nd.array([0, 1, 1]), nd.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]]))
    >>> mcc.get()
    ('mcc', 0.5)
    """

    @staticmethod
    def score(table):
        """Return the score of a confusion matrix; sums of 0 are replaced by 1."""
        (right, misses), (alarms, hits) = table
        sums = numpy.append(table.sum(axis=0), table.sum(axis=1))
        return (right * hits - misses * alarms) / math.sqrt(sums[sums != 0].prod())


class PCC(_Table):
    """The multiclass Matthews correlation; for two classes, it equals MCC.

    It's computed over all samples since the start; NaN while there is only one class.
    Predictions are scores (N, C), or classes in the shape of the labels.
    """

    @staticmethod
    def score(table):
        """Return the score of a confusion matrix."""
        n, predicted, right = table.sum(), table.sum(axis=1), table.sum(axis=0)
        spread = (predicted * (n - predicted)).sum() * (right * (n - right)).sum()
        return (table.trace() * n - predicted @ right) / math.sqrt(spread) if spread else math.nan


@alias("ce")
class CrossEntropy(EvalMetric):
    """The mean of -log(probability of the label), predictions (N, C)."""

    def __init__(self, eps=1e-12, name="cross-entropy", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names, eps=eps)
        self.eps = eps

    def measure(self, label, pred):
        """Return (sum over the samples, number of samples)."""
        label = label.ravel().astype(numpy.int64)
        self.same_length(label, pred)
        return -numpy.log(pred[numpy.arange(len(label)), label] + self.eps).sum(), len(label)


@alias("nll_loss")
class NegativeLogLikelihood(CrossEntropy):
    """CrossEntropy under another name."""

    def __init__(self, eps=1e-12, name="nll-loss", output_names=None, label_names=None):
        super().__init__(eps, name, output_names, label_names)


class Perplexity(EvalMetric):
    """The exponential of the mean cross-entropy; labels equal to `ignore_label` are skipped."""

    def __init__(
        self, ignore_label, axis=-1, name="perplexity", output_names=None, label_names=None
    ):
        super().__init__(name, output_names, label_names, ignore_label=ignore_label)
        self.ignore_label, self.axis = ignore_label, axis

    def measure(self, label, pred):
        """Return (sum of the cross-entropies, number of samples)."""
        scores = numpy.moveaxis(pred, self.axis, -1).reshape(-1, pred.shape[self.axis])
        label = label.ravel().astype(numpy.int64)
        self.same_length(label, scores)
        valid = label != self.ignore_label  # with None, all are kept
        chosen = scores[valid, label[valid]]
        return -numpy.log(numpy.maximum(chosen, 1e-10)).sum(), valid.sum()

    def value(self, total, count):
        """Return the perplexity for a sum of cross-entropies and a count."""
        return math.exp(super().value(total, count))


# -- regression ------------------------------------------------------------------------
class _Distance(EvalMetric):
    """The base class of metrics that average a distance over batches."""

    def measure(self, label, pred):
        """Return (distance, 1). In a one-dimensional array, each element is a row."""
        label = label.reshape(-1, 1) if label.ndim == 1 else label
        pred = pred.reshape(-1, 1) if pred.ndim == 1 else pred
        return self.distance(label - pred), 1


class MAE(_Distance):
    """The mean of |label - pred|, averaged over batches."""

    def distance(self, difference):
        """Return the distance of a batch."""
        return numpy.abs(difference).mean()


class MSE(_Distance):
    """The mean of (label - pred)^2, averaged over batches."""

    def distance(self, difference):
        """Return the distance of a batch."""
        return (difference**2).mean()


class RMSE(_Distance):
    """The root mean square of label - pred, averaged over batches."""

    def distance(self, difference):
        """Return the distance of a batch."""
        return numpy.sqrt((difference**2).mean())


class _Moments:
    """Running means and (co)variance sums of pairs, merged batch by batch."""

    def __init__(self):
        self.count, self.means, self.products = 0, numpy.zeros(2), numpy.zeros((2, 2))

    def add(self, both):
        """Add pairs (2, N)."""
        means, n = both.mean(axis=1), both.shape[1]
        away, shift = both - means[:, None], means - self.means
        weight = self.count * n / (self.count + n)
        self.products = self.products + away @ away.T + numpy.outer(shift, shift) * weight
        self.means = self.means + shift * n / (self.count + n)
        self.count += n

    def correlation(self):
        """Return the correlation of all pairs so far; NaN if either variance is 0."""
        (aa, ab), (_, bb) = self.products
        return ab / math.sqrt(aa * bb) if aa * bb else math.nan


@alias("pearsonr")
class PearsonCorrelation(EvalMetric):
    """Pearson's correlation of labels and predictions.

    average:  "macro" is the mean over batches, "micro" is over all elements.
    """

    def __init__(self, name="pearsonr", output_names=None, label_names=None, average="macro"):
        self.average = average
        super().__init__(name, output_names, label_names, average=average)

    def reset(self):
        """Reset the local and global sums."""
        super().reset()
        self.moments, self.global_moments = _Moments(), _Moments()

    def reset_local(self):
        """Reset the local sums, but not those of `get_global`."""
        super().reset_local()
        self.moments = _Moments()

    def measure(self, label, pred):
        """Return (correlation, 1) of a batch."""
        if label.shape != pred.shape:
            raise ShapeError(
                f"{self.name}: labels of shape {label.shape} for "
                f"predictions of shape {pred.shape}; one shape is needed"
            )
        both, batch = numpy.float64([label.ravel(), pred.ravel()]), _Moments()
        for moments in (batch, self.moments, self.global_moments):
            moments.add(both)
        return batch.correlation(), 1

    def update(self, labels, preds):
        """Add a batch: arrays, or equally long lists of labels and predictions."""
        super().update(labels, preds)
        if self.average != "macro":
            self.sum_metric = self.moments.correlation() * self.num_inst
            self.global_sum_metric = self.global_moments.correlation() * self.global_num_inst


class Loss(EvalMetric):
    """The mean of the predictions, which are losses; labels are ignored."""

    def update(self, _, preds):
        """Add losses: an array or a list of arrays."""
        must_be_arrays(self.name, preds)
        for pred in [preds] if isinstance(preds, NDArray) else preds:
            pred = as_numpy(pred, self.name)
            self.add_up(float(pred.sum()), pred.size)


class Torch(Loss):
    """Loss under another name."""


class Caffe(Loss):
    """Loss under another name."""


for _name, _kind in list(globals().items()):
    is_metric = isinstance(_kind, type) and issubclass(_kind, EvalMetric)
    if is_metric and not _name.startswith("_") and _kind is not EvalMetric:
        register(_kind)


class CustomMetric(EvalMetric):
    """The mean of feval(label, pred), a function of NumPy arrays.

    feval:  returns a scalar, or (sum, count).
    """

    def __init__(
        self, feval, name=None, allow_extra_outputs=False, output_names=None, label_names=None
    ):
        if not callable(feval):
            need = "a function of labels and predictions is needed"
            raise unfit("CustomMetric", "feval", feval, need)
        if name is None:
            name = getattr(feval, "__name__", "<function>")
            name = f"custom({name})" if "<" in name else name
        super().__init__(name, output_names, label_names)
        self._feval, self._extra = feval, allow_extra_outputs

    def pairs(self, labels, preds):
        """Return pairs of labels and predictions; extra predictions may be allowed."""
        return super().pairs(labels, preds[: len(labels)] if self._extra else preds)

    def measure(self, label, pred):
        """Return (sum, count)."""
        result = self._feval(label, pred)
        return result if isinstance(result, tuple) else (result, 1)


def np(numpy_feval, name=None, allow_extra_outputs=False):
    """Create a metric from a function of NumPy arrays: a `CustomMetric`.

    >>> from minihybrid.core import nd
    >>> def most(label, pred):
    ...     return abs(label - pred).max()
    >>> worst = np(most)
    >>> worst.update(nd.array([1, 2]), nd.array([1, 5])); worst.get()
    ('most', 3.0)
    """
    return CustomMetric(numpy_feval, name, allow_extra_outputs)


def check_label_shapes(labels, preds, wrap=False, shape=False):
    """Return labels and predictions after checking that their lengths match.

    wrap:   wrap a single array in a list.
    shape:  compare their shapes instead of their lengths.
    Raises: ShapeError if they don't match.
    """
    must_be_arrays("check_label_shapes", labels, preds)
    many = [v.shape if shape else len(v) for v in (labels, preds)]
    if many[0] != many[1]:
        raise ShapeError(
            f"check_label_shapes: labels have {'shape' if shape else 'length'} {many[0]}, but "
            f"predictions {many[1]}; needed: one prediction for each label"
        )
    return [[v] if wrap and isinstance(v, NDArray) else v for v in (labels, preds)]


__dir__ = own_names(globals())
