"""Metrics give MXNet's numbers, batch after batch; helpers of training loops."""

import json
from pathlib import Path

import numpy as np
import pytest

from minihybrid import AttrError, ShapeError, cpu, gluon, metric, nd
from minihybrid.gluon.utils import clip_global_norm, split_and_load, split_data

GOLDEN = Path(__file__).parents[1] / "golden/training/metrics.json"
CASES = json.loads(GOLDEN.read_text())
# MXNet's correlation of all numbers outlives `reset_local`, and is 0 to `get_global`.
BY_HAND = [c for c in CASES if c["metric"] == "pearsonr" and c["settings"]]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda c: str(c["metric"]))


def test_every_metric_has_golden_numbers():
    named = {type(metric.create(c["metric"], **c["settings"])) for c in CASES}
    assert named == set(metric.REGISTRY.values())


@every_case
def test_numbers_are_those_of_mxnet(case):
    actual = metric.create(case["metric"], **case["settings"])
    for label, pred, expected in zip(case["labels"], case["preds"], case["after"], strict=True):
        actual.update([nd.array(label)], [nd.array(pred)])
        names, values = zip(*actual.get_name_value(), strict=True)
        assert names == tuple(name for name, _ in expected)
        assert values == pytest.approx([v for _, v in expected], rel=1e-5)


@pytest.mark.parametrize(
    "case", [c for c in CASES if c not in BY_HAND], ids=lambda c: str(c["metric"])
)
def test_counts_outlive_a_local_reset(case):
    """Several batches at once, too."""
    actual = metric.create(case["metric"], **case["settings"])
    labels, preds = ([nd.array(x) for x in case[name]] for name in ("labels", "preds"))
    for label, pred in zip(labels, preds, strict=True):
        actual.update([label], [pred])
    actual.reset_local()
    assert np.isnan([value for _, value in actual.get_name_value()]).all()
    actual.update(labels[:1] * 2, preds[:1] * 2)
    for pairs, expected in zip(
        (actual.get_name_value(), actual.get_global_name_value()), case["again"], strict=True
    ):
        assert [name for name, _ in pairs] == [name for name, _ in expected]
        assert [v for _, v in pairs] == pytest.approx([v for _, v in expected], rel=1e-5)


def test_the_correlation_of_all_is_that_of_numpy():
    actual = metric.PearsonCorrelation(average="micro")
    first, second, third = np.random.default_rng(0).normal(size=(3, 2, 4))
    for batch in (first, second):
        actual.update(nd.array(batch[0]), nd.array(batch[1]))
    actual.reset_local()
    actual.update(nd.array(third[0]), nd.array(third[1]))
    everything = np.concatenate([first, second, third], axis=1)
    assert actual.get()[1] == pytest.approx(np.corrcoef(third)[0, 1], rel=1e-5)
    assert actual.get_global()[1] == pytest.approx(np.corrcoef(everything)[0, 1], rel=1e-5)


@every_case
def test_reset_forgets_and_single_arrays_are_lists_of_one(case):
    first, second = (metric.create(case["metric"], **case["settings"]) for _ in "ab")
    label, pred = nd.array(case["labels"][0]), nd.array(case["preds"][0])
    first.update([nd.array(case["labels"][1])], [nd.array(case["preds"][1])])
    first.reset()
    assert np.isnan([value for _, value in first.get_name_value()]).all()
    first.update(label, pred)
    second.update_dict({"label": label}, {"pred": pred})
    assert first.get() == second.get()


@every_case
def test_config_makes_the_metric_again(case):
    made = metric.create(case["metric"], **case["settings"])
    config = made.get_config()
    if "metrics" in config:
        config["metrics"] = [metric.create(**c) for c in config["metrics"]]
    again = metric.create(**config)
    for m in (made, again):
        m.update([nd.array(case["labels"][0])], [nd.array(case["preds"][0])])
    assert made.get() == again.get()


def test_a_function_is_a_metric():
    worst = metric.create(lambda label, pred: np.abs(label - pred).max(), name="worst")
    worst.update(nd.array([1, 2]), nd.array([1, 5]))
    worst.update(nd.array([1, 2]), nd.array([2, 2]))
    assert worst.get() == ("worst", 2.0)
    assert str(worst) == "EvalMetric: {'worst': 2.0}"


def test_a_named_function_is_a_metric_of_its_name():
    def most(label, pred):
        return np.abs(label - pred).max(), 2

    actual = metric.np(most, allow_extra_outputs=True)
    actual.update([nd.array([1, 2])], [nd.array([1, 5]), nd.ones(3)])
    assert actual.get() == actual.get_global() == ("most", 1.5)
    assert metric.np(lambda label, pred: 0).name == "custom(<lambda>)"


def test_metrics_of_ones_own_as_mxnet_writes_them():
    @metric.register
    @metric.alias("errors")
    class Wrong(metric.EvalMetric):
        def __init__(self, name="wrong", output_names=None, label_names=None, **more):
            super().__init__(name, output_names, label_names, **more)

        def update(self, labels, preds):
            labels, preds = metric.check_label_shapes(labels, preds, wrap=True)
            for label, pred in zip(labels, preds, strict=True):
                self.sum_metric += float((label != pred).sum().asscalar())
                self.num_inst += label.size
                self.global_sum_metric += 1
                self.global_num_inst += 1

    try:
        for name, more, expected in (("wrong", {}, 0.5), ("errors", {"has_global_stats": True}, 1)):
            actual = metric.create(name, **more)
            actual.update(nd.array([1, 2]), nd.array([1, 1]))
            assert actual.get() == ("wrong", 0.5) and actual.get_global() == ("wrong", expected)
            assert "has_global_stats" not in actual.get_config()
    finally:
        for name in ("wrong", "errors"):
            del metric.REGISTRY[name]


