"""A student's mistakes: each gets one sentence, where it is made.

The laws go over all public names, and over the records' samples: whatever is wrong with
a call, the answer is an error of ours, on one line, from few frames, and it names who
was called. What is taken in silence must work afterwards, too.
"""

import inspect
import re
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from marks import for_each
from samples import UNIQUE, cases_of, has_samples

import minihybrid as mx
from minihybrid import autograd, gluon, init, lr_scheduler, metric, nd, optimizer, sym
from minihybrid.core import definition_checks, initial, tape
from minihybrid.core.graph import Graph, apply
from minihybrid.core.op import Node, Spec, number
from minihybrid.core.passes import PASSES, dce, expand, optimize
from minihybrid.core.passes.rewrite import rewrite
from minihybrid.core.plan import Plan
from minihybrid.gluon import nn
from minihybrid.ops.loops import each, loops, store
from minihybrid.ops.registry import OPS, PLACES, register
from minihybrid.passes import fuse, plan_memory

PACKAGE = str(Path(mx.__file__).parent)
X = nd.ones((2, 3))
WRONG = [
    "text",
    None,
    [1, 2],
    (),
    {"a": 1},
    object(),
    len,
    float("nan"),
    float("inf"),
    -1,
    0,
    0.5,
    2**70,
    True,
    X,
    sym.var("q"),
    np.ones((2,)),
    np.array(["1"]),
]
FRAMES = 22  # of ours, at most: an operator of others, of others, its shape rule


@pytest.fixture(autouse=True)
def ones():
    """Some functions write into what they are given, or switch the tape on."""
    X.data[...] = 1
    X.node = None
    yield
    autograd.set_recording(False)
    autograd.set_training(False)
    mx.random.seed(0)


def refused(call, *names):
    """Call; whether it was refused, and if so, by a sentence that has a name."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except Exception as error:
        judge(error, names)
        return True
    return False


def judge(error, names=()):
    """Assert that an error is a sentence from here, and that it is told shortly."""
    message = str(error)
    ours = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(PACKAGE)
    ]
    if type(error) is TypeError and not ours:  # Python's own, about the signature
        assert "argument" in message, message
        return
    assert isinstance(error, mx.HybridError), f"{type(error).__name__}: {message}"
    assert "\n" not in message and 15 < len(message) < 500, message
    assert message[-1] not in " .,;:", message
    assert len(ours) <= FRAMES, (len(ours), message)
    assert error.__cause__ is not None or error.__context__ is None or error.__suppress_context__, (
        f"two errors are shown: {message}"
    )
    if names:
        assert any(name.lower().strip("_") in message.lower() for name in names), (names, message)


def own(module):
    """The classes and functions that a module has itself."""
    return [
        value
        for name, value in sorted(vars(module).items())
        if not name.startswith("_")
        and callable(value)
        and getattr(value, "__module__", "") == module.__name__
    ]


CLASSES = [getattr(nn, name) for name in nn.__all__]
PUBLIC = (
    {
        f"{value.__module__.removeprefix('minihybrid.')}.{value.__qualname__}": value
        for module in (
            autograd,
            tape,
            init,
            initial,
            lr_scheduler,
            metric,
            optimizer,
            gluon.data.dataset,
            gluon.data.sampler,
            gluon.data.dataloader,
            gluon.data.vision.datasets,
            gluon.data.vision.transforms,
            mx.callback,
            mx.image,
            mx.io,
            mx.module,
            mx.recordio,
            gluon.loss,
            gluon.utils,
            gluon.trainer,
            gluon.parameter,
        )
        for value in own(module)
    }
    | {f"nn.{kind.__name__}": kind for kind in CLASSES}
    | {
        f"nd.{name}": getattr(nd, name)
        for name in """
            array empty zeros ones full arange linspace eye concatenate histogram
            onehot_encode from_numpy save load load_frombuffer reset_arrays maximum add
            split_v2
        """.split()
    }
    | {
        f"nd.random.{name}": getattr(nd.random, name)
        for name in dir(nd.random)
        if not name.startswith("_")
    }
)
# What takes anything, or is no door for students.
INNER = set(
    """
    optimizer.states_in core.parameter.fill core.parameter.in_world core.parameter.lengths
    core.tape.modes core.tape.seeds_of core.tape.array_of
    core.tape.free gluon.loss.check_classes gluon.trainer.memory gluon.trainer.CompiledUpdate
    gluon.data.sampler.indexed gluon.data.sampler.each gluon.data.vision.transforms.limited
    gluon.data.vision.transforms.numbers gluon.data.vision.transforms.turned
    gluon.data.vision.image.like gluon.data.vision.image.resized gluon.data.vision.image.taps
    gluon.metric.as_numpy
    core.parameter.ParameterDict gluon.metric.register
