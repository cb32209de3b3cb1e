"""What the table of `differences` asks about a difference: as little as fits.

Each is a function of a Difference, or makes one. Where MXNet's answer follows a formula
of its own, the formula is computed and compared, so that no other answer passes.
"""

from dataclasses import replace

import numpy as np
from programs.rules import BY_NAME
from programs.run import INFIX, NO_GRADIENT

import minihybrid as mh
from beside.child import answers, seed

# Whatever comes back to these, 0 goes on.
NOTHING_BACK = {
    *NO_GRADIENT,
    *(sign for sign in INFIX if sign[0] in "=!<>"),
    *(
        f"broadcast_{name}"
        for name in "equal not_equal greater greater_equal lesser "
        "lesser_equal logical_and logical_or logical_xor".split()
    ),
    *("sign ceil floor rint round trunc fix logical_not".split()),
}


# -- its program -----------------------------------------------------------------------
def arrays(d):
    """What the one step reads, in its order; else what the program reads."""
    places = d.step.inputs if d.step else range(len(d.program.inputs))
    return [d.program.inputs[i].array() for i in places]


def scalars(d):
    return [
        v for step in d.program.steps for v in step.attrs.values() if isinstance(v, (int, float))
    ]


def attribute(d, name):
    """What a step was told, or what its operator takes for granted."""
    return d.step.attrs.get(name, BY_NAME[d.step.op].attrs[name][1])


def empty(d):
    return any(0 in i.shape for i in d.program.inputs)


def first_is(*letters):
    """The first input has a dtype that begins so."""
    return lambda d: d.program.inputs[:1] != () and d.program.inputs[0].dtype.startswith(letters)


whole, double = first_is("i", "u"), first_is("float64")


def gradient(d):
    return d.name.startswith("gradient")


def state(d):
    return d.name.startswith("state")


def not_finite(d):
    """There is infinity or NaN among the inputs or the attributes."""
    return any(not np.isfinite(a).all() for a in arrays(d)) or any(
        not np.isfinite(v) for v in scalars(d)
    )


def mxnet_says(*texts):
    """MXNet raises, and its message has one of these parts; we do not raise."""
    return lambda d: d.ours is None and any(t in d.theirs for t in texts)


def we_say(text):
    return lambda d: d.theirs is None and text in d.ours


def both(*conditions):
    return lambda d: all(condition(d) for condition in conditions)


# -- where it is -----------------------------------------------------------------------
def only_where(condition):
    """All that differs stands where a condition is true; for elementwise operators.

    condition:  operands in float64, a number beside an array among them -> bools.
    """

    def when(d):
        given = [a.astype("float64") for a in arrays(d)]
        if d.step.op in INFIX and "scalar" in d.step.attrs:
            given.insert(
                0 if d.step.attrs.get("reversed") else 1, np.float64(d.step.attrs["scalar"])
            )
        with np.errstate(all="ignore"):
            return not (d.apart & ~_seen(condition(*given), d.apart.shape)).any()

    return when


def only_in_rows(condition):
    """All that differs stands in rows where a condition is true somewhere."""

    def when(d):
        marks = condition(arrays(d)[0]).any(attribute(d, "axis"), keepdims=True)
        return not (d.apart & ~marks).any()

    return when


def _seen(marks, shape):
    """Marks of a result, where the result is broadcast from an array of this shape."""
    marks = np.atleast_1d(marks)
    marks = marks.any(tuple(range(max(marks.ndim - len(shape), 0))))
    shared = tuple(i for i, n in enumerate(shape[len(shape) - marks.ndim :]) if n == 1)
    return marks.any(shared, keepdims=True)


def twice(a):
    """Where a number occurs more than once."""
    values, counts = np.unique(a, return_counts=True)
    return np.isin(a, values[counts > 1])


# -- how much it is --------------------------------------------------------------------
def has_equal_numbers(d):
    """Of what is normalized together, some is almost one number."""
    data = arrays(d)[0]
    axes = attribute(d, "axis") if d.step.op == "LayerNorm" else tuple(range(2, data.ndim))
    return np.ptp(data, axis=axes).min(initial=np.inf) <= 1e-5 * abs(data).max()


