"""Sparse arrays in files, which are read as dense ones.

Defines: `unpack_sparse`, which the reader of arrays calls after the shapes.

Not supported: writing them.
"""

import math

import numpy as np

from minihybrid.core.params import ROW_SPARSE


def unpack_sparse(reader, kind, stored, shape, flag):
    """Return the dense array of stored values and their indices.

    stored:  the shape of the values: rows for row_sparse, scalars for csr.
    """
    beside = [(reader.dtype(), reader.shape()) for _ in range(kind)]
    values = reader.values(stored, flag)
    places = [reader.values(size, number) for number, size in beside]
    whole = values.itemsize * math.prod(shape)
    reader.sparse_left -= whole
    if reader.sparse_left < 0:
        reader.fail(
            f"a sparse array of shape {shape} takes {whole} bytes as a dense "
            "one; that is too much for a file of this size"
        )
    if any(p.ndim != 1 or p.dtype not in (np.int32, np.int64) for p in places):
        reader.fail("the places of a sparse array must be rows of int32 or int64")
    dense = np.zeros(shape, values.dtype)
    if not values.size:
        return dense
    rows = places[-1]
    if kind == ROW_SPARSE:
        good = values.shape == (len(rows), *shape[1:])
        limit, place = shape[0], rows
    else:
        starts = places[0]
        good = (
            len(shape) == 2
            and values.shape == rows.shape
            and len(starts) == shape[0] + 1
            and starts[0] == 0
            and starts[-1] == len(rows)
            and bool(np.all(starts[1:] >= starts[:-1]))
        )
        limit = shape[-1]
        place = (np.repeat(np.arange(shape[0]), np.diff(starts)), rows) if good else ()
    if not good or not np.all((rows >= 0) & (rows < limit)):
        reader.fail(
            f"the values of a sparse array have shape {values.shape}, and "
            f"their places do not lie in {shape}"
        )
    dense[place] = values
    return dense