""".split()
)


@for_each(sorted(PUBLIC.keys() - INNER))
def test_a_wrong_call_of_a_public_name_is_a_sentence(name):
    call, tried = PUBLIC[name], 0
    tried += refused(lambda: call(*[X] * 25))
    tried += refused(lambda: call(misspelt_keyword=1))
    refused(call)
    for value in WRONG:
        tried += refused(lambda v=value: call(v))
        tried += refused(lambda v=value: call(X, v))
    assert tried or name.endswith(("Sequential", "Block"))


# -- every function and method speaks of itself ----------------------------------------
OTHERS = [
    *(v for v in WRONG if not isinstance(v, sym.Symbol)),
    [[1, 2], [3]],
    [None],
    ["a"],
    (0, 0),
    (2, -3),
    7,
    1j,
    b"ab",
    slice(0, 1),
    nd.NDArray,
    np.array([object()]),
    np.array([1j]),
    nd.ones((4, 5)),
    nd.zeros((0, 3)),
    gluon.Parameter("w", shape=(2, 3)),
]
OF_PYTHON_OR_NUMPY = re.compile(
    r"no attribute|not subscriptable|not iterable|not callable|unhashable|has no len|inhomogeneous"
    r"|not supported (between|for)|unsupported operand|bad operand|could not|cannot be interpreted"
    r"|can't multiply|truth value|ufunc|with a sequence|must be real|must be str|Error\b"
    r"|do not go together|float\(\) argument|int\(\) argument|Python int|member_descriptor"
)
PRIVATE = re.compile(r"(?<![\w.])_[a-z]\w+: |\b_?npi?_\w+")
# Functions whose errors are those of a user's functions, or name the source of their bytes.
OTHERS_ERRORS = {"foreach", "while_loop", "cond", "load_frombuffer"}


def functions_of(space, title, kind, *heads):
    """Each function of a namespace: name -> (function, kind of its arrays, starts of errors)."""
    for name in dir(space):
        function = getattr(space, name)
        is_function = callable(function) and not isinstance(function, type)
        if is_function and not name.startswith("_") and name not in OTHERS_ERRORS | {"waitall"}:
            yield f"{title}.{name}", (function, kind, [f"{head}{name}: " for head in heads])


def methods_of(kind, title, make):
    """Each method of an array's class, as a function."""
    inner = "interpret composed path lines_up convert constant part on_device wait_to_read asnumpy"
    for name in sorted(set(dir(kind)) - set(inner.split())):
        method = inspect.getattr_static(kind, name)
        if inspect.isfunction(method) and not name.startswith("_"):
            # An alias such as as_in_ctx speaks of the method, and copy_from of its assignment.
            names = {name, method.__name__}
            heads = [f"{head}{n}: " for head in (f"{title}.", "", "NDArray.") for n in names]
            heads += ["x[...] = y: "] * (name == "copy_from")
            yield f"{title}.{name}", (on_ones(make, name, method), make, heads)


def on_ones(make, name, method):
    """A method as a function, which calls it on an array of ones."""

    def function(*args, **kwargs):
        return getattr(make(np.ones((2, 3), "float32")), name)(*args, **kwargs)

    signature = inspect.signature(method)
    function.__signature__ = signature.replace(parameters=[*signature.parameters.values()][1:])
    return function


CALLED = dict(
    [
        *functions_of(mx.np, "np", mx.np.array, "np."),
        *functions_of(mx.np.linalg, "np.linalg", mx.np.array, "np.linalg."),
        *functions_of(mx.np.random, "np.random", mx.np.array, "np.random."),
        *functions_of(nd, "nd", nd.array, "", "nd."),
        *functions_of(nd.linalg, "nd.linalg", nd.array, "linalg."),
        *functions_of(nd.random, "nd.random", nd.array, "random."),
        *functions_of(nd.contrib, "nd.contrib", nd.array, "contrib."),
        *methods_of(mx.np.ndarray, "ndarray", mx.np.array),
        *methods_of(nd.NDArray, "NDArray", nd.array),
    ]
)


