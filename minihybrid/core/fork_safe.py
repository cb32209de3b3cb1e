"""Locks that survive a fork.

A fork copies a process but only one of its threads. A lock held by another thread would
stay locked forever in the child, so the child replaces all locks by new ones.
Limits: work that another thread had begun stays unfinished in the child.
"""

import os
import threading
import weakref

EVERY = weakref.WeakSet()


class ForkSafe:
    """Base class of objects with a reentrant lock.

    >>> with ForkSafe().lock as first:
    ...     first
    True
    """

    def __init__(self):
        self.lock = threading.RLock()
        EVERY.add(self)


def _after_fork():
    for each in list(EVERY):
        each.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
