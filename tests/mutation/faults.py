"""Does each tier of tests see a fault in each stage? `make faults` plants them and counts.

    python -m mutation.faults [--tier quick] [--stage memory] [--named]
    python -m mutation.faults --soak        # in the folder tests/

`faults.toml` has the faults, by hand: one or more in each stage between an operator's
record and a trained net. Each is planted in a copy of the package; then the tier's tests
run until one fails, first those of the files that the table names. With `--named` they
alone are asked, in a tenth of the time: what they find the whole tier finds, too.
With `--soak`, the rewritten programs of the soak alone are asked for the faults that are
marked `soak = true`, and the numbers are saved beside its rate. Without a fault the same
programs must have no difference.
`mutation.run` draws small faults by chance instead, and asks all tests.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from contextlib import contextmanager
from pathlib import Path

from programs import rate

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TIERS = {"quick": ["--quick"], "test": ["-m", "not external"]}
PARTS = "minihybrid tests tools benchmarks book notebooks".split()
SOAK = "--programs 400 --nets 0 --seed 0 --stop"
COMMAND = "-m pytest -q -x -n 2 --dist worksteal -p no:cacheprovider -p no:nbval".split()


def first_failure(folder, args):
    """The line that says which test failed first; `None` if all passed."""
    run = subprocess.run(
        [sys.executable, *COMMAND, *args],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(folder)},
    )
    if run.returncode == 0:
        return None
    lines = run.stdout.splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return (failed or lines[-1:] or run.stderr.splitlines()[-1:] or ["no word"])[0]


@contextmanager
def planted(fault, folder):
    """Inside this `with` block, a copy of the package has the fault."""
    target = folder / "minihybrid" / fault["module"]
    good = target.read_text("utf-8")
    if good.count(fault["before"]) != 1:
        raise SystemExit(f"{fault['module']} has not one {fault['before']!r}: mend faults.toml")
    target.write_text(good.replace(fault["before"], fault["after"]), "utf-8")
    try:
        yield
    finally:
        target.write_text(good, "utf-8")


def first_failing_test(fault, tier, folder, named):
    """Which test of a tier sees a fault."""
    with planted(fault, folder):
        files = [f"tests/{name}.py" for name in fault["tests"].split()]
        seen = first_failure(folder, [*TIERS[tier], *files])
        return seen or (None if named else first_failure(folder, TIERS[tier]))


def failure_of_soak(folder):
    """The first random program with a difference; `None` if none has one."""
    run = subprocess.run(
        [sys.executable, "-m", "soak", *SOAK.split()],
        cwd=folder / "tests",
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(folder)},
    )
    lines = run.stdout.splitlines() or run.stderr.splitlines() or ["no word"]
    return lines[-1] if run.returncode else None


def main():
    """Plant each fault, and print who saw it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tier", action="append", choices=[*TIERS])
    parser.add_argument("--stage", action="append")
    parser.add_argument("--named", action="store_true", help="ask the named files only")
    parser.add_argument("--soak", action="store_true", help="ask rewritten programs only")
    given = parser.parse_args()
    faults = tomllib.loads((HERE / "faults.toml").read_text("utf-8"))["fault"]
    faults = [f for f in faults if not given.stage or f["stage"] in given.stage]
    if given.soak:
        faults = [f for f in faults if f.get("soak")]
    seen = dict.fromkeys(["soak"] if given.soak else given.tier or TIERS, 0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in PARTS:
            unused = shutil.ignore_patterns("__pycache__", "envs", "results")
            shutil.copytree(ROOT / part, folder / part, ignore=unused)
        for file in filter(Path.is_file, ROOT.iterdir()):
            shutil.copy(file, folder)
        if given.soak and (difference := failure_of_soak(folder)):
            raise SystemExit(f"without a fault, the soak has a difference: {difference}")
        for fault in faults:
            for tier in seen:
                if given.soak:
                    with planted(fault, folder):
                        test = failure_of_soak(folder)
                else:
                    test = first_failing_test(fault, tier, folder, given.named)
                seen[tier] += test is not None
                what = f"{fault['stage']}, {fault['module']}: {fault['after'].splitlines()[0]}"
                print(f"{tier:6}{test or 'NOT SEEN'}\n      {what}", flush=True)
    if given.soak:
        rate.save("faults", {"planted": len(faults), "caught": seen["soak"]})
    for tier, number in seen.items():
        print(f"make {tier}: {number} of {len(faults)} faults seen")


if __name__ == "__main__":
    main()
