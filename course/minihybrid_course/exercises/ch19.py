"""Chapter 19: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from minihybrid.core.op import HybridError
from minihybrid_course.exercises.judging import Exercise, Part, Parts, Refusal

EXERCISES = {
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
                    0: "this text hasn't been compiled before",
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
            lambda result: "the text was compiled; is `expp` in it, inside the function?",
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
    "19.5": Exercise(
        "the number of addresses",
        Parts(
            "19.5",
            "a held result takes its place with it",
            Part(
                "the number of addresses",
                "faf0e4a3a8",
                "which results are held, and where does a forgotten one's place go?",
                {
                    10: "memory is reused once no variable holds the result",
                    6: "after the last held result nothing more is made",
                    2: "the held results keep their places to the end",
                    1: "the held results keep their places to the end, each its own",
                },
            ),
        ),
    ),
}
