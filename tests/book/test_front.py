"""The front page: its network is the one that was recorded, and goes into the site."""

import json
from types import SimpleNamespace

import front

import minihybrid as mx
from minihybrid import nd

RECORD = json.loads((front.FRONT / "record.json").read_text(encoding="utf-8"))


def test_the_network_reads_what_the_record_says():
    x, y = mx.datasets.digits()[1]
    first, relu, last = front.looked_into()(x.reshape((-1, 64)))
    assert (first.shape[1], last.shape[1]) == (64, 10)
    assert (relu == nd.relu(first)).min().item() == 1
    assert len(y) == RECORD["of"]
    assert abs((last.argmax(axis=1) == y).sum().item() - RECORD["right"]) <= 1  # another processor


def test_the_site_gets_the_exported_network(tmp_path):
    app = SimpleNamespace(builder=SimpleNamespace(format="html"), outdir=str(tmp_path))
    front.export_net(app)
    names = {path.name for path in (tmp_path / "_static/net").iterdir()}
    assert names == {"digits.mjs", "digits.wasm"}  # what front.js imports
    page = (front.FRONT.parent / "_static/front.js").read_text(encoding="utf-8")
    assert "net/digits.mjs" in page


def test_the_numbers_are_computed_of_the_record():
    facts = front.facts()
    eager, hybrid = RECORD["eager_us"], RECORD["hybrid_us"]
    assert float(facts["ratio"]) == round(eager / hybrid) > 1
    assert abs(float(facts["part"].rstrip("%")) - 100 * hybrid / eager) <= 0.05
    assert all(layer["overhead_us"] <= layer["us"] for layer in RECORD["layers"])
    assert sum(layer["us"] for layer in RECORD["layers"]) <= eager
