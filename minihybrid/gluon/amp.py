"""Loss scaling: multiply the loss so that float16 gradients don't underflow.

Defines: `init_trainer`, `scale_loss`, `unscale` and `LossScaler`, as in `mx.contrib.amp`.

The scale is dynamic: an overflow in a gradient skips the step and halves the scale, and many
steps without overflow double it.
Source:  MXNet's mxnet.contrib.amp; Micikevicius et al., Mixed Precision Training, 2018.
Not supported: `amp.init`, which inserts casts into nets; use `net.cast("float16")`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from minihybrid.core.array import NDArray
from minihybrid.core.hooks import own_names
from minihybrid.core.op import AttrError, described
from minihybrid.gluon.trainer import Trainer


class LossScaler:
    """A dynamic loss scale.

    loss_scale: the factor of the next loss.
    applied:    the factor in the current gradients; 1 if they aren't scaled.
    skipped:    the number of steps skipped because a gradient overflowed.

    >>> scaler = LossScaler(8.0)
    >>> scaler.update([np.array([np.inf])]), scaler.loss_scale, scaler.skipped
    (False, 4.0, 1)
    """

    def __init__(self, loss_scale: float = 2.0**16, factor: float = 2.0, window: int = 2000):
        self.loss_scale, self.factor, self.window = loss_scale, factor, window
        self.applied, self.skipped, self.clean = 1.0, 0, 0  # clean: steps since the last overflow

    def update(self, grads: list) -> bool:
        """Adapt the scale; return whether all gradients are finite."""
        self.applied, finite = 1.0, all(np.isfinite(grad).all() for grad in grads)
        self.clean = self.clean + 1 if finite else 0
        if not finite:
            self.skipped += 1
            self.loss_scale = max(self.loss_scale / self.factor, 1.0)
        elif self.clean % self.window == 0:
            self.loss_scale *= self.factor
        return finite


def init_trainer(trainer: Trainer) -> None:
    """Attach a `LossScaler` to a Trainer, whose steps then skip gradients that overflowed.

    Raises:  AttrError for float16 weights that the optimizer would update in float16, where
             unscaled gradients underflow again.
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
    """Multiply the loss, or a list's losses, by the scale, inside `autograd.record()`.

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
    """Divide the gradients by the scale now, for instance to clip them before the step."""
    scaler = _scaler("amp.unscale", trainer)
    for param in trainer._params:
        for grad in param.list_grad() if param.grad_req != "null" else ():
            grad[...] = grad / scaler.applied
    scaler.applied = 1.0


__dir__ = own_names(globals())
