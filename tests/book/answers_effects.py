"""Right and wrong answers to the exercises of chapter 36."""

from minihybrid import autograd, nd


def taped(write):
    """A call that writes inside `record()`: (x, a view of a buffer, the buffer) -> a read."""

    def call():
        x, buffer = nd.ones((3,)), nd.zeros((3,))
        x.attach_grad()
        with autograd.record():
            return write(x, buffer.reshape((3,)), buffer)

    return call


def through_view(x, view, buffer):
    view[:] = x * x
    return buffer * 2


def view_again(x, view, buffer):
    view[:] = x * x
    return view * 2


def variable(x, view, buffer):
    x[:] = 0


def of_result(x, view, buffer):
    (x * x).reshape((3, 1))[:] = 0


def in_place(steps, results, look=2, inputs=False, alive=True):
    """The right function, or one that overlooks something."""
    names = set()
    defined = {out for out, *_ in steps}
    for i, (out, op, first, *_) in enumerate(steps):
        read = {name for later in steps[i + 1 :] for name in later[look:]}
        read |= set(results) if alive else set()
        if op == "put" and first not in read and (inputs or first in defined):
            names.add(out)
    return names


ANSWERS = {
    "36.2": (
        (6, 3, 4),
        [
            ((3, 3, 4), "and then a part of its base"),
            ((6, 6, 4), "merges the two reads"),
            ((6, 2, 4), "at two versions"),
            ((6, 3, 3), "the product is the first value"),
        ],
    ),
    "36.3": (
        taped(through_view),
        [
            (taped(view_again), "the tape could follow this"),
            (taped(variable), "not into the variable"),
            (taped(of_result), "isn't on the tape yet"),
            (lambda: bufferr, "this is a different error"),
        ],
    ),
    "36.4": (
        in_place,
        [
            (lambda steps, results: in_place(steps, results, look=9), "a later step reads a.0"),
            (lambda steps, results: in_place(steps, results, inputs=True), "x.0 is an input"),
            (lambda steps, results: in_place(steps, results, alive=False), "a.0 is a result"),
            (lambda steps, results: set(), "may overwrite its operand, but it's missing"),
            (lambda steps, results: [*in_place(steps, results)], "expected a set of names"),
        ],
    ),
}
