"""What the fuzzer found once stays repaired, and a few new changes are tried each time.

`make fuzz` tries millions; tests/fuzz/README.md says how many have been tried.
"""

import functools
import json
import resource
import struct
from pathlib import Path
from random import Random

import pytest
from fuzz import targets
from fuzz.mutate import MUTATORS
from fuzz.seeds import seeds
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minihybrid.core.op import HybridError

CORPUS = sorted((Path(__file__).parents[1] / "fuzz" / "corpus").iterdir())
SLOW_S = 20  # an alarm for hangs; how long a test takes depends on the machine


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setattr(targets, "LIMIT_S", SLOW_S)


def try_bytes(target, data):
    if target == "onnx":
        pytest.importorskip("onnx", reason="onnx is not installed")
    finding = targets.tried(target, data)
    assert finding is None, finding


@pytest.mark.parametrize("path", CORPUS, ids=lambda p: p.name)
def test_what_was_found_once_stays_repaired(path):
    try_bytes(path.name.split("-")[0], path.read_bytes())


@functools.cache
def good_files(target):
    return seeds(target)


@pytest.mark.parametrize("target", MUTATORS)
def test_good_files_are_read(target):
    """Else the changed ones would fail at their beginning and try nothing."""
    if target == "onnx":
        pytest.importorskip("onnx", reason="onnx is not installed")
    refused = 0
    for data in good_files(target)[::7]:
        try:
            targets.TARGETS[target](data)
        except HybridError:
            refused += 1
    assert refused <= len(good_files(target)) // 7 // 10


@pytest.mark.slow
@pytest.mark.parametrize("target", MUTATORS)
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,  # `make fuzz` searches
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_changed_files_are_read_or_refused(target, data):
    file = data.draw(st.sampled_from(good_files(target)))
    rng = Random(data.draw(st.integers(0, 2**32)))
    for _ in range(data.draw(st.integers(1, 3))):
        file = MUTATORS[target](file, rng)
    try_bytes(target, file)


@pytest.mark.parametrize(
    "target, data, expected",
    [
        ("params", b"", None),
        ("graph", b'{"nodes": []}', None),
        ("graph", "PLANTED", "KeyError: 'PLANTED'"),
        ("graph", "WAIT", "s of processor time"),
        ("graph", "GROW", "MB of memory"),
    ],
)
def test_the_search_sees_what_is_planted(target, data, expected, monkeypatch):
    """An error that is not ours, a second of work, and 300 MB are findings."""

    def planted(data):
        if data == "WAIT":
            sum(range(10**8))
        if data == "GROW":
            peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            assert bytes(peak + targets.LIMIT_BYTES) + b"x"  # beyond earlier tests'
        raise KeyError(data)

    if isinstance(data, str):
        monkeypatch.setattr(targets, "LIMIT_S", 0.1)
        monkeypatch.setitem(targets.TARGETS, target, planted)
    finding = targets.tried(target, data)
    assert finding is None if expected is None else expected in finding


@pytest.mark.parametrize("target", MUTATORS)
def test_changes_are_many_and_repeat_with_their_seed(target):
    file = good_files(target)[-1]
    made = [MUTATORS[target](file, Random(seed)) for seed in range(40)]
    assert made == [MUTATORS[target](file, Random(seed)) for seed in range(40)]
    assert len(set(made)) > 30 and file not in made[:1]
    if target == "graph":
        assert sum(is_json(data) for data in made) > 30
    if target == "params":
        marks = [struct.unpack_from("<Q", data)[0] for data in made if len(data) > 8]
        assert marks.count(0x112) > 30


def is_json(data):
    try:
        return bool(json.loads(data))
    except ValueError:
        return False
