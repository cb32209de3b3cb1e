"""Locks that are open in a forked process.

Takes:   nothing.
Gives:   `ForkSafe`, the parent of what has a lock.

A fork copies a process with one of its threads. A lock that another thread held stays
closed in the copy, where nobody will ever open it, so there all locks are new.
What is left out: finishing in the copy what the other thread had begun.
"""

import os
import threading
import weakref

EVERY = weakref.WeakSet()


class ForkSafe:
    """Something with a lock, which its owner may take again while it holds it.

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