@pytest.mark.parametrize("name", sorted(CALLED))
def test_an_error_starts_with_the_name_that_the_caller_wrote(name, tmp_path, monkeypatch):
    """In words of ours: none of Python's or NumPy's, and no operator's private name."""
    monkeypatch.chdir(tmp_path)  # some save files
    function, make, heads = CALLED[name]
    x = make(np.ones((2, 3), "float32"))
    keywords = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.default is not p.empty
    ]
    calls = [((), {}), ((x, x), {"misspelt_keyword": 1})]
    for value in OTHERS:
        value = value.as_np_ndarray() if make is mx.np.array and value is X else value
        calls += [((value,), {}), ((x, value), {}), ((x, x, value), {})]
        calls += [((x,), {key: value}) for key in keywords if key not in ("name", "attr")]
    for args, kwargs in calls:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function(*args, **kwargs)
        except Exception as error:
            judge(error)
            text = re.sub(r"'[^']*'|<[^>]*>", "", str(error))
            if isinstance(error, mx.HybridError):
                assert str(error).startswith(tuple(heads)), (args, kwargs, str(error))
                assert not OF_PYTHON_OR_NUMPY.search(text), (args, kwargs, str(error))
                assert not PRIVATE.search(text), (args, kwargs, str(error))


LOSSES = [kind for kind in own(gluon.loss) if inspect.isclass(kind) and kind is not gluon.loss.Loss]


@pytest.mark.parametrize("kind", LOSSES, ids=lambda kind: kind.__name__)
def test_a_loss_of_symbols_names_itself_when_shapes_are_inferred(kind):
    """As it does on arrays; a block of the caller's has operators that the caller wrote."""
    loss, shapes = kind(), {"a": (2, 3), "b": (4, 5), "c": (7, 5)}
    n_inputs = 3 if kind.__name__ in ("CosineEmbeddingLoss", "TripletLoss") else 2
    shapes = dict([*shapes.items()][:n_inputs])
    with pytest.raises(mx.ShapeError) as caught:
        loss(*map(sym.var, shapes)).infer_shape(**shapes)
    assert re.match(rf"{kind.__name__}: .*\(node '{loss.name}_\w+'\)$", str(caught.value))


def test_an_operator_of_the_callers_block_is_named_when_shapes_are_inferred():
    for net in (nn.HybridLambda("dot"), nn.HybridLambda(lambda F, x, y: F.dot(x, y))):
        with pytest.raises(mx.ShapeError, match=r"^dot: .*\(node '\w*dot0'\)$"):
            net(sym.var("a"), sym.var("b")).infer_shape(a=(2, 3), b=(2, 3))


@pytest.mark.parametrize(
    "what, kinds",
    [(name, "shapes") for name in ("shape", "size", "ndim")]
    + [("dtype", "dtypes"), ("context", "devices"), ("ctx", "devices")],
)
def test_a_symbol_says_no_more_than_what_it_was_asked_for(what, kinds):
    with pytest.raises(mx.TraceError) as caught:
        getattr(sym.var("x"), what)
    text = str(caught.value)
    assert text.startswith(f"x.{what} on the Symbol 'x'")
    assert f"the graph must also work for other {kinds};" in text
    assert ("reshape" in text) == (kinds == "shapes")


TAKEN_IN_SILENCE = {  # what was, although it cannot be meant -> what is said
    "a text as a number": (lambda: X + np.array(["1"]), "is no array of numbers"),
    "a text in np": (lambda: mx.np.ones(1) + np.array(["1"]), "is no array of numbers"),
    "half a complex number": (lambda: X * np.array([1j]), "is no array of numbers"),
    "300 beside 8 bits": (lambda: small() + np.array([300, 1]), "300 does not fit into uint8"),
    "out of another shape": (
        lambda: nd.sum(X, axis=0, out=nd.zeros((2, 3))),
        "sum: out= has shape (2, 3), but the result has shape (3,)",
    ),
    "a shape without an order": (lambda: nd.zeros({3, 2}), "nd.zeros: shape={2, 3} does not fit"),
    "bytes as a shape": (lambda: mx.np.ones(b"ab"), "np.ones: shape=b'ab' does not fit"),
    "a text that is not nan": (lambda: nd.contrib.isnan("text"), "contrib.isnan: 'text' (a str)"),
    "difference -1": (lambda: mx.np.diff(mx.np.ones(3), n=-1), "np.diff: n=-1 does not fit"),
    "a text for labels": (
        lambda: metric.Accuracy().update(["text"], [X]),
        "accuracy: 'text' (a str) is no array of numbers",
    ),
    "an update of another shape": (
        lambda: optimizer.SGD().update(0, nd.zeros((2, 3)), nd.ones((3,)), None),
        "SGD.update: the gradient has shape (3,), but the weight's shape (2, 3) is needed",
    ),
    "a rate that is set": (
        lambda: setattr(trainer(), "learning_rate", 1),
        "write trainer.set_learning_rate(lr)",
    ),
}


def test_differences_of_nothing_end():
    assert mx.np.diff(mx.np.ones((2, 3)), n=2**40).shape == (2, 0)


def keyword_pairs(kind):
    """Each argument of a class with a wrong value."""
    for name in inspect.signature(kind).parameters:
        if name not in ("prefix", "params", "kwargs", "args"):
            yield from ((name, value) for value in WRONG)


