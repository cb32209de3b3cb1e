"""An LRU cache: a dict of limited length that evicts the least recently used entry.

Threads may share it: each step is one call of dict, which the others see whole.
Not supported: a limit in bytes.
"""


class LRUCache(dict):
    """key -> value, for at most `limit` keys.

    >>> squares = LRUCache(2)
    >>> [squares.put(n, n * n) for n in (2, 3)], squares.lookup(2), squares.put(4, 16)
    ([4, 9], 4, 16)
    >>> squares
    {2: 4, 4: 16}
    """

    def __init__(self, limit):
        super().__init__()
        self.limit = limit

    def lookup(self, key):
        """Return a value and, if the cache is full, mark it as recently used; or `None`."""
        value = self.get(key)
        if value is not None and len(self) >= self.limit and self.pop(key, None) is not None:
            self[key] = value  # another thread may have popped it between
        return value

    def put(self, key, value):
        """Store a value, evicting others if needed; return it."""
        self.pop(key, None)
        for oldest in list(self)[: max(0, len(self) - self.limit + 1)]:
            self.pop(oldest, None)
        self[key] = value
        return value
