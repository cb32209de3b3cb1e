"""What a reader must know of the machine to read the numbers."""

import os
import platform
import re
from datetime import date
from pathlib import Path

WIDE = ("fma", "avx", "amx", "asimd", "sve")  # what decides how fast a product can be
CACHE = ("level", "type", "size")


def describe():
    """{"cpu": ..., "model": ..., "flags": ..., "caches": ..., "cores": ..., ...}"""
    return {
        "cpu": _cpuinfo("model name") or platform.processor() or platform.machine(),
        "model": " ".join(_cpuinfo(key) for key in ("cpu family", "model")).strip(),
        "flags": [flag for flag in _cpuinfo("flags").split() if flag.startswith(WIDE)],
        "caches": _caches(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "date": date.today().isoformat(),
    }


def kind(machine):
    """What two processors of one kind share, as a part of a file's name.

    >>> kind({"cpu": "AMD EPYC", "model": "25 1", "flags": ["avx", "avx2"]})
    'amd-epyc-25-1'
    """
    text = f"{machine['cpu']} {machine.get('model', '')}".lower()
    return "-".join(re.findall(r"[a-z0-9.]+", text))


def _cpuinfo(key):
    """What Linux says of the first core under `key`; "" where it says nothing."""
    path = Path("/proc/cpuinfo")
    for line in path.read_text().splitlines() if path.exists() else ():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return ""


def _caches():
    """Level and kind -> size of the first core's caches, such as {"1 Data": "48K"}."""
    folders = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"))
    read = [{name: (f / name).read_text().strip() for name in CACHE} for f in folders]
    return {f"{one['level']} {one['type']}": one["size"] for one in read}


def limits(n_threads):
    """Environment variables that hold every rival to `n_threads` of this processor."""
    variables = dict.fromkeys(
        [
            "MINIHYBRID_NUM_THREADS",
            "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "MKL_NUM_THREADS",
            "NUMBA_NUM_THREADS",
            "TF_NUM_INTRAOP_THREADS",
            "TF_NUM_INTEROP_THREADS",
            "NUM_CPU_THREADS",  # the last is tinygrad's
            "NPROC",
        ],  # sizes the thread pool of XLA
        str(n_threads),
    )
    eigen = "true" if n_threads > 1 else "false"
    no_gpu = {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu", "DEV": "CPU"}
    return {**variables, **no_gpu, "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={eigen}"}
