"""Writes into arrays: a recorded program has the gradient of the same program without them."""

import operator

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import autograd, function, nd
from minihybrid.core.context import simulated_gpu
from minihybrid.core.op import HybridError
from minihybrid.core.tracing import TraceError

SHAPE = (3, 4)
AT = {
    "x[i]": 1,
    "x[-1]": -1,
    "x[:]": slice(None),
    "x[...]": ...,
    "x[:, j]": (slice(None), 2),
    "x[i, j]": (1, 2),
    "x[i:j]": slice(1, 3),
    "x[::2]": slice(None, None, 2),
    "x[::-1]": slice(None, None, -1),
    "x[:0]": slice(0, 0),
    "x[..., j]": (..., 1),
    "x[None]": None,
    "x[list]": [2, 0],
    "x[array]": np.array([0, 2]),
    "x[lists]": ([0, 1], [3, 1]),
    "x[mask]": np.array([True, False, True]),
    "x[full mask]": np.arange(12).reshape(SHAPE) % 3 == 0,
}
IN_PLACE = {
    "+=": operator.iadd,
    "-=": operator.isub,
    "*=": operator.imul,
    "/=": operator.itruediv,
    "%=": operator.imod,
}
FORMS = [*AT, *IN_PLACE, "copyto", "out=", "copy_from"]
BEFORE = ["unread", "read", "read as a view", "a view of it is read later", "detached later"]
BEFORE += ["written as nd's or np's", "written by detach()"]


def part(form):
    """The index that a form writes."""
    return AT.get(form, ...)


def write(form, x, v):
    """Write `v`, in the shape of the part or broadcast to it, by a form."""
    if form in AT:
        x[part(form)] = v
    elif form in IN_PLACE:
        assert IN_PLACE[form](x, v) is x
    elif form == "copyto":
        v.copyto(x)
    elif form == "out=":
        (mx.np.add(v, 0, out=x) if type(x).is_np else nd.identity(v, out=x))
    else:
        x.copy_from(v)


def functional(form, x, v):
    """The array that `x` is after the write, computed by operators alone."""
    if form in IN_PLACE:
        return getattr(operator, IN_PLACE[form].__name__[1:])(x, v)
    numbers, holes = np.full(SHAPE, -1), np.zeros(SHAPE)
    places = np.arange(v.size).reshape(v.shape)
    numbers[part(form)] = places if np.ndim(numbers[part(form)]) else places.item()
    holes[part(form)] = 1
    spread = (numbers.reshape(-1, 1) == np.arange(v.size)).astype("float64")
    like = mx.np if type(x).is_np else nd
    spread, keep = (like.array(a, dtype="float64", ctx=x.ctx) for a in (spread, 1 - holes))
    new = like.dot(spread, v.reshape((-1,)))
    return x * keep + new.reshape(SHAPE)


def program(form, target, value, before, is_np, ctx, by_write):
    """The gradients of a program with one write, of the weights and of the target."""
    rng = np.random.RandomState(7)

    def array(values):
        return (mx.np if is_np else nd).array(values, dtype="float64", ctx=ctx)

    w, x = array(rng.rand(*SHAPE) + 1), array(rng.rand(*SHAPE) + 5)
    w.attach_grad()
    if target == "variable":
        x.attach_grad()
    view = x[1] if before in ("read as a view", "a view of it is read later") else None
    with autograd.record():
        v = array(rng.rand(*SHAPE) + 1) if value == "constant" else w * w
        if form in AT:
            shape = np.zeros(SHAPE)[part(form)].shape
            v = v.reshape((-1,))[: int(np.prod(shape))].reshape(shape or (1,))
        if value == "broadcast":
            v = w[0, 1]
        if target == "on the tape":
            x = x * w
            view = None if view is None else x[1]
        loss = (w * 3).sum()
        if before == "read":
            loss = loss + (x * x * w).sum()
        elif before == "read as a view":
            loss = loss + (view * view * w[0]).sum()
        if by_write and before == "written as nd's or np's":
            write(form, *(a.as_nd_ndarray() if is_np else a.as_np_ndarray() for a in (x, v)))
        elif by_write:
            write(form, x.detach() if before == "written by detach()" else x, v)
        else:
            x = functional(form, x, v)
            if before == "a view of it is read later" and target == "off the tape":
                view = x[1]  # on the tape, indexing copies, as in MXNet
        later = x.detach() if before == "detached later" else x
        if before == "a view of it is read later":
            loss = loss + (view * view).sum()
        loss = loss + (later * later * w).sum()
    loss.backward()
    return [w.grad.asnumpy(), x.asnumpy()]


