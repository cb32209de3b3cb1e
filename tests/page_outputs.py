"""What cells print in a page, beside what the book shows, and what differs on purpose."""

import configparser
import re
import tomllib
from pathlib import Path

from nbformat import read
from run_notebooks import ROOT

CHAPTERS = tomllib.loads((ROOT / "book/in_page.toml").read_text(encoding="utf-8"))
CONFIG = Path(__file__).parent / "nbval_sanitize.cfg"


def sanitized(text):
    """The text as nbval compares it: the patterns, in the order of the file."""
    config = configparser.ConfigParser()
    config.read(CONFIG, encoding="utf-8")
    for section in config.sections():
        text = re.sub(config[section]["regex"], config[section]["replace"], text)
    return text


# What differs, and what the page's Python says there instead.
ELSE = {
    ("07_training", "c21"): "disabling monitor support",  # tqdm's, which wants a thread
    ("09_export", "c31"): "onnx is left out: export to ONNX needs the library onnx, which is not",
} | {
    (stem, "nano-s"): "nano: Numba is missing, so chains stay operators"
    for stem in (
        "21_the_memory_planner",
        "22_files",
        "26_from_two_kernels_to_one",
        "29_guards_and_shapes",
        "36_effects_and_aliasing",
        "37_many_devices",
    )
}

# What differs in Pyodide, where kernels are WebAssembly, and why.
THERE = {
    ("03_hybridize", "c30"): "dropout draws its mask in NumPy, and the plan says so",
    ("07_training", "c23"): "progress bars, which the book's run turns off",
    ("07_training", "c33"): "NumPy computes a gradient whose kernel transposes vectors",
    ("07_training", "c71"): "progress bars, as above",
    ("11_arrays_and_autograd", "c80"): "the last digit of a logarithm",
    ("16_trusting_passes", "c60"): "tqdm's warning that a page has no threads",
}
# What timing cells print: ratios in sentences, and as the last column of a table.
RATIO = re.compile(r"about ([\d.]+) times as|([\d.]+) x faster|  ([\d.]+)$", re.MULTILINE)
CLEAR = 2  # what is less than so many times as fast may be slower elsewhere
DRAW = 1.1  # and there, a ratio nearer to 1 says nothing


def outputs(cell_outputs):
    """What nbval compares: kind -> the texts of that kind; pictures are only counted."""
    actual = {}
    for output in cell_outputs:
        if output["output_type"] == "stream":
            actual.setdefault(output["name"], []).append(output["text"])
        elif output["output_type"] == "error":
            actual.setdefault("error", []).append(f"{output['ename']}: {output['evalue']}")
        else:
            for kind, value in output["data"].items():
                actual.setdefault(kind, []).append("" if kind == "image/png" else value)
    return {kind: [sanitized("".join(t)) for t in texts] for kind, texts in actual.items()}


def code(stem):
    """The code cells of a chapter."""
    cells = read(ROOT / f"notebooks/{stem}.ipynb", as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code"]


def differing(stem, results):
    """(id, what the page shows, what the cell gives there) of cells where these differ."""
    for cell in code(stem):
        book, page = outputs(cell.outputs), outputs(results[cell.id])
        if "nbval-ignore-output" in cell.metadata.get("tags", []):  # as in the book: kinds only
            book, page = set(book), set(page)
        if book != page:
            yield cell.id, book, page


def differing_on_purpose(stem):
    """Cell -> why it differs in Pyodide and may."""
    return {cell: why for (chapter, cell), why in (ELSE | THERE).items() if chapter == stem}


def ratios(cell_outputs):
    """The ratios of times that a cell prints, in order."""
    outs = (o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell_outputs)
    return [float("".join(found)) for found in RATIO.findall("\n".join(map("".join, outs)))]


def factor(ratio):
    """How far a ratio is from 1, either way."""
    return max(ratio, 1 / max(ratio, 0.001))


def reversed_claims(stem, results):
    """(id, ratio in the book, there) where what is clearly faster in the book is slower there."""
    for cell in code(stem):
        if "timing" in cell.metadata.get("tags", []):
            for ours, there in zip(ratios(cell.outputs), ratios(results[cell.id]), strict=True):
                is_told = factor(ours) >= CLEAR and factor(there) > DRAW
                if is_told and (ours > 1) != (there > 1):
                    yield cell.id, ours, there
