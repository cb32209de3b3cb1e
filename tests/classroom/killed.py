"""What the workers of a test run: `mark`, on a worker that is killed for some students.

Each is killed once: `before` its submission is graded, in the `middle` of that, and `after`
its mark was written, but before anybody heard of it.
"""

import os
import signal
import threading
from pathlib import Path

from minihybrid_course.grading import grade as grading

_mark, _graded = grading.mark, grading.graded


def die(log, student):
    (log / f"died {student}").touch()
    os.kill(os.getpid(), signal.SIGKILL)


def first(log, student):
    """Whether this is the first time that a student is begun with."""
    try:
        (log / f"begun {student}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def mark(submission, folder, *arguments):
    """`minihybrid_course.grading.grade.mark`, on a worker that may die of it."""
    log = Path(folder).parent / "log"
    dies = submission.student if first(log, submission.student) else None
    if dies == "before":
        die(log, dies)
    if dies == "middle":
        threading.Timer(0.7, die, [log, dies]).start()  # the student's cell sleeps for two seconds

    def graded(*more):
        actual = _graded(*more)
        with open(log / f"graded {submission.student}", "a") as file:
            file.write("x")
        return actual

    grading.graded = graded
    actual = _mark(submission, folder, *arguments)
    if dies == "after":
        die(log, dies)
    return actual