ANSWERED = {"unread", "read", "detached later", "written as nd's or np's"}


@pytest.mark.parametrize("is_np", [False, True], ids=["nd", "np"])
@pytest.mark.parametrize("form", FORMS)
def test_a_write_has_the_gradient_of_the_functional_program_or_is_refused(form, is_np):
    answered = set()
    for target in ("off the tape", "on the tape", "variable"):
        for value in ("recorded", "broadcast", "constant"):
            if value == "broadcast" and (form in ("copyto",) or form == "out=" and not is_np):
                continue  # other shapes do not fit there
            for before in BEFORE:
                case = (form, target, value, before, is_np, mx.cpu())
                try:
                    got = program(*case, by_write=True)
                except HybridError as error:
                    if value == "broadcast" and "out= has shape" in str(error):
                        continue  # an array of nd, which the program made of one of np
                    assert "record" in str(error) or "overwritten" in str(error), error
                    assert target == "variable" or before not in ANSWERED, (case, error)
                    continue
                assert target != "variable", case
                answered.add((target, value, before))
                for a, b in zip(got, program(*case, by_write=False), strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-12, err_msg=str(case))
    assert ("on the tape", "recorded", "read") in answered


@pytest.mark.parametrize("on", [mx.cpu(), mx.simulated_gpu()], ids=str)
@pytest.mark.parametrize("is_np", [False, True], ids=["nd", "np"])
@pytest.mark.parametrize("form", FORMS)
def test_a_write_outside_of_record_changes_values_and_keeps_the_slope(form, is_np, on):
    """As in MXNet, whether the write is paused or comes before another `record()`."""

    def gradient(by_write):
        def array(values):
            made = nd.array(values, dtype="float64", ctx=on)
            return made.as_np_ndarray() if is_np else made

        rng = np.random.RandomState(7)
        w, v = array(rng.rand(*SHAPE) + 1), rng.rand(*SHAPE) + 2
        v = array(v[part(form)] if form in AT else v)
        w.attach_grad()
        with autograd.record():
            x = w * 2
            with autograd.pause():
                if by_write:
                    write(form, x, v)
                else:
                    change = (functional(form, x, v) - x).detach()
            x = x if by_write else x + change
            loss = (x * x * w).sum() + w.sum()
        loss.backward()
        return w.grad.asnumpy()

    np.testing.assert_allclose(gradient(by_write=True), gradient(by_write=False), rtol=1e-12)


SHARED = {
    "itself": lambda x: x,
    "detached": lambda x: x.detach(),
    "nd's or np's": lambda x: x.as_nd_ndarray() if x.is_np else x.as_np_ndarray(),
    "a view": lambda x: x.reshape((1, *SHAPE))[0],
}
TARGETS = ("weight", "result", "constant", "part of a constant", "variable in a view", "its memory")


