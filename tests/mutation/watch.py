"""A pytest plugin that notes which test runs which lines, and how long it takes.

    python -m pytest -p mutation.watch --watch lines.json ...

Of a test with many cases those are run that fit into `SHARE_S`, drawn by chance; the
others are noted with the mean's time, since their names may say what they are about.
"""

import json
import time
from collections import Counter
from itertools import groupby
from random import Random

import coverage
import pytest
from mutation.mutants import AREAS, PACKAGE

SHARE_S = 2.0  # for the cases of one test
KINDS = 3  # so many cases of a test are kept with a line, the quickest


def pytest_addoption(parser):
    parser.addoption("--watch", help="write which test runs which lines")


def pytest_configure(config):
    config.pluginmanager.register(Watch(config.getoption("--watch")))


def kind(test):
    """The test, without the case."""
    return test.partition("[")[0]


class Watch:
    """Each test is a context of coverage; the answer is kept from line to tests."""

    def __init__(self, path):
        self.path, self.times, self.spent, self.left = path, {}, Counter(), []
        self.coverage = coverage.Coverage(
            data_file=None,
            config_file=False,
            include=[str(PACKAGE / pattern) for p in AREAS.values() for pattern in p],
        )
        self.coverage.set_option("run:disable_warnings", ["no-data-collected"])
        self.coverage.start()

    def pytest_collection_modifyitems(self, items):
        cases = [list(group) for _, group in groupby(items, lambda i: kind(i.nodeid))]
        for group in cases:
            Random(0).shuffle(group)
        items[:] = [item for group in cases for item in group]

    def pytest_runtest_setup(self, item):
        if self.spent[kind(item.nodeid)] > SHARE_S:
            self.left.append(item.nodeid)
            pytest.skip("the cases before it are enough")

    def pytest_runtest_logstart(self, nodeid):
        self.coverage.switch_context(nodeid)
        self.start = time.perf_counter()

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            self.times[report.nodeid] = 0.0  # what fails, or is skipped, sees nothing

    def pytest_runtest_logfinish(self, nodeid):
        spent = time.perf_counter() - self.start
        self.spent[kind(nodeid)] += spent
        if nodeid in self.times:
            self.times[nodeid] = round(spent, 3)
        self.coverage.switch_context("")

    def pytest_sessionfinish(self):
        self.coverage.stop()
        n_run = Counter(map(kind, self.times))
        for test in self.left:
            if n := n_run[kind(test)]:
                self.times[test] = round(self.spent[kind(test)] / n, 3)
        data, lines = self.coverage.get_data(), {}
        for path in data.measured_files():
            module = path.removeprefix(f"{PACKAGE}/")
            lines[module] = {
                line: self._quickest(tests) for line, tests in data.contexts_by_lineno(path).items()
            }
        with open(self.path, "w") as file:
            json.dump({"times": self.times, "lines": lines}, file)

    def _quickest(self, tests):
        """Some cases of each test."""
        chosen, many = [], Counter()
        for test in sorted(self.times.keys() & set(tests), key=self.times.get):
            many[kind(test)] += 1
            if many[kind(test)] <= KINDS:
                chosen.append(test)
        return chosen
