"""The machinery beside the rivals, tried on those two that are always here."""

import ast
import json
import math
import pathlib
from dataclasses import replace

import bars
import child
import envs
import first_calls
import imports
import lenet
import numpy as np
import plots
import pytest
import report
import run
import steps
import walks
import workloads
from bars import Verdict, verdicts
from child import Child
from marks import external, slow
from report import Roofs
from rivals import minihybrid as ours
from rivals import numpy as numpy_rival
from session import Row, Session
from workloads import ALL, WORKLOADS

BENCHMARKS = pathlib.Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def session(tmp_path):
    return Session(tmp_path, n_threads=1)


# -- one workload, from the arrays to the times ----------------------------------------
@pytest.mark.external
def test_numpy_is_checked_and_takes_its_turns(session):
    [row], yardsticks = session.run("mlp", ["numpy"], n_rounds=2, n_processes=2)
    assert row.problem == ""
    assert len(row.times_s) == 4 and len(row.first_s) == 1 and row.processes == 2
    assert min([*row.times_s, *row.first_s]) > 0
    assert [len(timing.times_s) for timing in yardsticks] == [15, 15]


@pytest.mark.external
def test_a_wrong_answer_is_not_timed(session, monkeypatch):
    mlp = WORKLOADS["mlp"]
    monkeypatch.setitem(
        ALL, "mlp", replace(mlp, reference=lambda arrays: mlp.reference(arrays) + 1)
    )
    [row], _ = session.run("mlp", ["numpy"], n_rounds=1)
    assert row.problem == "WRONG ANSWER, off by 1.0e+00"
    assert row.times_s == [] and row.nbytes is None


@pytest.mark.external
def test_a_rival_that_crashes_is_a_row_and_the_others_go_on(session, monkeypatch):
    """The first of two crashes in its first turn, after a right answer."""
    turn, crashed = Child.turn, []

    def turn_but_once(self):
        if "mlp.npz" in str(self.process.args[3]) and not crashed:
            crashed.append(self)
            self.process.kill()
        return turn(self)

    monkeypatch.setattr(Child, "turn", turn_but_once)
    (first, second), _ = session.run("mlp", ["numpy", "numpy"], n_rounds=1)
    assert first.problem == ("time failed: killed, after 300 s or by the system for its memory")
    assert first.times_s == [] and first.nbytes is None
    assert second.problem == "" and len(second.times_s) == 1


@pytest.mark.external
def test_a_worker_that_fails_says_why(session):
    session.save_arrays("mlp")
    worker = session.child("mlp", "numpy", "jit")
    with pytest.raises(envs.NotAvailable, match="prepare failed: KeyError: 'jit'"):
        worker.ask("prepare", net="mlp", mode="jit", answer="nowhere")


@pytest.mark.external
def test_a_worker_that_never_answers_is_stopped(session, monkeypatch):
    monkeypatch.setattr(child, "LIMIT_S", 0.1)
    session.save_arrays("mlp")
    worker = session.child("mlp", "numpy", "eager")
    worker.process.send_signal(child.signal.SIGSTOP)
    with pytest.raises(envs.NotAvailable, match="killed, after 0.1 s"):
        worker.ask("describe")


def test_a_rival_that_cannot_be_had_is_a_row_with_the_reason(session, monkeypatch):
    monkeypatch.setitem(envs.ENVS, "torch", ("9.99", ["torch"]))
    monkeypatch.setattr(envs, "HERE", session.scratch)
    [row] = session.rows_of("mlp", "torch")
    with pytest.raises(envs.NotAvailable, match="needs Python 9.99, which is not on"):
        session.start(row, "mlp", right=None)
    assert "| torch |" in report.table("mlp", [row], ROOFS)
    assert f"**skipped**: {row.problem}" in report.table("mlp", [row], ROOFS)


