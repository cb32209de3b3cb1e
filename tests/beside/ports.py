"""Programs and graphs that others published, here and in MXNet 1.9.1: what is different?

    python -m beside.ports CLONES [NAMES]     # in the folder tests/

CLONES has a git repository at OWNER/NAME for each one named in `ports.toml`, which says
what is run and what was edited. Nothing of theirs is kept here but the address. Each runs
twice, in processes of their own; what was found goes into `golden/ports.json`, from which
`beside.ports_page` writes the book's page.

A program that differs runs in MXNet again, its numbers moved by a rounding: how far MXNet
is then from itself says how much of the difference rounding may be.
"""

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from beside.port_data import WRITERS

HERE = Path(__file__).parents[1]
ENVS = HERE.parent / "benchmarks" / "envs.py"
TABLE = Path(__file__).parent / "ports.toml"
RESULTS = HERE / "golden" / "ports.json"

AGREES = 1e-3  # of the largest number of an array: what rounding may become
LAYERED = ("layers", "steps", "integers", "beyond")  # of an int8 graph, as `port_child` has them
SHAKES = 3  # runs of MXNet with numbers moved by a rounding
TINY = 1e-6  # an array of a graph has larger numbers; those of a program are measured by 1
MEMORY, SECONDS = 12 << 30, 240  # that one of them may take
IMPORT = re.compile(r"^(\s*(?:import|from)\s+)mxnet\b", re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan\b|inf\b)")


@dataclass(frozen=True)
class Port:
    """A program or a graph of the table.

    path:    of the file; with `folder`, the files beside it come along.
    edits:   names of shared edits, or [regular expression, text] of its own.
    data:    "kind:folder" of `port_data`, seen from the program.
    inputs:  of a graph: name -> shape.
    settings: of MXNet, as its environment has them.
    layers:  whether each layer of an int8 graph is compared, too, for MXNet's own inputs.
    reason:  why it does not run or not agree, if it does not.
    """

    name: str
    kind: str
    repository: str
    path: str
    commit: str
    license: str
    folder: str = ""
    edits: tuple = ()
    data: tuple = ()
    args: tuple = ()
    inputs: dict = field(default_factory=dict)
    settings: dict = field(default_factory=dict)
    layers: bool = False
    parameters: str = ""
    note: str = ""
    reason: str = ""


def read_table():
    """(ports, shared edits) of the table."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    ports = []
    for kind in ("program", "graph"):
        for row in table[kind]:
            known = table["repositories"][row["repository"]]
            ports.append(Port(kind=kind, **(known | row)))
    return ports, table["edits"]


# -- sources ---------------------------------------------------------------------------
class Missing(Exception):
    """There is no clone, or not that commit or file in it."""


def git(clones, port, *command):
    place = clones / port.repository
    if not place.is_dir():
        raise Missing(f"{place} is not there")
    done = subprocess.run(["git", "-C", place, *command], capture_output=True)
    if done.returncode:
        raise Missing(f"{port.repository}: {done.stderr.decode().strip()}")
    return done.stdout


def text_of(clones, port, path):
    return git(clones, port, "show", f"{port.commit}:{path}")


def files_of(clones, port):
    """Paths of a program's Python files: its own, and those of its folder."""
    if not port.folder:
        return [port.path]
    listed = git(clones, port, "ls-tree", "-r", "--name-only", "-z", port.commit, port.folder + "/")
    return [p for p in listed.decode().split("\0") if p.endswith(".py")]


