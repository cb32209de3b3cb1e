"""What is wrong with a program's answers: eager arrays beside plans, devices and files.

How far two right answers may be apart depends on the program: it runs a few times more
with noise of a few units in the last place behind every operator that rounds. What the
noise changes, nobody can ask for; ten times that, and a few units of the largest
number, are allowed. Where all operators are exact, every bit has to be the same.

What is left out: noise behind the operators of a gradient.
"""

import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import plain
from programs_rules import is_exact, is_loose
from programs_run import arrays_of, heads, run

from minihybrid import autograd, nd, simulated_gpu
from minihybrid.gluon import HybridBlock, SymbolBlock
from minihybrid.op import HybridError

NOISE = {"float32": 2.0**-21, "float64": 2.0**-50}
FLOOR = {"float32": 2.0**-18, "float64": 2.0**-47}  # of the largest number


class Fault(NamedTuple):
    """One wrong answer: who gives it, which of the answers it is, and how it differs.
    """

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
                setattr(self, f"p{i}", self.params.get(
                    f"p{i}", shape=each.shape, dtype=each.dtype, init="zeros",
                    differentiable=each.role == "param"))
        self.initialize()

    def hybrid_forward(self, F, *xs, **params):
        """The answers, as a list."""
        xs = iter(xs)
        values = [next(xs) if each.role == "data" else params[f"p{i}"]
                  for i, each in enumerate(self.program.inputs)]
        return run(F, self.program, values, *self.hooks)


def head_gradient(out):
    """What `backward` begins with: numbers of all sizes around 1, the same each time.
    """
    return nd.array(np.cos(np.arange(out.size)).reshape(out.shape) + 0.25,
                    dtype=out.dtype, ctx=out.context)


def fill(block, program):
    """Give a block's parameters the program's numbers again."""
    params = block.collect_params()
    for name, param in params.items():
        i = int(name.rpartition("p")[2])
        param.set_data(nd.array(program.inputs[i].array(), dtype=param.dtype))


def answers(block, program, ctx=None):
    """name -> array: predictions, and with gradients outputs, gradients and states."""
    fill(block, program)
    if ctx is not None:
        block.collect_params().reset_ctx(ctx)
    xs = [nd.array(a, dtype=a.dtype, ctx=ctx) for a, each in
          zip(arrays_of(program), program.inputs, strict=True) if each.role == "data"]
    nd.random.seed(5)
    found = {f"output {k}": o for k, o in enumerate(as_list(block(*xs)))}
    if program.train:
        found |= trained(block, program, xs)
    return {name: value.asnumpy() for name, value in found.items()}


def trained(block, program, xs):
    """name -> array, of one step with gradients."""
    floats = [x for x in xs if np.dtype(x.dtype).kind == "f"]
    for x in floats:
        x.attach_grad()
    nd.random.seed(5)
    with autograd.record():
        outs = as_list(block(*xs))
    ends = [outs[k] for k in heads(program) if np.dtype(outs[k].dtype).kind == "f"]
    found = {f"trained output {k}": o for k, o in enumerate(outs)}
    params = block.collect_params()
    if ends:
        autograd.backward(ends, [head_gradient(o) for o in ends])
        found |= {f"gradient of input {k}": x.grad for k, x in enumerate(floats)}
        found |= {f"gradient of p{n.rpartition('p')[2]}": p.grad()
                  for n, p in params.items() if p.grad_req != "null"}
    return found | {f"p{n.rpartition('p')[2]} afterwards": p.data()
                    for n, p in params.items() if p.grad_req == "null"}


def as_list(out):
    return list(out) if isinstance(out, (list, tuple)) else [out]


# -- noise -----------------------------------------------------------------------------
def noise(seed):
    """Hooks of `run`: relative noise before and behind the operators that round."""
    rng = np.random.default_rng(seed)

    def shaken(value):
        if np.dtype(value.dtype).kind != "f":
            return value
        size = NOISE[np.dtype(value.dtype).name]
        some = 1 + size * rng.uniform(-1, 1, value.shape)
        return value * nd.array(some, dtype=value.dtype)

    def exact(step, values):
        return is_exact(step, [np.dtype(v.dtype) for v in values])

    def before(step, given):
        if exact(step, given) or not is_loose(step):
            return given
        return [shaken(v) for v in given]

    def after(step, outs):
        return outs if exact(step, outs) else [shaken(v) for v in outs]

    return before, after


def disturbed(program, seeds):
    """The answers of noisy runs; one that fails is left out."""
    found = []
    for seed in seeds:
        try:
            found.append(answers(Net(program, *noise(seed)), program))
        except Exception:  # noise may lead a program where it cannot go
            continue
    return found


