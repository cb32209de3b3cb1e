"""What a program pays before its first line of work: the import, and the first calls.

    python benchmarks/imports.py                  # about a minute
    python benchmarks/imports.py --repeats 5

Prints seconds of the processor for whole processes that take turns, so that a busy machine
slows all of them alike, and how often the time of `import numpy`. A turn that is not
counted comes first: in it Python keeps what it has compiled, as it does for a user.
"""

import argparse
import os
import statistics
import sys

PROGRAMS = {
    "import numpy": "import numpy",
    "import minihybrid": "import minihybrid",
    "first eager call": "from minihybrid import nd; nd.ones((2, 3)) + 1",
    "first hybridized call": """
from minihybrid import nd
from minihybrid.gluon import nn

net = nn.HybridSequential()
net.add(nn.Dense(4, activation="relu"), nn.Dense(2))
net.initialize()
net.hybridize()
net(nd.ones((2, 3)))
""",
}


def processor_s(code):
    """The processor's seconds of a process that runs a program and ends, its system's too."""
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    process = os.posix_spawn(sys.executable, [sys.executable, "-c", code], variables)
    _, status, used = os.wait4(process, 0)
    if status:
        raise SystemExit(f"this program failed: {code}")
    return used.ru_utime + used.ru_stime


def measure(repeats):
    """Name of a program -> its seconds, one of each turn."""
    seconds = {name: [] for name in PROGRAMS}
    for _ in range(1 + repeats):
        for name, code in PROGRAMS.items():
            seconds[name].append(processor_s(code))
    return {name: times_s[1:] for name, times_s in seconds.items()}


def table(seconds):
    """The medians, and how often that of `import numpy`."""
    medians = {name: statistics.median(times_s) for name, times_s in seconds.items()}
    unit = medians["import numpy"]
    return "\n".join(f"{n:22} {s * 1000:5.0f} ms {s / unit:5.2f}" for n, s in medians.items())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=15)
    print(table(measure(parser.parse_args().repeats)))
