"""The machinery beside the rivals, tried on the one that is always here: NumPy."""
import ast
import pathlib
from dataclasses import replace

import envs
import pytest
import run
from child import Child
from report import Row, table
from workloads import WORKLOADS

BENCHMARKS = pathlib.Path(__file__).parent.parent / "benchmarks"


def test_numpy_is_checked_and_takes_its_turns(tmp_path):
    [row], yardsticks = run.run(
        "mlp", ["numpy"], n_rounds=2, n_threads=1, scratch=tmp_path)
    assert row.problem == ""
    assert len(row.times_s) == 2 and len(row.first_s) == 2
    assert min([*row.times_s, *row.first_s]) > 0
    assert [len(timing.times_s) for timing in yardsticks] == [15, 15]


def test_a_wrong_answer_is_not_timed(tmp_path, monkeypatch):
    mlp = WORKLOADS["mlp"]
    monkeypatch.setitem(WORKLOADS, "mlp", replace(
        mlp, reference=lambda arrays: mlp.reference(arrays) + 1))
    [row], _ = run.run("mlp", ["numpy"], n_rounds=1, n_threads=1, scratch=tmp_path)
    assert row.problem == "WRONG ANSWER, off by 1.0e+00"
    assert row.times_s == []


def test_a_worker_that_fails_says_why(tmp_path):
    run.save_arrays("mlp", tmp_path)
    child = Child("numpy", "mlp", tmp_path, n_threads=1)
    with pytest.raises(envs.NotAvailable, match="prepare failed: KeyError: 'jit'"):
        child.ask("prepare", mode="jit", answer=str(tmp_path / "answer.npy"))


def test_a_rival_that_cannot_be_had_is_a_row_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setitem(envs.ENVS, "torch", ("9.99", ["torch"]))
    monkeypatch.setattr(envs, "HERE", tmp_path)
    [row] = run.find_modes("torch", "mlp", tmp_path, n_threads=1)
    reason = "needs Python 9.99, which is not on the PATH"
    assert row.problem == reason
    assert f"| torch |  | **skipped**: {reason} |" in table([row])


def test_table_lists_the_fastest_first():
    slow = Row("slow", "eager", "1.0", [1.0, 0.5], [2e-5, 2e-5, 4e-5])
    fast = Row("fast", "jit", "2.0", [3.0, 0.1], [5e-6, 5e-6, 5e-6])
    lines = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in table([slow, fast]).splitlines()]
    assert lines[2] == ["fast 2.0", "jit", "5.0 us", "5.0 .. 5.0 us", "1.00",
                        "3.0 s", "100.0 ms"]
    assert lines[3] == ["slow 1.0", "eager", "20.0 us", "20.0 .. 30.0 us", "4.00",
                        "1.0 s", "500.0 ms"]


@pytest.mark.parametrize("rival", envs.RIVALS)
def test_every_rival_defines_what_the_worker_reads(rival):
    tree = ast.parse((BENCHMARKS / "rivals" / f"{rival}.py").read_text())
    defined = {getattr(node, "name", None) or getattr(node, "id", None)
               for node in ast.walk(tree)}
    assert defined >= {"VERSION", "BUILD", "MODES", "to_numpy"}