def widened(program):
    """The same program in float64 throughout."""
    def wide(value):
        return "float64" if value == "float32" else value
    return program.but(
        inputs=tuple(replace(i, dtype=wide(i.dtype)) for i in program.inputs),
        steps=tuple(replace(s, attrs={k: wide(v) for k, v in s.attrs.items()})
                    for s in program.steps))


# -- differences -----------------------------------------------------------------------
def difference(got, wanted, others, exact):
    """What is wrong with an answer, in words, or `None`.

    others:  the same answer with noise, which says what can be asked for.
    """
    if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
        return f"{got.dtype}{got.shape} instead of {wanted.dtype}{wanted.shape}"
    if exact or wanted.dtype.kind != "f":
        with np.errstate(all="ignore"):
            same = (got == wanted) | (got != got) & (wanted != wanted)
            if exact and wanted.dtype.kind == "f":
                same &= (got != got) | (np.signbit(got) == np.signbit(wanted))
            for other in others:
                same |= ~((other == wanted) | (other != other) & (wanted != wanted))
    else:
        same = near(got, wanted, others)
    if same.all():
        return None
    i = tuple(int(k[0]) for k in np.nonzero(~same))
    return (f"{got[i]!s} instead of {wanted[i]!s} at {list(i)}, and at "
            f"{np.count_nonzero(~same)} of {same.size} places")


def near(got, wanted, others, factor=1):
    """Where a float is near enough; where noise makes it infinite or NaN, all is."""
    with np.errstate(all="ignore"):
        finite = np.isfinite(wanted)
        spread, ill = np.zeros(wanted.shape), np.zeros(wanted.shape, bool)
        for other in others:
            ill |= np.isfinite(other) != finite
            ill |= ~finite & (np.isnan(other) != np.isnan(wanted))
            spread = np.fmax(spread, np.abs(other - wanted.astype(np.float64)))
        scale = np.abs(wanted[finite]).max(initial=0)
        allowed = 10 * spread + FLOOR[wanted.dtype.name] * (np.abs(wanted) + scale)
        apart = np.abs(got.astype(np.float64) - wanted)
        same = (got == wanted) | np.isnan(got) & np.isnan(wanted)
        return ill | same | finite & np.isfinite(got) & (apart <= factor * allowed)


# -- who answers -----------------------------------------------------------------------
def by_plan(backend):
    def mode(program):
        net = Net(program)
        net.hybridize(backend=backend)
        found = answers(net, program)
        return answers(net, program) if backend == "numpy" else found  # used memory
    return mode


def by_plain(program):
    with plain.target():
        return by_plan("plain")(program)


def on_gpu(program, hybridize=True):
    net = Net(program)
    if hybridize:
        net.hybridize()
    return answers(net, program, simulated_gpu())


def by_file(program):
    """The exported net, read again."""
    net = Net(program)
    read = {i for step in program.steps for i in step.inputs} | {*program.outputs}
    if not read >= {i for i, each in enumerate(program.inputs) if each.role == "data"}:
        return answers(net, program)  # the file has no inputs that nobody reads
    net.hybridize(backend="numpy")
    answers(net, program.but(train=False))
    with tempfile.TemporaryDirectory() as folder:
        files = net.export(str(Path(folder) / "net"))
        n = sum(each.role == "data" for each in program.inputs)
        names = ["data"] if n == 1 else [f"data{k}" for k in range(n)]
        again = SymbolBlock.imports(files[0], names, files[1])
    return answers(again, program)


MODES = {"numpy": by_plan("numpy"), "plain": by_plain, "cpu": by_plan("cpu"),
         "gpu": on_gpu, "file": by_file}


def eagerly(program):
    """The program, perhaps without gradients, and its eager answers."""
    try:
        return program, answers(Net(program), program)
    except HybridError as error:
        if "not on the tape" not in str(error):
            raise
        program = program.but(train=False)  # nothing leads back to its inputs
        return program, answers(Net(program), program)


def compared(program, wanted, found, noisy):
    """(answer, words) of the first that is wrong, or `None`.

    noisy:   noisy runs so far; more are made where answers are far apart.
    """
    for name, want in wanted.items():
        exact = program.exact and "gradient" not in name
        for enough in (0, 3, 16):  # is it as ill-conditioned as that?
            noisy += disturbed(program, range(len(noisy), enough * (not exact)))
            words = difference(found[name], want,
                               [o[name] for o in noisy if name in o and not exact],
                               exact)
            if not words or exact:
                break
        if words:
            return name, words
    return None


def check(program, modes=("numpy", "plain")):
    """The first fault of a program, or `None`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mode, noisy = "eager", []
        try:
            program, wanted = eagerly(program)
            for mode in modes:
                wrong = compared(program, wanted, MODES[mode](program), noisy)
                if wrong:
                    return Fault(mode, *wrong)
        except Exception as error:
            return Fault(mode, "itself", said(error))
    return None


def said(error):
    """An error in one line."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