@pytest.mark.external
def test_peak_of_memory_is_what_one_call_needs_beyond_a_tiny_one(session):
    """Three arrays of 40 MB, and a product to which NumPy adds in place: 160 MB."""
    if not pathlib.Path("/proc/self/clear_refs").exists():
        pytest.skip("only Linux sets a process's peak back")
    [row], _ = session.run("plain", ["numpy"], n_rounds=1)
    assert 155e6 < row.nbytes < 170e6


# -- the workloads ---------------------------------------------------------------------
LARGE = ("resnet50", "mobilenet-v2", "densenet-169")  # seconds in NumPy
STEPS = ("transformer-train", "convnet-train")
QUICK = [name for name in WORKLOADS if name not in (*LARGE, *STEPS)]
MLPS = [name for name in WORKLOADS if name.startswith("mlp-")]
NAMES = [*QUICK, *slow(*STEPS), *external(*LARGE)]


@pytest.mark.parametrize("name", NAMES)
def test_work_counts_each_number_once(name):
    """Bytes by formula are those of the arrays and of the answer."""
    workload = WORKLOADS[name]
    arrays = workload.arrays(np.random.default_rng(0))
    nbytes = 4 * sum(np.size(a) for a in arrays.values())
    if name.endswith("-train"):
        trained = [a for key, a in arrays.items() if not key.startswith(steps.CONSTANT)]
        nbytes += 4 * (len(arrays["label"]) + sum(np.size(a) for a in trained))
    else:
        nbytes += 4 * workload.reference(arrays).size
    if name == "lenet":  # its arrays have labels, which the forward pass does not read
        nbytes -= 4 * len(arrays["label"])
    assert workload.nbytes == nbytes


def test_operations_of_nets_are_counted():
    assert WORKLOADS["mlp"].flops == 2 * (512 * 256 + 256 * 128 + 128 * 2)
    assert WORKLOADS["mlp-64"].flops == 64 * WORKLOADS["mlp"].flops
    lenet_products = 784 * 6 * 25 + 100 * 16 * 150 + 48_000 + 10_080 + 840
    assert WORKLOADS["lenet"].flops == 16 * 2 * lenet_products
    assert WORKLOADS["resnet18"].flops == 297_115_648


def test_nets_have_the_size_that_their_papers_tell():
    """Millions of products and of weights, of 1000 classes: He, Sandler, Huang et al."""
    for name, products, n_weights in (
        ("resnet50", 3.8e9, 25.6e6),
        ("mobilenet-v2", 0.3e9, 3.4e6),
        ("densenet-169", 3.4e9, 14.1e6),
    ):
        workload = WORKLOADS[name]
        weights = walks.shapes_of(workload.net)[0]
        learnt = sum(math.prod(s) for w, s in weights.items() if not w.startswith(steps.CONSTANT))
        assert workload.flops / 2 == pytest.approx(products, rel=0.05)
        assert learnt == pytest.approx(n_weights, rel=0.04)


@pytest.mark.parametrize("name", slow(*steps.STEPS))
def test_gradients_of_the_steps_are_slopes(name):
    """Along a random direction of each weight, by central differences."""
    rng = np.random.default_rng(2)
    net, optimizer, _ = steps.STEPS[name]
    a = steps.arrays(rng, name)
    if optimizer == "sgd":  # fewer words
        a["data"], a["label"] = a["data"][:2, :5], a["label"][:2, :5]

    def run(weights):
        tape = steps.Tape(weights)
        out = tape.walk(net, [a["data"], 0.0])
        losses, out[1] = steps.losses_and_gradient(out[0], a["label"], optimizer)
        return tape, losses.mean()

    weights = {key: array for key, array in a.items() if key not in ("data", "label")}
    tape, _ = run(weights)
    for back in reversed(tape.back):
        back()
    first, *others, last = steps.trained(a)
    for key in (first, *others[:4], last):
        along = rng.standard_normal(a[key].shape) * 1e-7
        up, down = (run(weights | {key: a[key] + sign * along})[1] for sign in (1, -1))
        slope = (tape.arrays[key][1] * along).sum()
        assert (up - down) / 2 == pytest.approx(slope, rel=2e-3)


