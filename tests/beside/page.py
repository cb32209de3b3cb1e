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

Programs written for MXNet 1.9.1 should run here and give the same answers. To find the exceptions,
we ran random programs of up to 14 operators in both, on the same inputs, and compared outputs,
gradients, states, shapes, dtypes and errors. `make soak MXNET=1` repeats this.

{verdicts}

If a program differs, each of its steps runs alone in both libraries, and each step that differs
must be in the tables below. Our results then replace those of these steps in MXNet, and the rest of
the program is compared again. The last column counts how many of the {programs} programs of {date}
needed the entry. Entries without a count come from other runs.
"""

NUMBERS = """
## `mx.np`: scalars and arrays

A Python or NumPy scalar has a kind (bool, integer, float) but no width. If it's an operand of an
array whose dtype is of its kind or a higher one, it takes that dtype. Otherwise it takes its
default dtype, `int64` or `float32`. This is NumPy's rule with `float32` instead of `float64`.
Scalars alone are `float32`, as in MXNet. A scalar that the dtype can't represent raises an error:
it never becomes infinity or wraps around. Comparisons with it work.

In the table, `x` is `np.array([1., -1.])`, `b` is `x > 0`, `i` is `np.array([1, 2],
dtype="int32")`, and `u` and `h` are the same as `uint8` and `float16`.

| expression | MXNet 1.9.1 | here |
|---|---|---|"""
# Expression -> MXNet's answer, ours. The tests of `mx.np` run them.
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
While `autograd` records, an `mx.np` function without a gradient rejects an array on the tape
(`median`, `quantile`, `cov`, `linalg.eigh`, `linalg.pinv`, ...). MXNet returns gradients of 0 for
`quantile`, `unique`, `linalg.eigh`, `linalg.pinv` and `random.gamma`.

## Views, and writes inside `record()`

As in MXNet, `x.reshape(...)` in `nd`, `x[i]`, `x[i:j]`, `x.detach()` and `x.astype(...,
copy=False)` share memory with `x`. Inside `record()`, indexing or reshaping an array on the tape
copies it. MXNet records only writes to a whole array (`x[:] = y`, `y.copyto(x)`, `out=x`) and
rejects others. We also record `x[i] = y`, index arrays, masks and `x += y`. A write raises an
error if its gradient would be ambiguous or lost: a write into a variable, into a copy made by
indexing, or through an index that contains an element twice. Using an array whose memory was
written through a view raises an error until you index it again.

After `record()`, a write doesn't change the gradients of the recorded program, because the tape
keeps a copy of the old values. In MXNet, `backward` reads the new values. An example is a
`trainer.step` between two `backward` calls of a retained tape.

Eagerly, an `Embedding` index out of range raises an error, where MXNet uses the nearest row.
Compiled code and GPUs also use the nearest row, because a kernel can't raise.

## Int8 graphs

Graphs that MXNet quantized for oneDNN run with the same integers and ranges, in float32
arithmetic. For the same inputs, the integers of a layer are MXNet's or differ by one, except in
convolutions that MXNet computes with an error:

- On processors without VNNI, oneDNN halves the weights before it rounds them if the data is int8.
  If it's uint8, sums of two products saturate at 16 bits.
- If a convolution with a uint8 output adds an int8 array, the output saturates at 127, not at 255.
- If a calibrated convolution has groups and isn't depthwise, the weights of a channel are
  multiplied by another channel's scale.

Quantized activations other than `relu` and `clip` aren't supported.
"""

VERDICTS = {
    "same": "the same",
    "same but for known steps": "the same, except for steps in the tables",
    "known as a whole": "an error that's in the tables",
    "rounding": "the same, except for rounding amplified by a later step",
    "unknown": "different and unexplained",
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