MAKE = {  # class -> the arguments that it must have
    "Dense": {"units": 2},
    "Embedding": {"input_dim": 3, "output_dim": 2},
    "Activation": {"activation": "relu"},
    "LeakyReLU": {"alpha": 0.1},
    "Dropout": {"rate": 0.5},
    "Lambda": {"function": "relu"},
    "HybridLambda": {"function": "relu"},
    "SymbolBlock": {"outputs": sym.relu(sym.var("x")), "inputs": sym.var("x")},
} | {name: {"channels": 2, "kernel_size": 1} for name in nn.__all__ if "Conv" in name}
INPUT = {"1D": (2, 3, 4), "2D": (2, 3, 4, 4), "3D": (2, 3, 4, 4, 4)}
ABSTRACT = (nn.Block, nn.HybridBlock)


def input_of(kind):
    """What a layer of this class can be called with."""
    shape = INPUT.get(kind.__name__.removesuffix("Transpose")[-2:], (2, 3, 4))
    return nd.ones((1, 2)) if kind is nn.Embedding else nd.ones(shape)


@pytest.mark.parametrize(
    "kind", [k for k in CLASSES if k not in ABSTRACT], ids=lambda k: k.__name__
)
def test_what_a_layer_takes_in_silence_works_when_it_is_called(kind):
    """Or is wrong only beside the input: then the call says so."""
    x, n_refused = input_of(kind), 0
    for name, value in keyword_pairs(kind):
        layer = []

        def make(name=name, value=value, layer=layer):
            layer.append(kind(**MAKE.get(kind.__name__, {}) | {name: value}))
            layer[0].initialize()

        n_refused += refused(
            make, kind.__name__, "initializer", "Parameter", "Lambda", "Constant", "Activation"
        )
        if layer:
            refused(lambda layer=layer: layer[0](x))
    assert n_refused or not list(keyword_pairs(kind))


NO_INPUT = [np.ones((2, 3)), [1, 2], 1.0, "text", None, {"a": 1}, (), object()]


@pytest.mark.parametrize("hybridized", [False, True])
@pytest.mark.parametrize(
    "kind", [k for k in CLASSES if k not in ABSTRACT], ids=lambda k: k.__name__
)
def test_a_layer_called_with_no_array_says_so(kind, hybridized):
    for called_before in (False, True):
        layer = kind(**MAKE.get(kind.__name__, {}))
        layer.initialize()
        if hybridized:
            layer.hybridize(backend="numpy")
        if called_before and len(layer.collect_params()):
            layer(input_of(kind))
        stack = nn.HybridSequential() if isinstance(layer, nn.HybridBlock) else nn.Sequential()
        stack.add(layer)
        for value in NO_INPUT:
            alone = refused(lambda v=value, n=layer: n(v), layer.name, *names_of(kind))
            within = refused(lambda v=value, n=stack: n(v))
            assert alone and within or kind is nn.Sequential
        assert refused(lambda n=layer: n(), layer.name, *names_of(kind))
        assert refused(lambda n=layer: n(x=X), layer.name)


def names_of(kind):
    """What an error of a class may speak of: its function's operator."""
    return ("relu",) if kind in (nn.Lambda, nn.HybridLambda) else ()


def test_none_as_an_optional_argument_of_a_block_works():
    class Scaled(gluon.HybridBlock):
        def hybrid_forward(self, F, x, by=None):
            return x if by is None else x * by

    for hybridized in (False, True):
        net = Scaled()
        if hybridized:
            net.hybridize(backend="numpy")
        assert net(X, None).sum().item() == 6
        assert net(X, X * 2).sum().item() == 12


# -- operators: their records say what they take ---------------------------------------
ATTRIBUTES = {op.name: list(op.attrs) for op in UNIQUE if op.attrs}


@for_each(sorted(ATTRIBUTES))
def test_an_attribute_of_another_kind_is_a_sentence(name):
    op, n_refused = OPS[name], 0
    case = cases_of(op)[0] if has_samples(op) else None
    inputs = (
        []
        if case is None
        else [nd.array(a, dtype=a.dtype) for a in case.arrays("float32", np.random.default_rng(0))]
    )
    given = {} if case is None else case.attrs
    for key in op.attrs:
        for value in WRONG:
            attrs = given | {key: value}
            is_refused = refused(lambda a=attrs: op.normalize(dict(a)), op.name)
            n_refused += is_refused
            if not is_refused and case is not None:
                refused(lambda a=attrs: call(op, inputs, a))
    assert n_refused


def call(op, inputs, attrs):
    """What a namespace does."""
    return nd.NDArray.interpret(op, inputs, op.normalize(dict(attrs)))


