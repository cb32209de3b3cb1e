"""Fixtures shared by all tests, and the choice of those that are quick."""

import gc
import os
import shutil
import subprocess
import sys
import time
import warnings
from collections import Counter
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from random import Random
from tempfile import gettempdir
from zlib import crc32

import envs
import numpy as np
import poisoned_memory
import pytest
from hypothesis import HealthCheck, settings

from minihybrid import random
from minihybrid.codegen import cache

# How long an example takes depends on the machine, and on what else runs there.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")

CASES, SHARE_S = 60, 0.5  # of one test, with --quick
WEEK_S = 7 * 24 * 3600  # how long compiled kernels are kept


def pytest_addoption(parser):
    parser.addoption(
        "--quick",
        action="store_true",
        help="no test marked slow; of the others some cases, by chance",
    )
    parser.addoption(
        "--third",
        type=int,
        choices=range(3),
        help="of the tests marked external, only this third: 0, 1 or 2",
    )


@pytest.fixture(autouse=True)
def patient_grader(request, monkeypatch):
    """Honest code is never too slow for the grader: only tests that set a limit have one."""
    if "classroom" in request.path.parts:
        from minihybrid_course.grading import sandbox

        for name in ("CELL_S", "TEST_S", "ALL_S"):
            monkeypatch.setattr(sandbox, name, 600)


@pytest.fixture(scope="module", autouse=True)
def course_on_the_path(request):
    """Graders started in other environments find the course by its path, as in the Makefile."""
    with pytest.MonkeyPatch.context() as patch:
        if "classroom" in request.path.parts:
            patch.setenv("PYTHONPATH", str(request.config.rootpath / "course"), prepend=os.pathsep)
        yield


def kind(item):
    """The test, without the case."""
    return item.nodeid.partition("[")[0]


def pytest_collection_modifyitems(config, items):
    """Keep a third of the external tests with --third, and a few cases of each with --quick."""
    third = config.getoption("--third")
    if third is not None:
        others = {i for i in items if is_external(i) and crc32(i.nodeid.encode()) % 3 != third}
        config.hook.pytest_deselected(items=[*others])
        items[:] = [item for item in items if item not in others]
    if config.getoption("--quick"):
        kept = []
        for name, cases in groupby(list(items), kind):  # each law other operators
            cases = [c for c in cases if not any(map(c.get_closest_marker, LATER))]
            drawn = Random(name).sample(cases, len(cases))
            is_per_op = cases and cases[0].get_closest_marker("per_op")
            kept += one_of_each(drawn) if is_per_op else drawn[:CASES]
        chosen = set(kept)
        config.hook.pytest_deselected(items=[i for i in items if i not in chosen])
        items[:] = kept


def is_external(item):
    return item.get_closest_marker("external") is not None


def pytest_collection_finish():
    """Tests collect garbage: what stays to the end, 23 000 cases, need not be walked again."""
    gc.collect()
    gc.freeze()


def one_of_each(cases):
    """As few cases as have every operator: of those with the same, the first."""
    actual, seen = [], set()
    for case in cases:
        ops = operators(case)
        if not ops <= seen:
            actual.append(case)
            seen |= ops
    return actual


def operators(case):
    """The operators of a case: `op`, `values`, or those of its samples, `cases`."""
    params = case.callspec.params
    if "values" in params:
        return set(params["values"])
    return {params["op"]} if "op" in params else {sample.op for sample in params["cases"]}


LATER = ("slow", "external")  # marks of what --quick leaves to others
SPENT = Counter()  # seconds of the cases of each test


def makes_an_environment(*command, **variables):
    """Stands for what installs packages, in tests that may not."""
    pytest.fail("this test makes an environment: mark it `external`")


ENVIRONMENTS = envs.HERE, envs._run
NO_ENVIRONMENTS = Path(gettempdir()) / f"no-environments-{os.getpid()}", makes_an_environment


# Hooks and no fixtures, which would cost 20 000 tests a millisecond each.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Random numbers start anew: else a test's would be those that tests before it left.

    `make test` needs requirements.txt only: other environments are for `external`.
    """
    random.seed(0)
    np.random.seed(0)
    envs.HERE, envs._run = ENVIRONMENTS if is_external(item) else NO_ENVIRONMENTS
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Note the time, of which --quick gives each test a share: the first cases are enough."""
    if item.config.getoption("--quick") and SPENT[kind(item)] > SHARE_S:
        if not item.get_closest_marker("per_op"):
            pytest.skip("--quick: the cases before it are enough")
    start = time.perf_counter()
    try:
        return (yield)
    finally:
        SPENT[kind(item)] += time.perf_counter() - start


@pytest.fixture(scope="session", autouse=True)
def no_processes(request):
    """With --quick, no test starts a process."""
    with pytest.MonkeyPatch.context() as patch:
        if request.config.getoption("--quick"):
            patch.setattr(subprocess.Popen, "__init__", watched)
        yield


def watched(self, *args, start=subprocess.Popen.__init__, **more):
    """Start a process, unless a test itself asks for it."""
    caller = sys._getframe(1)
    while caller.f_globals["__name__"] == "subprocess":
        caller = caller.f_back
    if not caller.f_globals["__name__"].startswith("minihybrid."):
        pytest.fail("this test starts a process: mark it `slow`")
    start(self, *args, **more)


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory):
    """Kernels of the tests alone: an entry of the user's cache must not help a test.

    They are kept for the next run, for a kernel's name is a digest of all that makes it.
    """
    base = tmp_path_factory.getbasetemp()
    # One for all workers: else each compiles what the others have compiled.
    fresh = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"
    with pytest.MonkeyPatch.context() as patch:
        path = Path(cache.cache_dir() or fresh) / "tests"
        patch.setenv("MINIHYBRID_CACHE_DIR", str(path))
        patch.setenv("MINIHYBRID_WAIT", "1")  # for kernels: NumPy might answer first
        patch.setenv("TQDM_DISABLE", "1")  # whether bars show depends on the time
        try:
            with warnings.catch_warnings(action="ignore"):
                cache._folder()
        except OSError:  # others may write there, or nobody
            path = fresh
            path.mkdir(mode=0o700, exist_ok=True)
            patch.setenv("MINIHYBRID_CACHE_DIR", str(path))
        for old in map(Path, cache.kept()):
            with suppress(OSError):  # another worker was faster
                if time.time() - old.stat().st_mtime > WEEK_S:
                    old.unlink()
        yield path


@pytest.fixture(scope="session", autouse=True)
def files_in_memory():
    """No test lives through a power failure: to wait for the disk takes 15 ms a file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)  # which refuses what is no open file, too
        yield


@pytest.fixture(scope="session", autouse=True)
def poisoned_plans():
    """What a plan does not write is NaN, or -1."""
    with poisoned_memory.plans():
        yield


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """`once(name, make)`: a folder for all workers, which `make(folder)` fills the first time."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def folder(name, make):
        with envs.locked(base / f"{name}.lock"):
            if not (base / name / "complete").exists():
                shutil.rmtree(base / name, ignore_errors=True)
                (base / name).mkdir()
                make(base / name)
                (base / name / "complete").touch()
        return base / name

    return folder


@pytest.fixture
def rng():
    """Random numbers, the same in every run."""
    return np.random.default_rng(0)
