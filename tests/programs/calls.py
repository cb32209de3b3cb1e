"""Ways of calling one program: each is a mode, whose answers are the eager ones.

Arrays made of NumPy's that are not contiguous, inputs that are views of one memory, one
array for two inputs, literals as arguments, operators on a device one by one, `out=` and
operators that write into their first operand, writes between `record()` and `backward`,
outputs that are recorded for no gradient, a function of its own (or a hybridized one)
inside, and a net that changes its states twice in one call. `TRANSFORMS` are `mx.vjp`,
`mx.jvp` and `mx.vmap`, which give some answers.
A mode of `TWINS` gives two answers, which must be equal: of a call, and of the same
computation without it.
"""

import operator
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from unittest import mock

import numpy as np

import minihybrid as mh
from minihybrid import autograd, nd
from minihybrid.core.cache_entry import MAX_CONSTANTS
from minihybrid.core.op import HybridError
from minihybrid.gluon import HybridBlock
from minihybrid.ops.linalg import LinAlgError
from programs.draft import ARRAYS
from programs.draw import OUTPUT_LAYERS
from programs.files import Refused, data_of
from programs.judge import UNWRITTEN, Net, answers, as_list, fill, head_gradient, on_gpu, widened
from programs.rewrites import reached
from programs.rules import BY_NAME
from programs.run import CONTROL, INFIX, Program, all_steps, apply, arrays_of, first_of, heads
from programs.shrink import values_of

Answers = dict[str, np.ndarray]


# -- the same numbers in other memory --------------------------------------------------
def strided(array: np.ndarray, kind: int) -> np.ndarray:
    """The same array, not contiguous: of Fortran's order, reversed, or with gaps."""
    if not array.ndim:
        return array
    if kind == 0:
        return np.asfortranarray(array)
    backwards = (slice(None, None, -1),) * array.ndim
    if kind == 1:
        return np.ascontiguousarray(array[backwards])[backwards]
    wide = np.zeros([2 * n for n in array.shape], array.dtype)
    every = (slice(None, None, 2),) * array.ndim
    wide[every] = array
    return wide[every]


def by_strided(program: Program) -> Answers:
    """Its inputs come from NumPy arrays that are not contiguous."""
    make = mh.np.array if program.world == "np" else nd.array
    xs = [make(strided(a, k % 3), dtype=a.dtype) for k, a in enumerate(data_of(program))]
    return answers(Net(program), program, xs=xs)


def views(program: Program) -> list[nd.NDArray]:
    """Its inputs of one dtype as parts of one array."""
    arrays = data_of(program)
    xs: list = [None] * len(arrays)
    kind = ARRAYS[program.world]
    for dtype in {a.dtype for a in arrays}:
        some = [k for k, a in enumerate(arrays) if a.dtype == dtype]
        memory, begin = np.concatenate([np.ravel(arrays[k]) for k in some]), 0
        for k in some:
            xs[k] = kind(memory[begin : begin + arrays[k].size].reshape(arrays[k].shape))
            begin += arrays[k].size
    return xs


def by_views(hybridize: bool) -> Callable:
    """A mode: inputs share one memory."""

    def mode(program: Program) -> Answers:
        net = Net(program)
        if hybridize:
            net.hybridize(backend="numpy")
        return answers(net, program, xs=views(program))

    return mode


def by_late_writes(hybridize: bool) -> Callable:
    """A mode: inputs and weights are overwritten between `record()` and `backward`."""

    def mode(program: Program) -> Answers:
        if program.second:
            raise Refused("late writes: the second derivatives are of other values")
        net, xs, backward = Net(program), views(program), autograd.backward
        if hybridize:
            net.hybridize(backend="numpy")

        def late(ends: list, gradients: list) -> None:
            weights = [p.data() for p in net.collect_params().values() if p.grad_req != "null"]
            for array in xs + weights:
                array[...] = 3
            backward(ends, gradients)

        with mock.patch.object(autograd, "backward", late):
            return answers(net, program, xs=xs)

    return mode