def as_program(path, text):
    """A notebook's or a page's cells as one text."""
    if path.endswith(".ipynb"):
        cells = [
            "".join(cell["source"])
            for cell in json.loads(text)["cells"]
            if cell["cell_type"] == "code"
        ]
    elif path.endswith(".md"):
        cells = re.findall(r"^```\{?\.?python\}?\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    else:
        return text
    lines = "\n".join(f"# %% cell\n{cell}" for cell in cells).splitlines()
    return "\n".join("pass" if s.lstrip()[:1] in "%!" and s.strip() else s for s in lines) + "\n"


def edited(texts, edits, shared):
    """Texts with all edits done; raises ValueError for one that fits nothing."""
    for edit in edits:
        pattern, new = shared[edit]["edit"] if isinstance(edit, str) else edit
        counted = [re.subn(pattern, new, text, flags=re.MULTILINE) for text in texts.values()]
        if not sum(n for _, n in counted):
            raise ValueError(f"the edit {edit!r} fits nothing")
        texts = dict(zip(texts, (text for text, _ in counted), strict=True))
    return texts


# -- runs ------------------------------------------------------------------------------
def python_of(name):
    """The path of a Python of `envs.py`, made if there is none."""
    done = subprocess.run([sys.executable, ENVS, name], check=True, text=True, capture_output=True)
    return done.stdout.strip()


def without_network():
    """What to put before a command, where the system can take the network from a process."""
    command = ["unshare", "--user", "--net"]
    works = shutil.which("unshare") and not subprocess.run([*command, "true"]).returncode
    return command if works else []


def run(python, job, seconds=SECONDS):
    """(texts, arrays) of a job, by a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        place, answers = Path(folder, "job.json"), Path(folder, "answers.npz")
        place.write_text(json.dumps(job | {"memory": MEMORY, "seconds": seconds}))
        home = {"HOME": job["folder"], "MXNET_HOME": str(Path(job["folder"], ".mxnet"))}
        quiet = {"MPLBACKEND": "Agg", "MINIHYBRID_WAIT": "1", "PYTHONHASHSEED": "0"}
        # oneDNN's fusion of a convolution and a sum answers wrongly where both read one array.
        quiet["MXNET_SUBGRAPH_BACKEND"] = "NONE"
        cache = {"MINIHYBRID_CACHE_DIR": os.environ.get("MINIHYBRID_CACHE_DIR", "")}
        if not cache["MINIHYBRID_CACHE_DIR"]:
            cache = {"MINIHYBRID_CACHE_DIR": str(Path.home() / ".cache" / "minihybrid")}
        command = [*without_network(), python, "-m", "beside.port_child", place, answers]
        try:
            done = subprocess.run(
                command,
                cwd=HERE,
                env=os.environ | home | quiet | cache | job.get("settings", {}),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=2 * seconds,
            )
        except subprocess.TimeoutExpired:
            return {"printed": "", "error": f"no answer in {2 * seconds} s"}, {}
        if not answers.exists() or not answers.stat().st_size:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return {"printed": "", "error": f"ended with {done.returncode}: {last}"}, {}
        with np.load(answers) as stored:
            arrays = {name: stored[name] for name in stored.files}
        return json.loads(str(arrays.pop("texts"))) | {"stderr": done.stderr}, arrays


def run_both(port, clones, shared, pythons):
    """The answers of both engines: [(texts, arrays) ours, MXNet's]."""
    work = graph_jobs if port.kind == "graph" else program_jobs
    with tempfile.TemporaryDirectory() as folder:
        jobs = [
            job | {"settings": port.settings} for job in work(port, clones, shared, Path(folder))
        ]
        answers = [run(pythons[job["engine"]], job) for job in jobs]
    return answers[::-1]


def from_itself(port, clones, shared, python, theirs):
    """The largest difference of MXNet to MXNet, whose numbers are moved by a rounding."""
    gaps = []
    for shake in range(1, SHAKES + 1):
        with tempfile.TemporaryDirectory() as folder:
            job = next(program_jobs(port, clones, shared, Path(folder)))
            gaps.append(judged(run(python, job | {"shake": shake}), theirs)["difference"])
    return None if None in gaps else max(gaps)


def program_jobs(port, clones, shared, folder):
    """MXNet's job and ours: the same texts, but for the imports."""
    paths = files_of(clones, port)
    texts = {p: as_program(p, text_of(clones, port, p).decode("utf-8-sig")) for p in paths}
    texts = {p: "\n".join(text.splitlines()) + "\n" for p, text in texts.items()}  # old Macs' ends
    texts = edited(texts, port.edits, shared)
    main = port.path
    if not main.endswith(".py"):
        main += ".cells.py"
        texts = {main: texts[port.path]}
    for engine in ("mxnet", "minihybrid"):
        home = folder / engine
        for path, text in texts.items():
            place = home / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text if engine == "mxnet" else IMPORT.sub(rf"\1{engine}", text))
        for data in port.data:
            kind, _, where = data.partition(":")
            start = home if where.startswith("~") else (home / main).parent
            where = start / where.removeprefix("~/")
            where.mkdir(parents=True, exist_ok=True)
            WRITERS[kind](where)
        yield dict(kind="program", engine=engine, folder=str(home), main=main, args=list(port.args))


def graph_jobs(port, clones, shared, folder):
    """MXNet's job, which writes the parameters, and ours."""
    symbol, parameters = folder / "net-symbol.json", ""
    symbol.write_bytes(text_of(clones, port, port.path))
    if port.parameters:
        parameters = folder / "given.params"
        parameters.write_bytes(text_of(clones, port, port.parameters))
    for engine in ("mxnet", "minihybrid"):
        yield dict(
            kind="graph",
            engine=engine,
            folder=str(folder),
            symbol=str(symbol),
            parameters=str(parameters),
            written=str(folder / "net-0000.params"),
            inputs=port.inputs,
            layers=str(folder / "layers.npz") if port.layers else "",
        )


# -- the judgement ---------------------------------------------------------------------
def distance(ours, theirs, least=1):
    """The largest difference, as a share of the largest number, or of `least`."""
    if ours.shape != theirs.shape:
        return math.inf
    a, b = (np.asarray(v, np.float64) for v in (ours, theirs))
    if not a.size:
        return 0.0
    with np.errstate(all="ignore"):
        if not np.array_equal(np.isfinite(a), np.isfinite(b)):
            return math.inf
        good = np.isfinite(a)
        return float(np.abs(a - b)[good].max(initial=0) / np.abs(b[good]).max(initial=least))


def numbers_in(text):
    """A text without numbers and spaces, and its numbers; lines of times are passed over."""
    text = re.sub(r"(?i)^.*(samples/s|\btime\b|\bsec|elapsed|time cost).*$", "", text, flags=re.M)
    text = re.sub(r"\b0x[0-9a-f]+|\bat \w+>", "", text)
    text = re.sub(r"<class '[\w.]*\.(\w+)'>", r"\1", text)  # modules have other names
    text = re.sub(r"\bnp\.(?:float|int|uint)\d+\(([^()]*)\)", r"\1", text)  # NumPy 2
    numbers = np.array([float(n) for n in NUMBER.findall(text)])
    return "".join(NUMBER.sub("#", text).split()), numbers


def judged(ours, theirs, least=1):
    """What is to be said of the answers of both, as the results have it."""
    (texts, arrays), (texts_there, arrays_there) = ours, theirs
    verdict = {"outcome": "agrees", "error": texts["error"], "mxnet_error": texts_there["error"]}
    (words, printed), (words_there, printed_there) = (
        numbers_in(t["printed"]) for t in (texts, texts_there)
    )
    gaps = {"printed": distance(printed, printed_there)} if len(printed_there) else {}
    for name in sorted(arrays_there):
        there = name in arrays
        gaps[name] = distance(arrays[name], arrays_there[name], least) if there else math.inf
    worst = max(gaps, key=gaps.get, default=None)
    verdict["compared"] = len(printed_there) + sum(a.size for a in arrays_there.values())
    verdict["difference"] = gaps.get(worst)
    verdict["worst"] = worst
    verdict |= {key: texts[key] for key in LAYERED if key in texts}
    if texts_there["error"]:
        verdict["outcome"] = "mxnet fails" if texts["error"] else "runs here alone"
    elif texts["error"]:
        verdict["outcome"] = "fails"
    elif words != words_there:
        verdict["outcome"] = "prints other words"
    elif not verdict["compared"]:
        verdict["outcome"] = "compares nothing"
    elif not verdict["difference"] <= AGREES:
        verdict["outcome"] = "differs"
    if verdict["difference"] == math.inf:
        verdict["difference"] = None
    return verdict


def run_again(names, clones, save=True):
    """Run ports, print what was found, and enter it into the results."""
    ports, shared = read_table()
    pythons = {"minihybrid": sys.executable, "mxnet": python_of("ports")}
    for port in ports:
        if names and not any(re.search(name, port.name) for name in names):
            continue
        ours, theirs = run_both(port, clones, shared, pythons)
        verdict = judged(ours, theirs, least=TINY if port.kind == "graph" else 1)
        if port.kind == "program" and verdict["outcome"] == "differs":
            verdict["itself"] = from_itself(port, clones, shared, pythons["mxnet"], theirs)
        print(f"{port.name}: {verdict}", flush=True)
        yield port, ours, theirs, verdict
        if save:
            results = (read_results() if RESULTS.exists() else {}) | {port.name: verdict}
            kept = {port.name: results[port.name] for port in ports if port.name in results}
            RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def read_results():
    """name -> what was found, as `judged` gives it."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def main():
    """Run those of the table whose names hold one of the texts, or all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("clones", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--show", action="store_true", help="print what both print")
    args = parser.parse_args()
    for _port, *answers, _found in run_again(args.names, args.clones):
        for texts, _ in answers if args.show else ():
            print("-" * 40, texts["printed"][-3000:], texts.get("stderr", "")[-2500:], sep="\n")


if __name__ == "__main__":
    main()