def late_write(form, target, through, is_np, hybrid):
    """Gradients of a tape, of the next one at the same arrays, and of the first one again.

    Between the first two, `form` writes into the target through another name of its memory. The
    second pass's values come last.
    """
    rng = np.random.RandomState(7)

    def array(values):
        return (mx.np if is_np else nd).array(values, dtype="float64")

    w, memory, v = array(rng.rand(*SHAPE) + 1), array(rng.rand(2, *SHAPE)), rng.rand(*SHAPE)
    v = array(v[part(form)] if form in AT else v)
    c = memory[1]
    for variable in (w, c) if target in ("variable in a view", "its memory") else (w,):
        variable.attach_grad()
    held = w.as_nd_ndarray() if is_np else w.as_np_ndarray()  # is read after the write
    held = held.as_np_ndarray() if is_np else held.as_nd_ndarray()

    def compute(w, c):
        h = (w * c).exp() * w
        return h, (h * h * w * c).sum() + c.mean() * 12

    run = function(compute) if hybrid else compute

    def gradients(loss):
        loss.backward(retain_graph=True)
        return [a.grad.asnumpy() for a in (w, c) if a.grad is not None]

    with autograd.record():
        h, first = run(w, c)
    if form:
        at = {"weight": w, "result": h, "its memory": memory[1]}.get(target, c)
        write(form, SHARED[through](at), v)
    before = gradients(first)
    with autograd.record():
        second = run(held, c)[1]
    return before, gradients(second), gradients(first), [w.asnumpy(), c.asnumpy()]


@pytest.mark.parametrize("is_np", [False, True], ids=["nd", "np"])
@pytest.mark.parametrize("form", ["x[:]", "x[i, j]", "x[mask]", "+=", "copyto", "out="])
def test_a_write_after_record_changes_no_gradient_of_what_was_recorded(form, is_np):
    """MXNet reads the new values in backward, and PyTorch refuses to."""
    for target in TARGETS:
        for through in SHARED:
            for hybrid in (False, True):
                case = (target, through, is_np, hybrid)
                unwritten = late_write(None, *case)[0]
                before, after, again, (w, c) = late_write(form, *case)
                for own in (before, again):
                    np.testing.assert_allclose(own, unwritten, rtol=1e-12, err_msg=str(case))
                h = np.exp(w * c) * w
                slope = h * h * c * (3 + 2 * w * c), h * h * w * (1 + 2 * w * c) + 1
                np.testing.assert_allclose(after, slope[: len(after)], rtol=1e-9, err_msg=str(case))


@pytest.mark.parametrize("name", ["sgd", "adam", "sgld", "lbsgd"])
@pytest.mark.parametrize("hybrid", [False, True], ids=["eager", "hybrid"])
@pytest.mark.parametrize("is_np", [False, True], ids=["nd", "np"])
def test_a_step_between_two_backwards_of_a_tape_changes_no_gradient(name, hybrid, is_np):
    """And without a tape, a step copies no weight."""
    with mx.util.np_array(is_np):
        net = mx.gluon.nn.Dense(3, in_units=4)
        net.initialize()
        net.hybridize(hybrid)
        trainer = mx.gluon.Trainer(net.collect_params(), name, {"learning_rate": 0.1})
        weight, x = net.weight._arrays[mx.cpu()], (mx.np if is_np else nd).ones((2, 4))
        for retain in (False, True, True):
            with autograd.record():
                loss = (net(x) ** 2).sum()
            loss.backward(retain_graph=retain)
            place, grad, old = id(weight.node), weight.grad.asnumpy(), weight.asnumpy()
            trainer.step(1)
            assert (id(weight.node) == place) == (not retain)
            assert (weight.asnumpy() != old).any()
            if retain:
                loss.backward()
                assert (weight.grad.asnumpy() == grad).all()


def test_a_gradient_on_another_tape_and_a_pullback_keep_their_values():
    x = nd.array([3.0])
    x.attach_grad()
    with autograd.record():
        y = x * x
    y.backward()
    w = nd.array([1.0])
    w.attach_grad()
    with autograd.record():
        z = w * x.grad
        y = x * x * x
    y.backward()
    z.backward()
    assert w.grad.asscalar() == 6
    _, pullback = mx.vjp(lambda x: x * x, x)
    with autograd.record():
        y = x * x
    x[:] = 100
    assert pullback(nd.ones((1,)))[0].asscalar() == 6
    assert autograd.grad(y, x)[0].asscalar() == 6


@pytest.mark.parametrize("view", [lambda y: y[0], lambda y: y.reshape(-1)], ids=["row", "reshape"])
def test_a_write_that_would_miss_the_array_viewed_is_refused(view):
    """On the tape, indexing copies: a paused write into the copy would be lost for `y`."""
    w = nd.ones(SHAPE)
    w.attach_grad()
    with autograd.record():
        y = w * 2
        part = view(y)
        with autograd.pause():
            for change in (lambda: part.__setitem__(slice(None), 9), lambda: part.__iadd__(9)):
                with pytest.raises(HybridError, match="indexed or reshaped inside autograd.record"):
                    change()
        y.sum().backward()
    part[:] = 9  # the tape is gone: a copy


