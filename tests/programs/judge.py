"""What is wrong with a program's answers: eager arrays beside plans, devices and files.

How far two right answers may be apart depends on the program: it runs a few times more
with noise of a few units in the last place behind every operator that rounds. What the
noise changes, nobody can ask for; ten times that, and a few units of the largest
number, are allowed. Where all operators are exact, every bit has to be the same.

What is left out: noise behind operators that only move numbers.
"""

import collections
import warnings
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple
from unittest import mock

import kernels_as_python
import numpy as np

from minihybrid import autograd, nd, simulated_gpu
from minihybrid.core.op import HybridError
from minihybrid.gluon import HybridBlock
from minihybrid.ops import OPS
from programs import files
from programs.draft import ARRAYS
from programs.files import Refused, data_of
from programs.files import in_list as as_list
from programs.rules import BY_NAME, EXACT, is_exact, is_loose
from programs.run import CONTROL, all_steps, apply, heads, run, with_attributes

NOISE = {"float32": 2.0**-21, "float64": 2.0**-50}
FLOOR = {"float32": 2.0**-18, "float64": 2.0**-47}  # of the largest number
UNWRITTEN = 7  # gradients before a pass
COARSE = dict.fromkeys(FLOOR, FLOOR["float32"])
SELECTING = {"max", "min", "_unreduce"}  # a gradient compares their results with elements


class Fault(NamedTuple):
    """One wrong answer: who gives it, which of the answers it is, and how it differs."""

    mode: str
    answer: str
    words: str

    def __str__(self):
        return f"{self.mode}, {self.answer}: {self.words}"


class Net(HybridBlock):
    """A program as a block; its weights and states are parameters."""

    def __init__(self, program, before=None, after=None, **kwargs):
        super().__init__(**kwargs)
        self.program, self.hooks = program, (before, after)
        for i, each in enumerate(program.inputs):
            if each.role != "data":
                setattr(
                    self,
                    f"p{i}",
                    self.params.get(
                        f"p{i}",
                        shape=each.shape,
                        dtype=each.dtype,
                        init="zeros",
                        differentiable=each.role == "param",
                    ),
                )
        self.initialize()

    def hybrid_forward(self, F, *xs, **params):
        """The answers, as a list."""
        xs = iter(xs)
        values = [
            next(xs) if each.role == "data" else params[f"p{i}"]
            for i, each in enumerate(self.program.inputs)
        ]
        if self.program.world == "np":
            values = [value.as_np_ndarray() for value in values]
        return self.steps_of(F, values)

    def steps_of(self, F, values):
        """The answers from the inputs' values."""
        before, after = self.hooks

        def checked(step, outs):
            refuse_gaps(step, outs)
            return after(step, outs) if after else outs

        return run(F, self.program, values, before, checked)


def refuse_gaps(step, outs):
    """Kernels and views rely on it: the memory of an array is contiguous."""
    for out in outs:
        memory = getattr(out, "data", None)
        if isinstance(memory, np.ndarray):
            assert memory.flags.c_contiguous, f"{step.op}: memory that is not contiguous"


def head_gradient(out):
    """What `backward` begins with: numbers of all sizes around 1, the same in each dtype."""
    some = np.float32(np.cos(np.arange(out.size)) + 0.25).reshape(out.shape)
    head = type(out)(np.asarray(some, out.dtype))
    return head.as_in_context(out.context)


def fill(block, program):
    """Give a block's parameters the program's numbers again."""
    params = block.collect_params()
    for name, param in params.items():
        i = int(name.rpartition("p")[2])
        param.set_data(nd.array(program.inputs[i].array(), dtype=param.dtype))


def answers(block, program, ctx=None, xs=None):
    """name -> array: predictions, and with gradients outputs, gradients and states.

    xs:      the arrays of the call, if they are not just the program's.
    """
    fill(block, program)
    if ctx is not None:
        block.collect_params().reset_ctx(ctx)
    xs = xs or [ARRAYS[program.world](a) for a in data_of(program)]
    xs = [x.as_in_context(ctx) for x in xs] if ctx is not None else xs
    nd.random.seed(5)
    values = {f"output {k}": o.copy() for k, o in enumerate(as_list(block(*xs)))}
    if program.train:
        values |= unrecorded(block, program, xs) | trained(block, program, xs)
    if program.second:
        values |= twice_differentiated(block, program, xs)
    return {name: value.asnumpy() for name, value in values.items()}


def unrecorded(block, program, xs):
    """name -> array, of one step in training mode without a tape, which moves states."""
    if all(each.role != "state" for each in program.inputs):
        return {}
    nd.random.seed(5)
    with autograd.train_mode():
        outs = as_list(block(*xs))
    return {f"unrecorded output {k}": o for k, o in enumerate(outs)} | states_of(block)