def by_alias(hybridize: bool) -> Callable:
    """A mode: one array is passed for two inputs, and has the sum of their gradients."""

    def mode(program: Program) -> tuple[Answers, Answers]:
        places = [i for i, each in enumerate(program.inputs) if each.role == "data"]
        specs = [(program.inputs[i].shape, program.inputs[i].dtype) for i in places]
        pairs = [(a, b) for b in range(len(specs)) for a in range(b) if specs[a] == specs[b]]
        if not pairs:
            raise Refused("alias: no two inputs of one shape and dtype")
        first, second = pairs[-1]
        inputs = list(program.inputs)
        inputs[places[second]] = replace(inputs[places[first]])
        twin = program.but(inputs=tuple(inputs), second=False)
        apart = answers(Net(twin), twin)
        net = Net(twin)
        if hybridize:
            net.hybridize(backend="numpy")
        xs = [ARRAYS[twin.world](a) for a in data_of(twin)]
        xs[second] = xs[first]
        floats = [k for k, (_, dtype) in enumerate(specs) if dtype[0] == "f"]
        names = [f"gradient of input {floats.index(k)}" for k in pairs[-1] if k in floats]
        if names and names[0] in apart:  # what a pass doesn't reach keeps the number from before
            written = [apart[n] for n in names if (apart[n] != UNWRITTEN).any()]
            apart |= dict.fromkeys(names, sum(written) if written else apart[names[0]])
        return apart, answers(net, twin, xs=xs)

    return mode


# -- literals that are arguments -------------------------------------------------------
class Numbered(Net):
    """A program whose literals are arguments of each call, behind its arrays."""

    def __init__(self, program: Program, **kwargs) -> None:
        super().__init__(program, **kwargs)
        self.places = [
            k for k, s in enumerate(program.steps) if type(s.attrs.get("scalar")) in (int, float)
        ]
        self.count = sum(each.role == "data" for each in program.inputs)
        self.numbers = [program.steps[k].attrs["scalar"] for k in self.places]

    def hybrid_forward(self, F, *args, **params):
        drawn, steps = self.program, list(self.program.steps)
        for k, number in zip(self.places, args[self.count :], strict=True):
            steps[k] = replace(steps[k], attrs={**steps[k].attrs, "scalar": number})
        self.program = drawn.but(steps=tuple(steps))
        try:
            return super().hybrid_forward(F, *args[: self.count], **params)
        finally:
            self.program = drawn


class Called:
    """A block whose calls get further arguments."""

    def __init__(self, net: Net, more: list) -> None:
        self.net, self.more, self.collect_params = net, more, net.collect_params

    def __call__(self, *xs):
        return self.net(*xs, *self.more)


def by_numbers(program: Program) -> Answers:
    """Its literals are arguments, and so many others came before that they are inputs."""
    net = Numbered(program)
    if not net.numbers:
        raise Refused("numbers: no literal")
    net.hybridize(backend="numpy")
    fill(net, program)
    xs = [ARRAYS[program.world](a) for a in data_of(program)]
    for k in range(1, MAX_CONSTANTS + 3):
        others = [number + k for number in net.numbers]
        with suppress(HybridError), autograd.record():  # uint8 has no 300
            net(*xs, *others)
        with suppress(HybridError):
            net(*xs, *others)
    return answers(Called(net, net.numbers), program)


# -- other places for results ----------------------------------------------------------
def in_place(program: Program) -> Answers:
    """Predictions: each result is written into an array that is there already.

    An infix operator writes into a copy of its first operand, as in `x += y`; others
    get `out=`, an array of NaN, or every second time a copy of their input.
    """
    if any(step.op == "Dropout" for step in program.steps):
        raise Refused("in place: random numbers")
    values = [ARRAYS[program.world](a) for a in arrays_of(program)]
    for k, step in enumerate(program.steps):
        outs = apply(nd, step, [values[i] for i in step.inputs])
        if program.world == "np" and not step.inputs:
            outs = [out.as_np_ndarray() for out in outs]
        if step.n_outputs == 1:
            outs = [written(step, [values[i] for i in step.inputs], outs[0], k)]
        values += outs
    return {f"output {k}": values[i].asnumpy() for k, i in enumerate(program.outputs)}


