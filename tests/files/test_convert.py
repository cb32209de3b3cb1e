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


def output_of(capsys, *words):
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
    assert output_of(capsys, "convert", *files, "out.onnx", *shape) == ["wrote out.onnx"]
    assert output_of(capsys, "convert", "out.onnx", "back-symbol.json") == [
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
    output_of(capsys, "convert", *files, "out.py", "--shape", "data=3,7")
    model = convert.load(*files)
    np.save("x.npy", convert.feed(model, {"data": (3, 7)})["data"].asnumpy())
    program = [sys.executable, "out.py", "x.npy", "y.npy"]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load("y.npy").reshape(3, 5), expected(model), rtol=1e-5)


def test_c_is_written_with_the_data_as_the_only_input(files, capsys):
    wrote = output_of(capsys, "convert", *files, "out.c", "--shape", "data=3,7")
    assert wrote == ["wrote out.c", "wrote out.weights"]
    assert "label" not in Path("out.c").read_text("utf-8")


def test_run_reads_arrays_and_writes_outputs(files, capsys):
    x = np.ones((2, 7), "float32")
    np.save("x.npy", x)
    lines = output_of(capsys, "run", *files, "--input", "data=x.npy", "--output", "y.npz")
    assert lines[0].startswith("softmax_output: shape (2, 5)") and lines[-1] == "wrote y.npz"
    assert lines[1] == "first row, largest first: [4, 3, 2, 1, 0]" and len(lines) == 5
    weight = convert.load(*files).arrays["fc_weight"]
    expected = nd.softmax(nd.dot(nd.array(x), weight.T)).asnumpy()
    np.testing.assert_allclose(np.load("y.npz")["softmax_output"], expected, rtol=1e-5)
    np.savez("x.npz", data=x)
    again = output_of(capsys, "run", *files, "--input", "x.npz", "--output", "y.npz")
    assert again == lines  # and its own file is replaced


def test_a_seed_chooses_the_inputs(files, capsys):
    first, same, other = (
        output_of(capsys, "run", *files, "--shape", "data=2,7", "--seed", seed) for seed in "778"
    )
    assert first == same != other


@pytest.mark.parametrize("target", ["net.py", "net.onnx", "net-symbol.json", "net.npz"])
def test_files_of_others_are_kept(files, target):
    Path(target).write_text("my thesis", "utf-8")
    shape = ["--shape", "data=3,7"]
    words = ["run", *files, "--output"] if target == "net.npz" else ["convert", *files]
    with pytest.raises(SystemExit):
        main.main([*words, target, *shape])
    assert Path(target).read_text("utf-8") == "my thesis"


def test_check_lists_contents_and_compares_with_onnx_runtime(files, capsys):
    lines = output_of(capsys, "check", *files, "--shape", "data=3,7")
    assert lines[:5] == [
        "net-symbol.json: 2 operators, 40 parameters",
        "operators: 1 FullyConnected, 1 SoftmaxOutput",
        "inputs: data",
        "labels, unused in prediction: softmax_label",
        "outputs: softmax_output",
    ]
    assert lines[5].startswith("runs: softmax_output has shape (3, 5)")
    words = lines[6].split()
    assert lines[6].startswith("ONNX Runtime: largest difference") and float(words[4][:-1]) < 1e-5


def failed(capsys, *words):
    """The lines on stdout of a command that exits with code 2, and its sentence on stderr."""
    with pytest.raises(SystemExit) as error:
        main.main(words)
    out, err = capsys.readouterr()
    _, start, text = err.rpartition("python -m minihybrid")  # after argparse's usage
    assert error.value.code == 2 and start and text.endswith("\n") and text.count("\n") == 1
    return out.splitlines(), text


def test_check_names_missing_operators(files, capsys):
    text = Path(files[0]).read_text("utf-8").replace('"FullyConnected"', '"Unheard"')
    Path("odd-symbol.json").write_text(text, "utf-8")
    for command in ("check", "run", "convert out.c", "convert out.onnx"):
        name, *target = command.split()
        words = [name, "odd-symbol.json", files[1], *target, "--shape", "data=3,7"]
        lines, sentence = failed(capsys, *words)
        assert "Unheard" in " ".join([*lines, sentence])
    lines, sentence = failed(capsys, "check", "odd-symbol.json", files[1])
    assert lines[-1] == "missing operator Unheard: fc"
    assert "it can't run without the missing operators" in sentence


