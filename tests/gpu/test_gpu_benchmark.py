"""The benchmark for GPUs runs to its end on a simulated one, and claims no times."""

import json

import gpu
import pytest


@pytest.mark.external
def test_on_a_simulated_gpu(tmp_path, capsys):
    rows = gpu.main(["--simulated", "--out", str(tmp_path / "gpu.json")])
    printed = capsys.readouterr().out
    assert printed.startswith("# simulated GPU\n")
    actual = {row.what: row for row in rows}
    for net in gpu.NETS:
        assert actual[f"{net}: off the CPU"].found < 1e-5
        assert actual[f"{net}: launches, prediction"].found == 1
        assert actual[f"{net}: launches, training step"].found < 10
    timed = [row for row in rows if row.unit]
    assert len(timed) == 2 and all(row.found is None for row in timed)
    assert [row.what for row in rows if row.note == "simulated"] == [
        "5 fused operators",
        "float32 product, 32 x 32",
        "mlp, batch 1: prediction",
        "lenet, batch 16: prediction",
        "lenet, batch 16: training step",
    ]
    saved = json.loads((tmp_path / "gpu.json").read_text())
    assert [row["what"] for row in saved["rows"]] == list(actual)
    assert all(what in printed for what in actual)


def test_without_a_gpu_it_says_so(monkeypatch):
    monkeypatch.setattr(gpu.mx, "num_gpus", lambda: 0)
    with pytest.raises(SystemExit, match="NO GPU HERE: nothing was measured"):
        gpu.main([])


@pytest.mark.parametrize(
    "row, verdict",
    [
        (gpu.Row("a share", 0.79, "", least=0.8), "**missed**"),
        (gpu.Row("a share", 0.8, "", least=0.8), "passed"),
        (gpu.Row("a ratio", 1.3, "", most=1.2), "**missed**"),
        (gpu.Row("off", float("nan"), "", most=1e-3), "**missed**"),
        (gpu.Row("a share", None, "", least=0.8), "not measured"),
        (gpu.Row("a time", 3.0, "us"), ""),
    ],
)
def test_bars_are_judged_by_the_program(row, verdict):
    assert row.verdict == verdict and verdict in row.cells()


def test_what_is_missing_is_a_line(monkeypatch):
    def missing(*args):
        raise gpu.gpu_rivals.Missing("PyTorch is not installed")

    monkeypatch.setattr(gpu.gpu_rivals, "torch_calls", missing)
    rows = list(gpu.beside_torch("a net", 1e-3, "mlp, batch 1", False))
    assert [row.note for row in rows] == ["PyTorch is not installed"] * 3
    assert {row.verdict for row in rows} == {"not measured"}


def test_ratios_point_the_same_way(monkeypatch):
    """More is better beside eager mode, less beside a CUDA graph."""
    monkeypatch.setattr(gpu, "wall_seconds", lambda call, synchronize: call)
    monkeypatch.setattr(
        gpu.gpu_rivals,
        "torch_calls",
        lambda *args: (
            {"eager": lambda: 10.0, "CUDA graph": lambda: 1.0, "reduce-overhead": lambda: 1.6},
            None,
        ),
    )
    rows = list(gpu.beside_torch("a net", 2.0, "mlp, batch 1", False))
    assert [row.found for row in rows] == [5, 2, 1.25]
    assert [row.verdict for row in rows] == ["passed", "**missed**", ""]
