"""Chapter 26: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from minihybrid.simt.errors import KernelError
from minihybrid_course.exercises.judging import Part, Parts, Refusal

EXERCISES = {
    "26.1": Parts(
        "two pairs, eager and fused: ((loads, stores), (loads, stores))",
        "fused, each input is loaded once, and only the result is stored",
        Part(
            "the eager pair",
            "9a22091c1f",
            "go through the four operators: each loads its inputs and stores its result",
            {
                (5, 3): "in eager mode, both tanh are computed",
                (2, 1): "in eager mode, each operator is a kernel of its own",
                (4, 4): "an operator with two inputs loads both",
            },
        ),
        Part(
            "the fused pair",
            "5176ecbafe",
            "what does one kernel have to load and to store?",
            {
                (3, 1): "a is loaded once: the optimizer merges the two tanh",
                (2, 2): "the values between the operators aren't stored",
                (6, 4): "one kernel keeps intermediate values in registers",
            },
        ),
    ),
    "26.2": Refusal(
        "simt.Program(broken).run(...)",
        "the simulator names the line and the thread; a real GPU may never show it",
        KernelError,
        r"no thread of the block has written it|race for",
        "the kernel ran: is the first barrier really gone from the source?",
        {
            r"out of bounds|must be a flat": (
                "the arrays must be NumPy's, flat, with 400 elements each"
            ),
            r"arguments?\b": "the launch takes a grid, a block and a list of two arrays",
        },
    ),
    "26.3": Parts(
        "a pair: the constant of the product, and by how many bits its upper half is shifted",
        "a product, its upper half and a shift compute the quotient, without a division",
        Part(
            "the constant",
            "1cf82858fd",
            "it's at the end of the line with mul.hi",
            {
                12: "that's the divisor; mul.lo multiplies the quotient by it again",
                1537228672809129301: "that's 2 to the power of 64, divided by 12",
                6: "the constant is 2 to the power of 64 divided by that",
            },
        ),
        Part(
            "the number of bits",
            "269c70523c",
            "after mul.hi, which line computes the quotient?",
            {
                63: "that line extracts the sign alone",
                64: "mul.hi has already dropped these",
                2: "further down, shl by 2 converts elements to bytes",
            },
        ),
    ),
    "26.4": Parts(
        "three numbers: a thread's loads in one kernel, in two kernels, and the engine's kernels",
        "each input is loaded once, by hand and by the engine: its readers share a loop",
        Part(
            "the loads in one kernel",
            "9b6fb15533",
            "what must be loaded, if variables keep the values?",
            {4: "x and y can be kept: `x, y = a[i], b[i]`", 1: "there are two inputs"},
        ),
        Part(
            "the loads in two kernels",
            "da3e5c9cff",
            "each kernel loads its inputs",
            {2: "the second kernel can't see the values of the first", 3: "each loads both inputs"},
        ),
        Part(
            "the engine's kernels",
            "876c022aae",
            "the plan of the function has n_kernels",
            {
                2: "both results read the same inputs in the same loop, and neither needs "
                "the other",
                4: "loads are not kernels",
            },
        ),
    ),
}
