"""Monitor: statistics of every array of an executor, at an interval of batches.

Defines: `Monitor`: `tic` before a batch, `toc` or `toc_print` after it. Add executors by
         `install`, or those of a module by `Module.install_monitor`.

With a Monitor installed, every operator's output is written to memory, so a batch takes
longer.
Source:  MXNet's mxnet.monitor.Monitor, with the same order, format and steps.
Not supported: the gradients inside a net, which MXNet calls `fc1_backward_output0`;
         those of a net's variables are in `Executor.grad_dict`.
"""

import logging
import re
from math import sqrt

from minihybrid.core import nd
from minihybrid.core.array import NDArray
from minihybrid.core.checked_call import CheckedCall
from minihybrid.core.hooks import own_names
from minihybrid.core.op import AttrError, checked, count, described


def _size_of_numbers(x):
    return nd.norm(x) / sqrt(x.size)


class Monitor(metaclass=CheckedCall):
    """Statistics of operators' outputs, parameters and states whose names match a pattern.

    interval:    the number of batches from one report to the next, starting with the first.
    stat_func:   NDArray -> NDArray or a list of them; by default the root mean square.
    pattern:     a regular expression matched at the start of a name.
    sort:        sort by name; else in order of computation, then the variables.
    monitor_all: include variables, as the operators read them.

    >>> from minihybrid import cpu, sym
    >>> exe = sym.relu(sym.var("x"), name="r").bind(cpu(), {"x": nd.array([-1, 3])})
    >>> watch = Monitor(1, stat_func=lambda x: x.max().reshape(1))
    >>> watch.install(exe); watch.tic(); _ = exe.forward()
    >>> [(step, name, text.strip()) for step, name, text in watch.toc()]
    [(1, 'r_output', '3.0'), (1, 'x', '3.0')]
    """

    def __init__(self, interval, stat_func=None, pattern=".*", sort=False, monitor_all=False):
        self.interval = checked("Monitor", "interval", interval, count)
        self.stat_func = stat_func or _size_of_numbers
        try:
            self.re_prog = re.compile(pattern)
        except (re.error, TypeError) as error:
            raise AttrError(
                f"Monitor: pattern={described(pattern)} is no regular expression ({error}); "
                "needed: one such as '.*weight|.*output'"
            ) from None
        self.sort, self.monitor_all = sort, monitor_all
        self.activated, self.step = False, 0
        self.queue, self.exes = [], []  # [(step, name, result of stat_func)]

    def install(self, exe):
        """Add an executor."""
        exe.set_monitor_callback(self._see, self.monitor_all)
        self.exes.append(exe)

    def _see(self, name, array):
        if self.activated and self.re_prog.match(name):
            self.queue.append((self.step, name, self.stat_func(array)))

    def tic(self):
        """Start a batch; every `interval`-th is monitored."""
        if self.step % self.interval == 0:
            self.queue, self.activated = [], True
        self.step += 1

    def toc(self):
        """End the batch; return [(batch index, name, text)], empty if it wasn't monitored.

        Raises:  AttrError if `stat_func` didn't return arrays.
        """
        if not self.activated:
            return []
        for exe in self.exes:
            for name, array in [*exe.arg_dict.items(), *exe.aux_dict.items()]:
                self._see(name, array)
        self.activated = False
        entries, self.queue = self.queue, []
        if self.sort:
            entries.sort(key=lambda entry: entry[1])
        return [(step, name, _text(name, stat)) for step, name, stat in entries]

    def toc_print(self):
        """Call `toc` and log its results, a line per name, at level INFO."""
        for step, name, text in self.toc():
            logging.info("Batch: %7d %-30s %s", step, name, text)


def _text(name, stat):
    """Return the result of `stat_func` as text: a tab after each array."""
    arrays = [stat] if isinstance(stat, NDArray) else stat
    if not isinstance(arrays, list) or not all(isinstance(a, NDArray) for a in arrays):
        raise AttrError(
            f"Monitor: stat_func gave {described(stat)} for '{name}', but an NDArray is needed, "
            "or a list of them, such as x.norm()"
        )
    numbers = (a.asnumpy() for a in arrays)
    return "".join(str(n[0] if n.shape == (1,) else n) + "\t" for n in numbers)


__dir__ = own_names(globals())
