"""Metrics: how good a net is, added up over batches.

Takes:   lists of labels and of predictions, batch by batch: `update(labels, preds)`.
Gives:   `get()`, a name and a number; `create`, which finds a metric by its name.

Names, arguments and numbers are those of MXNet 1.9's `metric`. Each counts twice: since the
last `reset_local`, which `callback.Speedometer` calls every few batches, and since `reset`.
What is left out: metrics read from JSON texts.
"""

import math

import numpy

from minihybrid.core.checked_call import CheckedCall
from minihybrid.core.hooks import own_names
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

REGISTRY = {}  # name in lower case -> class


def register(klass):
    """Enter a metric's class under its own name in lower case; a decorator."""
    return alias(klass.__name__)(klass)


def alias(*names):
    """Enter a class under other names, too; a decorator."""

    def enter(klass):
        REGISTRY.update(dict.fromkeys(map(str.lower, names), klass))
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


class EvalMetric(metaclass=CheckedCall):
    """The parent: a sum and the number of things in it, whose quotient is the metric.

    A child gives `measure`: one batch -> what is added to the sum and to the number. One that
    has its own `update`, as in MXNet, adds to `sum_metric` and `num_inst`; where it adds to
    `global_sum_metric` and `global_num_inst`, too, it says has_global_stats=True.
    """

    def __init__(self, name, output_names=None, label_names=None, **kwargs):
        self.name, self._kwargs = str(name), kwargs
        self.output_names, self.label_names = output_names, label_names
        own = type(self).update is not EvalMetric.update
        self._has_global_stats = kwargs.pop("has_global_stats", not own)
        self.reset()

    def __repr__(self):
        shown = ", ".join(f"{name}={value:.6g}" for name, value in self.get_name_value())
        return f"{type(self).__name__}({shown})"

    def __str__(self):
        return f"EvalMetric: {dict(self.get_name_value())}"

    def reset(self):
        """Forget all batches."""
        self.num_inst, self.sum_metric = 0, 0.0
        self.global_num_inst, self.global_sum_metric = 0, 0.0

    def reset_local(self):
        """Forget all batches, but for `get_global`."""
        self.num_inst, self.sum_metric = 0, 0.0

    def add_up(self, total, count):
        """Add to the sum and to the number, here and for `get_global`."""
        self.sum_metric += total
        self.num_inst += count
        self.global_sum_metric += total
        self.global_num_inst += count

    def measure(self, label, pred):
        """(added to the sum, added to the number) for NumPy arrays of one batch."""
        raise NotImplementedError

    def update(self, labels, preds):
        """Add batches: arrays, or lists of as many labels as predictions."""
        for total, count in self.each(self.measure, labels, preds):
            self.add_up(float(total), int(count))  # in double precision

    def each(self, measure, labels, preds):
        """What a function of NumPy arrays, such as `measure`, gives for each label."""
        labels, preds = self.pairs(labels, preds)
        for label, pred in zip(map(as_numpy, labels), map(as_numpy, preds), strict=True):
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
        """Labels and predictions as lists of one length.

        Raises:  ShapeError if there are more of one than of the other.
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
        """Add a batch given by names; `label_names` and `output_names` choose."""
        self.update(
            [label[n] for n in self.label_names or label],
            [pred[n] for n in self.output_names or pred],
        )

    def get(self):
        """(name, value) since `reset_local`; NaN before the first batch."""
        return self.name, self.value(self.sum_metric, self.num_inst)

    def get_global(self):
        """(name, value) since `reset`."""
        if not self._has_global_stats:
            return self.get()
        return self.name, self.value(self.global_sum_metric, self.global_num_inst)

    def value(self, total, count):
        """The metric of a sum and the number of things in it."""
        return float(total / count) if count else float("nan")

    def get_name_value(self):
        """[(name, value)] since `reset_local`."""
        return _pairs(*self.get())

    def get_global_name_value(self):
        """[(name, value)] since `reset`."""
        return _pairs(*self.get_global())

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


def must_be_arrays(owner, *values):
    """Raise an AttrError unless all values are arrays, or lists."""
    for given in values:
        if not isinstance(given, (NDArray, list, tuple, numpy.ndarray, numpy.flatiter)):
            raise AttrError(
                f"{owner}: {described(given)} is given, but arrays of labels and of "
                "predictions, or lists of them, are needed"
            )


def _pairs(name, value):
    """[(name, value)] of one of both, or of lists of them."""
    return list(zip(name, value, strict=True)) if isinstance(name, list) else [(name, value)]


def as_numpy(array):
    """The numbers of an NDArray, or of anything NumPy understands."""
    return array.asnumpy() if isinstance(array, NDArray) else numpy.asarray(array)


@register
@alias("composite")
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
        super().__init__(name, output_names, label_names, has_global_stats=True)

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

    def reset_local(self):
        """Forget all batches, but for `get_global`."""
        for metric in self.metrics:
            metric.reset_local()

    def update(self, labels, preds):
        """Add batches to every metric."""
        for metric in self.metrics:
            metric.update(labels, preds)

    def update_dict(self, labels, preds):
        """Add a batch given by names to every metric; each chooses among those chosen here."""
        labels = {n: labels[n] for n in self.label_names or labels}
        preds = {n: preds[n] for n in self.output_names or preds}
        for metric in self.metrics:
            metric.update_dict(labels, preds)

    def get(self):
        """(names, values) since `reset_local`."""
        return _lists(pair for metric in self.metrics for pair in metric.get_name_value())

    def get_global(self):
        """(names, values) since `reset`."""
        return _lists(pair for metric in self.metrics for pair in metric.get_global_name_value())

    def get_config(self):
        """What `create` needs to make this metric again."""
        return {**super().get_config(), "metrics": [metric.get_config() for metric in self.metrics]}


def _lists(pairs):
    """(names, values) of pairs."""
    pairs = list(pairs)
    return [name for name, _ in pairs], [value for _, value in pairs]


# -- classes ---------------------------------------------------------------------------
@register
@alias("acc")
class Accuracy(EvalMetric):
    """The share of predictions that are right: classes, or scores along `axis`."""

    def __init__(self, axis=1, name="accuracy", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names, axis=axis)
        self.axis = axis

    def measure(self, label, pred):
        """(right ones, all)."""
        if pred.shape != label.shape:
            pred = pred.argmax(axis=self.axis)
        label, pred = label.astype(numpy.int32).ravel(), pred.astype(numpy.int32).ravel()
        self.same_length(label, pred)
        return (label == pred).sum(), len(label)


@register
@alias("top_k_accuracy", "top_k_acc")
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
        best = numpy.argsort(-pred, axis=1, kind="stable")[:, : self.top_k]
        return (best == label.astype(numpy.int32).reshape(-1, 1)).sum(), len(label)


class _Table(EvalMetric):
    """The parent of scores of a table: how often class i was predicted where j was right.

    average:  "macro" is the mean over calls of `update`, "micro" that of all samples together.
    """

    average = "micro"

    def reset(self):
        """Forget all batches."""
        super().reset()
        self.table = self.global_table = numpy.zeros((2, 2))

    def reset_local(self):
        """Forget all batches, but for `get_global`."""
        super().reset_local()
        self.table = numpy.zeros((2, 2))

    def update(self, labels, preds):
        """Add batches: arrays, or lists of as many labels as predictions."""
        batch = _sum_of_tables(self.each(self.count, labels, preds))
        self.table = _sum_of_tables([self.table, batch])
        self.global_table = _sum_of_tables([self.global_table, batch])
        if self.average == "macro":
            return self.add_up(self.score(batch), 1)
        self.num_inst, self.global_num_inst = self.table.sum(), self.global_table.sum()
        self.sum_metric = self.score(self.table) * self.num_inst
        self.global_sum_metric = self.score(self.global_table) * self.global_num_inst

    def count(self, label, pred):
        """The table of one batch; scores (N, C), or classes in the shape of the labels."""
        chosen = pred.argmax(axis=1) if pred.shape != label.shape else pred
        label, chosen = label.astype(numpy.int32).ravel(), chosen.astype(numpy.int32).ravel()
        self.same_length(label, chosen)
        size = max(2, *(int(v.max(initial=0)) + 1 for v in (label, chosen)))
        table = numpy.zeros((size, size))
        numpy.add.at(table, (chosen, label), 1)
        return table


def _sum_of_tables(tables):
    """The sum of square tables; missing rows and columns count as zeros."""
    tables = [numpy.zeros((2, 2)), *tables]
    size = max(map(len, tables))
    return sum(numpy.pad(t, (0, size - len(t))) for t in tables)


class _TwoClasses(_Table):
    """The parent of scores of two classes, scores (N, 2); class 1 is what is looked for."""

    def __init__(self, name=None, output_names=None, label_names=None, average="macro"):
        self.average = average
        name = type(self).__name__.lower() if name is None else name
        super().__init__(name, output_names, label_names, has_global_stats=True, average=average)

    def count(self, label, pred):
        """The table of one batch: all but class 1 is class 0."""
        label = label.astype(numpy.int32).ravel()
        self.same_length(label, pred)
        if len(numpy.unique(label)) > 2:
            raise ShapeError(
                f"{self.name}: labels of {len(numpy.unique(label))} classes, but two are needed"
            )
        return super().count(label == 1, pred.argmax(axis=1) == 1)


@register
class F1(_TwoClasses):
    """2 precision recall / (precision + recall) of two classes, scores (N, 2).

    average:  "macro" is the mean over batches, "micro" that of all samples together.
    """

    @staticmethod
    def score(table):
        """The score of a table; 0 without any hit."""
        (_, misses), (alarms, hits) = table
        return 2 * hits / (2 * hits + alarms + misses) if hits else 0.0


@register
class MCC(_TwoClasses):
    """Matthews' correlation of two classes, scores (N, 2): 1 all right, 0 guessed, -1 all wrong.

    average:  "macro" is the mean over batches, "micro" that of all samples together.

    >>> from minihybrid.core import nd
    >>> mcc = MCC()
    >>> mcc.update(nd.array([0, 1, 1]), nd.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]]))
    >>> mcc.get()
    ('mcc', 0.5)
    """

    @staticmethod
    def score(table):
        """The score of a table; sums that are 0 count as 1."""
        (right, misses), (alarms, hits) = table
        sums = numpy.append(table.sum(axis=0), table.sum(axis=1))
        return (right * hits - misses * alarms) / math.sqrt(sums[sums != 0].prod())


@register
class PCC(_Table):
    """The correlation of labels and predictions of any number of classes; of two, it is MCC's.

    It is that of all samples since the start; NaN while there is one class only. Scores are
    (N, C), or classes in the shape of the labels.
    """

    def __init__(self, name="pcc", output_names=None, label_names=None, has_global_stats=True):
        super().__init__(name, output_names, label_names, has_global_stats=has_global_stats)

    @staticmethod
    def score(table):
        """The score of a table."""
        n, predicted, right = table.sum(), table.sum(axis=1), table.sum(axis=0)
        spread = (predicted * (n - predicted)).sum() * (right * (n - right)).sum()
        return (table.trace() * n - predicted @ right) / math.sqrt(spread) if spread else math.nan


@register
@alias("ce")
class CrossEntropy(EvalMetric):
    """The mean of -log(probability of the label), predictions (N, C)."""

    def __init__(self, eps=1e-12, name="cross-entropy", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names, eps=eps)
        self.eps = eps

    def measure(self, label, pred):
        """(sum over the samples, samples)."""
        label = label.ravel().astype(numpy.int64)
        self.same_length(label, pred)
        return -numpy.log(pred[numpy.arange(len(label)), label] + self.eps).sum(), len(label)


@register
@alias("nll_loss")
class NegativeLogLikelihood(CrossEntropy):
    """The same number as CrossEntropy under another name."""

    def __init__(self, eps=1e-12, name="nll-loss", output_names=None, label_names=None):
        super().__init__(eps, name, output_names, label_names)


@register
class Perplexity(EvalMetric):
    """e to the power of the mean cross-entropy; `ignore_label` does not count."""

    def __init__(
        self, ignore_label, axis=-1, name="perplexity", output_names=None, label_names=None
    ):
        super().__init__(name, output_names, label_names, ignore_label=ignore_label)
        self.ignore_label, self.axis = ignore_label, axis

    def measure(self, label, pred):
        """(sum of the cross-entropies, samples)."""
        scores = numpy.moveaxis(pred, self.axis, -1).reshape(-1, pred.shape[self.axis])
        label = label.ravel().astype(numpy.int64)
        self.same_length(label, scores)
        kept = label != self.ignore_label  # every label differs from None
        chosen = scores[kept, label[kept]]
        return -numpy.log(numpy.maximum(chosen, 1e-10)).sum(), kept.sum()

    def value(self, total, count):
        """The perplexity of a sum of cross-entropies."""
        return math.exp(super().value(total, count))


# -- numbers ---------------------------------------------------------------------------
class _Distance(EvalMetric):
    """The parent of metrics that average a distance over batches."""

    def measure(self, label, pred):
        """(distance, 1); of one-dimensional arrays, each number is a row."""
        label = label.reshape(-1, 1) if label.ndim == 1 else label
        pred = pred.reshape(-1, 1) if pred.ndim == 1 else pred
        return self.distance(label - pred), 1


@register
class MAE(_Distance):
    """The mean of |label - pred|, averaged over batches."""

    def __init__(self, name="mae", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)

    def distance(self, difference):
        """Of one batch."""
        return numpy.abs(difference).mean()


@register
class MSE(_Distance):
    """The mean of (label - pred)^2, averaged over batches."""

    def __init__(self, name="mse", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)

    def distance(self, difference):
        """Of one batch."""
        return (difference**2).mean()


@register
class RMSE(_Distance):
    """The root of a batch's mean of (label - pred)^2, averaged over batches."""

    def __init__(self, name="rmse", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)

    def distance(self, difference):
        """Of one batch."""
        return numpy.sqrt((difference**2).mean())


