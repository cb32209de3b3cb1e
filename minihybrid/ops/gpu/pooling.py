"""Chapter 26. The gradients of pooling on a GPU: a thread a number of the data.

Takes:   the windows of a pooling (`minihybrid.ops.pooling.Windows`).
Gives:   `over_windows`, loops over the windows in which one number lies.

On the CPU, each window adds to its numbers. If two threads did so to one number, what
one of them added could be lost; here each thread asks all windows of its number, in
the CPU's order, so that sums of floats are the same.
What is left out: what is found out about a window is found out by each of its numbers.
"""


def over_windows(windows, body):
    """A thread a number, which is at `at`; `body` adds to `total` what a window gives.

    Window i of an axis starts at i * stride - pad and has `kernel` numbers.
    """
    k, at = windows.k, "n"
    with k.each(("n", windows.lead), *((f"p{d}", windows.size[d]) for d in windows.axes)):
        for d in windows.axes:
            at = f"({at}) * {windows.size[d]} + p{d}"
        k(f"at = {at}")
        k("total = T(0)")
        reaches = []
        for d in windows.axes:
            reach, step = windows.pad[d], windows.stride[d]
            first = f"max((p{d} + {reach - windows.kernel[d]}) // {step} + 1, 0)"
            end = f"min((p{d} + {reach}) // {step} + 1, {windows.outs[d]})"
            reaches.append((f"i{d}", f"{first}, {end}"))
        with k.loops(reaches):
            windows.place()
            body()
        k.store("at", "total")