def test_composites_choose_by_name():
    both = metric.CompositeEvalMetric(["acc", "loss"], label_names=["a"], output_names=["p"])
    both.update_dict(
        {"a": nd.array([1]), "b": nd.array([9])}, {"p": nd.array([1]), "q": nd.ones(3)}
    )
    assert both.get() == (["accuracy", "loss"], [1.0, 1.0])
    assert both.get_name_value() == both.get_global_name_value() == [("accuracy", 1), ("loss", 1)]


def test_ignored_labels_need_no_class():
    actual = metric.Perplexity(ignore_label=255)
    actual.update(nd.array([0, 255]), nd.array([[0.25, 0.75], [0.5, 0.5]]))
    assert actual.get() == ("perplexity", pytest.approx(4))


def test_one_answer_to_all_is_not_correlated():
    actual = metric.MCC()
    actual.update(nd.array([0, 1]), nd.array([[1, 0], [1, 0]]))
    assert actual.get() == ("mcc", 0.0)


def test_classes_that_appear_later_join_the_table():
    actual = metric.PCC()
    actual.update(nd.array([0, 0]), nd.array([0, 0]))
    assert np.isnan(actual.get()[1])  # one class has no correlation
    actual.update(nd.array([3, 1]), nd.array([3, 1]))
    assert actual.get() == ("pcc", 1.0) and actual.table.shape == (4, 4)


def test_f1_without_any_hit_is_0():
    f1 = metric.F1()
    f1.update(nd.array([1, 1]), nd.array([[1, 0], [1, 0]]))
    assert f1.get() == ("f1", 0.0)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: metric.create("accurate"), AttrError, "'accurate' is unknown; there are"),
        (lambda: metric.TopKAccuracy(1), AttrError, "top_k=1, but more than 1 is needed"),
        (
            lambda: metric.Accuracy().update([nd.ones((1,))] * 2, nd.ones((1,))),
            ShapeError,
            "accuracy: 2 labels for 1 predictions",
        ),
        (
            lambda: metric.CrossEntropy().update(nd.zeros((3,)), nd.ones((2, 4))),
            ShapeError,
            "cross-entropy: 3 labels for 2 predictions",
        ),
        (
            lambda: metric.F1().update(nd.array([0, 1, 2]), nd.ones((3, 2))),
            ShapeError,
            "labels of 3 classes, but two",
        ),
        (
            lambda: metric.PearsonCorrelation().update(nd.ones((2,)), nd.ones((3,))),
            ShapeError,
            "one shape is needed",
        ),
        (
            lambda: metric.MCC().update(nd.array([0, 1, 2]), nd.ones((3, 3, 3))),
            ShapeError,
            "labels of 3 classes, but two",
        ),
        (
            lambda: metric.PCC().update(nd.array([0, 1]), nd.ones((3, 2))),
            ShapeError,
            "pcc: 2 labels for 3 predictions",
        ),
        (
            lambda: metric.check_label_shapes(nd.ones(2), nd.ones(3)),
            ShapeError,
            "labels have length 2, but predictions 3",
        ),
        (lambda: split_data(nd.ones((5, 2)), 2), ShapeError, "5 samples .* 2 equal parts"),
        (lambda: clip_global_norm([], 1), AttrError, "the list of arrays is empty"),
    ],
)
def test_mistakes_are_sentences(call, error, message):
    with pytest.raises(error, match=message):
        call()


# -- helpers ---------------------------------------------------------------------------
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_parts_of_a_batch_make_the_batch(axis, count):
    data = nd.array(np.arange(20).reshape(4, 5))
    parts = split_data(data, count, axis, even_split=False)
    sizes = [part.shape[axis] for part in parts]
    assert max(sizes) - min(sizes) <= 1 and sizes == sorted(sizes, reverse=True)
    np.testing.assert_array_equal(nd.concat(*parts, dim=axis).asnumpy(), data.asnumpy())


def test_numpy_data_is_split_over_devices():
    one = split_and_load(np.ones((4, 2)), [cpu()])
    two = split_and_load(np.ones((4, 2)), [cpu(0), cpu(1)])
    assert [p.shape for p in one] == [(4, 2)] and [p.shape for p in two] == [(2, 2)] * 2


@pytest.mark.parametrize("max_norm, expected", [(1.0, [0.6, 0.8]), (10.0, [3.0, 4.0])])
def test_gradients_are_clipped_together(max_norm, expected):
    arrays = [nd.array([[3.0]]), nd.array([4.0])]
    assert gluon.utils.clip_global_norm(arrays, max_norm) == 5
    assert [a.item() for a in arrays] == pytest.approx(expected, rel=1e-6)


def test_a_norm_that_is_no_number_warns():
    with pytest.warns(UserWarning, match="nan or inf"):
        clip_global_norm([nd.array([np.inf])], 1.0)
    assert np.isnan(clip_global_norm([nd.array([np.nan])], 1.0, False).asnumpy()).all()


def test_metrics_say_their_numbers():
    both = metric.create(["acc", "mse"])
    assert repr(both) == "CompositeEvalMetric(accuracy=nan, mse=nan)"
    both.metrics[0].update([nd.array([1, 1])], [nd.array([[0, 1], [1, 0]])])
    assert repr(both.metrics[0]) == "Accuracy(accuracy=0.5)"
    both.reset_local()
    assert repr(both.metrics[0]) == "Accuracy(accuracy=nan)"
