"""Fixtures shared by all tests, and the choice of those that are quick."""
import os
import subprocess
import sys
import time
from collections import Counter
from itertools import groupby
from random import Random

import envs
import numpy as np
import poison
import pytest

CASES, SHARE_S = 60, 0.5  # of one test, with --quick


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true",
                     help="no test marked slow; of the others some cases, by chance")


def kind(item):
    """The test, without the case."""
    return item.nodeid.partition("[")[0]


def pytest_collection_modifyitems(config, items):
    """With --quick, keep a few cases of each test that is not slow."""
    if config.getoption("--quick"):
        kept = []
        for name, cases in groupby(list(items), kind):  # each law other operators
            cases = [c for c in cases if not any(map(c.get_closest_marker, LATER))]
            kept += Random(name).sample(cases, min(CASES, len(cases)))
        config.hook.pytest_deselected(items=[i for i in items if i not in set(kept)])
        items[:] = kept


LATER = ("slow", "elsewhere")  # marks of what --quick leaves to others
SPENT = Counter()  # seconds of the cases of each test


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Note the time, of which --quick gives each test a share."""
    start = time.perf_counter()
    try:
        return (yield)
    finally:
        SPENT[kind(item)] += time.perf_counter() - start


@pytest.fixture(autouse=True)
def quickly(request, monkeypatch):
    """With --quick, the first cases are enough, and no test starts a process."""
    if not request.config.getoption("--quick"):
        return
    if SPENT[kind(request.node)] > SHARE_S:
        pytest.skip("--quick: the cases before it are enough")

    def watched(self, *args, start=subprocess.Popen.__init__, **more):
        caller = sys._getframe(1)
        while caller.f_globals["__name__"] == "subprocess":
            caller = caller.f_back
        if not caller.f_globals["__name__"].startswith("minihybrid."):
            pytest.fail("this test starts a process: mark it `slow`")
        start(self, *args, **more)

    monkeypatch.setattr(subprocess.Popen, "__init__", watched)


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory):
    """Compile from scratch: an old entry of the user's cache must not help a test."""
    base = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        # One for all workers: else each compiles what the others have compiled.
        path = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"
        path.mkdir(mode=0o700, exist_ok=True)
        patch.setenv("MINIHYBRID_CACHE_DIR", str(path))
        patch.setenv("MINIHYBRID_WAIT", "1")  # for kernels: NumPy might answer first
        patch.setenv("TQDM_DISABLE", "1")  # whether bars show depends on the time
        yield path


@pytest.fixture(scope="session", autouse=True)
def poisoned_memory():
    """What a plan does not write is NaN, or -1."""
    with poison.plans():
        yield


@pytest.fixture(autouse=True)
def nothing_is_installed(request, monkeypatch, tmp_path_factory):
    """`make test` needs requirements.txt only: other environments are for `elsewhere`.
    """
    if not request.node.get_closest_marker("elsewhere"):
        def refuse(*command, **variables):
            pytest.fail("this test makes an environment: mark it `elsewhere`")
        monkeypatch.setattr(envs, "_run", refuse)
        monkeypatch.setattr(envs, "HERE", tmp_path_factory.getbasetemp() / "envs")


@pytest.fixture
def rng():
    """Random numbers, the same in every run."""
    return np.random.default_rng(0)
