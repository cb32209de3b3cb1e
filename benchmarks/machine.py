"""What a reader must know of the machine to read the numbers."""

import os
import platform
from datetime import date
from pathlib import Path


def describe():
    """{"cpu": ..., "cores": ..., "system": ..., "python": ..., "date": ...}"""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "date": date.today().isoformat(),
    }


def _cpu_model():
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def limits(n_threads):
    """Environment variables that hold every rival to `n_threads` of this processor."""
    found = dict.fromkeys(
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
    return {**found, **no_gpu, "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={eigen}"}
