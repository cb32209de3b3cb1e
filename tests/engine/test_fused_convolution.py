"""Convolutions as compiled: each form of their loops, what fuses, kernels and bytes."""

import re

import numpy as np
import pytest

from minihybrid import autograd, nd, sym
from minihybrid.core.op import Spec
from minihybrid.core.plan import Plan
from minihybrid.gluon import nn
from minihybrid.gluon.model_zoo import vision
from minihybrid.ops.convolution import Shapes, conv, conv_data, conv_weight
from minihybrid.ops.cpu.flatshift import data_planes_of, forward_planes
from minihybrid.ops.cpu.imagelanes import lanes_fit
from minihybrid.ops.cpu.imagepoints import _tile, points_fit
from minihybrid.ops.cpu.machine import width

LANES = width(4)  # a vector of images


def random(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def geometry(size, kernel, stride=1, pad=0, dilate=1, num_group=1):
    n = len(size)
    return {
        "size": size,
        "kernel": kernel,
        "stride": (stride,) * n,
        "dilate": (dilate,) * n,
        "pad": (pad,) * n,
        "num_group": num_group,
    }


def plan_alone(op, arrays, attrs):
    """The plan of one operator."""
    specs = {f"x{i}": Spec(a.shape, a.dtype) for i, a in enumerate(arrays)}
    graph, *_ = sym.trace(lambda *xs: sym.Symbol.interpret(op, xs, attrs), specs)
    plan = Plan(graph, list(specs))
    assert plan.target == "cpu"
    return plan


def compiled(op, arrays, attrs):
    """What an operator gives in a plan of its own."""
    plan = plan_alone(op, arrays, attrs)
    return plan(arrays, plan.bind([]))[0]


def assert_exact(op, arrays, attrs):
    """The compiled answer is that of NumPy in float64, up to float32's rounding."""
    expected = op.eager(*(a.astype("float64") for a in arrays), **attrs)
    got = compiled(op, arrays, attrs)
    np.testing.assert_allclose(got, expected, 1e-4, 2e-6 * np.abs(expected).max())


def conv_arrays(n, channels, filters, g):
    """Data, weights, and a gradient of the output."""
    data = random((n, channels, *g["size"]))
    weight = random((filters, channels // g["num_group"], *g["kernel"]), 1)
    return data, weight, random(conv.eager(data, weight, **g).shape, 2)


# -- values of each form ---------------------------------------------------------------
@pytest.mark.parametrize(
    "n, channels, filters, attrs",
    [
        (LANES, 1, 6, geometry((9, 28), (5, 5), pad=2)),
        (2 * LANES, 3, 16, geometry((7, 7), (3, 3))),
        (LANES, 4, 10, geometry((7, 5), (3, 2), stride=2, pad=1, num_group=2)),
        (LANES, 2, 3, geometry((3,), (2,), dilate=2, pad=3)),
        (LANES, 2, 3, geometry((3, 4, 5), (1, 2, 2), pad=1)),
    ],
    ids=["padded", "plain", "groups", "wide-padding", "3d"],
)
@pytest.mark.slow
def test_images_side_by_side_give_the_answers_of_numpy(n, channels, filters, attrs):
    data, weight, grad = conv_arrays(n, channels, filters, attrs)
    assert lanes_fit(Shapes(n, channels, filters, **attrs), 4)
    assert_exact(conv, [data, weight], attrs)
    assert_exact(conv_data, [grad, weight], attrs)
    assert_exact(conv_weight, [data, grad], attrs)


@pytest.mark.parametrize(
    "n, channels, filters, attrs",
    [
        (1, LANES, 6, geometry((2, 2), (3, 3), pad=1)),
        (2, 2 * LANES, 10, geometry((3, 4), (3, 3), stride=2, pad=1, num_group=2)),
        (1, LANES, 3, geometry((3,), (3,), pad=2, dilate=2)),
        (1, LANES, 5, geometry((2, 2), (1, 1))),
        (1, LANES, 5, geometry((3, 4), (1, 1), stride=2)),
        (1, 2 * LANES, 1, geometry((1, 1), (1, 1))),
        (2, LANES, 40, geometry((LANES - 1,), (5,), pad=2)),
    ],
    ids=["plain", "groups", "1d", "1x1", "stride", "one", "several-tiles"],
)
def test_few_positions_give_the_answers_of_numpy(n, channels, filters, attrs):
    """They are dot products, in tiles of four positions; filters are whole vectors."""
    data, weight, _ = conv_arrays(n, channels, filters, attrs)
    assert "outer(" not in plan_alone(conv, [data, weight], attrs).source
    assert_exact(conv, [data, weight], attrs)


def test_few_positions_of_three_axes_give_the_answers_of_numpy():
    attrs = geometry((2, 3, 3), (2, 2, 2))
    data, weight, _ = conv_arrays(1, LANES, 3, attrs)
    assert not points_fit(Shapes(1, LANES, 3, **attrs), 4)
    assert_exact(conv, [data, weight], attrs)


@pytest.mark.parametrize(
    "n, channels, filters, attrs",
    [
        (1, 5, 9, geometry((7, 7), (1, 1))),
        (2, 2 * LANES + 3, 30, geometry((14, 14), (1, 1), num_group=1)),
        (3, 6, 4, geometry((9, 11), (1, 1), num_group=2)),
        (1, 7, 100, geometry((2, 1), (1, 1))),
        (2, 3, 70, geometry((4 * LANES + 5,), (1,))),
        (1, 2, 3, geometry((3, 4, 5), (1, 1, 1))),
        (1, 30, 20, geometry((26, 28), (1, 1), stride=2)),
        (2, 6, 30, geometry((13, 50), (1, 1), stride=3, num_group=2)),
        (1, 5, 9, geometry((14, 13), (1, 1), stride=2)),
        (2, 3, 70, geometry((10 * LANES + 5,), (1,), stride=2)),
        (1, 4, 7, geometry((40, 9), (1, 1)) | {"stride": (2, 1)}),
    ],
    ids=[
        *("one-more", "four-more", "groups", "few-places", "1d", "3d"),
        *("stride", "stride-3-groups", "stride-one-more", "stride-1d", "stride-of-rows"),
    ],
)
def test_points_give_the_answers_of_numpy(n, channels, filters, attrs):
    data, weight, _ = conv_arrays(n, channels, filters, attrs)
    s = Shapes(n, channels, filters, **attrs)
    assert points_fit(s, 4) and not lanes_fit(s, 4)
    assert_exact(conv, [data, weight], attrs)


@pytest.mark.parametrize(
    "n, channels, filters, attrs",
    [
        (1, 3, 256, geometry((7, 7), (3, 3), pad=1)),
        (2, 6, 512, geometry((14, 13), (3, 3), stride=2, pad=1, num_group=2)),
        (1, 5, 257, geometry((8, 9), (3, 2), pad=2, dilate=2)),
        (2, 3, 256, geometry((22,), (3,))),
        (1, 6, 260, geometry((5, 5), (1, 1), pad=1)),
        (1, 1, 256, geometry((12, 12), (9, 9), pad=4)),
        (1, 2, 300, geometry((14, 14), (7, 7), pad=3)),
        (1, 1, 256, geometry((30, 9), (5, 7), pad=3) | {"stride": (3, 1)}),
    ],
    ids=["plain", "groups", "dilated", "1d", "1x1", "strips", "strips-four-more", "stride-of-rows"],
)
def test_windows_copied_into_whole_vectors_give_the_answers_of_numpy(n, channels, filters, attrs):
    data, weight, _ = conv_arrays(n, channels, filters, attrs)
    s = Shapes(n, channels, filters, **attrs)
    assert points_fit(s, 4) and not lanes_fit(s, 4)
    assert_exact(conv, [data, weight], attrs)


@pytest.mark.parametrize("filters", [64, 300], ids=["64", "300"])
def test_windows_that_fill_one_vector_are_copied_for_fewer_filters(filters):
    g = geometry((LANES // 2, 2), (3, 3), pad=1)
    data, weight, _ = conv_arrays(1, LANES, filters, g)
    s = Shapes(1, LANES, filters, **g)
    assert points_fit(s, 4)
    assert "outer(s, a1" in plan_alone(conv, [data, weight], g).source
    assert_exact(conv, [data, weight], g)
    assert not points_fit(Shapes(1, LANES, 63, **g), 4)


@pytest.mark.parametrize(
    "n, channels, filters, attrs",
    [
        (1, 64, 64, geometry((16, 16), (3, 3), pad=1)),
        (2, 130, 140, geometry((14, 14), (3, 3), pad=1, num_group=2)),
        (1, 40, 66, geometry((16, 15), (5, 5), pad=4, dilate=2)),
        (1, 33, 90, geometry((32, 29), (3, 3), stride=2, pad=1)),
        (1, 20, 70, geometry((33, 48), (3, 3), pad=2) | {"stride": (1, 2)}),
        (1, 9, 80, geometry((5, 7, 8), (2, 3, 3), pad=1)),
    ],
    ids=["plain", "groups", "dilated", "stride", "stride-of-columns", "3d"],
)
def test_shifted_copies_give_the_answers_of_numpy(n, channels, filters, attrs):
    """Of the data, and of the gradient, where they pay: also with NaN at the end of a row."""
    data, weight, grad = conv_arrays(n, channels, filters, attrs)
    s = Shapes(n, channels, filters, **attrs)
    copies = forward_planes(s, 4)
    assert copies.reach[-1] == 0 < s.data_planes().reach[-1]
    assert copies.row < s.data_planes().row
    assert_exact(conv, [data, weight], attrs)
    assert_exact(conv_data, [grad, weight], attrs)
    data[..., -1] = np.nan
    expected = conv.eager(data, weight, **attrs)
    np.testing.assert_array_equal(
        np.isnan(compiled(conv, [data, weight], attrs)), np.isnan(expected)
    )


def test_shifted_copies_of_gradients():
    g = geometry((16, 16), (3, 3), pad=1)
    s = Shapes(1, 64, 64, **g)
    assert data_planes_of(s, 4)[0].reach == [2, 0]
    _, weight, grad = conv_arrays(1, 64, 64, g)
    assert_exact(conv_data, [grad, weight], g)


def test_copies_are_made_only_where_that_is_repaid():
    """Not of large planes, not for few filters, and not where rows fill vectors anyway."""
    plain = geometry((16, 16), (3, 3), pad=1)
    large = geometry((28, 28), (3, 3), pad=1)
    points = geometry((16, 16), (3, 1))
    for s in (
        Shapes(1, 64, 8, **plain),
        Shapes(1, 128, 128, **large),
        Shapes(1, 64, 64, **points),
        Shapes(1, 64, 64, **geometry((7, 7), (3, 3), pad=1)),
    ):
        assert forward_planes(s, 4).reach == s.reach


def test_the_next_filters_are_asked_for():
    """Two lines of each, which no answer shows: only the text and the time."""
    data, weight, _ = conv_arrays(1, 64, 32, geometry((14, 14), (1, 1)))
    text = plan_alone(conv, [data, weight], geometry((14, 14), (1, 1))).source
    high = int(re.search(r"for r in range\((\d+)\):\n\s+for j in range\(0, 32, 16\)", text)[1])
    assert f"fetch(a1, (first + {high} + r) * channels + j)" in text


def test_an_addend_is_prefetched_where_a_line_holds_several_vectors():
    data, weight, _ = conv_arrays(1, 16, 8, geometry((14, 14), (1, 1)))
    addend = random((1, 8, 14, 14))
    specs = {f"x{i}": Spec(a.shape, a.dtype) for i, a in enumerate([data, weight, addend])}
    attrs = geometry((14, 14), (1, 1))
    graph, *_ = sym.trace(lambda x, w, a: a + sym.Symbol.interpret(conv, (x, w), attrs), specs)
    assert ("fetch(a2, " in Plan(graph, list(specs)).source) == (LANES < 16)


def test_windows_are_copied_only_where_that_is_repaid():
    few = Shapes(1, 8, 255, **geometry((7, 7), (3, 3), pad=1))
    wide = Shapes(1, 8, 256, **geometry((28, 28), (3, 3), pad=1))
    deep = Shapes(1, 8, 256, **geometry((7, 7, 7), (3, 3, 3), pad=1))
    assert not any(points_fit(s, 4) for s in (few, wide, deep))


@pytest.mark.parametrize(
    "n, channels, filters, attrs",
    [
        (2, 3, 3, geometry((7, 7), (3, 3), pad=1, num_group=3)),
        (1, 4, 4, geometry((15, 2 * LANES + 3), (3, 3), stride=2, pad=1, num_group=4)),
        (1, 2, 6, geometry((11, 9), (3, 2), stride=3, pad=2, num_group=2)),
        (3, 2, 2, geometry((9, 20), (3, 5), pad=4, dilate=2, num_group=2)),
        (1, 2, 2, geometry((9, 9), (2, 3), stride=3, dilate=2, pad=3, num_group=2)),
    ],
    ids=["plain", "stride", "several-filters", "dilated", "stride-and-dilated"],
)
def test_depthwise_windows_give_the_answers_of_numpy(n, channels, filters, attrs):
    data, weight, _ = conv_arrays(n, channels, filters, attrs)
    s = Shapes(n, channels, filters, **attrs)
    assert not (lanes_fit(s, 4) or points_fit(s, 4))
    assert_exact(conv, [data, weight], attrs)


@pytest.mark.parametrize(
    "form, shapes",
    [
        (geometry((16, 16), (1, 1)), [(32, 96), (64, 192)]),
        (geometry((16, 16), (1, 1)), [(30, 24), (31, 12)]),
    ],
    ids=["copied", "as-they-lie"],
)
def test_convolutions_of_points_that_differ_in_lengths_share_a_kernel(form, shapes):
    assert_one_kernel([(channels, filters, form) for channels, filters in shapes])


def test_windows_over_other_numbers_of_channels_share_a_kernel():
    forms = [geometry((8, 8), (3, 3), pad=1, num_group=n) for n in (16, 48)]
    assert_one_kernel([(f["num_group"], f["num_group"], f) for f in forms])


def assert_one_kernel(layers):
    """One text serves all (channels, filters, attrs), and each answer is right."""
    texts = set()
    for channels, filters, attrs in layers:
        data, weight, _ = conv_arrays(1, channels, filters, attrs)
        assert_exact(conv, [data, weight], attrs)
        texts.update(
            launch.kernel for launch in plan_alone(conv, [data, weight], attrs).made.launches
        )
    assert len(texts) == 1


def test_nothing_is_written_over_what_is_read_by_loops_that_need_scratch():
    """The compiler is told so: `work` among the arguments of a kernel says it."""
    for build in (vision.mobilenet_v2_0_25, vision.squeezenet1_1):
        net = build()
        net.initialize()
        net.hybridize(backend="numpy")
        net(nd.zeros((1, 3, 224, 224)))
        (plan,) = net.plans.values()
        memory = Plan(plan.stages[0][1], plan.inputs, target="cpu").memory
        assert memory.scratch
        assert not {node for (node, _), _ in memory.in_place} & set(memory.scratch)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_padding_times_an_infinite_weight_is_not_passed_over(value):
    for n, groups, filters in (LANES, 1, 2), (1, 2, 2), (1, 1, 256):
        is_copied = filters == 256
        attrs = geometry((7, 7) if is_copied else (4, 4), (3, 3), pad=1, num_group=groups)
        data, weight, grad = conv_arrays(n, 2, filters, attrs)
        weight[0, 0, 0, 0] = value
        for op, arrays in (conv, [data, weight]), (conv_data, [grad, weight]):
            if op is conv_data and is_copied:  # windows are copied by the forward pass only
                continue
            with np.errstate(invalid="ignore"):
                expected = op.eager(*arrays, **attrs)
            assert np.isnan(expected).any()
            got = compiled(op, arrays, attrs)
            np.testing.assert_allclose(got, expected, 1e-4, 1e-5)


@pytest.mark.parametrize(
    "shape, out, form",
    [
        ((LANES, 6, 14, 14), 16, "lanes"),  # LeNet
        ((LANES - 1, 6, 14, 14), 16, "planes"),
        ((4 * LANES, 256, 56, 56), 64, "planes"),  # vectors of images would not fit
        ((1, 512, 2, 2), 512, "points"),  # the end of ResNet
        ((1, 64, 16, 16), 64, "planes"),  # its beginning
        ((1, 3, 2, 3), 64, "planes"),  # 27 weights: no whole vectors
    ],
)
def test_form_is_chosen_by_shape(shape, out, form):
    n, channels, *size = shape
    s = Shapes(n, channels, out, **geometry(tuple(size), (3, 3), pad=1))
    lanes, points = lanes_fit(s, 4), points_fit(s, 4)
    assert form == ("lanes" if lanes else "points" if points else "planes")


@pytest.mark.parametrize(
    "nbytes, count, tiles",
    [
        (32, 16, [(4, 3, 0), (4, 3, 0), (4, 3, 4), (6, 2, 1)]),
        (64, 32, [(6, 4, 0), (6, 4, 0), (4, 6, 4), (8, 3, 1)]),
    ],
    ids=["avx2", "avx512"],
)
def test_tiles_of_points_leave_registers_for_operands(nbytes, count, tiles, monkeypatch):
    """A row of vectors and one weight are live beside the sums."""
    layers = [(96, 16, 112**2), (144, 24, 56**2), (384, 64, 14**2), (512, 2048, 7**2)]
    for module in "machine", "imagepoints":
        monkeypatch.setattr(f"minihybrid.ops.cpu.{module}.registers", lambda: (nbytes, count))
    assert [_tile(*layer, 4) for layer in layers] == tiles
    assert all(high * wide + wide + 1 <= count for high, wide, _ in tiles)


# -- what fuses ------------------------------------------------------------------------
def plan_of(net, x):
    """A net's answers line by line and compiled, and its plan."""
    net.initialize()
    net(x)
    for i, p in enumerate(net.collect_params().values()):
        if "running" not in p.name:
            p.set_data(nd.array(random(p.shape, i) * 0.3))
    expected = net(x)
    net.hybridize()
    got = net(x)
    (plan,) = net.plans.values()
    return expected.asnumpy(), got.asnumpy(), plan


def kernels(plan):
    """The operators of each kernel."""
    return [
        repr(n.attrs.get("graph", n.op.name))
        for n in plan.graph.nodes
        if n.op is not None and not n.op.view
    ]


@pytest.mark.slow
def test_lenet_takes_five_kernels_and_never_writes_what_it_pools():
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(6, 5, padding=2, activation="relu"),
        nn.MaxPool2D(2, 2),
        nn.Conv2D(16, 5, activation="relu"),
        nn.MaxPool2D(2, 2),
        nn.Dense(120, activation="relu"),
        nn.Dense(84, activation="relu"),
        nn.Dense(10),
    )
    expected, got, plan = plan_of(net, nd.array(random((LANES, 1, 28, 28))))
    np.testing.assert_allclose(got, expected, 1e-4, 1e-4)
    assert plan.n_kernels == 5
    assert kernels(plan)[:2] == ["_conv_pool + broadcast_add + relu"] * 2
    data, small, smaller = 28 * 28, 6 * 14 * 14, 16 * 5 * 5
    rows = data + 2 * (small + smaller + 120 + 84) + 10  # each read and written once
    weights = 6 * 26 + 16 * 151 + 120 * 401 + 84 * 121 + 10 * 85
    assert plan.nbytes_moved == 4 * (LANES * rows + weights)


@pytest.mark.parametrize(
    "pool",
    [nn.MaxPool2D(3, 2), nn.MaxPool2D(2, 2, 1), nn.AvgPool2D(2, 2)],
    ids=["overlapping", "padded", "mean"],
)
def test_other_windows_keep_a_kernel_of_their_own(pool):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(2, 3, activation="relu"), pool)
    expected, got, plan = plan_of(net, nd.array(random((LANES, 1, 9, 9))))
    np.testing.assert_allclose(got, expected, 1e-4, 1e-5)
    assert plan.n_kernels == 2


def test_maximum_stays_behind_what_can_turn_the_order():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(2, 3), nn.HybridLambda(lambda F, x: 0 - x), nn.MaxPool2D(2, 2))
    expected, got, plan = plan_of(net, nd.array(random((LANES, 1, 8, 8))))
    np.testing.assert_allclose(got, expected, 1e-4, 1e-5)
    assert plan.n_kernels == 2


@pytest.mark.slow
def test_windows_side_by_side_share_a_kernel_with_what_follows():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(2, 3, activation="relu"), nn.MaxPool2D(2, 2))
    x, grads = nd.array(random((3, 1, 8, 8))), []
    net.initialize()
    for is_hybrid in (False, True):
        net.hybridize(is_hybrid)
        with autograd.record():
            y = net(x)
        y.backward(nd.array(random(y.shape, 1)))
        grads.append(net[0].weight.grad().asnumpy())
    np.testing.assert_allclose(grads[1], grads[0], 1e-4, 1e-5)


class Block(nn.HybridSequential):
    """relu(x + norm(conv(x)))."""

    def hybrid_forward(self, F, x):
        return F.relu(x + super().hybrid_forward(F, x))


@pytest.mark.parametrize("n", [1, LANES])
def test_norm_sum_and_relu_are_computed_in_the_kernel_of_the_convolution(n):
    net = Block()
    net.add(nn.Conv2D(LANES, 3, padding=1, use_bias=False), nn.BatchNorm())
    expected, got, plan = plan_of(net, nd.array(random((n, LANES, 4, 4))))
    np.testing.assert_allclose(got, expected, 1e-4, 1e-5)
    assert sorted(kernels(plan), key=len) == [
        "_plus_scalar + rsqrt + elemwise_mul",
        "_conv + broadcast_sub + broadcast_mul + broadcast_add + elemwise_add + relu",
    ]


def test_resnet_takes_one_kernel_a_convolution_and_one_for_its_scale():
    net = vision.resnet18_v1()
    net.initialize()
    net.hybridize()
    plan, *_ = net.plan_for(nd.zeros((1, 3, 64, 64)))  # nothing is compiled yet
    names = kernels(plan)
    assert sum("_conv" in name for name in names) == 20
    assert names.count("_plus_scalar + rsqrt + elemwise_mul") == 19
    assert plan.n_kernels == 42  # and the maxima; the last sum, its means; the end
