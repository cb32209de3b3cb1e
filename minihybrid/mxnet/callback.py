"""Training callbacks: speed, metrics, checkpoints.

Uses:    `BatchEndParam(epoch, nbatch, eval_metric, locals)` after a batch; the epoch, a
         symbol and its arrays after an epoch.
Defines: `Speedometer`, `ProgressBar`, `LogValidationMetricsCallback`, `log_train_metric`;
         `do_checkpoint`, `module_checkpoint`.

All write to Python's `logging`, whose default level shows nothing: call
`logging.basicConfig(level=logging.INFO)` first.
"""

import logging
import math
import time
from collections import namedtuple

from minihybrid.core.checked_call import CheckedCall, signed
from minihybrid.core.hooks import own_names
from minihybrid.core.op import checked, count
from minihybrid.mxnet.model import save_checkpoint

BatchEndParam = namedtuple("BatchEndParams", ["epoch", "nbatch", "eval_metric", "locals"])


@signed
def module_checkpoint(mod, prefix, period=1, save_optimizer_states=False):
    """Return a callback that calls `mod.save_checkpoint` every `period` epochs."""
    period = checked("module_checkpoint", "period", period, count)

    def call(iter_no, sym=None, arg=None, aux=None):
        if (iter_no + 1) % period == 0:
            mod.save_checkpoint(prefix, iter_no + 1, save_optimizer_states)

    return call


@signed
def do_checkpoint(prefix, period=1):
    """Return a callback that calls `model.save_checkpoint` every `period` epochs."""
    period = checked("do_checkpoint", "period", period, count)

    def call(iter_no, sym, arg, aux):
        if (iter_no + 1) % period == 0:
            save_checkpoint(prefix, iter_no + 1, sym, arg, aux)

    return call


@signed
def log_train_metric(period, auto_reset=False):
    """Return a callback that logs (and optionally resets) the metric every `period` batches."""
    period = checked("log_train_metric", "period", period, count)

    def call(param):
        if param.nbatch % period == 0 and param.eval_metric is not None:
            for name, value in param.eval_metric.get_name_value():
                logging.info(
                    "Iter[%d] Batch[%d] Train-%s=%f", param.epoch, param.nbatch, name, value
                )
            if auto_reset:
                param.eval_metric.reset_local()

    return call


class Speedometer(metaclass=CheckedCall):
    """Every `frequent` batches, log samples per second and the metric.

    auto_reset:  reset the metric, so that it covers these batches only.
    """

    def __init__(self, batch_size, frequent=50, auto_reset=True):
        self.batch_size = checked("Speedometer", "batch_size", batch_size, count)
        self.frequent = checked("Speedometer", "frequent", frequent, count)
        self.auto_reset = auto_reset
        self.init, self.tic, self.last_count = False, 0.0, 0

    def __call__(self, param):
        """Count a batch; the first one of an epoch starts the clock."""
        count = param.nbatch
        if self.last_count > count:
            self.init = False
        self.last_count = count
        if not self.init:
            self.init, self.tic = True, time.time()
        elif count % self.frequent == 0:
            elapsed_s = time.time() - self.tic
            speed = self.frequent * self.batch_size / elapsed_s if elapsed_s > 0 else math.inf
            self._tell(param, count, speed)
            self.tic = time.time()

    def _tell(self, param, count, speed):
        if param.eval_metric is None:
            logging.info("Iter[%d] Batch [%d]\tSpeed: %.2f samples/sec", param.epoch, count, speed)
            return
        pairs = param.eval_metric.get_name_value()
        if self.auto_reset:
            param.eval_metric.reset_local()
        begin = count - self.frequent if self.auto_reset else 0
        logging.info(
            "Epoch[%d] Batch [%d-%d]\tSpeed: %.2f samples/sec" + "\t%s=%f" * len(pairs),
            *(param.epoch, begin, count, speed),
            *sum(pairs, ()),
        )


class ProgressBar(metaclass=CheckedCall):
    """After each batch, log a progress bar of `length` characters for `total` batches."""

    def __init__(self, total, length=80):
        self.total = checked("ProgressBar", "total", total, count)
        self.bar_len = checked("ProgressBar", "length", length, count)

    def __call__(self, param):
        """Log the bar."""
        share = param.nbatch / self.total
        filled = round(self.bar_len * share)
        bar = "=" * filled + "-" * (self.bar_len - filled)
        logging.info("[%s] %s%s\r", bar, math.ceil(100 * share), "%")


class LogValidationMetricsCallback:
    """After an epoch, log the validation metric."""

    def __call__(self, param):
        """Log each of its values."""
        if param.eval_metric:
            for name, value in param.eval_metric.get_name_value():
                logging.info("Epoch[%d] Validation-%s=%f", param.epoch, name, value)


__dir__ = own_names(globals(), "BatchEndParam")