class _Moments:
    """Means and products of deviations of pairs of numbers, merged batch after batch."""

    def __init__(self):
        self.count, self.means, self.products = 0, numpy.zeros(2), numpy.zeros((2, 2))

    def add(self, both):
        """Add pairs of numbers (2, N)."""
        means, n = both.mean(axis=1), both.shape[1]
        away, shift = both - means[:, None], means - self.means
        weight = self.count * n / (self.count + n)
        self.products = self.products + away @ away.T + numpy.outer(shift, shift) * weight
        self.means = self.means + shift * n / (self.count + n)
        self.count += n

    def correlation(self):
        """Of all pairs so far; NaN where all numbers of a side are one."""
        (aa, ab), (_, bb) = self.products
        return ab / math.sqrt(aa * bb) if aa * bb else math.nan


@register
@alias("pearsonr")
class PearsonCorrelation(EvalMetric):
    """The correlation of labels and predictions.

    average:  "macro" is the mean over batches, "micro" that of all numbers together.
    """

    def __init__(self, name="pearsonr", output_names=None, label_names=None, average="macro"):
        self.average = average
        super().__init__(name, output_names, label_names, has_global_stats=True, average=average)

    def reset(self):
        """Forget all batches."""
        super().reset()
        self.moments, self.global_moments = _Moments(), _Moments()

    def reset_local(self):
        """Forget all batches, but for `get_global`."""
        super().reset_local()
        self.moments = _Moments()

    def measure(self, label, pred):
        """(correlation, 1) of a batch."""
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
        """Add batches: arrays, or lists of as many labels as predictions."""
        super().update(labels, preds)
        if self.average != "macro":
            self.sum_metric = self.moments.correlation() * self.num_inst
            self.global_sum_metric = self.global_moments.correlation() * self.global_num_inst