def states_of(block):
    """name -> a copy of a state, of a block's parameters."""
    return {
        f"unrecorded {n.rpartition('p')[2]}": p.data().copy()
        for n, p in block.collect_params().items()
        if p.grad_req == "null"
    }


def trained(block, program, xs):
    """name -> array, of one step with gradients."""
    floats = [x for x in xs if np.dtype(x.dtype).kind == "f"]
    for x in floats:
        x.attach_grad()
    params = block.collect_params()
    for old in (
        *(x.grad for x in floats),
        *(p.grad() for p in params.values() if p.grad_req != "null"),
    ):
        old[...] = UNWRITTEN  # a pass leaves it only where nothing is computed from the array
    nd.random.seed(5)
    with autograd.record():
        outs = as_list(block(*xs))
    ends = [outs[k] for k in heads(program) if np.dtype(outs[k].dtype).kind == "f"]
    values = {f"trained output {k}": o.copy() for k, o in enumerate(outs)}
    if ends:
        autograd.backward(ends, [head_gradient(o) for o in ends])
        values |= {f"gradient of input {k}": x.grad for k, x in enumerate(floats)}
        values |= {
            f"gradient of p{n.rpartition('p')[2]}": p.grad().copy()  # the next pass overwrites it
            for n, p in params.items()
            if p.grad_req != "null"
        }
    return values | {
        f"p{n.rpartition('p')[2]} afterwards": p.data()
        for n, p in params.items()
        if p.grad_req == "null"
    }


def twice_differentiated(block, program, xs):
    """name -> array, of the gradients of gradients, times numbers around 1."""
    floats = [x for x in xs if np.dtype(x.dtype).kind == "f"]
    params = {n: p for n, p in block.collect_params().items() if p.grad_req != "null"}
    for x in floats:
        x.attach_grad()
    for param in params.values():
        param.zero_grad()
    with autograd.record():
        outs = as_list(block(*xs))
        ends = [outs[k] for k in heads(program) if np.dtype(outs[k].dtype).kind == "f"]
        variables = floats + [p.data() for p in params.values()]
        slopes = (
            autograd.grad(ends, variables, [head_gradient(o) for o in ends], create_graph=True)
            if ends
            else []
        )
    slopes = [s for s in slopes if s.node is not None]  # others are constant
    if slopes:
        autograd.backward(slopes, [head_gradient(s) for s in slopes])
    return {f"second gradient of input {k}": x.grad for k, x in enumerate(floats)} | {
        f"second gradient of p{n.rpartition('p')[2]}": p.grad() for n, p in params.items()
    }


def unsafe_product(step, data, out):
    """The product, NaN where one of its parts, in some order, is no number."""
    kind = np.dtype(out.dtype)
    if kind.kind != "f":
        return out
    sizes = np.abs(data.asnumpy())
    sizes = np.where(sizes == 0, 1, sizes)
    with np.errstate(all="ignore"):
        small, large = (
            apply(nd, step, [type(data)(some)])[0].asnumpy()
            for some in (np.minimum(sizes, 1), np.maximum(sizes, 1))
        )
        lost = (small < np.finfo(kind).tiny) | (large == np.inf)
    return out * type(out)(np.where(lost, np.nan, 1).astype(kind))


# -- noise -----------------------------------------------------------------------------
def noise(seed):
    """Hooks of `run`: relative noise before and behind the operators that round."""
    rng = np.random.default_rng(seed)

    def shaken(value, apart=False):
        if np.dtype(value.dtype).kind != "f":
            return value
        some = NOISE[np.dtype(value.dtype).name] * rng.uniform(-1, 1, value.shape)
        if apart:
            return value + type(value)(np.asarray(some, value.dtype))
        return value * type(value)(np.asarray(1 + some, value.dtype))

    def exact(step, values):
        return is_exact(step, [np.dtype(v.dtype) for v in values])

    given_last = []

    def before(step, given):
        given_last[:] = given
        if exact(step, given) or not is_loose(step):
            return given
        return [shaken(v) for v in given]

    def after(step, outs):
        # Near its zeros, Python's gammaln has few digits, and so has the logarithm of a sum.
        if step.op.endswith(("gammaln", "log_softmax")):
            return [shaken(v, apart=True) for v in outs]
        if step.op.endswith("prod"):
            outs = [unsafe_product(step, *given_last, *outs)]
        return outs if exact(step, outs) else [shaken(v) for v in outs]

    return before, after


