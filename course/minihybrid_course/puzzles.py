"""Chapter 25. Puzzles: check kernels against their specifications.

Uses:    a kernel made by `simt.cuda.jit`, a NumPy function that specifies it, inputs, a
         grid and a block.
Defines: `check`, which explains an error in one sentence, and draws the accesses.
Limits:  performance isn't measured; the checker counts loads instead.
"""

import numpy as np

from minihybrid.core.op import HybridError
from minihybrid.simt.cuda import Kernel
from minihybrid.simt.errors import LaunchError
from minihybrid.simt.picture import draw
from minihybrid_course.exercises.judging import Verdict


def check(kernel, spec, inputs, grid, block, max_loads=None):
    """Run a kernel on the simulated GPU and compare with its specification.

    kernel:  takes the inputs and, last, the output array, which is initially zero;
    spec:    takes the same inputs, and returns the expected output;
    max_loads: how many elements a thread may load from one array in global memory.
    Returns: a `Verdict`, which draws the accesses of the first block's threads.

    >>> from minihybrid.simt import cuda
    >>> @cuda.jit
    ... def double(a, out):
    ...     i = cuda.grid(1)
    ...     out[i] = a[i] + 1
    >>> check(double, lambda a: 2 * a, [np.arange(4)], grid=1, block=4)
    not yet: out[0] is 1, but must be 0; thread 0 of block 0 wrote it in line 4 (`out[i]
    = a[i] + 1`)
    """
    if not isinstance(kernel, Kernel):
        return Verdict(
            False, f"not yet: {kernel.__name__} is a function of Python; write @cuda.jit above it"
        )
    expected = np.asarray(spec(*inputs))

    def arguments():
        return [*map(np.array, inputs), np.zeros(expected.shape, expected.dtype)]

    used, record = arguments(), []
    try:
        run = kernel.run(grid, block, used, record)
    except HybridError as error:
        return Verdict(False, f"not yet: {error}")
    names = [use.name for use in kernel.counts.uses]
    wrong = (
        changed_input(names, inputs, used)
        or wrong_element(names[len(inputs)], expected, used[-1], run, record)
        or too_many_loads(kernel.counts, max_loads)
    )
    most = max(use.most_loads for use in kernel.counts.uses if use.space == "global")
    sentence = (
        f"not yet: {wrong}"
        if wrong
        else (
            f"{kernel.name} is right: a thread loads at most {most} element"
            f"{'s' * (most != 1)} of an array"
        )
    )
    return Verdict(not wrong, sentence, pictured(kernel[grid, block], arguments()))


def pictured(launch, arguments):
    """Return the picture of a launch; None if it's empty or too large."""
    try:
        picture = draw(launch, *arguments)
    except LaunchError:
        return None
    return picture if picture.uses else None


def changed_input(names, inputs, used):
    """Return a message if the kernel wrote to an input."""
    for name, before, after in zip(names, inputs, used, strict=False):
        if not np.array_equal(before, after, equal_nan=True):
            return f"the kernel changed its input {name}; it may write to its last argument only"
    return None


def wrong_element(name, expected, out, run, record):
    """Return a message about the first element that differs from the specification."""
    equal = np.isclose(out, expected, rtol=1e-5, atol=1e-6, equal_nan=True).reshape(-1)
    if equal.all():
        return None
    k = int(np.argmin(equal))
    where = ", ".join(str(int(i)) for i in np.unravel_index(k, out.shape))
    wrote = [
        seen for seen in record if seen.kind != "read" and seen.array.name == name and seen.i == k
    ]
    who = (
        f"{run.who(wrote[-1].t)} wrote it in {run.line(wrote[-1].line)}"
        if wrote
        else "no thread wrote it"
    )
    return f"{name}[{where}] is {out.flat[k]:g}, but must be {expected.flat[k]:g}; {who}"


def too_many_loads(counts, most):
    """Return a message about the first array that a thread loads too often."""
    for use in counts.uses:
        if most is not None and use.space == "global" and use.most_loads > most:
            return (
                f"a thread loads {use.most_loads} elements of {use.name}, but may "
                f"load {most}; let the threads of a block share what they load"
            )
    return None
