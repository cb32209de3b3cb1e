"""Chapter 15. Losses: one number a sample that says how wrong the answer is.

Takes:   predictions and labels, samples along the first axis.
Gives:   `SoftmaxCrossEntropyLoss`, `L2Loss`, `L1Loss`; hybrid blocks like any other.

What is left out: the losses of ranking and of pairs.
"""

from minihybrid.gluon.block import HybridBlock


class Loss(HybridBlock):
    """The parent: a weight for all samples, and the mean over all axes but the first."""

    def __init__(self, weight=None, batch_axis=0, prefix=None, params=None):
        super().__init__(prefix, params)
        self._weight, self._batch_axis = weight, batch_axis

    def __repr__(self):
        return f"{type(self).__name__}(batch_axis={self._batch_axis}, w={self._weight})"

    def per_sample(self, F, loss, sample_weight):
        """Weigh the losses and average them for each sample: (N, ...) -> (N,)."""
        if sample_weight is not None:
            loss = F.broadcast_mul(loss, sample_weight)
        if self._weight is not None:
            loss = loss * self._weight
        return F.mean(loss, axis=self._batch_axis, exclude=True)


class L2Loss(Loss):
    """Half the squared distance: 0.5 * weight * (pred - label)^2, averaged a sample."""

    def __init__(self, weight=1.0, batch_axis=0, prefix=None, params=None):
        super().__init__(weight, batch_axis, prefix, params)

    def hybrid_forward(self, F, pred, label, sample_weight=None):
        """The loss of each sample."""
        loss = F.square(F.reshape_like(label, pred) - pred) * 0.5
        return self.per_sample(F, loss, sample_weight)


class L1Loss(Loss):
    """The absolute distance |pred - label|, averaged a sample."""

    def hybrid_forward(self, F, pred, label, sample_weight=None):
        """The loss of each sample."""
        loss = F.abs(F.reshape_like(label, pred) - pred)
        return self.per_sample(F, loss, sample_weight)


class SoftmaxCrossEntropyLoss(Loss):
    """-log(softmax(pred)[label]).

    sparse_label: labels are class numbers (N,); else probabilities like `pred`.
    from_logits:  `pred` holds logarithms of probabilities already.
    """

    def __init__(self, axis=-1, sparse_label=True, from_logits=False, weight=None,
                 batch_axis=0, prefix=None, params=None):
        super().__init__(weight, batch_axis, prefix, params)
        self._axis, self._sparse_label = axis, sparse_label
        self._from_logits = from_logits

    def hybrid_forward(self, F, pred, label, sample_weight=None):
        """The loss of each sample."""
        if not self._from_logits:
            pred = F.log_softmax(pred, axis=self._axis)
        if self._sparse_label:
            loss = -F.pick(pred, label, axis=self._axis, keepdims=True)
        else:
            loss = -F.sum(pred * F.reshape_like(label, pred), axis=self._axis,
                          keepdims=True)
        return self.per_sample(F, loss, sample_weight)


SoftmaxCELoss = SoftmaxCrossEntropyLoss
