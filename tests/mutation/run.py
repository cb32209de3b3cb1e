"""Does a test fail when the code is wrong? `make mutants` plants faults and counts.

    python -m mutation.run [--count 60] [--seed 1] [--area passes] [--watch lines.json]

A mutant is one small change (`mutants.py`). The tests that run the changed line are
tried on it, the quickest of each kind first, until one fails or `BUDGET_S` is spent. A
mutant that lives is printed; `judged.toml` has those that mean the same, with the
reason, and they are not counted. Which test runs which line is kept in a file, and
found again for files of tests that have changed; delete it when the engine has.
What is left out: two changes at once, and the tests in `NOT_ASKED`.
"""

import argparse
import ast
import compileall
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path

from mutation.mutants import AREAS, PACKAGE, draw
from mutation.watch import kind

from minihybrid.codegen.cache import _makers

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUDGET_S = 20  # of the tests of one mutant, as they take without it
TIMEOUT_S = 300  # a mutant that takes longer hangs: that is seen, too
NOT_RUN = "tests cannot be collected"  # with a mutant: it is seen
NOT_ASKED = {  # tests that have no say, and why
    "they compare texts of the package, which every mutant changes": (
        "layout lines matrix notebooks_static ptx_of_the_book readme sanitize show"
    ),
    "they are about what stands beside the engine": (
        "api_names bench benchmarks datasets gpu_benchmark"
    ),
    "they need other frameworks or compilers, or change the folder of kernels": (
        "beside cache gpu_compile torch_oracle"
    ),
}
COMPILER = (
    "core/op.py",
    *(
        f"codegen/{name}.py"
        for name in (
            "cache",
            "cpu/angle",
            "cpu/compiler",
            "cpu/driver",
            "cpu/flat",
            "cpu/objects",
            "cpu/polynomial",
            "cpu/scalar",
            "cpu/team",
            "cpu/vector",
            "device",
            "numpy/special",
            "program",
        )
    ),
)  # what machine code depends on
JUDGES = ("exact_to_4_units", "compiled_draws", "formula_of_special_values")  # of it


def files():
    """Name -> the files of tests that are asked; the examples of docstrings are one."""
    silent = {f"test_{name}" for names in NOT_ASKED.values() for name in names.split()}
    paths_of = {path.stem: [path] for path in sorted((ROOT / "tests").glob("*/test_*.py"))}
    if strange := silent - paths_of.keys():
        raise SystemExit(f"NOT_ASKED has files that are not there: {sorted(strange)}")
    paths_of["docstrings"] = [
        path
        for patterns in AREAS.values()
        for pattern in patterns
        for path in sorted(PACKAGE.glob(pattern))
    ]
    return {name: paths for name, paths in paths_of.items() if name not in silent}


def watched(path):
    """Which test runs which line: found by running the tests of files that changed."""
    seen = json.loads(path.read_text()) if path.exists() else {}
    for name, paths in files().items():
        digest = hashlib.sha256(b"".join(p.read_bytes() for p in paths)).hexdigest()
        if seen.get(name, {}).get("digest") != digest:
            new = path.with_suffix(".new")
            new.unlink(missing_ok=True)
            failed(ROOT, ["-p", "mutation.watch", "--watch", new, *paths], kernels_of(path))
            seen[name] = json.loads(new.read_text()) | {"digest": digest}
            path.write_text(json.dumps(seen))
    return merged(seen.values())


def kernels_of(path):
    """The folder of compiled kernels beside the file of lines."""
    return path.with_suffix(".kernels")


def merged(parts):
    """The answers of several files as one."""
    times, lines = {}, {}
    for part in parts:
        times |= part["times"]
        for module, numbers in part["lines"].items():
            for line, tests in numbers.items():
                lines.setdefault(module, {}).setdefault(line, []).extend(tests)
    return {"times": times, "lines": lines}


def tests_of(mutant, seen):
    """The tests that run the changed line, one of each kind in turn, within the budget.

    Those that name the operator or the function come first: a line of a record is run
    when the package is imported, a function of kernels in the compiler's process, and
    of the cases of a test not all were watched. For what only the compiler runs, those
    that judge its numbers come next, for five times the budget, then all kernels.
    """
    times, lines = seen["times"], seen["lines"]
    word = re.compile(rf"(?<![A-Za-z0-9])({'|'.join(names(mutant))})(?![A-Za-z0-9])")
    named = {test for test in times if word.search(test)}

    def runs(module):
        return {test for tests in lines.get(module, {}).values() for test in tests}

    reaching = set(lines.get(mutant.module, {}).get(str(mutant.line), [])) or runs(mutant.module)
    if not reaching or mutant.module in COMPILER:  # which runs in a process of its own
        named |= {test for test in times if any(word in test for word in JUDGES)}
        reaching |= runs("codegen/cpu/objects.py")
    budget = BUDGET_S * (5 if mutant.module in COMPILER else 1)
    first = within(budget / 2, times, named)
    return list(dict.fromkeys(first + within(budget, times, reaching & times.keys())))