def written(step, given: list, plain, k: int):
    """The result of a step, in an array that was there before."""
    same = bool(given) and (given[0].shape, given[0].dtype) == (plain.shape, plain.dtype)
    if step.op in INFIX:
        sign = f"{step.op}="
        if sign not in WRITING or not same or step.attrs.get("reversed"):
            return plain
        first = given[0].copy()
        out = WRITING[sign](first, given[1] if len(given) > 1 else step.attrs["scalar"])
        assert out is first, f"{sign} gives another array"
        return out
    if step.op in ("[]", *CONTROL) or not given or step.op.startswith("np.linalg."):
        return plain
    target = type(plain)(np.full(plain.shape, FILL[np.dtype(plain.dtype).kind], plain.dtype))
    if same and k % 2:
        target = given[0].copy()
        given = [target if g is given[0] else g for g in given]
    (out,) = apply(nd, replace(step, attrs={**step.attrs, "out": target}), given)
    assert out is target, f"{step.op}: out= gives another array"
    return out


FILL = {"f": np.nan, "i": -1, "u": 99, "b": True}
WRITING = {"+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv}


def recorded(program: Program) -> Answers:
    """Predictions inside `record(train_mode=False)`."""
    net = Net(program)
    fill(net, program)
    xs = [ARRAYS[program.world](a) for a in data_of(program)]
    for x in xs:
        if np.dtype(x.dtype).kind == "f":
            x.attach_grad()
    nd.random.seed(5)
    with autograd.record(train_mode=False):
        outs = as_list(net(*xs))
    return {f"output {k}": o.asnumpy() for k, o in enumerate(outs)}


# -- functions inside ------------------------------------------------------------------
class Inner(HybridBlock):
    """Some steps of a program: a function of the values they read."""

    def __init__(self, program: Program, begin: int, end: int, **kwargs) -> None:
        super().__init__(**kwargs)
        self.program, self.steps = program, program.steps[begin:end]
        self.first, self.end = first_of(program, begin), first_of(program, end)
        read = sorted({i for step in self.steps for i in step.inputs})
        behind = {i for step in program.steps[end:] for i in step.inputs} | {*program.outputs}
        self.reads = [i for i in read if i < self.first]
        self.gives = [i for i in range(self.first, self.end) if i in behind]

    def hybrid_forward(self, F, *xs):
        values = dict(zip(self.reads, xs, strict=True))
        number = self.first
        for step in self.steps:
            outs = apply(F, step, [values[i] for i in step.inputs])
            values |= dict(enumerate(outs, number))
            number += step.n_outputs
        return [values[i] for i in self.gives]


class Outer(Net):
    """A program whose middle steps are a block inside."""

    def __init__(self, program: Program, begin: int, end: int, **kwargs) -> None:
        super().__init__(program, **kwargs)
        self.begin, self.end = begin, end
        self.inner = Inner(program, begin, end)

    def steps_of(self, F, values: list) -> list:
        for k, step in enumerate(self.program.steps):
            if k == self.begin:
                outs = as_list(self.inner(*(values[i] for i in self.inner.reads)))
                made = dict(zip(self.inner.gives, outs, strict=True))
                values += [made.get(i) for i in range(self.inner.first, self.inner.end)]
            if not self.begin <= k < self.end:
                values += apply(F, step, [values[i] for i in step.inputs])
        return [values[i] for i in self.program.outputs]


def by_inner(hybridize: str) -> Callable:
    """A mode: middle steps are a block, hybridized in an eager net, or eager in a plan."""

    def mode(program: Program) -> Answers:
        n = len(program.steps)
        begin, end = n // 3, n - n // 3
        inner = Inner(program, begin, end)
        states = {i for i, each in enumerate(program.inputs) if each.role == "state"}
        if not inner.reads or not inner.gives or states & {*inner.reads}:
            raise Refused("inside: steps without inputs or results, or with states")
        if any(not step.inputs for step in program.steps):
            raise Refused("inside: steps that read nothing")
        net = Outer(program, begin, end)
        if hybridize == "inner":
            net.inner.hybridize(backend="numpy")
        else:
            net.hybridize(backend="numpy")
        return answers(net, program)

    return mode


# -- states that change while a net is traced ------------------------------------------
class Twice(HybridBlock):
    """A program applied twice to the same inputs."""

    def __init__(self, program: Program, **kwargs) -> None:
        super().__init__(**kwargs)
        self.net = Net(program)

    def hybrid_forward(self, F, *xs):
        return as_list(self.net(*xs)) + as_list(self.net(*xs))


def by_twice(program: Program) -> tuple[Answers, Answers]:
    """Two calls, and one call of a hybridized block in which the states change twice."""
    if any(step.op == "Dropout" for step in program.steps):
        raise Refused("twice: random numbers")
    nets = Net(program), Twice(program)
    nets[1].hybridize(backend="numpy")
    ends = [k + side * len(program.outputs) for side in (0, 1) for k in heads(program)]
    pair = []
    for net in nets:
        call = net if net is nets[1] else lambda *xs: as_list(nets[0](*xs)) + as_list(nets[0](*xs))
        fill(net, program)
        xs = [ARRAYS[program.world](a) for a in data_of(program)]
        floats = [x for x in xs if np.dtype(x.dtype).kind == "f"]
        for x in floats:
            x.attach_grad()
        if program.train:
            with autograd.record():
                outs = as_list(call(*xs))
            tops = [outs[k] for k in ends if np.dtype(outs[k].dtype).kind == "f"]
            if tops:
                autograd.backward(tops, [head_gradient(o) for o in tops])
        else:
            outs = as_list(call(*xs))
        values = {f"output {k}": o for k, o in enumerate(outs)}
        if program.train:
            values |= {f"gradient of input {k}": x.grad for k, x in enumerate(floats)}
        for name, param in net.collect_params().items():
            end = name.rpartition("p")[2]
            if param.grad_req == "null":
                values[f"p{end} afterwards"] = param.data()
            elif program.train:
                values[f"gradient of p{end}"] = param.grad()
        pair.append({name: value.asnumpy() for name, value in values.items()})
    return pair[0], pair[1]


# -- transformations -------------------------------------------------------------------
def differentiable(program: Program) -> tuple[Callable, list[nd.NDArray], list[int]]:
    """(its outputs with gradients of some inputs, these inputs, their numbers among floats)."""
    states = any(each.role == "state" for each in program.inputs)
    if states or any(step.op == "Dropout" for step in all_steps(program)):
        raise Refused("transformation: states or random numbers")
    if not program.train or program.world == "np":
        raise Refused("transformation: no gradient")
    net, on = Net(program), reached(program)
    fill(net, program)
    xs = [ARRAYS[program.world](a) for a in data_of(program)]
    places = [i for i, each in enumerate(program.inputs) if each.role == "data"]
    floats = [k for k, x in enumerate(xs) if np.dtype(x.dtype).kind == "f"]
    some = [k for k in floats if places[k] in on]
    ends = heads(program)

    def function(*values):
        given = list(xs)
        for k, value in zip(some, values, strict=True):
            given[k] = value
        outs = as_list(net(*given))
        return [outs[k] for k in ends if np.dtype(outs[k].dtype).kind == "f"]

    if not some or not function(*(xs[k] for k in some)):
        raise Refused("transformation: no gradient")
    function.net = net
    return function, [xs[k] for k in some], [floats.index(k) for k in some]


def by_vjp(hybridize: bool) -> Callable:
    """A mode: gradients by `mx.vjp`."""

    def mode(program: Program) -> Answers:
        function, inputs, numbers = differentiable(program)
        function.net.hybridize(active=hybridize, backend="numpy")
        with autograd.train_mode():
            outs, pullback = mh.vjp(function, *inputs)
            grads = pullback([head_gradient(o) for o in outs])
        actual = zip(numbers, grads, strict=True)
        return {f"gradient of input {k}": g.asnumpy() for k, g in actual}

    return mode


def by_jvp(hybridize: bool) -> Callable:
    """A mode: the gradient of a small input, a partial derivative at a time, by `mx.jvp`."""

    def mode(program: Program) -> Answers:
        function, inputs, numbers = differentiable(program)
        function.net.hybridize(active=hybridize, backend="numpy")
        if any(step.op in OUTPUT_LAYERS for step in all_steps(program)):
            raise Refused("jvp: a pullback that isn't linear in the cotangent")
        at = min(range(len(inputs)), key=lambda k: inputs[k].size)
        grad, zeros = np.zeros(inputs[at].shape, inputs[at].dtype), [x * 0 for x in inputs]
        if inputs[at].size > 9 or not all(map(finite, inputs)):
            raise Refused("jvp: only large inputs, or infinite ones")
        with autograd.train_mode():
            for i in np.ndindex(grad.shape):
                one = np.zeros_like(grad)
                one[i] = 1
                tangents = [*zeros[:at], nd.array(one, dtype=one.dtype), *zeros[at + 1 :]]
                outs, changes = mh.jvp(function, inputs, tangents)
                if not all(map(finite, (*outs, *changes))):
                    raise Refused("jvp: 0 times infinity")
                parts = [(c * head_gradient(o)).sum() for o, c in zip(outs, changes, strict=True)]
                grad[i] = sum(float(p.asscalar()) for p in parts)
        return {f"gradient of input {numbers[at]}": grad}

    return mode


def by_differences(program: Program) -> tuple[Answers, Answers]:
    """Gradients, and central differences, both in float64, where they have a limit."""
    without = {BY_NAME[name] for name in NO_DERIVATIVE}  # whatever alias a step has
    if any(BY_NAME.get(step.op) in without for step in all_steps(program)):
        raise Refused("differences: a gradient that is none")
    wide = widened(program)
    try:
        function, inputs, _ = differentiable(wide)
    except mh.DTypeError:  # argmax, for example, returns float32 for any input
        raise Refused("differences: dtypes that mix in float64") from None
    if any(v.dtype == np.float32 for v in values_of(wide)):  # of integers, for example
        raise Refused("differences: too coarse for small steps")
    rng = np.random.default_rng(program.seed)  # moved a little: equal elements have no derivative
    inputs = [nd.array(x.asnumpy() + 1e-3 * rng.random(x.shape), dtype=x.dtype) for x in inputs]
    right, actual = {}, {}
    with autograd.train_mode():
        outs, pullback = mh.vjp(function, *inputs)
        tops = [head_gradient(o).asnumpy() for o in outs]
        grads = pullback([head_gradient(o) for o in outs])
        if not all(map(finite, (*inputs, *outs, *grads))):
            raise Refused("differences: infinite or NaN")

        def value(at, i, step):
            moved = inputs[at].asnumpy().copy()
            moved[i] += step
            moved = nd.array(moved, dtype=moved.dtype)
            outs = function(*inputs[:at], moved, *inputs[at + 1 :])
            return [float((t * o.asnumpy()).sum()) for t, o in zip(tops, outs, strict=True)]

        for at, grad in enumerate(grads):
            right[f"slope {at}"], slopes = grad.asnumpy(), grad.asnumpy().copy()
            for i in [*np.ndindex(slopes.shape)][:6]:
                h, here = 1e-6 * max(1, abs(inputs[at].asnumpy()[i])), value(at, i, 0)
                ends = [value(at, i, k * h) for k in (-2, -1, 1, 2)]
                if [len(e) for e in ends] != [len(here)] * 4 or not np.isfinite(
                    [here, *ends]
                ).all():
                    continue
                size = np.abs([here, *ends]).sum()
                a, b, c, d = (sum(e) - sum(here) for e in ends)
                slope, wide = (c - b) / (2 * h), (d - a) / (4 * h)
                room = 1e-7 * size + 1e-5 * abs(slope)
                smooth = abs(slope - wide) < room and abs((c + b) / h) < 10 * room
                if smooth and not abs(slope - slopes[i]) <= 10 * room:
                    slopes[i] = slope
            actual[f"slope {at}"] = slopes
    return right, actual


NO_DERIVATIVE = {  # whose gradient is, on purpose, another one
    "BlockGrad",
    "stop_gradient",
    "contrib.box_decode",
    "contrib.box_encode",
    "make_loss",
    "SoftmaxOutput",
    "Softmax",
    "LinearRegressionOutput",
    "LogisticRegressionOutput",
    "MAERegressionOutput",
    "SVMOutput",
    "cast",
    "Cast",
    "amp_cast",
    "MakeLoss",
    "max",  # equal elements, which `tile` makes, get the whole gradient each
    "min",
    "contrib.MultiBoxDetection",  # zeros, as in MXNet
    "contrib.ROIAlign",  # its regions get zeros
    "ROIPooling",
    "linalg.potrf",  # reads one triangle; its gradient is symmetric, as in MXNet
    "multi_sum_sq",  # float32 whatever its inputs are: too coarse for small steps
}


def finite(x: nd.NDArray) -> bool:
    """Whether all elements are."""
    return bool(np.isfinite(x.asnumpy()).all())


class Mapped(HybridBlock):
    """A program mapped over the first axis of its inputs."""

    def __init__(self, program: Program, **kwargs) -> None:
        super().__init__(**kwargs)
        self.net = Net(program)

    def hybrid_forward(self, F, *xs):
        return mh.vmap(lambda *xs: as_list(self.net(*xs)))(*xs)


def disordered(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same numbers in another order, whole ones within their row: `gather_nd` has a bound
    for each row of its indices."""
    if array.dtype.kind == "f" or not array.ndim:
        return rng.permutation(array.ravel()).reshape(array.shape)
    return rng.permuted(array, axis=-1)


def by_vmap(hybridize: bool) -> Callable:
    """A mode: the first of three slices, mapped at once; others have its numbers in disorder."""

    def mode(program: Program) -> Answers:
        states = any(each.role == "state" for each in program.inputs)
        if states or program.world == "np" or any(s.op == "Dropout" for s in all_steps(program)):
            raise Refused("vmap: states, random numbers or arrays of np")
        net, rng = Mapped(program), np.random.default_rng(len(program.steps))
        fill(net, program)
        net.hybridize(active=hybridize, backend="numpy")
        arrays = data_of(program)
        slices = [[disordered(a, rng) for a in arrays] for _ in "ab"]
        columns = zip(arrays, *slices, strict=True)
        inputs = [nd.array(np.stack(c), dtype=c[0].dtype) for c in columns]
        try:
            outs = as_list(net(*inputs))
        except LinAlgError:
            raise Refused("vmap: another slice isn't positive definite, or is singular") from None
        return {f"output {k}": o.asnumpy()[0] for k, o in enumerate(outs)}

    return mode


TRANSFORMS = {
    "vjp": by_vjp(False),
    "vjp of a plan": by_vjp(True),
    "jvp": by_jvp(False),
    "jvp of a plan": by_jvp(True),
    "vmap": by_vmap(False),
    "vmap in a plan": by_vmap(True),
}
CALLS = {
    "strided": by_strided,
    "views": by_views(False),
    "views in a plan": by_views(True),
    "late writes": by_late_writes(False),
    "late writes in a plan": by_late_writes(True),
    "numbers": by_numbers,
    "line by line on a GPU": lambda program: on_gpu(program, hybridize=False),
    "in place": in_place,
    "recorded": recorded,
    "hybridized inside": by_inner("inner"),
    "inlined": by_inner("outer"),
}
TWINS = {
    "alias": by_alias(False),
    "alias in a plan": by_alias(True),
    "twice": by_twice,
    "differences": by_differences,
}
