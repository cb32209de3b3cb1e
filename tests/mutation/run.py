"""Does a test fail when the code is wrong? `make mutants` plants faults and counts.

    python -m mutation.run [--count 60] [--seed 1] [--room passes] [--watch lines.json]

A mutant is one small change (`mutants.py`). The tests that run the changed line are
tried on it, the quickest of each kind first, until one fails or `BUDGET_S` is spent. A
mutant that lives is printed; `judged.toml` has those that mean the same, with the
reason, and they are not counted.
What is left out: two changes at once; tests of built pages and of other toolchains.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from itertools import zip_longest
from pathlib import Path

from mutation.mutants import ROOMS, draw

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUDGET_S = 60     # processor time of the tests of one mutant, as they take without it
TIMEOUT_S = 600   # a mutant that takes longer hangs: that is seen, too
LAWS = ("test_ops_laws", "test_graph_laws", "test_programs", "test_reductions",
        "test_convolution", "test_products", "test_indexing", "test_norms", "test_np",
        "test_ieee", "test_whole_numbers", "test_plain", "test_random_nets",
        "test_memory", "test_states", "test_serial", "test_mxnet_files",
        "test_onnx_import", "test_onnx_export", "test_onnx_round_trip",
        "test_harmful_files", "test_fuzz_corpus", "test_trust", "test_nd", "test_sym",
        "test_errors", "test_mistakes", "test_losses", "test_optimizers",
        "test_autograd", "test_standalone", "test_explain", "test_gpu_laws",
        "test_gpu_loops", "test_gpu_rows", "test_gpu_products", "test_gluon",
        "test_gluon2", "test_lenet", "test_fused_convolution", "test_cache",
        "test_scalar", "test_rows", "test_behind_and_before")


def watched(path):
    """Which test runs which line; found once by running the tests that look."""
    if not Path(path).exists():
        files = [f"tests/{name}.py" for name in LAWS
                 if (ROOT / "tests" / f"{name}.py").exists()]
        _pytest(ROOT, ["-p", "mutation.watch", "--watch", path, *files], None)
    return json.loads(Path(path).read_text())


def tests_of(mutant, seen):
    """The tests that run the changed line, one of each kind in turn, within the budget.

    A line of a record is run when the package is imported; then it is the tests that
    name the operator.
    """
    found = seen["lines"].get(mutant.module, {}).get(str(mutant.line), [])
    if not found:
        names = re.findall(r'register\("(\w+)"|unary\("(\w+)"|binary\("(\w+)"',
                           "\n".join(mutant.source.splitlines()[:mutant.line]))
        name = next(filter(None, names[-1]), None) if names else None
        word = re.compile(rf"(?<![A-Za-z0-9]){re.escape(name or '?')}(?![A-Za-z0-9])")
        found = [t for t in seen["times"] if word.search(t)]
    if not found:
        anywhere = seen["lines"].get(mutant.module, {}).values()
        found = list(dict.fromkeys(t for tests in anywhere for t in tests))
    kinds = {}
    for test in sorted(found, key=seen["times"].get):
        kinds.setdefault(test.partition("[")[0], []).append(test)
    turns = [t for turn in zip_longest(*kinds.values()) for t in turn if t]
    chosen, spent = [], 0.0
    for test in turns:
        spent += seen["times"][test]
        if spent > BUDGET_S:
            break
        chosen.append(test)
    return chosen[:400] or turns[:1]


def tried(mutant, tests, folder):
    """What became of a mutant: "killed" by a test, or it "lives"."""
    target = folder / "minihybrid" / mutant.module
    good = target.read_text("utf-8")
    target.write_text(mutant.source, "utf-8")
    try:
        code = _pytest(folder, ["-x", *tests], TIMEOUT_S)
    finally:
        target.write_text(good, "utf-8")
    return "lives" if code == 0 else "killed"


def _pytest(folder, args, timeout):
    """The exit code of pytest; 1 where it hangs."""
    paths = [str(folder), str(folder / "tests")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
               "-p", "no:xdist", *args]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0",
                        "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        return subprocess.run(command, cwd=folder, env=env, timeout=timeout,
                              stdout=subprocess.DEVNULL).returncode
    except subprocess.TimeoutExpired:
        return 1


def judged():
    """(module, line before, line after) -> why the change is none."""
    rows = tomllib.loads((HERE / "judged.toml").read_text())["same"]
    return {(r["module"], r["before"], r["after"]): r["why"] for r in rows}


def main():
    """Draw, plant, count."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=60, help="mutants of each room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--room", action="append", choices=[*ROOMS])
    parser.add_argument("--watch", default="mutation-lines.json",
                        help="which test runs which line; made if it is not there")
    given = parser.parse_args()
    seen, same, scores = watched(given.watch), judged(), {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("minihybrid", "tests", "benchmarks", "book", "notebooks"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns(
                "__pycache__", "envs", "results"))
        for file in (*ROOT.glob("*.*"), ROOT / "Makefile"):
            shutil.copy(file, folder)
        for room in given.room or ROOMS:
            score = scores[room] = Counter()
            for mutant in draw(room, given.count, given.seed):
                known = same.get((mutant.module, mutant.before, mutant.after))
                found = "same" if known else tried(
                    mutant, tests_of(mutant, seen), folder)
                score[found] += 1
                if found == "lives":
                    print(f"LIVES {mutant}", flush=True)
                print(f"{room}: {dict(score)}", file=sys.stderr, flush=True)
    print(f"\nseed {given.seed}\n{'room':18}{'mutants':>8}{'same':>6}{'killed':>8}"
          f"{'live':>6}{'score':>8}")
    for room, score in [*scores.items(), ("all", sum(scores.values(), Counter()))]:
        tried_ = score["killed"] + score["lives"]
        print(f"{room:18}{score.total():8}{score['same']:6}{score['killed']:8}"
              f"{score['lives']:6}{score['killed'] / max(tried_, 1):8.0%}")


if __name__ == "__main__":
    main()
