"""A pytest plugin that notes which test runs which lines, and how long it takes.

    python -m pytest -p mutation.watch --watch lines.json ...
"""

import json
import time

import coverage
from mutation.mutants import PACKAGE, ROOMS


def pytest_addoption(parser):
    parser.addoption("--watch", help="write which test runs which lines")


def pytest_configure(config):
    if config.getoption("--watch"):
        config.pluginmanager.register(Watch(config.getoption("--watch")))


class Watch:
    """Each test is a context of coverage; the answer is kept from line to tests."""

    def __init__(self, path):
        self.path, self.times = path, {}
        self.coverage = coverage.Coverage(
            data_file=None, config_file=False,
            include=[str(PACKAGE / pattern) for p in ROOMS.values() for pattern in p])
        self.coverage.start()

    def pytest_runtest_logstart(self, nodeid):
        self.coverage.switch_context(nodeid)
        self.start = time.process_time()

    def pytest_runtest_logfinish(self, nodeid):
        self.times[nodeid] = round(time.process_time() - self.start, 3)
        self.coverage.switch_context("")

    def pytest_sessionfinish(self):
        self.coverage.stop()
        data, lines = self.coverage.get_data(), {}
        for path in data.measured_files():
            module = path.removeprefix(f"{PACKAGE}/")
            lines[module] = {line: sorted(filter(None, tests), key=self.times.get)
                             for line, tests in data.contexts_by_lineno(path).items()}
        with open(self.path, "w") as file:
            json.dump({"times": self.times, "lines": lines}, file)
