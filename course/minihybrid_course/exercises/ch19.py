"""Chapter 19: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from minihybrid.core.op import HybridError
from minihybrid_course.exercises.judging import Part, Parts, Refusal

EXERCISES = {
    "19.1": Parts(
        "a pair: how many plans, and how many files",
        "the length is an argument of the kernel",
        Part(
            "the number of plans",
            "600589fa38",
            "each plan belongs to one cache key",
            {1: "the cache key contains the shape", 2: "(1000,) and (20, 50) are two shapes"},
        ),
        Part(
            "the number of files",
            "554274e083",
            "does the kernel's source contain the shape?",
            {
                3: "one loop covers all elements, however many there are",
                2: "1000 elements take one loop, on one axis or two",
                0: "this source hasn't been compiled before",
            },
        ),
    ),
    "19.2": Refusal(
        'load_kernels({text: "wrong"})',
        "Numba needs the type of each name, and its process returns the reason",
        HybridError,
        r"expp",
        "the source was compiled; does its function call `expp`?",
        {
            r"did not compile": "it didn't compile, but for another reason than `expp`",
            r"invalid syntax|unexpected indent": "this isn't valid Python",
            r"has no attribute 'items'|must be a mapping|not iterable": "it takes a dictionary",
            r"name '(?!expp)\w+' is not defined": "a name is missing; run the cells above",
        },
    ),
    "19.3": Parts(
        "the smallest of the numbers 3, 6, 12, 24, 48 that is enough",
        "the last chunk decides, and each chunk costs an access to the counter",
        Part(
            "the number of chunks",
            "3b8ea49263",
            "4.8 seconds and a tenth are 5.28; extend `deal` to three threads",
            {
                3: "then the slow thread has a third, which takes it 8 seconds",
                6: "that takes 6 seconds, and 5.28 are allowed",
                24: "that's enough, but so are half as many",
            },
        ),
    ),
    "19.5": Parts(
        "the number of addresses",
        "a result that's kept keeps its memory",
        Part(
            "the number of addresses",
            "faf0e4a3a8",
            "which results are kept, and which call reuses a discarded one's memory?",
            {
                10: "memory is reused once no variable holds the result",
                6: "the last result is kept, and no call follows it",
                2: "the results that are kept keep their memory to the end",
                1: "each of the results that are kept has memory of its own",
            },
        ),
    ),
}
