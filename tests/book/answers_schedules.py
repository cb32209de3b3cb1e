"""Right and wrong answers to the exercises of chapter 34."""

from minihybrid.codegen.ir import Buffer
from minihybrid.codegen.read import read

NAIVE = """
def product(a, b, out):
    for i in range(16):
        for j in range(16):
            out[i * 16 + j] = float32(0)
            for k in range(16):
                out[i * 16 + j] = add_up(out[i * 16 + j], a[i * 16 + k] * b[k * 16 + j])
"""


def scheduled(steps):
    """A call that schedules a product."""
    sizes = ("a", "in"), ("b", "in"), ("out", "out")
    buffers = tuple(Buffer(name, "float32", (256,), space) for name, space in sizes)
    return lambda: read("product", NAIVE, buffers).schedule(steps)


def held(loops):
    return loops.hold("p", "out").vectorize("x", 8)


ANSWERS = {
    "34.2": (
        (8, 7, 13),
        [
            ((12, 7, 13), "stay in registers"),
            ((8, 7, 12), "the columns also count"),
            ((8, 12, 13), "the number for 3 by 4"),
            ((8, 7, 11), "an element for each row, and a vector for each column"),
        ],
    ),
    "34.3": (
        scheduled(lambda loops: loops.vectorize("k", 8)),
        [
            (scheduled(lambda loops: loops.vectorize("j", 8).parallel("i")), "accepted this"),
            (scheduled(lambda loops: loops.hold("k", "out").vectorize("k", 8)), "is held"),
            (scheduled(lambda loops: loops.vectorize("i", 8)), "this is about strides"),
            (scheduled(lambda loops: loops.vectorize("l", 8)), "are called i, j and k"),
            (lambda: naivee, "run the cells above"),
        ],
    ),
    "34.4": (
        lambda loops: held(loops).jam("x").split("y", 4).jam("y_in"),
        [
            (lambda loops: loops, "10240 stores, and 128 are enough"),
            (held, "2304 loads, and 1300 are enough"),
            (lambda loops: held(loops).jam("x"), "1728 loads, and 1300 are enough"),
            (lambda loops: 3, "steps must return the loops"),
            (lambda loops: loops.jam("z"), "there is no loop over z; it has c, y, x, p, q"),
        ],
    ),
}
