"""Chapter 20: checkers of its exercises.

Takes:   answers.
Gives:   `EXERCISES`, from an exercise's number to its `Exercise`.
"""

from minihybrid_course.exercises.judging import ELSEWHERE, Exercise, Part, Parts, Refusal

EXERCISES = {
    "20.1": Exercise(
        "the number of addresses",
        Parts(
            "20.1",
            "a held result takes its place with it",
            Part(
                "the number of addresses",
                "0a65937343",
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
    "20.2": Exercise(
        'a function that makes the error, such as `lambda: run_python(PROGRAM, ...="two")`',
        Refusal(
            "the first plan asks how many threads there are; eager operators do not",
            Exception,
            r"MINIHYBRID_NUM_THREADS is",
            lambda result: (
                "the program ran to its end: eager operators never ask; call a function "
                "that makes a plan"
            ),
            {
                r"non-zero exit|Error: ": "this failed for another reason; look at error.stderr",
                **ELSEWHERE,
            },
        ),
    ),
}
