"""Chapter 23: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from minihybrid_course.exercises.judging import Exercise, Part, Parts

EXERCISES = {
    "23.1": Exercise(
        "the number of bytes",
        Parts(
            "23.1",
            "five places, and each array at a multiple of 64",
            Part(
                "the number of bytes",
                "382a9388d7",
                "round up to a multiple of 64 before each array, and at the end",
                {
                    9704: "each array begins at a multiple of 64, and the file ends at one",
                    9664: "the marks and the places come first",
                    9640: "the marks and the places come first, and places are rounded up",
                    9720: "there are four arrays, and the place of the end",
                },
            ),
        ),
    ),
    "23.2": Exercise(
        "a pair: how many of the formats accept it, and the name of one that does",
        Parts(
            "23.2",
            "a file of a graph names its operators; a file of code would have to draw as we do",
            Part(
                "the number of formats",
                "d9f66c869c",
                "go through FORMATS, and count the files that are written",
                {
                    5: "does the net really draw, with F.random.normal, when it predicts?",
                    0: "one of them only writes down which operators there are",
                    2: "code for JavaScript and C would need the same random stream as ours",
                },
            ),
            Part(
                "the name",
                "6d3565712a",
                "which format keeps the graph as it is?",
                {
                    "onnx": "ONNX has such an operator, but its numbers would not be ours",
                    "numpy": "NumPy's random numbers would not be ours",
                },
            ),
        ),
    ),
    "23.3": Exercise(
        "a pair: the result, and the name of the function in the C file",
        Parts(
            "23.3",
            "sums of unsigned numbers are defined, and go round",
            Part(
                "the result",
                "660f445372",
                "let the engine add",
                {
                    9223372036854775808: "with a sign, 64 bits end one below that",
                    0: "numbers without a sign would begin again there",
                    -1: "all bits are one there; here only the first is",
                },
            ),
            Part(
                "the name",
                "410c042481",
                "it begins with wrap",
                {
                    "wrap": "this is how it begins; there is one for each operator",
                    "uint64_t": "that is the type in which it adds",
                    "int64_t": "that is the type of what it takes and gives",
                },
            ),
        ),
    ),
}
