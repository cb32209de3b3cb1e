"""Fixtures shared by all tests."""
import numpy as np
import poison
import pytest


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory):
    """Compile from scratch: an old entry of the user's cache must not help a test."""
    with pytest.MonkeyPatch.context() as patch:
        path = tmp_path_factory.mktemp("cache")
        patch.setenv("MINIHYBRID_CACHE_DIR", str(path))
        patch.setenv("MINIHYBRID_WAIT", "1")  # for kernels: NumPy might answer first
        patch.setenv("TQDM_DISABLE", "1")  # whether bars show depends on the time
        yield path


@pytest.fixture(scope="session", autouse=True)
def poisoned_memory():
    """What a plan does not write is NaN, or -1."""
    with poison.plans():
        yield


@pytest.fixture
def rng():
    """Random numbers, the same in every run."""
    return np.random.default_rng(0)
