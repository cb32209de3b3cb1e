"""Ask MXNet 1.9.1 what the nets of its model zoo are, and what some of them answer.

benchmarks/envs/mxnet/bin/python tests/golden/zoo/make_golden.py
"""

import json
from pathlib import Path

import mxnet as mx
from mxnet.gluon.model_zoo.vision import get_model
from numbers_of_zoo import facts, picture, shapes_of, weights

HERE = Path(__file__).parent
NETS = [
    "alexnet",
    *(f"vgg{n}{bn}" for n in (11, 13, 16, 19) for bn in ("", "_bn")),
    *(f"resnet{n}_v{v}" for n in (18, 34, 50, 101, 152) for v in (1, 2)),
    *(
        f"{kind}{m}"
        for kind in ("mobilenet", "mobilenetv2_")
        for m in ("1.0", "0.75", "0.5", "0.25")
    ),
    "squeezenet1.0",
    "squeezenet1.1",
]
ASKED = {
    "alexnet": 64,
    "vgg11_bn": 32,
    "resnet18_v1": 64,
    "resnet18_v2": 64,
    "resnet50_v1": 64,
    "resnet50_v2": 64,
    "mobilenet0.25": 64,
    "mobilenetv2_0.25": 64,
    "squeezenet1.0": 224,
    "squeezenet1.1": 224,
}


def answer(name, size):
    """The ten scores of one picture, with weights that are made, not read."""
    net = get_model(name, classes=10)
    shapes = shapes_of(net(mx.sym.var("data")), size)
    params = net.collect_params()
    params.initialize()
    net(mx.nd.array(picture(size)))
    for full, numbers in weights({n: shapes[n] for n in params.keys()}).items():
        params[full].set_data(mx.nd.array(numbers))
    return [float(f"{v:.7g}") for v in net(mx.nd.array(picture(size))).asnumpy()[0]]


results = {}
for name in NETS:
    net = get_model(name)
    results[name] = facts(net, shapes_of(net(mx.sym.var("data")), 224))
    if name in ASKED:
        results[name] |= {"size": ASKED[name], "scores": answer(name, ASKED[name])}
rows = [f" {json.dumps(name)}: {json.dumps(row)}" for name, row in results.items()]
(HERE / "zoo.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")
