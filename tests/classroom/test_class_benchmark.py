"""The benchmark of a class counts harm: each planted fault is seen, and nothing where is none."""

import json
import subprocess
import sys

import faulty_grader
import pytest

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux adopts orphans"),
]
SEEN_AS = {
    "none": "",
    "marks": "marks_changed",
    "row": "submissions_lost",
    "process": "processes_left",
    "folder": "folders_left",
}


@pytest.mark.parametrize("fault", SEEN_AS)
def test_each_planted_fault_is_counted(fault):
    words = [sys.executable, faulty_grader.__file__, fault]
    kills = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    assert kills.pop("number") == 2
    assert {key for key, count in kills.items() if count} == {SEEN_AS[fault]} - {""}
