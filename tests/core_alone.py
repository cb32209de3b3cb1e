"""The tour's net with the core alone: all else of the package is blocked, and all but
NumPy.

Run as `python core_alone.py FOLDER [NAME ...]`: blocks the modules named, too, and
prints what was read of the package, as JSON. FOLDER is for the two files.
"""

import json
import sys
import types
from importlib.machinery import PathFinder
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "minihybrid"
OTHERS = ("numba", "llvmlite", "scipy", "tqdm", "matplotlib", "onnx", "cuda")


class Wall:
    """Finds no module but the core, the records, and libraries that are allowed."""

    def __init__(self, more=()):
        self.more = more

    def find_spec(self, name, path=None, target=None):
        """As Python asks every finder."""
        parts = name.split(".")
        if (
            parts[0] in OTHERS
            or name in self.more
            or (parts[0] == "minihybrid" and parts[1] not in ("core", "ops"))
        ):
            raise ModuleNotFoundError(f"{name} is blocked", name=name)
        return None if parts[0] != "minihybrid" else PathFinder.find_spec(name, path)


def tour(folder):
    """Make, call, hybridize, differentiate, train, export and import a net."""
    import numpy as np

    from minihybrid.core import layers, nd, numpy_target, sym, tape
    from minihybrid.core.block import SymbolBlock
    from minihybrid.core.op import Spec
    from minihybrid.core.passes import optimize
    from minihybrid.core.plan import Plan

    nd.random.seed(1)
    net = layers.HybridSequential()
    net.add(layers.Dense(8, activation="relu"), layers.Dense(3))
    net.initialize()
    x, y = nd.random.normal(shape=(6, 4)), nd.array([0, 1, 2, 0, 1, 2])
    eager = net(x).asnumpy()
    net.hybridize()
    assert np.allclose(net(x).asnumpy(), eager, atol=1e-6)
    assert np.allclose(net(x).asnumpy(), eager, atol=1e-6)
    plan = net.plan_for(x)[0]
    assert plan.target == "numpy" and numpy_target.TARGETS.keys() == {"numpy"}
    assert [n for n, _ in plan.stages] == ["trace", "expand", "fold", "cse", "dce"]
    assert plan.nbytes_planned < plan.nbytes_eager

    losses = []
    for _ in range(3):
        with tape.record():
            loss = -nd.pick(nd.log_softmax(net(x)), y)
        loss.backward()
        losses.append(loss.mean().item())
        for param in net.collect_params().values():
            param.set_data(param.data() - 0.1 * param.grad())
    assert losses[0] > losses[1] > losses[2]

    files = net.export(f"{folder}/net")
    again = SymbolBlock.imports(files[0], ["data"], files[1])
    assert np.array_equal(again(x).asnumpy(), net(x).asnumpy())

    spec = Spec((6, 4), np.dtype("float32"))
    graph, _ = sym.trace(lambda x: (x * 1).exp() + x.exp(), {"x": spec})
    assert [g.n_ops for _, g in optimize(graph)] == [3, 2, 2]
    plan = Plan(graph, ["x"])
    assert np.allclose(plan([x.data], plan.bind([]))[0], 2 * np.exp(x.asnumpy()))


if __name__ == "__main__":
    package = types.ModuleType("minihybrid")
    package.__path__ = [str(PACKAGE)]
    sys.modules["minihybrid"] = package
    sys.meta_path.insert(0, Wall(sys.argv[2:]))
    tour(sys.argv[1])
    read = sorted(n.partition(".")[2] for n in sys.modules if "minihybrid." in n)
    print(json.dumps(read))
