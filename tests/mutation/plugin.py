"""A pytest plugin for the tests that run on a mutant; light, as it runs often.

Tests find their kernels in one folder: those that a mutant does not change need not be
made again. Their names tell the compiler from others by the modules that it may load;
with `--makers` it is the compiler of the tree without the mutant.
"""

import contextlib
import os
from pathlib import Path

import pytest


def pytest_addoption(parser):
    parser.addoption("--kernels", help="where compiled kernels are kept")
    parser.addoption("--makers", help="what names of kernels say of the compiler")
    parser.addoption("--failed", help="write which tests failed")


def pytest_configure(config):
    if config.getoption("--failed"):
        config.pluginmanager.register(Failed(config.getoption("--failed")))


@pytest.fixture(scope="session", autouse=True)
def kernels(request):
    """Instead of the folder that the tests have of their own."""
    with contextlib.suppress(pytest.FixtureLookupError):
        request.getfixturevalue("private_cache")  # examples of docstrings have none
    from minihybrid.codegen import cache  # not before its lines are watched

    os.environ["MINIHYBRID_CACHE_DIR"] = request.config.getoption("--kernels")
    if makers := request.config.getoption("--makers"):
        cache._makers = lambda: bytes.fromhex(makers)


class Failed:
    """The tests that fail, and files that cannot be imported."""

    def __init__(self, path):
        self.path = Path(path)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            with self.path.open("a") as file:
                file.write(f"{report.nodeid}\n")

    pytest_collectreport = pytest_runtest_logreport
