"""The published error rate: how many programs ran, at which commit, with which result.

    rate.save("programs", {...})     # adds a part to benchmarks/results/soak.json

Parts: "programs" by `soak`, "faults" by `mutation.faults`, "mxnet" by `beside`. Each has
the commit and the date of its run; the results page prints them.
"""

import datetime
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATH = ROOT / "benchmarks/results/soak.json"


def save(part: str, numbers: Mapping) -> None:
    """Write one part, and leave the others as they are."""
    found = json.loads(PATH.read_text("utf-8")) if PATH.exists() else {}
    found[part] = {"commit": commit(), "date": datetime.date.today().isoformat(), **numbers}
    PATH.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", "utf-8")


def save_programs(seed: int, number: int, faults: Mapping, ran: Mapping) -> None:
    """Write what a soak found: faults of each kind, programs of each mode."""
    numbers = {
        "seeds": [seed, seed + number - 1],
        "programs": number,
        "modes": dict(sorted(ran.items())),
        "differences": sum(faults.values()),
        "kinds": sorted(", ".join(kind) for kind in faults),
    }
    save("programs", numbers)


def commit() -> str:
    """The commit that runs; a plus sign if files differ from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip()

    return (git("rev-parse", "HEAD") or "unknown") + "+" * bool(
        git("status", "--porcelain", "-uno", "minihybrid", "tests")
    )