def summed(d):
    """How many rows the gradient of a factor is the sum of."""
    return max(1, arrays(d)[0].size // max(1, d.ours.size)) if gradient(d) else 1


def near(share):
    """Where both are finite they differ by at most this share of the largest."""

    def when(d):
        a, b = (np.atleast_1d(np.asarray(v, "float64")) for v in (d.ours, d.theirs))
        good = np.isfinite(a) & np.isfinite(b)
        size = np.abs(a[good]).max(initial=0.01)
        return (
            np.array_equal(np.isfinite(a), np.isfinite(b))
            and np.abs(a[good] - b[good]).max(initial=0) <= share * size
        )

    return when


def less_exact(d):
    """Rounding: of the answer in float64, ours is at most four times as far."""
    if not near(1e-3)(d):
        return False
    inputs = tuple(
        replace(i, dtype="float64") if i.dtype[0] == "f" else i for i in d.program.inputs
    )
    exact = answers(mh, d.program.but(inputs=inputs)).get(d.name)
    if exact is None:
        return False
    good = np.isfinite(exact) & np.isfinite(d.ours)
    ours, theirs = (np.abs(v[good] - exact[good]).max(initial=0) for v in (d.ours, d.theirs))
    return ours <= 4 * theirs


def told_in_float32(d):
    """With attributes rounded to float32 our answer is MXNet's.

    Its parser of numbers may miss the nearest one by a unit.
    """
    step = d.step
    if step is None:
        return False
    attrs = dict(step.attrs)
    if step.op in BY_NAME:
        known = BY_NAME[step.op].attrs.items()
        attrs = {k: default for k, (_, default) in known if isinstance(default, float)} | attrs

    def answer(towards):
        rounded = {
            k: float(np.nextafter(np.float32(v), np.float32(towards or v)))
            if isinstance(v, float)
            else v
            for k, v in attrs.items()
        }
        again = d.program.but(steps=(replace(step, attrs=rounded),))
        return answers(mh, again).get(d.name)

    return any(is_theirs(d, answer(towards)) for towards in (None, -np.inf, np.inf))


def is_theirs(d, expected, share=1e-6):
    """MXNet's answer is this one but for rounding, a share of the largest number."""
    if expected is None or expected.shape != d.theirs.shape:
        return False
    if d.theirs.dtype == "float64":
        share = min(share, 1e-6)
    size = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    return np.allclose(d.theirs, expected, share, share * size / 10, equal_nan=True)


def by(formula, share=1e-5):
    """MXNet's answer is what a formula makes of the difference."""

    def when(d):
        with np.errstate(all="ignore"):
            return is_theirs(d, formula(d), share)

    return when


def slope(d):
    """Where a gradient differs, central differences of outputs that aren't NaN agree with ours."""
    k = int(d.name.split()[1])
    inputs = [replace(i, dtype="float64") if i.dtype[0] == "f" else i for i in d.program.inputs]

    def moved(place, by):
        values = list(inputs[k].values)
        values[place] += by
        there = (*inputs[:k], replace(inputs[k], values=tuple(values)), *inputs[k + 1 :])
        shifted = answers(mh, d.program.but(inputs=there))
        return sum(
            np.nansum(seed(v.shape) * v)
            for name, v in shifted.items()
            if name.startswith("output") and v.dtype.kind == "f"
        )

    return all(
        abs((moved(place, 1e-4) - moved(place, -1e-4)) / 2e-4 - d.ours.ravel()[place])
        <= 1e-4 * np.abs(d.ours).max()
        for place in np.flatnonzero(d.apart)
    )


def one_off(d):
    """MXNet's whole numbers are ours cut off; next to a whole number, one of the two.

    Where the dtype cannot hold our number, MXNet's is any.
    """
    info = np.iinfo(d.theirs.dtype)
    ours, theirs = np.float64(d.ours), np.float64(d.theirs)
    held = np.isfinite(ours) & (ours > info.min) & (ours < info.max)
    ours, theirs = ours[held], theirs[held]
    slack = 1e-5 * np.maximum(np.abs(ours), 1)
    return d.ours.dtype == "float32" and bool(
        ((np.trunc(ours - slack) <= theirs) & (theirs <= np.trunc(ours + slack))).all()
    )


# -- in whole programs -----------------------------------------------------------------
def in_gradients(different):
    """Gradients differ: whoever shares an array sees what was written there."""
    return any(d.kind == "value" and gradient(d) for d in different)


DIED = ("died with 255", "died with -6")  # MXNet's own handler ended it, or the C library


def dies(different):
    return any(d.kind == "error" and any(t in (d.theirs or "") for t in DIED) for d in different)


def stops_gradients(step):
    """Whatever comes back to a step's inputs is 0."""
    return (
        step.op in NOTHING_BACK
        or step.op == "topk"
        and step.attrs.get("ret_typ") not in ("value", "both")
    )