def small(name, rng):
    """Arrays of a workload's kind, few enough for a quick test."""
    if name == "mlp":
        return workloads.mlp_arrays(rng, batch=3)
    if name.startswith("lenet"):
        return lenet.arrays(rng, batch=3)
    if name == "layer-norm":
        return workloads.layer_norm_arrays(rng, 5, 7)
    if name == "softmax":
        return {"data": rng.standard_normal((5, 7))}
    if name in ("plain", "elementwise"):
        return {key: rng.standard_normal(9) for key in "abc"}
    return WORKLOADS[name].arrays(rng)


@pytest.mark.parametrize("rival", [numpy_rival, ours])
@pytest.mark.parametrize("name", [n for n in NAMES if n not in MLPS])
def test_eager_modes_give_the_right_answer(name, rival):
    workload = WORKLOADS[name]
    arrays = {key: np.float32(a) for key, a in small(name, np.random.default_rng(1)).items()}
    right = workload.reference({key: np.float64(a) for key, a in arrays.items()})
    net, data = rival.BUILD[workload.net](arrays)
    modes = rival.TRAIN if workload.net.startswith("train_") else rival.MODES
    actual = modes["eager"](net, data)()
    actual = actual if isinstance(actual, tuple) else (actual,)
    actual = np.concatenate([rival.to_numpy(part).ravel() for part in actual])
    assert actual.dtype == np.float32
    np.testing.assert_allclose(actual, right.ravel(), atol=workload.tolerance, rtol=0)


@pytest.mark.parametrize("rival", envs.RIVALS)
def test_every_rival_defines_what_the_worker_reads(rival):
    tree = ast.parse((BENCHMARKS / "rivals" / f"{rival}.py").read_text())
    defined = {getattr(node, "name", None) or getattr(node, "id", None) for node in ast.walk(tree)}
    assert defined >= {"VERSION", "BUILD", "MODES", "to_numpy"}


# -- bars ------------------------------------------------------------------------------
def rows(ours_s, rival_s, ours_nbytes=5e6, rival_nbytes=10e6):
    return [
        Row("minihybrid", "eager", "0", [1.0], [10 * ours_s] * 3, 7e6),
        Row("minihybrid", "hybridized", "0", [0.9, 0.3], [ours_s] * 3, ours_nbytes),
        Row("numpy", "eager", "1", [1.0], [rival_s] * 3, rival_nbytes),
        Row("jax", "jit", "1", [1.0], [2 * rival_s] * 3, 2 * rival_nbytes),
    ]


def judged(actual, n_threads=1):
    return {v.bar: (v.found, v.limit, v.passed) for v in verdicts(actual, n_threads)}


def test_bars_of_the_mlp():
    assert judged({"mlp": rows(ours_s=4.0, rival_s=8.0)}) == {
        "to the best rival": (0.5, 0.8, True),
        "to our eager mode": (0.1, 0.2, True),
        "first call": (0.9, 1.0, True),
        "first call, 2nd process": (0.3, 0.25, False),
        "peak memory": (5e6, 10.3e6, True),
    }


def test_a_bar_is_missed_by_less_speed_and_by_more_memory():
    actual = judged({"mlp-8": rows(ours_s=8.1, rival_s=8.0, ours_nbytes=11e6)})
    assert actual == {
        "to the best rival": (8.1 / 8.0, 1.0, False),
        "peak memory": (11e6, 10.3e6, False),
    }


def test_results_of_another_kind_of_processor_are_set_aside(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "RESULTS", tmp_path)
    first, second = ({"cpu": "A chip", "model": f"6 {n}"} for n in (1, 2))
    for date, machine in enumerate([first, second, first, first]):
        run.set_aside("latest", run.kind(machine))
        stored = {"machine": machine, "date": date}
        (tmp_path / "latest.json").write_text(json.dumps(stored))
    [other] = tmp_path.glob("processors/*.json")
    assert other.name == "a-chip-6-2-latest.json" and json.loads(other.read_text())["date"] == 1


