"""Chapter 23: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from minihybrid_course.exercises.judging import Part, Parts

EXERCISES = {
    "23.1": Parts(
        "the number of bytes",
        "five offsets, and each array at a multiple of 64",
        Part(
            "the number of bytes",
            "382a9388d7",
            "round up to a multiple of 64 before each array, and at the end",
            {
                9704: "each array starts at a multiple of 64, and the file ends at one",
                9664: "the header and the offsets come first",
                9640: "the header and the offsets come first, and are rounded up",
                9720: "there are offsets of four arrays, and of the end",
            },
        ),
    ),
    "23.2": Parts(
        "a pair: how many of the formats accept it, and the name of one that does",
        "a graph names its operators; code would have to draw the same numbers as ours",
        Part(
            "the number of formats",
            "d9f66c869c",
            "go through FORMATS, and count the files that are written",
            {
                5: "does the network really draw, with F.random.normal, in prediction?",
                0: "one of them only stores the names of the operators",
                2: "code for JavaScript and C would need the same random stream as ours",
            },
        ),
        Part(
            "the name",
            "6d3565712a",
            "which format keeps the graph as it is?",
            {
                "onnx": "ONNX has such an operator, but draws other numbers",
                "numpy": "NumPy draws other numbers",
            },
        ),
    ),
    "23.3": Parts(
        "a pair: the result, and the name of the function in the C file",
        "sums of unsigned integers are defined: they wrap around",
        Part(
            "the result",
            "660f445372",
            "run the sum in the engine",
            {
                9223372036854775808: "the largest signed 64-bit integer is one less than that",
                0: "unsigned integers would wrap around to that",
                -1: "there, all bits are 1; here, only the first is",
            },
        ),
        Part(
            "the name",
            "410c042481",
            "it begins with wrap",
            {
                "wrap": "that's how it begins; there's one for each operator",
                "uint64_t": "that's the type in which it adds",
                "int64_t": "that's the type of its arguments and its result",
            },
        ),
    ),
}