def within(budget, times, tests):
    """The quickest test of each kind, then the next ones, until the time is spent."""
    kinds = {}
    for test in sorted(tests, key=lambda test: (times[test], test)):
        kinds.setdefault(kind(test), []).append(test)
    turns = [t for turn in zip_longest(*kinds.values()) for t in turn if t]
    chosen, spent = turns[:1], 0.0
    for test in turns[:300]:
        spent += times[test]
        if spent < budget:
            chosen.append(test)
    return chosen


def names(mutant):
    """The functions, or else the operator, that a changed line belongs to.

    `_clip_infer` is also of `clip`: the parts of an operator are called so.
    """
    inside = [
        node.name.strip("_")
        for node in ast.walk(ast.parse(mutant.source))
        if isinstance(node, ast.FunctionDef) and node.lineno <= mutant.line <= node.end_lineno
    ]
    before = "\n".join(mutant.source.splitlines()[: mutant.line])
    record = re.findall(r'(?:register|unary|binary)\(\s*"_*(\w+)"', before)[-1:]
    return (
        [*inside, *(name.rpartition("_")[0] for name in inside if "_" in name)] or record or ["-"]
    )


def tried(mutant, tests, folder, kernels):
    """Which test killed a mutant, or what else went wrong; None if it lives."""
    target = folder / "minihybrid" / mutant.module
    good = target.read_text("utf-8")
    target.write_text(mutant.source, "utf-8")
    makers = [] if mutant.module in COMPILER else ["--makers", _makers().hex()]
    try:
        failures = failed(folder, ["-x", *makers, *tests], kernels)
    finally:
        target.write_text(good, "utf-8")
    if failures == [NOT_RUN] and failed(folder, ["--collect-only", *tests], kernels):
        raise SystemExit(f"{NOT_RUN} of {tests}: delete the file of --watch")
    return failures[0] if failures else None


def failed(folder, args, kernels):
    """The tests that fail."""
    with tempfile.TemporaryDirectory() as name:
        note = Path(name) / "failed"
        code = _pytest(folder, ["--failed", note, *args], kernels)
        if note.exists():
            return note.read_text().splitlines()
    return [NOT_RUN] if code in (2, 4, 5) else [f"pytest gave {code}"] if code else []


def _pytest(folder, args, kernels):
    """The exit code of pytest. No plugins but ours: they take longer than the tests."""
    paths = [str(folder), str(folder / "tests")]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--assert=plain",
        "-p",
        "no:cacheprovider",
        "-p",
        "mutation.plugin",
        "--kernels",
        kernels,
    ]
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    run = subprocess.Popen(
        [*command, *args], cwd=folder, env=env, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return run.wait(TIMEOUT_S if "-x" in args else None)
    except subprocess.TimeoutExpired:
        return "no answer: it hangs"
    finally:  # a mutant's compilers may go on for ever
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()


def judged():
    """(module, line before, line after) -> why the change is none."""
    rows = tomllib.loads((HERE / "judged.toml").read_text())["same"]
    return {(r["module"], r["before"], r["after"]): r["why"] for r in rows}


def main():
    """Draw, plant, count."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=60, help="mutants of each area")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--area", action="append", choices=[*AREAS])
    parser.add_argument(
        "--watch",
        default="mutation-lines.json",
        type=Path,
        help="which test runs which line; made if it is not there",
    )
    given = parser.parse_args()
    given.watch = given.watch.absolute()
    seen, same, scores = watched(given.watch), judged(), {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("minihybrid", "tests", "tools", "benchmarks", "book", "notebooks"):
            shutil.copytree(
                ROOT / part,
                folder / part,
                ignore=shutil.ignore_patterns("__pycache__", "envs", "results"),
            )
        for file in filter(Path.is_file, ROOT.iterdir()):
            shutil.copy(file, folder)
        compileall.compile_dir(folder, quiet=2)  # pytest is told to write nothing
        for area in given.area or AREAS:
            score, killers = Counter(), set()
            for mutant in draw(area, given.count, given.seed):
                known = (mutant.module, mutant.before, mutant.after) in same
                killer = (
                    None
                    if known
                    else tried(mutant, tests_of(mutant, seen), folder, kernels_of(given.watch))
                )
                score["same" if known else "killed" if killer else "lives"] += 1
                killers |= {killer} & seen["times"].keys()
                if not known:
                    print(f"{killer or 'LIVES'}: {mutant}", flush=True)
                print(f"{area}: {dict(score)}", file=sys.stderr, flush=True)
            scores[area] = score
            if killers and (wrong := failed(folder, sorted(killers), kernels_of(given.watch))):
                raise SystemExit(f"these fail without a mutant, too: {wrong}")
    print(
        f"\nseed {given.seed}\n{'area':18}{'mutants':>8}{'same':>6}{'killed':>8}"
        f"{'live':>6}{'score':>8}"
    )
    for area, score in [*scores.items(), ("all", sum(scores.values(), Counter()))]:
        tried_ = score["killed"] + score["lives"]
        print(
            f"{area:18}{score.total():8}{score['same']:6}{score['killed']:8}"
            f"{score['lives']:6}{score['killed'] / max(tried_, 1):8.0%}"
        )


if __name__ == "__main__":
    main()
