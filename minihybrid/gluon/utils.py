"""Helpers for training loops.

Defines: `split_data`, `split_and_load`, `clip_global_norm`, `download`, `check_sha1`, and
         `HookHandle`, returned when you register a hook.

`download` is the only function in the package that uses the network.
"""

import hashlib
import os
import warnings
from itertools import pairwise

import numpy as np

from minihybrid.core import nd
from minihybrid.core.array import arrays
from minihybrid.core.block import HookHandle as HookHandle
from minihybrid.core.files import FileError, path_of, read_whole, write_whole
from minihybrid.core.hooks import own_names
from minihybrid.core.nd import NDArray
from minihybrid.core.op import (
    AttrError,
    ShapeError,
    boolean,
    checked,
    count,
    integer,
    length,
    unfit,
)
from minihybrid.core.parameter import in_world
from minihybrid.ops.shapes import axis_of


def split_data(data, num_slice, batch_axis=0, even_split=True):
    """Split a batch along an axis, one part per device.

    even_split:  whether all parts must have equal size. Otherwise, the first may be longer.
    Raises:      ShapeError if even_split is true and the parts can't be equal.

    >>> [part.shape for part in split_data(nd.zeros((5, 2)), 2, even_split=False)]
    [(3, 2), (2, 2)]
    """
    num_slice = checked("split_data", "num_slice", num_slice, count)
    arrays("split_data", data)
    axis_of("split_data", checked("split_data", "batch_axis", batch_axis, integer), data.ndim)
    size = data.shape[batch_axis]
    if even_split and size % num_slice:
        raise ShapeError(
            f"split_data: {size} samples of shape {data.shape} can't be split into {num_slice} "
            f"equal parts; use a batch size that {num_slice} divides, or even_split=False"
        )
    step, rest = divmod(size, num_slice)
    cuts = [i * step + min(i, rest) for i in range(num_slice + 1)]
    return [data.slice_axis(axis=batch_axis, begin=a, end=b) for a, b in pairwise(cuts)]


def split_and_load(data, ctx_list, batch_axis=0, even_split=True):
    """Split a batch and copy each part to its device.

    >>> from minihybrid import cpu
    >>> split_and_load([[1, 2], [3, 4]], [cpu()])[0].shape
    (2, 2)
    """
    data = data if isinstance(data, NDArray) else in_world(nd.array(data))
    if not isinstance(ctx_list, (list, tuple)) or not ctx_list:
        need = "a list of devices is needed, such as [mx.cpu()]"
        raise unfit("split_and_load", "ctx_list", ctx_list, need)
    if len(ctx_list) == 1:
        return [data.as_in_context(ctx_list[0])]
    parts = split_data(data, len(ctx_list), batch_axis, even_split)
    return [p.as_in_context(ctx) for p, ctx in zip(parts, ctx_list, strict=True)]


def clip_global_norm(arrays, max_norm, check_isfinite=True):
    """Scale arrays in place so that their global norm is at most `max_norm`.

    Returns: the norm before scaling: a float or, with check_isfinite=False, an array of
             shape (1,).

    >>> gradients = [nd.array([3.0]), nd.array([4.0])]
    >>> float(clip_global_norm(gradients, 1.0)), gradients[0].item()
    (5.0, 0.6...)
    """
    if not arrays:
        raise AttrError("clip_global_norm: the list of arrays is empty")
    flat = [a.detach().reshape((-1,)) for a in arrays]
    norm = nd.sqrt(nd.add_n(*(nd.dot(a, a) for a in flat)))
    if check_isfinite and not np.isfinite(norm.asscalar()):
        undefined = "clip_global_norm: the norm is nan or inf; the result is undefined"
        warnings.warn(undefined, stacklevel=2)
    scale = nd.minimum(max_norm / (norm + 1e-8), 1.0)
    for array in arrays:
        array *= scale
    return norm.asscalar() if check_isfinite else norm


WAIT_S = 30  # network timeout


def check_sha1(filename, sha1_hash):
    """Return whether a file has this SHA-1 checksum, in hexadecimal."""
    return hashlib.sha1(read_whole(filename)).hexdigest() == str(sha1_hash).lower()


def download(url, path=None, overwrite=False, sha1_hash=None, retries=5, verify_ssl=True):
    """Download a file, unless it already exists, and return its path.

    path:       a file, or a folder, where the file gets the last part of the URL as its name.
    sha1_hash:  the required checksum. A file with a different one is downloaded again.
    Raises:     FileError without a network, for an invalid URL, or for a wrong checksum.
    """
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise unfit("download", "url", url, "an address with http:// or https:// is needed")
    overwrite = checked("download", "overwrite", overwrite, boolean)
    retries = checked("download", "retries", retries, length)
    path = os.path.expanduser("." if path is None else path_of(path))
    if os.path.isdir(path):
        if not (name := url.partition("?")[0].rpartition("/")[2]):
            raise AttrError(f"download: '{url}' ends with no file's name; give path=")
        path = os.path.join(path, name) if path != "." else name
    if not overwrite and os.path.exists(path):
        if sha1_hash is None or check_sha1(path, sha1_hash):
            return path
    data = _fetched(url, path, retries, verify_ssl)
    checksum = hashlib.sha1(data).hexdigest()
    if sha1_hash is not None and checksum != str(sha1_hash).lower():
        raise FileError(
            f"download: '{url}' gave {len(data)} bytes with the checksum {checksum}, but "
            f"{sha1_hash} is needed; nothing was written"
        )
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    write_whole(path, data, overwrite=True)
    return path


def _fetched(url, path, retries, verify_ssl):
    """Return the bytes at a URL."""
    import ssl
    import urllib.request  # slow to import, rarely needed

    context = None
    if not verify_ssl:
        warnings.warn("download: the server isn't verified (verify_ssl=False)", stacklevel=3)
        context = ssl._create_unverified_context()
    for left in reversed(range(retries + 1)):
        try:
            with urllib.request.urlopen(url, timeout=WAIT_S, context=context) as answer:
                return answer.read()
        except (OSError, ValueError) as error:
            if not left:
                why = getattr(error, "reason", error)
                raise FileError(
                    f"download: '{url}' can't be downloaded ({why}); needed: a network that "
                    f"reaches it, or the file itself at '{path}'"
                ) from None


__dir__ = own_names(globals())