def test_nobody_needs_less_memory_than_inputs_weights_and_results():
    limit = judged({"softmax": rows(1.0, 1.0)})["peak memory"][1]
    assert limit == WORKLOADS["softmax"].nbytes + bars.SPREAD


@pytest.mark.parametrize("n_threads, limit", [(1, 1.4), (2, 1.25)])
def test_plain_is_the_fastest_of_anybody(n_threads, limit):
    actual = {"plain": rows(ours_s=3.0, rival_s=2.0), "elementwise": rows(ours_s=2.6, rival_s=4.0)}
    assert judged(actual, n_threads)["to a*b + c"] == (1.3, limit, 1.3 <= limit)


@pytest.mark.parametrize("ours_s, passed", [(1.5, True), (1.6, False)])
def test_compiling_is_held_against_jax(ours_s, passed):
    actual = rows(1.0, 1.0)
    actual[1].first_s = [ours_s, 0.1]
    actual.append(Row("jax", "slower", "1", [3.0], [1.0] * 3))
    assert judged({"mobilenet-v2": actual})["first call, to JAX's"] == (ours_s, 1.5, passed)


def test_a_net_of_ours_that_did_not_run_misses_every_bar():
    failed = rows(4.0, 8.0)
    failed[1] = Row("minihybrid", "hybridized", "0", problem="killed")
    actual = verdicts({"mlp": failed}, n_threads=1)
    assert len(actual) == 5 and not any(v.passed for v in actual)
    assert actual[0].cells() == (
        "mlp",
        "to the best rival",
        "0.80",
        "not run",
        "numpy eager, 8.0 s",
        "**missed**",
    )


def test_without_code_on_disk_there_is_no_second_process():
    actual = rows(4.0, 8.0)
    actual[1].first_s = [0.9]
    assert judged({"mlp": actual})["first call, 2nd process"] == (None, 0.25, False)


def test_without_rivals_only_our_own_bars_remain():
    assert set(judged({"mlp": rows(4.0, 8.0)[:2]})) == {
        "to our eager mode",
        "first call",
        "first call, 2nd process",
    }


@pytest.mark.parametrize(
    "verdict, cells",
    [
        (Verdict("w", "b", 0.8, 0.8), ("w", "b", "0.80", "0.80", "", "passed")),
        (Verdict("w", "b", 2.0, 2.5, "s"), ("w", "b", "2.0 s", "2.5 s", "", "**missed**")),
        (Verdict("w", "b", 2e6, 1e6, "bytes", "x"), ("w", "b", "2.0 MB", "1.0 MB", "x", "passed")),
    ],
)
def test_verdicts_as_text(verdict, cells):
    assert verdict.cells() == cells


# -- tables, files and pictures --------------------------------------------------------
ROOFS = Roofs(flops_per_s=100e9, bytes_per_s=10e9, matmul="torch eager", copy="numpy")


def test_table_lists_the_fastest_first():
    slow = Row("slow", "eager", "1.0", [1.0], [2e-4, 2e-4, 4e-4])
    fast = Row("fast", "jit", "2.0", [3.0, 0.1], [1e-4, 1e-4, 1e-4], nbytes=1_250_000)
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in report.table("mlp", [slow, fast], ROOFS).splitlines()
    ]
    assert lines[2] == [
        "fast 2.0",
        "jit",
        "100.0 us",
        "100.0 .. 100.0 us",
        "1.00",
        "6.6 GB/s",
        "66%",
        "1.2 MB",
        "3.0 s",
        "100.0 ms",
    ]
    assert lines[3] == [
        "slow 1.0",
        "eager",
        "200.0 us",
        "200.0 .. 300.0 us",
        "2.00",
        "3.3 GB/s",
        "33%",
        "",
        "1.0 s",
        "",
    ]


