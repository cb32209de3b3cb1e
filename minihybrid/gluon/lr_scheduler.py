"""Schedules: the learning rate as a function of the number of updates.

Defines: `FactorScheduler`, `MultiFactorScheduler`, `PolyScheduler`, `CosineScheduler`.

A schedule is called with the number of updates so far: `schedule(num_update)`.
Source:  MXNet 1.9's `lr_scheduler`; names, arguments and values are the same.
Not supported: messages when the rate changes.
"""

import math
from numbers import Integral

from minihybrid.core.checked_call import Settings
from minihybrid.core.hooks import own_names
from minihybrid.core.op import AttrError, checked, choice, count, finite, length


class LRScheduler(Settings):
    """The base class: a base rate, reached after `warmup_steps` updates.

    warmup_mode:  "linear" increases from `warmup_begin_lr` to the base rate, "constant"
                  stays at `warmup_begin_lr` until the end of the warm-up.
    Raises:       AttrError for invalid steps, rates or modes.
    """

    KINDS = {
        **dict.fromkeys("base_lr warmup_begin_lr final_lr factor stop_factor_lr".split(), finite),
        "power": finite,
        "warmup_steps": length,
        "warmup_mode": choice("linear", "constant"),
    }
    CALLED = {"power": "pwr"}

    def __init__(self, base_lr=0.01, warmup_steps=0, warmup_begin_lr=0, warmup_mode="linear"):
        self.base_lr, self.warmup_final_lr = base_lr, base_lr
        self.warmup_steps, self.warmup_begin_lr = warmup_steps, warmup_begin_lr
        self.warmup_mode = warmup_mode
        self.require(
            warmup_begin_lr <= base_lr,
            f"warmup_begin_lr={warmup_begin_lr}, but at most base_lr={base_lr}",
        )

    def require(self, condition, mismatch):
        """Raise an AttrError with the found and the required value."""
        if not condition:
            raise AttrError(f"{type(self).__name__}: {mismatch} is needed")

    def get_warmup_lr(self, num_update):
        """Return the rate at an update during the warm-up."""
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        climb = self.warmup_final_lr - self.warmup_begin_lr
        return self.warmup_begin_lr + climb * num_update / self.warmup_steps

    def __call__(self, num_update):
        """Return the rate after `num_update` updates."""
        num_update = checked(type(self).__name__, "num_update", num_update, length)
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        return self.after_warmup(num_update)

    def after_warmup(self, num_update):
        """Return the rate after the warm-up."""
        raise NotImplementedError(f"{type(self).__name__}: write after_warmup(self, num_update)")


class FactorScheduler(LRScheduler):
    """Multiply the rate by `factor` every `step` updates, down to `stop_factor_lr`.

    >>> schedule = FactorScheduler(step=2, factor=0.5, base_lr=1.0)
    >>> [schedule(n) for n in range(6)]
    [1.0, 1.0, 1.0, 0.5, 0.5, 0.25]
    """

    def __init__(self, step, factor=1, stop_factor_lr=1e-8, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.step = checked("FactorScheduler", "step", step, count)
        self.factor, self.stop_factor_lr = factor, stop_factor_lr
        self.require(self.factor <= 1, f"factor={factor}, but at most 1")
        self.count = 0  # the updates already included in base_lr

    def after_warmup(self, num_update):
        """Return the rate. It's stored in base_lr, so setting base_lr has an effect any time."""
        while num_update > self.count + self.step:
            self.count += self.step
            self.base_lr = max(self.base_lr * self.factor, self.stop_factor_lr)
        return self.base_lr


class MultiFactorScheduler(LRScheduler):
    """Multiply the rate by `factor` at each of the update counts in the list `step`."""

    def __init__(self, step, factor=1, *args, **kwargs):
        super().__init__(*args, **kwargs)
        counts = isinstance(step, list) and all(isinstance(s, Integral) and s > 0 for s in step)
        rises = counts and step and step == sorted(set(step))
        self.require(rises, f"step={step!r}, but a list of rising whole numbers from 1 on")
        self.step, self.factor, self.cur_step_ind = step, factor, 0
        self.require(self.factor <= 1, f"factor={factor}, but at most 1")

    def after_warmup(self, num_update):
        """Return the rate. It's stored in base_lr, so setting base_lr has an effect any time."""
        while self.cur_step_ind < len(self.step) and num_update > self.step[self.cur_step_ind]:
            self.cur_step_ind += 1
            self.base_lr *= self.factor
        return self.base_lr


class _Decay(LRScheduler):
    """Decay from the base rate to `final_lr` at `max_update`, along a curve from 1 to 0."""

    def __init__(self, max_update, base_lr=0.01, final_lr=0, *args, **kwargs):
        super().__init__(base_lr, *args, **kwargs)
        self.base_lr_orig, self.final_lr = base_lr, final_lr
        self.max_update = checked(type(self).__name__, "max_update", max_update, count)
        self.max_steps = self.max_update - self.warmup_steps
        self.require(self.max_steps, f"warmup_steps={self.warmup_steps}, but another max_update")

    def after_warmup(self, num_update):
        """Return the rate, which is constant after `max_update`."""
        if num_update <= self.max_update:
            share = self.curve((num_update - self.warmup_steps) / self.max_steps)
            self.base_lr = self.final_lr + (self.base_lr_orig - self.final_lr) * share
        return self.base_lr


class PolyScheduler(_Decay):
    """Decay like (1 - t)^pwr; t goes from 0 to 1 between warm-up and max_update."""

    def __init__(self, max_update, base_lr=0.01, pwr=2, final_lr=0, *args, **kwargs):
        super().__init__(max_update, base_lr, final_lr, *args, **kwargs)
        self.power = pwr

    def curve(self, t):
        """Return the value of the curve at time t."""
        return (1 - t) ** self.power


class CosineScheduler(_Decay):
    """Decay like half a period of the cosine between warm-up and max_update.

    Source:  Loshchilov and Hutter, ICLR 2017, here without restarts.
    """

    def curve(self, t):
        """Return the value of the curve at time t."""
        return (1 + math.cos(math.pi * t)) / 2


__dir__ = own_names(globals())