def test_a_view_that_is_a_variable_is_not_written_while_recording():
    x = nd.ones(SHAPE)
    view = x[0:2]
    view.attach_grad()
    with autograd.record():
        y = view * view
        for change in (lambda: view.__setitem__(slice(None), 9), lambda: view.__iadd__(9)):
            with pytest.raises(HybridError, match="x is a variable"):
                change()
    y.backward()
    assert (view.grad.asnumpy() == 2).all() and (x.asnumpy() == 1).all()


VIEW_WRITES = {
    "whole": lambda v, y: v.__setitem__(slice(None), y),
    "in place": lambda v, y: v.__iadd__(y),
    "copyto": lambda v, y: y.copyto(v),
}


@pytest.mark.parametrize("write", VIEW_WRITES.values(), ids=VIEW_WRITES)
def test_a_write_through_a_view_is_recorded_for_the_view(write):
    """As a running mean that is reshaped before it is updated."""
    w, mean = nd.array([1.0, 2.0]), nd.array([3.0, 4.0])
    w.attach_grad()
    view, sibling = mean.reshape((1, 2)), mean[:1]
    with autograd.record():
        write(view, (w * w).reshape((1, 2)))
        loss = (view * 3).sum()
        for stale in (mean, sibling):
            with pytest.raises(HybridError, match="its gradient would be lost"):
                stale * w[:1]
    loss.backward()
    assert w.grad.asnumpy().tolist() == [6, 12]
    assert mean.asnumpy().tolist() == view.asnumpy()[0].tolist()
    with autograd.record():  # the tape is gone, and the memory is a constant again
        loss = (mean * w).sum()
    loss.backward()
    assert w.grad.asnumpy().tolist() == mean.asnumpy().tolist()


def test_of_two_views_that_overlap_only_the_last_written_is_read():
    w, x = nd.ones((2,)), nd.zeros((3,))
    w.attach_grad()
    first, second = x[:2], x[1:]
    with autograd.record():
        first[:] = w * 2
        second[:] = w * 3
        with pytest.raises(HybridError, match="its gradient would be lost"):
            first * w
        loss = second.sum()
    loss.backward()
    assert w.grad.asnumpy().tolist() == [3, 3]


@pytest.mark.parametrize("is_np", [False, True], ids=["nd", "np"])
@pytest.mark.parametrize("form", FORMS)
def test_a_traced_value_is_not_written_into_an_array(form, is_np):
    """The array is written at the first call alone, and has no memory for later ones."""

    class Net(mx.gluon.HybridBlock):
        def forward(self, v):
            x = mx.np.zeros(SHAPE) if is_np else nd.zeros(SHAPE)
            write(form, x, v[0, 0] if form in AT else v)
            return v * 2

    net = Net()
    v = mx.np.ones(SHAPE) if is_np else nd.ones(SHAPE)
    net(v)
    net.hybridize()
    with pytest.raises(TraceError):
        net(v)


