"""Chapters 18 to 23. What their exercises ask, and how the answers are judged.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
What is left out: exercises that measure, and those whose answer is a sentence.
"""

from minihybrid.core.op import HybridError
from minihybrid_course.exercises.judging import Exercise, Part, Parts, Refusal

ELSEWHERE = {r"is not defined": "this is Python's error; a name is missing, run the cells above"}

EXERCISES = {
    "18.1": Exercise(
        "a pair: the rows and the vectors of the tile",
        Parts(
            "18.1",
            "almost square, and the row of b also needs registers",
            Part(
                "the number of rows",
                "a64d52819d",
                "count R V + V + 1 registers for each tile, and take the fewest loads that fit",
                {
                    3: "3 x 4 needs 17 registers, V of them for the row of b",
                    5: "with 5 rows, only 2 vectors fit, and that takes more loads",
                    7: "7 x 2 fits, but it's tall and narrow, so it takes more loads",
                },
            ),
            Part(
                "the number of vectors",
                "1f7fbe976b",
                "count R V + V + 1 registers for each tile, and take the fewest loads that fit",
                {4: "4 vectors need 4 registers for the row of b", 2: "3 vectors fit as well"},
            ),
        ),
    ),
    "19.1": Exercise(
        "a pair: how many plans, and how many files",
        Parts(
            "19.1",
            "the length is an argument of the text",
            Part(
                "the number of plans",
                "600589fa38",
                "a plan belongs to a signature",
                {1: "a signature contains the shape", 2: "(1000,) and (20, 50) are two shapes"},
            ),
            Part(
                "the number of files",
                "554274e083",
                "does the text contain the shape?",
                {
                    3: "one loop goes over all elements, whatever their number",
                    2: "1000 elements are one loop, in one axis or two",
                    0: "nobody has compiled this text before",
                },
            ),
        ),
    ),
    "19.2": Exercise(
        'a function that makes the error, such as `lambda: load_kernels({text: "wrong"})`',
        Refusal(
            "Numba needs the type of each name, and says so from the compiler's process",
            HybridError,
            r"expp",
            lambda found: "the text was compiled; is `expp` in it, inside the function?",
            {
                r"did not compile": "it did not compile, but not because of `expp`",
                r"invalid syntax|unexpected indent": "Python cannot even read this text",
                r"has no attribute 'items'|must be a mapping|not iterable": "it takes a dictionary",
                r"name '(?!expp)\w+' is not defined": "a name is missing; run the cells above",
            },
        ),
    ),
    "19.3": Exercise(
        "the smallest of the numbers 3, 6, 12, 24, 48 that is enough",
        Parts(
            "19.3",
            "the last chunk decides, and each chunk costs a trip to the counter",
            Part(
                "the number of chunks",
                "3b8ea49263",
                "a tenth more than 4.8 seconds is 5.28; deal for three threads",
                {
                    3: "the slow thread has a third then, which takes it 8 seconds",
                    6: "that takes 6 seconds, and 5.28 are allowed",
                    24: "it is enough, but half as many are, too",
                },
            ),
        ),
    ),
    "20.1": Exercise(
        "the number of places",
        Parts(
            "20.1",
            "a held result takes its place with it",
            Part(
                "the number of places",
                "0a65937343",
                "which results are held, and where does a forgotten one's place go?",
                {
                    10: "a place is free again when nobody holds the result",
                    6: "after the last held result nothing more is made",
                    2: "the held results keep their places to the end",
                    1: "the held results keep their places to the end, each its own",
                },
            ),
        ),
    ),
    "20.2": Exercise(
        'a function that makes the error, such as `lambda: run_python(PROGRAM, ...="two")`',
        Refusal(
            "the first plan asks how many threads there are; eager operators do not",
            Exception,
            r"MINIHYBRID_NUM_THREADS is",
            lambda found: (
                "the program ran to its end: eager operators never ask; call a function "
                "that makes a plan"
            ),
            {
                r"non-zero exit|Error: ": "this failed for another reason; look at error.stderr",
                **ELSEWHERE,
            },
        ),
    ),
    "22.1": Exercise(
        "the number of bytes",
        Parts(
            "22.1",
            "head, arrays and names",
            Part(
                "the number of bytes",
                "02560c071b",
                "add up the head, both arrays, the count of names and each name",
                {
                    131: "24 for the head of the file are missing",
                    163: "float16 has two bytes a number",
                    147: "the count of names has 8 bytes, too",
                    139: "each name has 8 bytes before its letters",
                },
            ),
        ),
    ),
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
