"""Write the book's page on the differences from MXNet, from the table and the counts.

python -m beside.page     # writes book/mxnet_differences.md
"""

import json
from pathlib import Path

from beside.differences import ANY, KNOWN

PAGE = Path(__file__).parents[2] / "book" / "mxnet_differences.md"
RESULTS = Path(__file__).parents[1] / "golden" / "beside.json"

HEAD = """\
# Where we differ from MXNet, and why

Programs written for MXNet 1.9.1 should run here and give the same answers. To see where
they do not, random programs of up to 14 operators ran in both, on the same numbers:
outputs, gradients, states, shapes, dtypes and errors were compared. `make soak MXNET=1`
does it again.

{verdicts}

Where a program differs, each of its steps is run alone in both, and each step that differs
must be found in the table below. Such steps are then replaced by the numbers that they
give here, and the rest of the program is compared again. This page is written from that
table, and the last column says in how many of the {programs} programs of {date} an entry
was needed. An entry without a number was met in other runs.
"""

NUMBERS = """
## `mx.np`: scalars and arrays

A Python or NumPy number has a kind (bool, whole, float) but no width: beside an array whose
dtype is of its kind or of a higher one it takes that dtype, and otherwise the usual one of its
kind, `int64` or `float32`. This is NumPy's rule with `float32` in place of `float64`. Numbers
alone are `float32`, as in MXNet. A number that the dtype can't hold is an error: it never
becomes infinity or wraps around. Comparisons with it work.
Here `x` is `np.array([1., -1.])`, `i` is `np.array([1, 2], dtype="int32")`, `u` the same as
`uint8`, `h` as `float16`, and `b` is `x > 0`.

| expression | MXNet 1.9.1 | here |
|---|---|---|"""
# Expression -> MXNet's answer, ours. The laws of `mx.np` run them.
BESIDE = {
    "i + 1.5": ("`[2, 3]`, `int32`", "array([2.5, 3.5])"),
    "i % 2.5": ("`[1, 0]`, `int32`", "array([1., 2.])"),
    "np.maximum(i, 1.5)": ("`[1, 2]`, `int32`", "array([1.5, 2. ])"),
    "np.where(b, i, 1.5)": ("`[1, 1]`, `int32`", "array([1. , 1.5])"),
    "np.clip(i, 0.5, 1.5)": ("`[1, 1]`, `int32`", "array([1. , 1.5])"),
    "np.where(b, True, False)": ("`[1., 0.]`, `float32`", "array([ True, False])"),
    "b + True": ("`[2, 1]`, `int64`", "array([ True,  True])"),
    "b + 1.5": ("`[2, 1]`, `int64`", "array([2.5, 1.5])"),
    "np.copysign(i, -1)": ("`[-1, -2]`, `int32`", "array([-1., -2.])"),
    "np.sqrt(i)": ("`[1, 1]`, `int32`", "array([1.       , 1.4142135])"),
    "np.full_like(u, 300)": ("`[44, 44]`, `uint8`", "NumberError"),
    "u + 300": ("`[45, 46]`, `uint8`", "NumberError"),
    "h * 70000.0": ("`[inf, inf]`, `float16`", "NumberError"),
    "np.where(b, h, 70000)": ("`[1., inf]`, `float16`", "NumberError"),
}
TAPE = """
While `autograd` records, an `mx.np` function without a gradient rejects an array on the
tape (`median`, `quantile`, `cov`, `linalg.eigh`, `linalg.pinv`, ...). MXNet gives gradients of
0 for `quantile`, `unique`, `linalg.eigh`, `linalg.pinv` and `random.gamma`.

## Views, and writes inside `record()`

As in MXNet, `x.reshape(...)` of `nd`, `x[i]` and `x[i:j]`, `x.detach()` and
`x.astype(..., copy=False)` share memory with `x`, and inside `record()` indexing or reshaping an
array on the tape copies it. MXNet records only writes of a whole array (`x[:] = y`,
`y.copyto(x)`, `out=x`) and stops at the others. Here `x[i] = y`, index arrays, masks and
`x += y` are recorded as well. A write is an error if its gradient would be ambiguous or lost:
into a variable, into the copy that indexing made, or through an index that names an element
twice. An array whose memory was written through a view is an error until you index it again.

An `Embedding` index outside of the rows is an error of eager arrays, where MXNet takes the
nearest row. Compiled code and GPUs take the nearest row as well, because a kernel can't raise.
"""

VERDICTS = {
    "same": "the same",
    "same but for known steps": "the same, but for steps that are in the table",
    "known as a whole": "MXNet stops with an error that is in the table",
    "rounding": "the same but for rounding, which a later step made larger",
    "unknown": "different, and nobody knows why",
}


def page():
    """The text of the page."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows = ["| programs | MXNet's answer is |", "|--:|---|"]
    rows += [
        f"| {results['verdicts'].get(name, 0)} | {words} |" for name, words in VERDICTS.items()
    ]
    parts = [
        HEAD.format(
            verdicts="\n".join(rows), **{name: results[name] for name in ("programs", "date")}
        )
    ]
    for title in dict.fromkeys(known.title for known in KNOWN):
        parts += [
            f"\n## {title}\n",
            "| operators | MXNet 1.9.1 | here | seen |",
            "|---|---|---|--:|",
        ]
        rows = [row(known, results["entries"]) for known in KNOWN if known.title == title]
        parts += dict.fromkeys(rows)  # one for all entries that say the same
    parts.append(NUMBERS)
    parts += [f"| `{text}` | {theirs} | `{ours}` |" for text, (theirs, ours) in BESIDE.items()]
    return "\n".join([*parts, TAPE])


def row(known, counts):
    names = "any" if known.ops is ANY else ", ".join(f"`{name}`" for name in sorted(set(known.ops)))
    return f"| {names} | {known.what} | {known.why} | {counts.get(known.what, '')} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