@pytest.mark.parametrize("own", [False, True], ids=["of constants", "of its own values"])
def test_set_data_is_refused_while_a_function_is_traced(own):
    class Net(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.scale = mx.gluon.Parameter("scale", shape=(3,), init="ones")

        def forward(self, x):
            self.scale.set_data(self.scale.data() + 1 if own else nd.ones((3,)))
            return x * self.scale.data()

    net = Net()
    net.initialize()
    assert net(nd.ones((3,))).asnumpy().tolist() == [1.0 + own] * 3
    net.hybridize()
    with pytest.raises(TraceError, match="set_data is called while a function is traced"):
        net(nd.ones((3,)))


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside record"])
def test_set_data_inside_record_is_for_parameters_without_a_gradient(inside):
    """Outside, the gradient is that of the values that were recorded."""
    weight, mean = (mx.gluon.Parameter(name, shape=(2,), init="ones") for name in ("w", "mean"))
    for param in (weight, mean):
        param.initialize()
    mean.grad_req = "null"
    with autograd.record():
        loss = (weight.data() * weight.data()).sum()
        mean.set_data(nd.array([3, 3]))
        if inside:
            with pytest.raises(HybridError, match="inside autograd.record"):
                weight.set_data(nd.array([5, 5]))
    assert mean.data().asnumpy().tolist() == [3, 3]
    if not inside:
        weight.set_data(nd.array([5, 5]))
    loss.backward()
    assert weight.grad().asnumpy().tolist() == [2, 2]


def test_a_hybrid_child_refuses_arrays_while_its_parent_is_traced():
    class Net(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.rows = mx.gluon.nn.Embedding(3, 2)

        def forward(self, x):
            return self.rows(nd.array([1])) + x

    net = Net()
    net.initialize()
    assert net(nd.ones((2,))).shape == (1, 2)
    net.hybridize()
    with pytest.raises(TraceError, match="while another block is traced"):
        net(nd.ones((2,)))


MADE_OF_ARRAYS = {
    "nd.array": (lambda v: nd.array(v), nd),
    "nd.array with a dtype": (lambda v: nd.array(v, dtype="float64").astype("float32"), nd),
    "np.array": (lambda v: mx.np.array(v), mx.np),
    "np.atleast_2d": (lambda v: mx.np.atleast_2d(v), mx.np),
    "nd.array of a list": (lambda v: nd.array([v, v]), nd),
    "np.array of a list": (lambda v: mx.np.array([v, v]), mx.np),
    "x[:] = list": (lambda v: assigned(nd.zeros((2, 3)), [v, v]), nd),
    "x[:] = list of np": (lambda v: assigned(mx.np.zeros((2, 3)), [v, v]), mx.np),
}


def assigned(x, value):
    x[:] = value
    return x


@pytest.mark.parametrize("name", MADE_OF_ARRAYS)
def test_an_array_made_of_arrays_on_the_tape_has_their_gradient_or_is_refused(name):
    make, world = MADE_OF_ARRAYS[name]
    x = world.array([1, 2, 3])
    x.attach_grad()
    with autograd.record():
        try:
            made = make(x * 2)
        except HybridError as error:
            assert "list" in name and "gradient would be lost" in str(error)
            return
        loss = made.sum() + x.sum()
    loss.backward()
    assert "list" not in name and x.grad.asnumpy().tolist() == [3, 3, 3]
    assert type(function(make)(x)) is type(x)


@pytest.mark.parametrize("on", [mx.cpu(), mx.simulated_gpu()], ids=str)
def test_an_array_without_axes_takes_every_kind_of_result(on):
    out = mx.np.zeros((), ctx=on)
    assert mx.np.sum(mx.np.ones((3,), ctx=on), out=out) is out and out.item() == 3
    mx.np.array(5.0, ctx=on).copyto(out)
    assert out.item() == 5
    param = mx.gluon.Parameter("scale", shape=(), init="ones")
    param.initialize(ctx=on)
    param.set_data(mx.np.array(2.0))
    assert param.data(on).shape == () and param.data(on).asscalar() == 2


@pytest.mark.parametrize("ctx", [mx.cpu(), simulated_gpu()], ids=str)
def test_a_state_is_overwritten_step_by_step(ctx):
    """As in a recurrent net from scratch: the tape keeps each step's state."""
    w = nd.array([0.5, -0.3, 0.2], dtype="float64", ctx=ctx)
    gradients = []
    for in_place in (True, False):
        w.attach_grad()
        h, outs = nd.zeros((3,), dtype="float64", ctx=ctx), []
        with autograd.record():
            for _ in range(4):
                new = nd.tanh(h * w + 1)
                if in_place:
                    h[:] = new
                else:
                    h = new
                outs.append(h * w)
            loss = sum(out.sum() for out in outs)
        loss.backward()
        gradients.append(w.grad.asnumpy())
    np.testing.assert_allclose(*gradients, rtol=1e-12)
