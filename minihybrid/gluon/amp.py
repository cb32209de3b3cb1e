"""Loss scaling: multiply the loss so that gradients of float16 don't underflow.

Takes:   a Trainer, and the losses of a net that was cast to float16.
Gives:   `init_trainer`, `scale_loss`, `unscale` and `LossScaler`, as `mx.contrib.amp`.

The scale is dynamic: a step with a gradient that overflowed is skipped and halves the scale,
and many steps without one double it.
Source:  MXNet's mxnet.contrib.amp; Micikevicius and others, Mixed Precision Training, 2018.
Left out: `amp.init`, which inserts casts into nets; use `net.cast("float16")`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from minihybrid.core.array import NDArray
from minihybrid.core.hooks import own_names
from minihybrid.core.op import AttrError, described
from minihybrid.gluon.trainer import Trainer


class LossScaler:
    """The scale of a loss, adapted to the gradients that it gives.

    loss_scale: by which the next loss is multiplied.
    applied:    by which the present gradients are too large; 1 if they aren't scaled.
    skipped:    how many steps were skipped because a gradient overflowed.

    >>> scaler = LossScaler(8.0)
    >>> scaler.update([np.array([np.inf])]), scaler.loss_scale, scaler.skipped
    (False, 4.0, 1)
    """

    def __init__(self, loss_scale: float = 2.0**16, factor: float = 2.0, window: int = 2000):
        self.loss_scale, self.factor, self.window = loss_scale, factor, window
        self.applied, self.skipped, self.clean = 1.0, 0, 0  # clean: steps since an overflow

    def update(self, grads: list) -> bool:
        """Whether all gradients are finite; adapts the scale to that."""
        self.applied, finite = 1.0, all(np.isfinite(grad).all() for grad in grads)
        self.clean = self.clean + 1 if finite else 0
        if not finite:
            self.skipped += 1
            self.loss_scale = max(self.loss_scale / self.factor, 1.0)
        elif self.clean % self.window == 0:
            self.loss_scale *= self.factor
        return finite


def init_trainer(trainer: Trainer) -> None:
    """Give a Trainer a `LossScaler`; its steps then skip gradients that overflowed.

    Raises:  AttrError for weights of float16 that the optimizer would update in float16, in
             which gradients divided by the scale underflow again.
    """
    if not isinstance(trainer, Trainer):
        raise AttrError(f"amp.init_trainer: a gluon.Trainer is needed, found {described(trainer)}")
    half = [p.name for p in trainer._params if np.dtype(p.dtype) == np.float16]
    if half and not trainer.optimizer.multi_precision:
        raise AttrError(
            f"amp.init_trainer: '{half[0]}' is float16, in which its scaled-down gradient may be "
            "0; let the optimizer keep float32 copies, with {'multi_precision': True}"
        )
    trainer._scaler = LossScaler()


def _scaler(owner: str, trainer: Trainer) -> LossScaler:
    if getattr(trainer, "_scaler", None) is None:
        raise AttrError(f"{owner}: the Trainer has no loss scaler; call amp.init_trainer(trainer)")
    return trainer._scaler


@contextmanager
def scale_loss(loss: NDArray | list, trainer: Trainer) -> Iterator[NDArray | list]:
    """The loss, or each of a list, times the scale; use it inside `autograd.record()`.

    Example: with autograd.record():
                 loss = loss_fn(net(x), y)
                 with amp.scale_loss(loss, trainer) as scaled:
                     autograd.backward(scaled)
             trainer.step(len(x))
    """
    scaler = _scaler("amp.scale_loss", trainer)
    scaler.applied = scaler.loss_scale
    many = isinstance(loss, (list, tuple))
    yield [each * scaler.applied for each in loss] if many else loss * scaler.applied


def unscale(trainer: Trainer) -> None:
    """Divide the gradients by the scale at once, for instance to clip them before the step."""
    scaler = _scaler("amp.unscale", trainer)
    for param in trainer._params:
        for grad in param.list_grad() if param.grad_req != "null" else ():
            grad[...] = grad / scaler.applied
    scaler.applied = 1.0


def __dir__():
    return own_names(globals())
