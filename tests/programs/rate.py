"""The published error rate: how many programs ran, at which commit, with which result.

    rate.save("programs", {...})     # adds a part to benchmarks/results/soak.json

Parts: "programs" and "control" by `soak`, "faults" by `mutation.faults`, "mxnet" by `beside`.
Each has the commit and the date of its run; the results page prints them.
"""

import datetime
import json
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATH = ROOT / "benchmarks/results/soak.json"


def save(part: str, numbers: Mapping) -> None:
    """Write one part, and leave the others as they are."""
    stored = json.loads(PATH.read_text("utf-8")) if PATH.exists() else {}
    stored[part] = {"commit": commit(), "date": datetime.date.today().isoformat(), **numbers}
    PATH.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n", "utf-8")


def save_programs(
    seed: int, number: int, faults: Mapping, ran: Mapping, part: str = "programs"
) -> None:
    """Write what a soak found; one that begins where the last ended, at its commit, adds up.

    faults:  kind -> number.
    ran:     mode -> number of programs.
    """
    last = (json.loads(PATH.read_text("utf-8")) if PATH.exists() else {}).get(part, {})
    modes, kinds, begin = Counter(ran), Counter({", ".join(k): n for k, n in faults.items()}), seed
    if last.get("commit") == commit() and last["seeds"][1] == seed - 1:
        modes, kinds, begin = (
            modes + Counter(last["modes"]),
            kinds + Counter(last["kinds"]),
            last["seeds"][0],
        )
    save(
        part,
        {
            "seeds": [begin, seed + number - 1],
            "programs": seed + number - begin,
            "modes": modes,
            "differences": kinds.total(),
            "kinds": kinds,
        },
    )


def commit() -> str:
    """The commit that runs; a plus sign if files differ from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip()

    return (git("rev-parse", "HEAD") or "unknown") + "+" * bool(
        git("status", "--porcelain", "-uno", "minihybrid", "tests", ":!tests/golden/beside.json")
    )
