"""The core: what one call runs through. It is small, and stands alone."""

import ast
import json
import re
import subprocess
import sys

import core_alone
import pytest
from lines import count
from reading_order import PACKAGE, READING_ORDER, imports, path_of

CORE = [m for m in READING_ORDER if m.split(".")[0] == "core"]
# Symbolic lengths (core/lengths.py) took the last 190 lines, and one more module.
# 44 lines more than before: a backward pass that makes chosen steps of the forward pass again.
# 24 more for bfloat16: which operators compute it in float32, checked where one is applied.
MOST_LINES, MOST_MODULES = 5_358, 51  # of code, without the operators' records
# What only the whole package reads: checks of users' operators, and names that come later.
NOT_ALONE = {"core.definition_checks", "core.lazy"}


def alone(folder, *blocked):
    return subprocess.run(
        [sys.executable, core_alone.__file__, folder, *blocked],
        text=True,
        capture_output=True,
        check=False,
    )


def test_the_core_is_small():
    counts = {m: count(path_of(m).read_text(encoding="utf-8")) for m in CORE}
    assert 3_000 < sum(counts.values()) <= MOST_LINES, counts
    assert 30 < len(CORE) <= MOST_MODULES


@pytest.mark.slow
def test_the_core_alone_runs_the_net_of_the_tour(tmp_path):
    """Eager, traced, optimized, differentiated, trained, exported, imported."""
    run = alone(tmp_path)
    assert run.returncode == 0, run.stderr[-2000:]
    read = json.loads(run.stdout)
    assert {name.split(".")[0] for name in read} == {"core", "ops"}
    assert set(read) >= set(CORE) - NOT_ALONE, "each module of the core has its part"


@pytest.mark.slow
@pytest.mark.parametrize("module", ["core.backprop", "core.plan", "core.serial", "numpy"])
def test_without_a_part_of_it_the_core_does_not_run(module, tmp_path):
    blocked = f"minihybrid.{module}" if module.startswith("core") else module
    run = alone(tmp_path, blocked)
    assert run.returncode != 0 and f"{blocked} is blocked" in run.stderr


def outside(source):
    """What a module imports that is neither the core, a record, nor always there.

    Functions may import later modules of the package: `UPWARD` in tests/book lists those.
    """
    allowed = {"numpy", *sys.stdlib_module_names}
    tree = ast.parse(source)
    others = {name for name in imports(tree) if name.split(".")[0] != "minihybrid"}
    return [
        name
        for name in {*imports(tree, in_functions=False), *others}
        if not re.match(r"minihybrid\.(core|ops)\b", name) and name.split(".")[0] not in allowed
    ]


def extensions(source):
    """Names of what is no part of the core, in code: docstrings may explain."""
    tree = ast.parse(source)
    words = {
        name
        for name in map(
            str,
            [
                *(n.id for n in ast.walk(tree) if isinstance(n, ast.Name)),
                *(n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)),
            ],
        )
    }
    return words & {*core_alone.OTHERS, "simt", "codegen", "Tiers", "DeviceArray"}


@pytest.mark.parametrize("module", CORE)
def test_the_core_imports_only_itself_and_records(module):
    source = path_of(module).read_text(encoding="utf-8")
    assert outside(source) == []
    assert extensions(source) == set()


@pytest.mark.parametrize(
    "line",
    [
        "from minihybrid.runtime.tiers import Tiers",
        "import numba",
        "class Later:\n    from minihybrid import gluon",
        "def later():\n    from onnx import helper",
    ],
)
def test_a_planted_import_is_found(line):
    assert outside(f"import numpy\nfrom minihybrid.core import op\n{line}") != []


def test_a_planted_name_is_found():
    assert extensions("class A:\n    '''codegen'''\nminihybrid.codegen.load") == {"codegen"}


def test_records_need_only_the_core():
    """The operators' records, too, know no device, no target and no block."""
    for module in READING_ORDER:
        if module.split(".")[0] == "ops":
            imported = set(imports(ast.parse(path_of(module).read_text(encoding="utf-8"))))
            assert not {
                name
                for name in imported
                if name.startswith("minihybrid.") and name.split(".")[1] not in ("core", "ops")
            }
    assert (PACKAGE / "ops" / "elementwise.py").exists()
