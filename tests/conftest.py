"""Fixtures shared by all tests."""
import os

import envs
import numpy as np
import poison
import pytest


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
