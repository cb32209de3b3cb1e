"""The PTX that chapter 18 shows is that of today's kernels."""

import json
import os
import subprocess

import envs
import make_ptx
import pytest

STORED = json.loads(make_ptx.FILE.read_text())
COUNTED = "ld.global", "st.global", "bar.sync", "fma.rn", ".f64"


def counts(actual):
    """What the chapter says of a kernel's PTX."""
    return {what: actual["ptx"].count(what) for what in COUNTED} | {
        "registers": actual["registers"],
        "spilled_bytes": actual["spilled_bytes"],
    }


def test_stored_texts_are_those_of_today():
    assert {name: actual["text"] for name, actual in STORED.items()} == make_ptx.texts()


@pytest.mark.external
@pytest.mark.parametrize("environment", envs.TOOLCHAINS)
def test_stored_ptx_is_what_compilers_make(environment, tmp_path):
    try:
        python = envs.python_of(environment)
    except envs.NotAvailable as reason:
        pytest.skip(f"no PTX was made: the environment '{environment}' {reason}")
    root = make_ptx.FILE.parent.parent.parent
    subprocess.run(
        [python, root / "book/make_ptx.py", tmp_path / "ptx.json"],
        check=True,
        env=os.environ | {"PYTHONPATH": str(root)},
    )
    made = json.loads((tmp_path / "ptx.json").read_text())
    assert {name: counts(actual) for name, actual in made.items()} == {
        name: counts(actual) for name, actual in STORED.items()
    }
