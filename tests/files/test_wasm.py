"""A net in WebAssembly gives Python's answers, and its loader takes no other files."""

import struct
import sys
from pathlib import Path

import envs
import pytest
from test_javascript import LAYERS, NODE, exported, near, run
from test_standalone import NETS, agree, trained

from minihybrid import nd
from minihybrid.codegen.c import wasm
from minihybrid.core.op import HybridError
from minihybrid.gluon import nn


@pytest.fixture(scope="module")
def zig():
    """The compiler, from an environment of its own."""
    if NODE is None:
        pytest.skip("NOT CHECKED: there is no node; install Node.js 20 or newer")
    try:
        python = envs.python_of("wasm")
    except envs.NotAvailable as error:
        pytest.skip(f"NOT CHECKED: WebAssembly: {error}")
    with pytest.MonkeyPatch.context() as patch:
        for folder in python.parents[1].glob("lib/python*/site-packages"):
            patch.setattr(sys, "path", [*sys.path, str(folder)])
        yield wasm.compiler()


@pytest.mark.elsewhere
def test_each_layer_runs_in_webassembly(zig, tmp_path):
    made = [
        exported(layer, x, str(tmp_path / f"net{i}"), "wasm") for i, (layer, x) in enumerate(LAYERS)
    ]
    jobs = [[*files, [x]] for (files, _), (_, x) in zip(made, LAYERS, strict=True)]
    for got, (_, wanted), (layer, _) in zip(run(tmp_path, jobs), made, LAYERS, strict=True):
        assert not isinstance(got, str), (layer, got)
        agree(got[0], wanted, 1e-5, layer)


@pytest.mark.elsewhere
def test_nets_run_in_webassembly(zig, tmp_path):
    names = [n for n in NETS if "shared" not in n]
    jobs = [
        [*trained(name)[0].export(str(tmp_path / f"net{i}"), format="wasm"), trained(name)[1]]
        for i, name in enumerate(names)
    ]
    for name, got in zip(names, run(tmp_path, jobs), strict=True):
        assert not isinstance(got, str), (name, got)
        for one, wanted in zip(got, trained(name)[2], strict=True):
            near(one, wanted, name)


@pytest.mark.elsewhere
def test_the_program_asks_for_nothing_and_other_files_are_refused(zig, tmp_path):
    net, (x,), _ = trained("mlp")
    module, program, weights = net.export(str(tmp_path / "net"), format="wasm")
    assert sections(Path(program).read_bytes()).isdisjoint({IMPORTS, START})
    other = trained("lenet")[0].export(str(tmp_path / "other"), format="wasm")
    data = Path(weights).read_bytes()
    hostile = {
        "cut": data[:-1],
        "long": data + b"\0",
        "mark": b"x" + data[1:],
        "sum": data[:-80] + bytes([data[-80] ^ 1]) + data[-79:],
        "program": Path(program).read_bytes()[:-30],
        "wanting": b"\0asm\1\0\0\0" + b"\1\4\1\x60\0\0" + b"\2\7\1\1a\1b\0\0",  # a function a.b
        "empty": b"\0asm\1\0\0\0",
    }
    paths = {name: tmp_path / name for name in hostile}
    for name, path in paths.items():
        path.write_bytes(hostile[name])
    cases = [
        ("are needed; the file is cut off or is that of another", program, paths["cut"], [x]),
        ("are needed; the file is cut off or is that of another", program, paths["long"], [x]),
        ("its first 8 bytes are others", program, paths["mark"], [x]),
        ("the file is damaged: its checksum is another", program, paths["sum"], [x]),
        ("are needed; the file is cut off or is that of another", program, other[2], [x]),
        ("the program cannot be used", paths["program"], weights, [x]),
        ("the program cannot be used", paths["wanting"], weights, [x]),
        ("the program cannot be used", paths["empty"], weights, [x]),
        ("1 are needed", program, weights, [x, x]),
        ("export the net for another shape", program, weights, [x[:-1]]),
        ("this program takes float32[4,30]", program, weights, [x.astype("f8")]),
    ]
    jobs = [[module, str(a), str(b), xs] for _, a, b, xs in cases]
    for (words, *_), said in zip(cases, run(tmp_path, jobs), strict=True):
        assert isinstance(said, str) and words in said and "\n" not in said, (words, said)


IMPORTS, START = 2, 8  # the numbers of sections of a module


def sections(data):
    """The numbers of the sections that a module of WebAssembly has."""
    assert data[:8] == b"\0asm" + struct.pack("<I", 1)
    at, found = 8, set()
    while at < len(data):
        found.add(data[at])
        size = shift = 0
        at += 1
        while True:
            size |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                break
        at += size
    return found


@pytest.mark.elsewhere
def test_names_never_reach_the_files(zig, tmp_path):
    net = nn.Dense(3, prefix='evil"*/\n')
    net.initialize()
    net.hybridize(backend="cpu")
    net(nd.ones((1, 2)))
    files = net.export(str(tmp_path / "evil"), format="wasm")
    assert all(b'evil"' not in Path(f).read_bytes() for f in files)


# -- without a compiler ----------------------------------------------------------------
def test_without_the_compiler_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(wasm.importlib.util, "find_spec", lambda name: None)
    net, _, _ = trained("mlp")
    with pytest.raises(HybridError, match=r"ziglang, which is not installed; .*minihybrid\[wasm\]"):
        net.export(str(tmp_path / "net"), format="wasm")
    assert not list(tmp_path.iterdir())


def test_what_the_compiler_says_is_told(monkeypatch, tmp_path):
    tool = tmp_path / "zig"
    tool.write_text("#!/bin/sh\necho error: no room >&2\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setattr(wasm, "compiler", lambda: tool)
    with pytest.raises(HybridError, match="ziglang says 'error: no room' instead"):
        trained("mlp")[0].export(str(tmp_path / "net"), format="wasm")
    assert list(tmp_path.iterdir()) == [tool]


def test_random_numbers_are_refused_by_name(tmp_path):
    net = nn.HybridLambda(lambda F, x: F._random_uniform_like(x))
    net.hybridize(backend="numpy")
    net(nd.ones((2, 3)))
    with pytest.raises(HybridError, match="export: _random_uniform_like '.*' draws random numbers"):
        net.export(str(tmp_path / "net"), format="wasm")
    assert not list(tmp_path.iterdir())


def test_the_loader_names_the_one_program_that_it_runs():
    one, other = (wasm.loader(made, [], [], []) for made in (b"one", b"other"))
    assert 'PROGRAM = "sha256-dpLDrTVAu4A8' in one and one != other
