"""A cache with a limit: the value that was used least recently goes first.

Takes:   keys, and values that can be made again.
Gives:   `LRUCache`, a dict of so many at most.

What is left out: a limit by bytes.
"""


class LRUCache(dict):
    """key -> value; beyond `limit`, the one that was asked for longest ago goes.

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
        """The value, which is new again if space is short; `None` if there is none."""
        value = self.get(key)
        if value is not None and len(self) >= self.limit:
            self[key] = self.pop(key)
        return value

    def put(self, key, value):
        """Keep a value; returns it."""
        self.pop(key, None)
        while len(self) >= self.limit:
            del self[next(iter(self))]
        self[key] = value
        return value