MISTAKES = {
    "there is no input 'dta'": "run {0} {1} --shape dta=3,7",
    "no shape of 'data'": "convert {0} {1} out.onnx",
    "'.xyz', but one of .json": "convert {0} {1} out.xyz --shape data=3,7",
    "cannot read 'no.json'": "check no.json",
    "cannot read 'no.params'": "check {0} no.params",
    "no .npy or .npz file of numbers, or it is cut off": "run {0} {1} --input data={0}",
    "--input data=no.npy: No such file or directory": "run {0} {1} --input data=no.npy",
    "--input x.npy: which input is it? Write NAME=x.npy": "run {0} {1} --input x.npy",
    "'-1' is not a whole number from 0 on": "run {0} {1} --shape data=3,7 --seed -1",
    "no array is called fc_weight; the graph doesn't read FC_weight": "check {0} renamed.params",
    "renamed.params: no array is called fc_weight": "run {0} renamed.params --shape data=3,7",
    "'net-symbol.json': the model was read from it": "convert {0} {1} net.json",
    "'my.onnx': the model was read from it": "convert my.onnx my.onnx --shape data=3,7",
    "net-0000.params: my.onnx has its own arrays": "check my.onnx {1}",
    "convert: the target '' ends with ''": "convert {0} {1} ''",
    "FullyConnected: with data (3, 8)": "run {0} {1} --shape data=3,8",
    "'3,0' is not a shape": "run {0} {1} --shape data=3,0",
    "'99999999999,3' is not a shape": "run {0} {1} --shape data=99999999999,3",
    "has no list 'nodes'; needed: a symbol file": "check list.json {1}",
    "the file is cut off": "check {0} cut.params",
    "none of its 1 arrays, such as 'theirs'": "check {0} other.params",
    "name the .params file, or all shapes": "run {0} --shape data=3,7",
    "choose a name that ends with .npz": "run {0} {1} --shape data=3,7 --output out.txt",
}


@pytest.mark.parametrize("sentence", MISTAKES)
def test_a_mistake_is_one_sentence(files, capsys, sentence):
    Path("list.json").write_text("[1]", "utf-8")
    Path("cut.params").write_bytes(Path(files[1]).read_bytes()[:100])
    nd.save("other.params", {"arg:theirs": nd.zeros((1,))})
    arrays = nd.load(files[1])
    nd.save("renamed.params", {name.replace("fc_w", "FC_w"): a for name, a in arrays.items()})
    np.save("x.npy", np.ones((3, 7), "float32"))
    main.main(["convert", *files, "my.onnx", "--shape", "data=3,7"])
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    words = [word.strip("'") for word in MISTAKES[sentence].format(*files).split()]
    assert sentence in failed(capsys, *words)[1]
    assert before == {path.name: path.read_bytes() for path in Path().iterdir()}


def test_check_lists_missing_and_unused_arrays(files, capsys):
    arrays = nd.load(files[1])
    arrays["arg:extra"] = arrays.pop("arg:fc_weight")
    nd.save("renamed.params", arrays)
    lines, sentence = failed(capsys, "check", files[0], "renamed.params")
    assert {"inputs: data", "missing arrays: fc_weight", "unused arrays: extra"} <= set(lines)
    assert "renamed.params: no array is called fc_weight" in sentence


def test_names_in_files_are_printed_safely(files, capsys):
    text = Path(files[0]).read_text("utf-8").replace('"softmax"', '"\\u001b[31m\\u202enew"')
    Path("odd-symbol.json").write_text(text, "utf-8")
    for command in ("check", "run"):
        lines = output_of(capsys, command, "odd-symbol.json", files[1], "--shape", "data=3,7")
        assert all(line.isprintable() for line in lines)
        assert "\\x1b[31m\\u202enew_output" in " ".join(lines)


def test_an_output_may_be_of_booleans_or_empty(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    x = sym.var("data")
    sym.Group([x.astype("bool"), sym.slice_axis(x, axis=0, begin=0, end=0)]).save("net.json")
    lines = output_of(capsys, "run", "net.json", "--shape", "data=1,3")
    assert "shape (1, 3), from 1 to 1" in lines[0] and "first row" in lines[1]
    assert "shape (0, 3)" in " ".join(lines)


def test_a_forgotten_file_of_parameters_is_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    net = mx.gluon.nn.HybridSequential()
    net.add(*[mx.gluon.nn.Dense(3) for _ in range(4)])
    net.initialize()
    net.hybridize()
    net(nd.ones((1, 3)))
    net.export("net")
    _, sentence = failed(capsys, "run", "net-symbol.json", "--shape", "data=1,3")
    assert "name the .params file that belongs to it" in sentence
    lines = output_of(capsys, "check", "net-symbol.json")
    assert "more variables without an array" in lines[2]
