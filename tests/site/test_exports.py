"""Exported nets, run by the browser itself, of which Python must say the same."""

import numpy as np
from conftest import Visit, serve
from test_standalone import NETS, trained
from test_wasm import LAYERS, exported, near

# As a page would do it: the module is imported, and fetches the files beside it.
RUN = """async ([address, inputs]) => {
    const { load, tensor } = await import(address);
    const net = await load();
    const outs = net.predict(...inputs.map(([x, ...spec]) => tensor(x.map(Number), ...spec)));
    return outs.map(({ data, shape, dtype }) => [Array.from(data, String), shape, dtype]);
}"""


def nets(folder):
    """[(what, its module, inputs, answers)]: every layer, and the test nets."""
    for i, (layer, x) in enumerate(LAYERS):
        files, answer = exported(layer, x, str(folder / f"layer{i}"))
        yield str(layer), files[0], [x], [answer]
    for i, name in enumerate(n for n in NETS if "shared" not in n):
        net, inputs, answers = trained(name)
        yield name, net.export(str(folder / f"net{i}"), format="wasm")[0], inputs, answers


def test_every_layer_and_net_in_a_page(browser, tmp_path):
    cases = list(nets(tmp_path))
    (tmp_path / "index.html").write_text("<!doctype html><title>nets</title>")
    with serve(tmp_path) as address, Visit(browser, address) as opened:
        for what, module, inputs, answers in cases:
            encoded = [[x.ravel().astype(str).tolist(), x.shape, x.dtype.name] for x in inputs]
            name = module.replace(str(tmp_path) + "/", address)
            results = opened.page.evaluate(RUN, [name, encoded])
            assert len(results) == len(answers) > 0, what
            for (numbers, shape, dtype), expected in zip(results, answers, strict=True):
                near(np.array(numbers, "f8").astype(dtype).reshape(shape), expected, what)
        assert opened.problems == []