@register
class Loss(EvalMetric):
    """The mean of the predictions, which are losses; labels are not read."""

    def __init__(self, name="loss", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def update(self, _, preds):
        """Add losses: an array or a list of arrays."""
        preds = [preds] if isinstance(preds, NDArray) else preds
        for pred in map(as_numpy, preds):
            self.add_up(float(pred.sum()), pred.size)


@register
class Torch(Loss):
    """The same number as Loss under another name."""

    def __init__(self, name="torch", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)


@register
class Caffe(Loss):
    """The same number as Loss under another name."""

    def __init__(self, name="caffe", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)


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
            name = getattr(feval, "__name__", "<function>")
            name = f"custom({name})" if "<" in name else name
        super().__init__(name, output_names, label_names)
        self._feval, self._extra = feval, allow_extra_outputs

    def pairs(self, labels, preds):
        """As many predictions as labels; more may be allowed."""
        return super().pairs(labels, preds[: len(labels)] if self._extra else preds)

    def measure(self, label, pred):
        """(sum, count)."""
        result = self._feval(label, pred)
        return result if isinstance(result, tuple) else (result, 1)


def np(numpy_feval, name=None, allow_extra_outputs=False):
    """A metric of a function of NumPy arrays: `CustomMetric` under another name.

    >>> from minihybrid.core import nd
    >>> def most(label, pred):
    ...     return abs(label - pred).max()
    >>> worst = np(most)
    >>> worst.update(nd.array([1, 2]), nd.array([1, 5])); worst.get()
    ('most', 3.0)
    """
    return CustomMetric(numpy_feval, name, allow_extra_outputs)


def check_label_shapes(labels, preds, wrap=False, shape=False):
    """Labels and predictions, if they are equally many.

    wrap:   a single array becomes a list of one.
    shape:  their shapes must be equal, rather than their lengths.
    Raises: ShapeError if they are not.
    """
    must_be_arrays("check_label_shapes", labels, preds)
    many = [v.shape if shape else len(v) for v in (labels, preds)]
    if many[0] != many[1]:
        raise ShapeError(
            f"check_label_shapes: labels have {'shape' if shape else 'length'} {many[0]}, but "
            f"predictions {many[1]}; needed: one prediction for each label"
        )
    return [[v] if wrap and isinstance(v, NDArray) else v for v in (labels, preds)]


def __dir__():
    return own_names(globals())