def test_the_nearer_roof_counts():
    assert ROOFS.reached("mlp", 1e-3)[0].endswith("GB/s")
    assert ROOFS.reached("mlp-1024", 1e-2) == ("33.6 GFLOP/s", "34%")


def test_roofs_are_the_fastest_rows():
    actual = {
        "matmul": [Row("a", "x", times_s=[2.0]), Row("b", "y", times_s=[1.0])],
        "copy": [Row("a", "x", times_s=[0.5]), Row("c", problem="none")],
    }
    assert report.roofs(actual) == Roofs(2 * 1024**3, 16e7, "b y", "a x")


def test_a_run_is_saved_as_text_numbers_and_pictures(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "RESULTS", tmp_path)
    actual = {name: rows(1e-3, 2e-3) for name in ("matmul", "copy", "mlp", "mlp-8", "lenet")}
    yardsticks = {name: [[1e-4] * 3, [2e-4] * 3] for name in actual}
    text = run.save("latest", actual, yardsticks, n_threads=1, n_rounds=3)
    assert (tmp_path / "latest.md").read_text() == text
    assert "100.0 us before, 200.0 us after" in text
    assert "**Bars**: 11 passed, 1 missed" in text
    saved = run.json.loads((tmp_path / "latest.json").read_text())
    assert saved["workloads"]["mlp"]["rows"][1]["times_s"] == [1e-3] * 3
    assert [v["passed"] for v in saved["bars"]].count(False) == 1
    assert {file.name for file in tmp_path.glob("*.svg")} == {
        f"latest-{name}.svg" for name in (*actual, "sweep", "roofline")
    }


def test_every_rival_has_a_look_of_its_own():
    assert set(plots.STYLES) == set(envs.RIVALS)
    markers = [marker for _, marker in plots.STYLES.values()]
    assert len(set(markers)) == len(markers), "it reads without color"


def test_sweep_takes_the_best_mode_of_each():
    axes = plots.sweep({"mlp": rows(1.0, 5.0), "mlp-8": rows(2.0, 5.0)}).axes[0]
    lines = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert lines["minihybrid"] == [[1, 1.0], [8, 2.0]]
    assert lines["jax"] == [[1, 10.0], [8, 10.0]]
    assert "torch" not in lines, "it was not measured"


def test_options_name_what_there_is():
    assert run.numbers("1,2") == [1, 2]
    assert run.names_from(["a", "b"])("b,a") == ["b", "a"]
    with pytest.raises(run.argparse.ArgumentTypeError, match="no c; there are a, b"):
        run.names_from(["a", "b"])("a,c")


# -- imports ---------------------------------------------------------------------------
@pytest.mark.external
def test_imports_are_timed():
    lines = imports.table(imports.measure(1)).splitlines()
    assert len(lines) == 4 and lines[0].endswith(" ms  1.00")


# -- the first calls -------------------------------------------------------------------
@pytest.mark.external
def test_every_one_of_the_first_calls_is_timed(session, monkeypatch):
    monkeypatch.setattr(first_calls, "N_CALLS", 5)
    monkeypatch.setattr(first_calls, "N_SHOWN", 4)
    (row,) = first_calls.measure(session, "mlp", ["numpy"], repeats=3)
    assert (row["rival"], row["mode"]) == ("numpy", "eager")
    assert len(row["total_s"]) == 3 and len(row["calls_s"]) == 4
    assert 0 < row["first_s"] < max(row["total_s"])
    assert "numpy eager" in first_calls.table({"mlp": [row]})
    (line,) = first_calls.plot([row]).axes[0].lines
    assert line.get_xdata().tolist() == [1, 2, 3, 4]


@pytest.mark.external
def test_the_loop_of_the_tutorials_runs_without_waiting():
    ((eager_s, hybridized_s),) = first_calls.tutorial(1)
    assert eager_s > 0 and hybridized_s > 0
