"""`python -m minihybrid convert | run | check`: files of models without a program."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import __main__ as main
from minihybrid import nd, sym
from minihybrid.formats import convert


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A classifier with a label, as MXNet's Module trained and saved them."""
    monkeypatch.chdir(tmp_path)
    hidden = sym.FullyConnected(sym.var("data"), num_hidden=5, name="fc")
    sym.SoftmaxOutput(hidden, sym.var("softmax_label"), name="softmax").save("net-symbol.json")
    weight = nd.array(np.arange(35).reshape(5, 7) / 35)
    nd.save("net-0000.params", {"arg:fc_weight": weight, "arg:fc_bias": nd.zeros((5,))})
    return ["net-symbol.json", "net-0000.params"]


def said(capsys, *words):
    main.main(words)
    return capsys.readouterr().out.splitlines()


def expected(model):
    x = convert.feed(model, {"data": (3, 7)})["data"]
    return nd.softmax(nd.dot(x, model.arrays["fc_weight"].T)).asnumpy()


def test_labels_are_no_inputs_and_outputs_are_those_of_prediction(files):
    model = convert.load(*files)
    assert (model.inputs, model.labels) == (["data"], ["softmax_label"])
    (out,) = convert.run(model, {"data": (3, 7)}).values()
    np.testing.assert_allclose(out, expected(model), rtol=1e-5)


def test_a_model_goes_to_onnx_and_to_mxnet_and_back(files, capsys):
    shape = ["--shape", "data=3,7"]
    assert said(capsys, "convert", *files, "out.onnx", *shape) == ["wrote out.onnx"]
    assert said(capsys, "convert", "out.onnx", "back-symbol.json") == [
        "wrote back-symbol.json",
        "wrote back-0000.params",
    ]
    back = convert.load("back-symbol.json", "back-0000.params")
    for model in (convert.load("out.onnx"), back):
        (out,) = convert.run(model, {"data": (3, 7)}).values()
        np.testing.assert_allclose(out, expected(convert.load(*files)), rtol=1e-5)
    assert convert.run(back, {"data": (9, 7)})  # any batch


@pytest.mark.slow
def test_a_converted_numpy_program_gives_the_same(files, capsys):
    said(capsys, "convert", *files, "out.py", "--shape", "data=3,7")
    model = convert.load(*files)
    np.save("x.npy", convert.feed(model, {"data": (3, 7)})["data"].asnumpy())
    program = [sys.executable, "out.py", "x.npy", "y.npy"]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load("y.npy").reshape(3, 5), expected(model), rtol=1e-5)


def test_c_is_written_with_the_data_as_the_only_input(files, capsys):
    wrote = said(capsys, "convert", *files, "out.c", "--shape", "data=3,7")
    assert wrote == ["wrote out.c", "wrote out.weights"]
    assert "label" not in Path("out.c").read_text("utf-8")


def test_run_reads_arrays_and_writes_outputs(files, capsys):
    x = np.ones((2, 7), "float32")
    np.save("x.npy", x)
    lines = said(capsys, "run", *files, "--input", "data=x.npy", "--output", "y.npz")
    assert lines[0].startswith("softmax_output: shape (2, 5)") and lines[-1] == "wrote y.npz"
    weight = convert.load(*files).arrays["fc_weight"]
    wanted = nd.softmax(nd.dot(nd.array(x), weight.T)).asnumpy()
    np.testing.assert_allclose(np.load("y.npz")["softmax_output"], wanted, rtol=1e-5)


def test_check_lists_contents_and_compares_with_onnx_runtime(files, capsys):
    lines = said(capsys, "check", *files, "--shape", "data=3,7")
    assert lines[:4] == [
        "net-symbol.json: 2 operators, 40 parameters",
        "inputs: data",
        "labels, unused in prediction: softmax_label",
        "outputs: softmax_output",
    ]
    assert lines[4].startswith("runs: softmax_output has shape (3, 5)")
    words = lines[5].split()
    assert lines[5].startswith("ONNX Runtime: largest difference") and float(words[4][:-1]) < 1e-5


def test_check_names_missing_operators(files, capsys):
    text = Path(files[0]).read_text("utf-8").replace('"FullyConnected"', '"Unheard"')
    Path("odd-symbol.json").write_text(text, "utf-8")
    lines = said(capsys, "check", "odd-symbol.json", files[1], "--shape", "data=3,7")
    assert "missing operator Unheard: fc" in lines
    assert lines[-1] == "runs: no, because of the missing operators"


MISTAKES = {
    "there is no input 'dta'": ["run", "{0}", "{1}", "--shape", "dta=3,7"],
    "no shape of 'data'": ["convert", "{0}", "{1}", "out.onnx"],
    "'.xyz', but one of .json": ["convert", "{0}", "{1}", "out.xyz", "--shape", "data=3,7"],
    "cannot read 'no.json'": ["check", "no.json"],
    "a .npy file of numbers is needed": ["run", "{0}", "{1}", "--input", "data={0}"],
    "FullyConnected": ["run", "{0}", "{1}", "--shape", "data=3,8"],
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_one_sentence(files, words):
    with pytest.raises(SystemExit) as error:
        main.main([word.format(*files) for word in MISTAKES[words]])
    text = str(error.value)
    assert text.startswith("python -m minihybrid: ") and words in text and "\n" not in text


def test_a_forgotten_file_of_parameters_is_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    net = mx.gluon.nn.HybridSequential()
    net.add(*[mx.gluon.nn.Dense(3) for _ in range(4)])
    net.initialize()
    net.hybridize()
    net(nd.ones((1, 3)))
    net.export("net")
    with pytest.raises(SystemExit, match="name the .params file"):
        main.main(["run", "net-symbol.json", "--shape", "data=1,3"])
    lines = said(capsys, "check", "net-symbol.json")
    assert "more variables without an array" in lines[1]
