"""Checks of files that aren't what their names suggest, or contain unsupported operators.

Defines: `opened`, which recognizes Git LFS pointers and pickles; `replaces`, which protects
         the user's programs and data from being overwritten; `warn_of_missing`, which names
         all unsupported operators; `remedy_of`, which says what to do without one.
"""

import re
import warnings
from collections import Counter

from minihybrid.core.files import FileError
from minihybrid.core.op import legible

LFS = b"version https://git-lfs.github.com/spec/"
PROGRAMS = tuple(  # suffixes of hand-written files
    ".py .pyi .pyx .ipynb .js .mjs .cjs .ts .c .h .cc .cpp .hpp .cu .rs .go .java .sh .md".split()
)
PICKLES = tuple(bytes([0x80, n]) for n in range(2, 6))  # first bytes, by protocol version


def opened(data, fname):
    """Return the bytes of a file, unless it is a Git LFS pointer or a pickle.

    >>> opened(LFS + b"v1 ...", "net.params")
    Traceback (most recent call last):
    minihybrid.core.files.FileError: 'net.params' is a pointer of Git LFS, of 46 bytes, and not \
the file itself; run `git lfs pull` where it came from, or download the file it stands for
    """
    if data.startswith(LFS):
        raise FileError(
            f"'{fname}' is a pointer of Git LFS, of {len(data)} bytes, and not the file itself; "
            "run `git lfs pull` where it came from, or download the file it stands for"
        )
    if data.startswith(PICKLES) and data.endswith(b"."):
        raise FileError(
            f"'{fname}' is a pickle, which is not read: it may run any code. MXNet keeps states of "
            "optimizers so; read the parameters (.params) and go on with new states"
        )
    return data


MODELS = {  # suffix of a model file -> its description and a pattern that each matches
    "-symbol.json": ("a graph", rb'"nodes"'),
    ".onnx": ("an ONNX model", rb"\A\x08"),  # its first field, ir_version
}
MARKS = {  # magic bytes of our data -> kind of file that it may replace, whatever its name
    b"\x12\x01": "a file of arrays",
    b"\x0a\x23\xd7\xce": "a RecordIO file",
    b"minihyb1": "the weights of an exported net",
    b"PK": "an .npz file of these arrays",
}


def first_array(data):
    """Return the name of an .npz file's first array; empty if it has none.

    >>> import io, numpy as np
    >>> np.savez(file := io.BytesIO(), p0=1, p1=2)
    >>> first_array(file.getvalue())
    b'p0.npy'
    """
    return data[30 : 30 + int.from_bytes(data[26:28], "little")]


def replaces(fname, data):
    """Check by its first bytes that an existing file may be overwritten.

    Generated programs are marked in their first line, which is the same for each kind.
    Raises:  FileError for any other program, for other data under a model's name, and for
             other data in place of arrays, weights or records.
    """
    with open(fname, "rb") as file:
        old = file.read(1 << 20)
    signs = [sign for ending, sign in MODELS.items() if fname.endswith(ending)]
    signs += [
        (kind, rb"\A" + re.escape(mark)) for mark, kind in MARKS.items() if data.startswith(mark)
    ]
    for kind, sign in signs:
        other = data.startswith(b"PK") and first_array(old) not in (first_array(data), b"")
        if old and (other or not re.search(sign, old)):
            raise FileError(
                f"cannot write '{fname}': the file there is not {kind}; choose another name, "
                "or move that file away"
            )
    if fname.lower().endswith(PROGRAMS):
        first = old.partition(b"\n")[0].strip()
        if first and first != data.partition(b"\n")[0].strip():
            raise FileError(
                f"cannot write '{fname}': this program was not generated here, its first line is "
                f"'{legible(first.decode(errors='replace'), 60)}'; choose another name, or move "
                "that file away"
            )


def remedy_of(kind):
    """Say what to do with a graph that contains an operator which is missing here.

    >>> remedy_of("_contrib_quantized_conv")
    'load the float32 graph and quantize it, by mx.contrib.quantization.quantize_net'
    """
    if "quantized" in kind or kind.startswith("_sg_"):
        return "load the float32 graph and quantize it, by mx.contrib.quantization.quantize_net"
    return "take an output before this node, from get_internals()"


def warn_of_missing(missing, source):
    """Warn about unsupported operators, with the number of nodes of each.

    source:  the file that contains the nodes.
    """
    counts = Counter(node.op.name for node in missing).most_common()
    warnings.warn(
        f"{source}: there is no operator here for the nodes of "
        f"{', '.join(f'{legible(k, 60)} ({n})' for k, n in counts)}; "
        "the graph can be shown and saved, but not run",
        UserWarning,
        stacklevel=4,  # the caller that loads the file
    )
