"""What readers hand in for the ten puzzles of chapter 25: its solutions, right and changed."""

import json
import linecache
from pathlib import Path

from minihybrid.simt import cuda, float32

CHAPTER = Path(__file__).parents[2] / "notebooks/25_first_kernels.ipynb"
GUARD, MEETS = "        cuda.syncthreads()\n", "    cuda.syncthreads()\n"
TREE = """    half = 4
    while half > 0:
        if x < half:
            s[x] += s[x + half]
        cuda.syncthreads()
        half //= 2
    if x == 0:
        out[y] = s[0]
"""
CHANGES = {  # puzzle -> [(what is changed in the solution, what is said), ...]
    "25.1": [
        (("+ 10", "+ 1"), "out[0] is 1, but must be 10"),
        (("threadIdx.x", "threadIdx.x + 1"), "out of bounds"),
        (("out[i] = a[i] + 10", "a[i] += 10"), "the kernel changed its input a"),
        (("out[i] =", "out[0] ="), "race for out[0]"),
    ],
    "25.2": [
        (("cuda.grid(1)", "cuda.threadIdx.x"), "race for out[0], which thread 0 of block 1"),
        (("    if i < out.size:\n        out", "    if True:\n        out"), "out of bounds"),
        (("a[i] * b", "a[i] + b"), "but must be 0"),
    ],
    "25.3": [
        (("out[x, y] = a[y, x]", "out[y, x] = a[x, y]"), "out of bounds"),
        (("if y < a.shape[0] and x < a.shape[1]", "if y < 4"), "out of bounds"),
        (("y < a.shape[0] and x < a.shape[1]", "y < 3 and x < 3"), "no thread wrote it"),
    ],
    "25.4": [
        (("row[0, x]", "row[0, y]"), "out of bounds"),
        ((" + row[0, x]", ""), "out[0, 0] is 0, but must be 1"),
        ((" and x < out.shape[1]", ""), "out of bounds"),
    ],
    "25.5": [
        ((MEETS, ""), "race for s[0], which thread 1"),
        (("total += s[i - 1]", "total += a[i - 1]"), "loads 2 elements of a, but may load 1"),
        (("    if i > 1:\n        total += s[i - 2]\n", ""), "out[3] is 5, but must be 6"),
    ],
    "25.6": [
        ((GUARD, ""), "race for s["),
        (("a[i] * b[i]", "a[i]"), "out[0] is 28, but must be"),
        (("    if i == 0:\n        out[0]", "    if True:\n        out[0]"), "race for out[0]"),
    ],
    "25.7": [
        (("cuda.atomic.add(out, digits[i], 1)", "out[digits[i]] += 1"), "race for out["),
        (("digits[i], 1)", "digits[i], 2)"), "out[1] is 4, but must be 2"),
        (("if i < digits.size", "if True"), "out of bounds"),
    ],
    "25.8": [
        ((" if i + 8 < a.size else float32(0)", ""), "out of bounds"),
        (("if t < 3:", "if t < 2:"), "sw[2] is read, but no thread of the block has written it"),
        (("s[t + 1] * sw[1] + ", ""), "out[0] is 200, but must be 210"),
        ((MEETS, ""), "s[1] is read, but no thread of the block has written it"),
    ],
    "25.9": [
        (
            ("        cuda.syncthreads()\n        s[i] += term", "        s[i] += term"),
            "race for s[",
        ),
        (("away < 8", "away < 4"), "out[5] is 14, but must be 15"),
        (("else float32(0)", "else s[i]"), "out[1] is"),
    ],
    "25.10": [
        ((" if x < a.shape[1] else float32(0)", ""), "out of bounds"),
        (("out[y] = s[0]", "out[x] = s[0]"), "race for out[0]"),
        (("half = 4", "half = 2"), "out[0] is 6, but must be 15"),
        ((TREE, "    cuda.atomic.add(out, y, s[x])\n"), "24 atomic operations"),
        (
            (TREE, "    if x == 0:\n        out[y] = s[0] + s[1] + s[2] + s[3] + s[4] + s[5]\n"),
            "1 barrier",
        ),
    ],
}
ENDLESS = "    while True:\n        pass\n", "the loop made 10000 turns and did not end"
RAISING = "    1 // 0\n", "(`1 // 0`): ZeroDivisionError: integer division"


def kernel(number, text):
    """The kernel of a text; the simulator reads its lines."""
    name = f"<puzzle {number} {hash(text)}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    exec(compile(text, name, "exec"), names := {"cuda": cuda, "float32": float32})
    return names[text.partition("def ")[2].partition("(")[0]]


def changed(number, old, new):
    """The solution of a puzzle, with something changed in it."""
    text = SOLUTIONS[number].replace(old, new)
    assert text != SOLUTIONS[number], (number, old)
    return kernel(number, text)


def solutions():
    """Puzzle -> the text of the kernel that solves it, as the chapter has it."""
    actual = {}
    for cell in json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]:
        title, _, text = "".join(cell["source"]).partition("\n")
        if title.startswith("#@title Solution "):
            actual[title.split()[-1]] = text.partition("\n\n\ncheck(")[0] + "\n"
    return {number: actual[number] for number in CHANGES}


SOLUTIONS = solutions()
ANSWERS = {
    number: (
        kernel(number, text),
        [(changed(number, *change), words) for change, words in CHANGES[number]]
        + [
            (changed(number, "out):\n", f"out):\n{lines}"), words)
            for lines, words in (ENDLESS, RAISING)
        ],
    )
    for number, text in SOLUTIONS.items()
}
