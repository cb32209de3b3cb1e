"""The public interface where only NumPy is installed: an answer, or one sentence.

Run as `python numpy_alone.py FOLDER`: prints, as JSON, what each call gave: "" for an
answer, the sentence of an error of ours, or the type and text of any other error.
"""

import json
import sys
from importlib.machinery import PathFinder

OTHERS = {"cuda", "llvmlite", "matplotlib", "numba", "onnx", "scipy", "tqdm"}


class Bare(PathFinder):
    """Finds what Python and NumPy bring; the others are not found, as if nowhere installed."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        """As Python asks every finder."""
        missing = name.partition(".")[0] in OTHERS
        return None if missing else super().find_spec(name, path, target)


def calls(folder):
    """name -> a call without arguments, of all that could need another library."""
    import minihybrid as mx
    from minihybrid import __main__ as main
    from minihybrid import bench, nd
    from minihybrid.core.targets import TARGETS
    from minihybrid.gluon import nn
    from minihybrid.ops.cpu import machine

    x = nd.array([0.5, 1.5])

    def net(block=None, **options):
        made = block or nn.Dense(2)
        made.initialize()
        made.hybridize(**options)
        made(x.reshape((1, 2)))
        made(x.reshape((1, 2)))
        return made

    for name in "erf erfinv gamma gammaln".split():
        yield f"nd.{name}", lambda name=name: getattr(nd, name)(x)
    yield "second derivative of gammaln", lambda: nd._internal._polygamma(x, order=1)
    yield "nn.GELU", lambda: nn.GELU()(x)
    yield "nn.GELU hybridized", lambda: net(nn.GELU())
    yield "random.poisson", lambda: nd.random.poisson(40.0, shape=(9,))
    for target in TARGETS:
        yield f"target {target}", lambda target=target: net(backend=target)
    for form in "mxnet numpy c wasm onnx".split():
        yield f"export {form}", lambda form=form: net().export(f"{folder}/net", format=form)
    yield "explain", lambda: mx.explain(net(), x.reshape((1, 2)))._repr_html_()
    yield "draw", lambda: mx.viz.draw(net().plan_for(x.reshape((1, 2)))[0].graph)
    yield "simulated_gpu", lambda: nd.ones(3, ctx=mx.simulated_gpu()) + 1
    yield "fast simulated_gpu", lambda: nd.ones(3, ctx=mx.simulated_gpu(fast=True)) + 1
    yield "machine.registers", machine.registers
    yield "a long timing", lambda: list(bench._rounds(2, 100))
    yield "report", main.report
    yield "import_model", lambda: mx.onnx.import_model(f"{folder}/net.onnx")


def answer(call):
    """What a call gave, in words."""
    from minihybrid.core.op import HybridError

    try:
        call()
    except HybridError as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    sys.meta_path[:] = [Bare() if f is PathFinder else f for f in sys.meta_path]
    assert not OTHERS & {name.partition(".")[0] for name in sys.modules}
    print(json.dumps({name: answer(call) for name, call in calls(sys.argv[1])}))