@contextmanager
def noisy_operators(seed):
    """Noise behind all operators that eager arrays run, also those of gradients.

    What is exact for one order of a gradient's products and sums is not for another.
    """
    rng, interpret = np.random.default_rng(seed), vars(nd.NDArray)["interpret"]

    def shake(data):
        data *= 1 + NOISE[data.dtype.name] * rng.uniform(-1, 1, data.shape)

    def shaken(cls, op, inputs, attrs, name=None):
        if op.name == "_polygamma":  # near its poles, SciPy's has few digits
            inputs = [x.copy() for x in inputs]
            shake(inputs[0].data)
        outs = interpret.__func__(cls, op, inputs, attrs, name)
        if op.expr or op.name not in EXACT | SELECTING:  # not what moves numbers
            for out in as_list(outs):
                data = out.data
                if data.dtype.kind == "f" and data.flags.owndata:
                    shake(data)
        return outs

    nd.NDArray.interpret = classmethod(shaken)
    try:
        for op in OPS.values():
            op.readers.clear()
        with mock.patch("minihybrid.core.op.Op._remember"):  # no short way
            yield
    finally:
        nd.NDArray.interpret = interpret


def disturbed(program, seeds):
    """The answers of noisy runs; one that fails is left out."""
    runs = []
    for seed in seeds:
        try:
            once = program.but(second=False)
            runs.append(answers(Net(once, *noise(seed)), once))
            if program.train:  # noise also behind the operators of gradients
                with noisy_operators(seed):
                    made = answers(Net(program), program)
                runs.append({n: a for n, a in made.items() if "gradient" in n})
        except Exception:  # noise may lead a program where it cannot go
            continue
    return runs


def widened(program):
    """The same program in float64 throughout: what is infinite or NaN in a gradient
    only because a sum overflowed on its way, in some order, is finite there."""

    def wide(value):
        return "float64" if value == "float32" else value

    inputs = tuple(replace(i, dtype=wide(i.dtype)) for i in program.inputs)
    return with_attributes(program.but(inputs=inputs), wide)


def in_64_bits(program):
    """The answers where whole numbers have 64 bits, as a list of one or none.

    A gradient that a small dtype cannot hold is cut by each processor in its own way,
    and a sum by ONNX Runtime; here it is another one, so that nobody asks for it.
    """

    def wide(value):
        return "int64" if value in ("int8", "uint8", "int32") else value

    inputs = tuple(replace(i, dtype=wide(i.dtype)) for i in program.inputs)
    roomy = with_attributes(program.but(inputs=inputs), wide)
    if roomy == program:
        return []
    try:
        return [answers(Net(roomy), roomy)]
    except HybridError:
        return []


# -- differences -----------------------------------------------------------------------
def difference(actual, expected, others, exact, floor=FLOOR, first=0.0):
    """What is wrong with an answer, in words, or `None`.

    others:  the same answer with noise, which says what can be asked for.
    first:   of a second gradient, the first: where terms of its size cancel, they do
             not leave exactly 0.
    """
    if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
        return f"{actual.dtype}{actual.shape} instead of {expected.dtype}{expected.shape}"
    if exact or expected.dtype.kind != "f":
        with np.errstate(all="ignore"):
            same = (actual == expected) | (actual != actual) & (expected != expected)
            if exact and expected.dtype.kind == "f":
                same &= (actual != actual) | (np.signbit(actual) == np.signbit(expected))
            for other in others:
                same |= ~((other == expected) | (other != other) & (expected != expected))
    else:
        same = near(actual, expected, others, floor, first)
    if np.all(same):
        return None
    same, actual, expected = np.atleast_1d(same, actual, expected)
    i = tuple(int(k[0]) for k in np.nonzero(~same))
    return (
        f"{actual[i]!s} instead of {expected[i]!s} at {list(i)}, and at "
        f"{np.count_nonzero(~same)} of {same.size} places"
    )


def near(actual, expected, others, floor, first):
    """Where a float is near enough; where noise makes it infinite or NaN, all is."""
    with np.errstate(all="ignore"):
        finite = np.isfinite(expected)
        spread, ill = np.zeros(expected.shape), np.zeros(expected.shape, bool)
        for other in others:
            ill |= np.isfinite(other) != finite
            ill |= ~finite & (np.isnan(other) != np.isnan(expected))
            spread = np.fmax(spread, np.abs(other - expected.astype(np.float64)))
        scale = max(
            np.abs(some[np.isfinite(some)]).max(initial=0) for some in (expected, np.asarray(first))
        )
        allowed = 10 * spread + floor[expected.dtype.name] * (np.abs(expected) + scale)
        apart = np.abs(actual.astype(np.float64) - expected)
        same = (actual == expected) | np.isnan(actual) & np.isnan(expected)
        return ill | same | finite & np.isfinite(actual) & (apart <= allowed)