@for_each(sorted(op.name for op in UNIQUE))
def test_an_operator_called_with_what_is_no_array_is_a_sentence(name):
    function = getattr(nd._internal, name)
    for value in WRONG:
        for args in ((value,), (X, value)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    function(*args)
                except Exception as error:
                    judge(error)
                    assert str(error).startswith(f"{name}: "), str(error)
    assert refused(lambda: function(X, misspelt_keyword=1), name, "arrays")


# -- each found once, by name ----------------------------------------------------------
def dense(**kwargs):
    """An initialized layer."""
    net = nn.Dense(2, **kwargs)
    net.initialize()
    return net


def trainer(**settings):
    """A trainer whose gradients are there."""
    net = dense()
    with autograd.record():
        out = net(X).sum()
    out.backward()
    return gluon.Trainer(net.collect_params(), "sgd", settings)


class NoF(gluon.HybridBlock):
    """A block whose author forgot F."""

    def hybrid_forward(self, x):
        """Its computation."""
        return x * 2


def hybridized(net):
    """The same block."""
    net.hybridize(backend="numpy")
    return net


def small(dtype="uint8"):
    """Two whole numbers of 8 bits."""
    return nd.zeros((2,), dtype=dtype)


def set_first(x, value):
    """Overwrite the first number."""
    x[0] = value


NAMED = {
    "a child as prefix": (lambda: nn.HybridSequential(nn.Dense(2)), "net.add"),
    "a net for parameters": (lambda: gluon.Trainer(dense(), "sgd"), "collect_params"),
    "a rate of text": (lambda: trainer(learning_rate="0.1"), "learning_rate='0.1'"),
    "a rate of nan": (lambda: trainer(learning_rate=np.nan), "learning_rate=nan"),
    "settings in a list": (lambda: gluon.Trainer({}, "sgd", [1]), "a dict is needed"),
    "step()": (lambda: trainer().step(), "Trainer.step: missing a required argument: 'batch_size'"),
    "step(0)": (lambda: trainer().step(0), "a number above 0"),
    "step(x)": (lambda: trainer().step(X), "a number above 0"),
    "net()": (lambda: dense()(), "no input is given"),
    "net(x, x)": (lambda: dense()(X, X), "2 inputs given, but Dense takes x"),
    "net(x, x) hybridized": (lambda: hybridized(dense())(X, X), "Dense takes x"),
    "net(x=x)": (lambda: dense()(x=X), "write net(x)"),
    "no F": (lambda: NoF()(X), "write hybrid_forward(self, F, x)"),
    "no F, hybridized": (lambda: hybridized(NoF())(X), "hybrid_forward(self, F, x)"),
    "a function without F": (lambda: nn.HybridLambda(lambda x: x), "write f(F, x)"),
    "loss(x)": (lambda: gluon.loss.L2Loss()(X), "1 input given, but L2Loss takes pred"),
    "summary()": (lambda: dense().summary(), "net.summary(nd.zeros((1, 3)))"),
    "cast": (lambda: dense().cast("foo"), "dtype='foo'"),
    "a number for a file": (lambda: dense().load_parameters(3), "a text or a path"),
    "a sample without its batch": (lambda: dense(in_units=3)(X[0]), "x.expand_dims(0)"),
    "a class that there is not": (
        lambda: gluon.loss.SoftmaxCELoss()(X, nd.array([0, 3])),
        "there are 3 classes",
    ),
    "300 in 8 bits": (lambda: nd.array([300], dtype="uint8"), "holds 0 to 255"),
    "NumPy's 300 in 8 bits": (lambda: nd.array(np.array([300]), dtype="uint8"), "300 does not fit"),
    "full of 300": (lambda: nd.full((2,), 300, dtype="uint8"), "300.0 does not fit"),
    "full_like of 300": (lambda: mx.np.full_like(small().as_np_ndarray(), 300), "300 does not fit"),
    "a frame of 300": (
        lambda: mx.np.pad(small().as_np_ndarray(), 1, constant_values=300),
        "300.0 does not fit",
    ),
    "where, else 300": (
        lambda: mx.np.where(np.ones(2) > 0, small().as_np_ndarray(), 300),
        "300 does not fit",
    ),
    "arange up to 300": (lambda: nd.arange(300, dtype="uint8"), "299.0 does not fit"),
    "300 written": (lambda: set_first(small(), 300), "300 does not fit"),
    "300.0 written": (lambda: set_first(small(), 300.0), "300.0 does not fit"),
    "None written": (lambda: set_first(nd.zeros((2,)), None), "None"),
    "a text written": (lambda: set_first(nd.zeros((2,)), "1"), "no array of numbers"),
    "nan as a whole number": (lambda: nd.array([np.nan], dtype="int32"), "nan does"),
    "texts": (lambda: nd.array(np.array(["1"])), "no array of numbers"),
    "objects": (lambda: nd.array([None, 1]), "no array of numbers"),
    "rows of two lengths": (lambda: nd.array([[1, 2], [3]]), "different lengths"),
    "exponential(0)": (lambda: nd.random.exponential(0), "scale=0"),
    "a step of 0": (lambda: X[::0], "x[::0]: a step of 0"),
    "x @ y": (lambda: X @ X, "dot(x, y)"),
    "x // y": (lambda: X // 2, "floor(x / y)"),
    "~x": (lambda: ~X, "logical_not(x)"),
    "max(x, 0)": (lambda: max(X, 0), "nd.maximum(x, 0)"),
    "max of a symbol": (lambda: max(sym.var("x"), 0), "F.maximum(x, 0)"),
    "dropout": (lambda: nd.Dropout(X, p=1.5), "a probability in [0, 1)"),
    "epsilon": (lambda: nn.BatchNorm(epsilon=-5), "epsilon=-5"),
    "an axis twice": (lambda: nd.sum(X, axis=(0, -2)), "names an axis of 2 twice"),
    "an axis as text": (lambda: nd.sum(X, axis="1"), "axis='1'"),
    "temperature": (lambda: nd.softmax(X, temperature=0), "temperature=0"),
    "batches of 0": (lambda: gluon.data.DataLoader([1], batch_size=0), "batch_size=0"),
    "zeros": (lambda: nd.zeros((2,), dtpye="int32"), "did you mean 'dtype'?"),
    "stride": (lambda: nn.Conv2D(8, 3, stride=2), "did you mean 'strides'?"),
    "pad": (lambda: nn.Conv2D(8, 3, pad=2), "did you mean 'padding'?"),
    "lr": (lambda: trainer(lr=0.1), "did you mean 'learning_rate'?"),
}


@pytest.mark.parametrize("name", [*NAMED, *TAKEN_IN_SILENCE])
def test_a_mistake_gets_its_sentence(name):
    mistake, message = (NAMED | TAKEN_IN_SILENCE)[name]
    with pytest.raises(mx.HybridError) as caught:
        mistake()
    judge(caught.value)
    assert message in str(caught.value)


def test_errors_are_those_of_python_too():
    """So that code that catches Python's own goes on to work."""
    for kind, mistake in (
        (IndexError, lambda: X[5]),
        (ValueError, lambda: X[::0]),
        (OverflowError, lambda: set_first(small(), 300)),
        (TypeError, lambda: X @ X),
    ):
        with pytest.raises(kind):
            mistake()


def test_a_mask_of_an_older_array_is_told():
    """MXNet's comparison gives 0 and 1, which name rows."""
    x = nd.array([[1, 5], [7, 2]])
    with pytest.warns(UserWarning, match=r"nd\.where\(x > 0, x, other\)"):
        rows = x[x > 4]
    assert rows.shape == (2, 2, 2)
    assert x[(x > 4).astype("bool")].asnumpy().tolist() == [5, 7]
    with pytest.warns(UserWarning, match="names places 0 and 1"):
        x[x > 4] = 0


def test_labels_beside_weights_and_in_a_plan_are_the_nearest_class():
    """A weight of 0 may stand beside any label; a plan cannot look at numbers."""
    loss, labels = gluon.loss.SoftmaxCELoss(), nd.array([0, 7])
    beside = loss(X, labels, nd.array([[1], [1]])).asnumpy()
    np.testing.assert_allclose(hybridized(loss)(X, labels).asnumpy(), beside)
    np.testing.assert_allclose(beside, np.log(3), rtol=1e-6)


def test_attributes_in_files_are_texts():
    assert OPS["sum"].read({"axis": "(0, 1)"})["axis"] == (0, 1)
    assert OPS["Activation"].read({"act_type": "relu"})["act_type"] == "relu"
    with pytest.raises(mx.AttrError, match="axis='1'"):
        nd.sum(X, axis="1")


RULES = {
    "nothing": lambda node, inputs, emit: [],
    "a node": lambda node, inputs, emit: emit(node),
    "too many": lambda node, inputs, emit: [(emit(node), 0), (node, 1)],
    "not emitted": lambda node, inputs, emit: [(node, 0)],
    "a text": lambda node, inputs, emit: "x",
    "a list of a list": lambda node, inputs, emit: [([node], 0)],
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_that_gives_no_places_is_told(name):
    graph = Graph.of(sym.relu(sym.var("x", shape=(2,))))
    with pytest.raises(mx.HybridError, match="in place of <Node x: variable> the rule"):
        rewrite(graph, RULES[name])


def test_apply_fills_in_defaults_and_memory_has_a_text():
    x = Node(None, name="x", specs=(Spec((2, 3), np.dtype("f4")),))
    node = apply(OPS["sum"], [(x, 0)], {"axis": 1})
    assert node.attrs == {"axis": 1, "keepdims": False, "exclude": False}
    assert repr(plan_memory(Graph([x, node], [(node, 0)]))).startswith("arena 0 bytes")


@pytest.mark.parametrize("places", [lambda x: [x], lambda x: (x, 0), lambda x: [(x, 0)] * 2])
def test_apply_to_other_inputs_than_an_operator_takes_is_told(places):
    x = Node(None, name="x", specs=(Spec((2, 3), np.dtype("f4")),))
    with pytest.raises(mx.HybridError, match="apply: relu takes a .*index. for each of data, in a"):
        apply(OPS["relu"], places(x), {})


def test_a_cell_that_registers_an_operator_can_be_run_again():
    for factor in (2, 3):
        op = register(
            "_of_a_cell",
            inputs=("data",),
            doc="A cell's own.",
            infer=lambda specs: (specs, specs),
            eager=lambda data, by=factor: data * by,
        )
        try:
            assert nd._internal._of_a_cell(X).sum().item() == 6 * factor
        finally:
            last = op
    del OPS["_of_a_cell"], PLACES[last]
    with pytest.raises(mx.HybridError, match="two operators are called relu"):
        register("relu", **RECORD)


# -- records, passes and loops, as exercises write them --------------------------------
RECORD = {
    "inputs": ("data",),
    "infer": lambda specs: (specs, specs),
    "eager": lambda data: data * 2,
    "doc": "Twice.",
}
WITH_K = {"attrs": {"k": (number, 1.0)}, "infer": lambda specs, k: (specs, specs)}
WRONG_RECORDS = {  # fields -> what is said
    "no text as inputs": ({"inputs": "data"}, "inputs='data' (a str) does not fit; needed: tuple"),
    "no list of attrs": ({"attrs": ["k"]}, "needed: dict"),
    "a default alone": ({"attrs": {"k": 1.0}}, "as in {'k': (number, 1.0)}"),
    "a misspelt field": ({"infr": None}, "did you mean 'infer'?"),
    "a rule of no specs": ({"infer": lambda: None}, "its infer is called as infer(specs): too"),
    "a rule without k": ({"attrs": {"k": (number, 1.0)}}, "infer(specs, k=...)"),
    "no k where it computes": (WITH_K, "its eager is called as eager(data, k=...)"),
    "two arrays for one": ({"eager": lambda a, b: a}, "called as eager(data): missing"),
    "no way to compute": ({"eager": None}, "add eager"),
    "a gradient of two": ({"grad": lambda g, a: (g,)}, "called as grad(g, out, data)"),
    "a scalar of another letter": ({"expr": "{x} * 2"}, "reads {x}, but the inputs are {a}"),
    "a scalar half open": ({"expr": "{a * 2"}, "has no pairs of braces"),
    "a scalar of an array": ({"expr": lambda a: a}, "its expr is called as expr()"),
    "half an output": ({"n_outputs": 0.5}, "n_outputs=0.5 (a float) does not fit; needed: int"),
}


@pytest.mark.parametrize("name", WRONG_RECORDS)
def test_a_record_that_cannot_be_one_is_refused_when_it_is_registered(name):
    fields, message = WRONG_RECORDS[name]
    with pytest.raises(mx.HybridError) as caught:
        register("_no_record", **RECORD | fields)
    judge(caught.value, ["_no_record"])
    assert message in str(caught.value)
    assert "_no_record" not in OPS


def test_a_record_needs_names_and_its_first_fields():
    for wrong in (3, "my-op"):
        with pytest.raises(mx.HybridError, match="is no name of an operator"):
            register(wrong, **RECORD)
    with pytest.raises(mx.HybridError, match="register _no_record: the field 'doc' is missing"):
        register("_no_record", **{k: v for k, v in RECORD.items() if k != "doc"})


def test_every_record_of_the_engine_would_be_registered():
    for op in UNIQUE:
        definition_checks.judge(
            op.name, (), {key: getattr(op, key) for key in definition_checks.FIELDS}
        )


@contextmanager
def registered(**fields):
    """An operator for a while."""
    op = register("_for_a_while", **RECORD | fields)
    try:
        yield op
    finally:
        del OPS["_for_a_while"], PLACES[op]


@pytest.mark.parametrize("grads", [None, 2.0, [], "g", np.ones((2, 3)), [np.ones((2, 3))], [X, X]])
def test_a_gradient_rule_that_gives_no_gradients_is_told(grads):
    x = nd.ones((2, 3))
    x.attach_grad()
    with registered(grad=lambda g, out, data: grads) as op:
        with autograd.record():
            y = op(x)
        with pytest.raises(mx.HybridError) as caught:
            y.backward()
    judge(caught.value, ["_for_a_while: its grad gave"])


def test_a_shape_rule_that_gives_no_specs_is_told():
    for returned in (None, 3, lambda specs: specs, ([], [(2, 3)])):
        with registered(infer=lambda specs, returned=returned: returned) as op:
            assert refused(lambda op=op: op(X), "_for_a_while")


NOT_GRAPHS = [sym.relu(sym.var("x")), None, len]


@pytest.mark.parametrize("call", [*PASSES, expand, fuse, plan_memory], ids=lambda f: f.__name__)
@pytest.mark.parametrize("given", NOT_GRAPHS, ids=["symbol", "None", "function"])
def test_a_pass_over_what_is_no_graph_is_told(call, given):
    with pytest.raises(mx.HybridError, match="is no graph; Graph.of.symbol. makes one") as caught:
        call(given)
    judge(caught.value)


def test_passes_that_are_none_are_told():
    graph = Graph.of(sym.relu(sym.var("x", shape=(2,))))
    for passes in (dce, "dce", ("dce",), None):
        with pytest.raises(mx.HybridError, match="passes in a tuple are needed"):
            optimize(graph, passes)
    for result in (None, graph.nodes, graph.heads):
        with pytest.raises(mx.HybridError, match="<lambda>: .* is no graph"):
            optimize(graph, (lambda _, result=result: result,))


@pytest.mark.parametrize("op", ["relu", None, nd.relu, sym.relu])
def test_apply_of_what_is_no_operator_is_told(op):
    x = Node(None, name="x", specs=(Spec((2, 3), np.dtype("f4")),))
    with pytest.raises(mx.HybridError, match="as in apply.OPS.'relu'., inputs"):
        apply(op, [(x, 0)], {})
    with pytest.raises(mx.HybridError, match="and a dict of attributes are needed"):
        apply(OPS["relu"], [(x, 0)], None)
    with pytest.raises(mx.HybridError, match="its shape is still unknown"):
        apply(OPS["relu"], [(Node(None, name="x"), 0)], {})


def twice(data, out, n):
    """Loops of a record."""
    for i in each(n):
        store(out, i, data[i] * 2)


def of_data(data, out, n):
    """Loops over an array."""
    for i in each(data):
        store(out, i, data[i] * 2)


def of_two(data, out, n):
    """Loops with a name too many."""
    for i, _ in each(n):
        store(out, i, data[i] * 2)


def by_hand(k, data, out):
    """Loops written line by line, without pairs."""
    with k.each("i", data.size):
        k.store("i", f"{data}[i] * 2")


def length(data, out):
    """The lengths of `twice`."""
    return (data.size,)


WRONG_LOOPS = {  # what a record has as `cpu` -> what is said
    "an array for a length": (lambda: loops(length)(of_data), "each(data): needed is a name"),
    "a name too many": (lambda: loops(length)(of_two), "for i, _ in each(n): needed"),
    "no decorator": (lambda: twice, "stand below @loops(lengths)"),
    "no lengths": (lambda: loops(twice), "loops: @loops(lengths) stands above"),
    "no tuple": (lambda: loops(lambda data, out: data.size)(twice), "but a tuple is needed"),
    "half a length": (lambda: loops(lambda data, out: (2.5,))(twice), "are whole numbers"),
    "lengths of one": (lambda: loops(lambda data: (data.size,))(twice), "called with 2 arrays"),
    "lengths of numbers": (lambda: loops(lambda data, out: (data.sum(),))(twice), "it failed"),
    "no pairs": (lambda: by_hand, 'as in k.each(("i", data.size))'),
}


@pytest.mark.parametrize("name", WRONG_LOOPS)
def test_loops_that_cannot_be_written_are_told(name):
    make, message = WRONG_LOOPS[name]
    with registered(cpu=make()):
        graph = Graph.of(OPS["_for_a_while"](sym.var("x", shape=(2, 3), dtype="float32")))
        with pytest.raises(mx.HybridError) as caught:
            Plan(graph, ["x"], target="cpu")
    judge(caught.value)
    assert message in str(caught.value)


def test_loops_run_on_arrays_of_numpy():
    out = np.zeros(3)
    loops(length)(twice).run(np.arange(3.0), out)
    assert out.tolist() == [0, 2, 4]
    with pytest.raises(mx.HybridError, match="run takes NumPy arrays"):
        loops(length)(twice).run([1.0], [0.0])
