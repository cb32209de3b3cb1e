"""Coverage-guided fuzzing: `make fuzz` tries every target, ten minutes in all.

    python -m fuzz.run [target ...] [--seconds 200] [--seed 1]

Each target runs in a process of its own under libFuzzer, which keeps what reaches new
lines of the library; the changes are those of `fuzz.mutate`. A finding is printed and
saved in the folder `findings`, and the search goes on; a crash or a hang ends the
process, and libFuzzer saves its input there.
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from random import Random

HERE = Path(__file__).parent
FINDINGS = HERE / "findings"
MEMORY_MB = 4096  # of a process; what asks for more gets a MemoryError
LONGEST = 2**18  # bytes of an input


def fuzz(target, seconds, seed, folder):
    """The process of one target: never returns."""
    import resource

    import atheris

    with atheris.instrument_imports(include=["minihybrid"]):
        from fuzz.mutate import MUTATORS
        from fuzz.seeds import seeds
        from fuzz.targets import tried
    for data in seeds(target):
        (Path(folder) / hashlib.sha1(data).hexdigest()).write_bytes(data)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MB << 20,) * 2)
    warnings.simplefilter("error")
    seen = set()

    def once(data):
        finding = tried(target, data)
        kind = finding and finding[:60]
        if finding and kind not in seen:
            seen.add(kind)
            name = FINDINGS / f"{target}-{hashlib.sha1(data).hexdigest()[:12]}"
            name.write_bytes(data)
            print(f"FINDING {name}: {finding}", file=sys.stderr)

    def changed(data, max_size, seed):
        return MUTATORS[target](data, Random(seed))[:max_size]

    atheris.Setup(
        [
            sys.argv[0],
            folder,
            f"-max_total_time={seconds}",
            f"-seed={seed}",
            f"-max_len={LONGEST}",
            "-len_control=0",
            "-timeout=30",
            "-rss_limit_mb=0",
            "-print_final_stats=1",
            f"-artifact_prefix={FINDINGS}/{target}-",
        ],
        once,
        custom_mutator=changed,
    )
    atheris.Fuzz()


def run(target, seconds, seed):
    """One target in a process of its own: (inputs tried, findings)."""
    FINDINGS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "fuzz.run",
                target,
                "--inside",
                folder,
                f"--seconds={seconds}",
                f"--seed={seed}",
            ],
            cwd=HERE.parent,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "MINIHYBRID_NUM_THREADS": "1"},
        )
        lines, findings = [], 0
        for line in process.stderr:
            lines.append(line)
            findings += line.startswith("FINDING")
            if line.startswith("FINDING"):
                print(line, end="", flush=True)
        process.wait()
    match = re.search(r"number_of_executed_units:\s*(\d+)", "".join(lines))
    if process.returncode or not match:
        print(*lines[-40:], sep="", flush=True)
        findings += 1
    return int(match[1]) if match else 0, findings


def main():
    """Every target in its turn; the exit status says whether anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--seconds", type=int, default=200, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        fuzz(*given.targets, given.seconds, given.seed, given.inside)
    from fuzz.targets import TARGETS

    total = 0
    for target in given.targets or TARGETS:
        count, findings = run(target, given.seconds, given.seed)
        print(
            f"{target}: {count} inputs tried in {given.seconds} s with seed "
            f"{given.seed}, {findings} findings",
            flush=True,
        )
        total += findings
    if not any(FINDINGS.iterdir()):
        FINDINGS.rmdir()
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