# -- who answers -----------------------------------------------------------------------
def by_plan(backend):
    def mode(program):
        net = Net(program)
        net.hybridize(backend=backend)
        values = answers(net, program)
        return answers(net, program) if backend == "numpy" else values  # used memory

    return mode


def by_plain(program):
    with kernels_as_python.target():
        return by_plan("plain")(program)


def on_gpu(program, hybridize=True):
    net = Net(program)
    if hybridize:
        net.hybridize()
    return answers(net, program, simulated_gpu())


def by_file(program):
    """The exported net, read again."""
    net = Net(program)
    fill(net, program)
    with files.exported(net, program) as read:
        return answers(read(), program)


def by_predictions(outputs_of):
    """A mode that knows predictions only: outputs_of(net, program) -> their list."""

    def mode(program):
        net = Net(program)
        fill(net, program)
        return {f"output {k}": o for k, o in enumerate(outputs_of(net, program))}

    return mode


REFUSALS = collections.Counter()  # (mode, words) -> how many programs it did not take
MODES = {
    "numpy": by_plan("numpy"),
    "plain": by_plain,
    "cpu": by_plan("cpu"),
    "gpu": on_gpu,
    "file": by_file,
    "onnx": by_predictions(files.by_onnx),
    "runtime": by_predictions(files.by_runtime),
    "c": by_predictions(files.by_c),
    "alone": by_predictions(files.by_numpy),
}


def eagerly(program):
    """The program, perhaps without gradients, and its eager answers."""
    try:
        return program, answers(Net(program), program)
    except HybridError as error:
        if program.second:  # there are operators that are differentiated once only
            return eagerly(program.but(second=False))
        if "not on the tape" not in str(error):
            raise
        program = program.but(train=False)  # nothing leads back to its inputs
        return program, answers(Net(program), program)


def in_single(program, mode):
    """Whether a mode rounds numbers to float32 where others don't.

    ONNX has attributes of layers in float32. A JVP has the tangents of a value in the value's
    dtype, but a gradient has the cotangents of a value that is cast in the dtype before the cast.
    """
    if mode.startswith("jvp"):
        return any("float32" in step.attrs.values() for step in all_steps(program))
    numbers = {"eps", "slope", "alpha", "beta", "knorm"}
    return mode in ("onnx", "runtime") and any(
        numbers & {*step.attrs, *(BY_NAME[step.op].attrs if step.op in BY_NAME else ())}
        for step in all_steps(program)
    )


def compared(program, expected, actual, noisy, mode, disturbed=disturbed):
    """(answer, words) of the first that is wrong, or `None`.

    noisy:      noisy runs so far; more are made where answers are far apart.
    disturbed:  (program, seeds) -> more of them.
    """
    floor = COARSE if in_single(program, mode) else FLOOR
    for name in actual:
        right = expected[name]
        zeros = mode.startswith(("vjp", "jvp")) or any(s.op in CONTROL for s in program.steps)
        if "gradient" in name and zeros:
            # Eager branches that aren't taken compute nothing, but are part of a plan; and
            # transformations have zeros for an input that isn't read.
            right, actual[name] = (
                np.where((x == UNWRITTEN).all(), 0, x) for x in (right, actual[name])
            )
        exact = program.exact and "gradient" not in name and mode != "runtime"
        for enough in (0, 3, 16):  # is it as ill-conditioned as that?
            noisy += disturbed(program, range(len(noisy), enough * (not exact)))
            words = difference(
                actual[name],
                right,
                [o[name] for o in noisy if name in o and not exact],
                exact,
                floor,
                expected.get(name.removeprefix("second "), 0.0),
            )
            if not words or exact:
                break
            if not enough and (mode == "runtime" or "gradient" in name):
                noisy += in_64_bits(program)
                if not np.isfinite(right).all():
                    noisy += disturbed(widened(program), [0])
        if words:
            return name, words
    return None


def check(program, modes=("numpy", "plain")):
    """The first fault of a program, or `None`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mode, noisy = "eager", []
        try:
            program, expected = eagerly(program)
            for mode in modes:
                try:
                    actual = MODES[mode](program)
                except Refused as refused:
                    REFUSALS[mode, refused.args[0]] += 1
                    continue
                whole = all(n.startswith("output") for n in actual) or set(actual) == set(expected)
                assert whole, f"{list(actual)} instead of {list(expected)}"
                wrong = compared(program, expected, actual, noisy, mode)
                if wrong:
                    return Fault(mode, *wrong)
        except Exception as error:
            return Fault(mode, "itself", message_of(error))
    return None


def message_of(error):
    """An error in one line."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
