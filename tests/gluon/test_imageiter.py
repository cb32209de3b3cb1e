"""Pictures in batches beside MXNet's, and what strangers' files may hold."""

import io
import json
import random
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import envs
import numpy as np
import pytest
from minihybrid.recordio import IRHeader, MXIndexedRecordIO, pack, pack_img

import minihybrid as mx
from minihybrid import AttrError, HybridError, image, nd
from minihybrid.core.files import FileError
from minihybrid.mxnet.augmenters import Augmenter, CreateAugmenter, SequentialAug
from minihybrid.mxnet.imageiter import ImageIter, ImageRecordIter

PROGRAM = Path(__file__).parent / "elsewhere/pictures.py"
N = 7
PICTURES = [
    np.random.default_rng(i).integers(0, 256, (8 + i, 12 - i, 3), dtype=np.uint8) for i in range(N)
]


def close(actual, expected, most, path):
    assert type(actual) is type(expected), path
    if isinstance(expected, list):
        assert len(actual) == len(expected), path
        if expected and isinstance(expected[0], float):
            np.testing.assert_allclose(actual, expected, rtol=0, atol=most, err_msg=path)
        else:
            for i, pair in enumerate(zip(actual, expected, strict=True)):
                close(*pair, most, f"{path}/{i}")
    else:
        assert actual == expected, path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of seven pictures of different sizes: with a label, and with two."""
    folder = tmp_path_factory.mktemp("pictures")
    for name, labels in (("some", float), ("labels", lambda i: [i, -i])):
        file = MXIndexedRecordIO(folder / f"{name}.idx", folder / f"{name}.rec", "w")
        for i, picture in enumerate(PICTURES):
            file.write_idx(i, pack_img(IRHeader(0, labels(i), i, 0), picture[..., ::-1], 9, ".png"))
        file.close()
    return folder


def records(folder, **more):
    how = {"path_imgrec": folder / "some.rec", "data_shape": (3, 4, 5), "batch_size": 3}
    return ImageRecordIter(**how | more)


def pictures(folder, **more):
    how = {"path_imgrec": folder / "some.rec", "data_shape": (3, 4, 5), "batch_size": 3}
    return ImageIter(**how | more)


def labels(batches):
    return [batch.label[0].asnumpy().astype(int).tolist() for batch in batches]


@pytest.mark.external
def test_batches_are_those_of_mxnet(folder, monkeypatch):
    try:
        python = envs.python_of("mxnet")
    except envs.NotAvailable as reason:
        pytest.skip(str(reason))
    run = subprocess.run([python, PROGRAM, folder], capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr[-2000:]
    expected = json.loads(run.stdout.splitlines()[-1])
    monkeypatch.setattr(sys, "argv", ["", str(folder)])
    monkeypatch.setattr(random, "uniform", random.uniform)  # which the program replaces

    class Half:
        random = staticmethod(lambda: 0.0)
        uniform = staticmethod(lambda low, high: high / 2)

    program = PROGRAM.read_text().replace("import mxnet as mx", "import minihybrid as mx")
    first, second = program.split("random.uniform =")
    printed, names = io.StringIO(), {}
    with redirect_stdout(printed):
        exec(compile(first, PROGRAM, "exec"), names)
        monkeypatch.setattr("minihybrid.mxnet.augmenters.draws", Half)
        exec(compile("random.uniform =" + second, PROGRAM, "exec"), names)
    actual = json.loads(printed.getvalue())
    assert actual.keys() == expected.keys()
    for name in expected:
        close(actual[name], expected[name], 2e-4, name)


def test_the_middle_of_each_picture_comes_in_order(folder):
    for batches in (records(folder, round_batch=False), pictures(folder)):
        (first, _, last) = list(batches)
        assert first.label[0].asnumpy().tolist() == [0, 1, 2] and last.pad == 2
        for i, values in enumerate(first.data[0].asnumpy()):
            y, x = (8 + i - 4) // 2, (12 - i - 5) // 2
            expected = PICTURES[i][y : y + 4, x : x + 5].transpose(2, 0, 1)
            if isinstance(batches, ImageRecordIter):
                np.testing.assert_array_equal(values, expected)
            assert values.shape == expected.shape and values.dtype == np.float32
        assert batches.provide_data == [("data", (3, 3, 4, 5))]
    assert (labels(pictures(folder))[-1], labels(records(folder))[-1]) == ([6, 0, 1], [6, 0, 1])


def test_rounds_of_records_go_on_behind_what_filled_the_last_batch(folder):
    batches, actual = records(folder), []
    for _ in range(3):
        actual.append(labels(batches))
        batches.reset()
    assert actual == [
        [[0, 1, 2], [3, 4, 5], [6, 0, 1]],
        [[2, 3, 4], [5, 6, 0]],
        [[1, 2, 3], [4, 5, 6]],
    ]


@pytest.mark.parametrize("kind", [records, pictures])
def test_shuffled_rounds_have_every_picture_and_repeat(folder, kind):
    orders = []
    for _ in range(2):
        mx.random.seed(3)
        batches = kind(folder, shuffle=True, batch_size=7)
        for _ in range(2):
            orders.append(sum(labels(batches), []))
            batches.reset()
    assert orders[:2] == orders[2:] and orders[0] != orders[1]
    assert all(sorted(order) == list(range(N)) for order in orders)


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("kind", [records, pictures])
def test_parts_have_each_picture_once(folder, kind, indexed):
    more = {"path_imgidx": folder / "some.idx"} if indexed else {}
    more |= {"batch_size": 1, "num_parts": 3}
    actual = [sum(labels(kind(folder, part_index=i, **more)), []) for i in range(3)]
    rest = [6] if kind is pictures else []  # MXNet's parts of ImageIter are of equal size
    assert sum(actual, []) + rest == list(range(N)) and all(actual)


def test_random_parts_and_mirrors(folder):
    mx.random.seed(1)
    batches = records(folder, rand_crop=True, rand_mirror=True, batch_size=7)
    seen = set()
    for _ in range(20):
        values = next(batches).data[0].asnumpy()[0].transpose(1, 2, 0)
        batches.reset()
        parts = {
            (y, x, flip)
            for y in range(5)
            for x in range(8)
            for flip in (1, -1)
            if (PICTURES[0][y : y + 4, x : x + 5][:, ::flip] == values).all()
        }
        assert len(parts) == 1
        seen |= parts
    assert len({flip for _, _, flip in seen}) == 2 and len(seen) > 10


def test_lists_of_files(folder):
    lines = []
    for i in range(3):
        packed = pack_img(IRHeader(0, 0, 0, 0), PICTURES[i][..., ::-1], 9, ".png")
        (folder / f"{i}.png").write_bytes(packed[24:])
        lines.append(f"{10 + i}\t{i}\t{2 * i}\t{i}.png")
    (folder / "list.lst").write_text("\n".join(lines))
    how = {"data_shape": (3, 4, 5), "path_root": folder, "label_width": 2}
    made = ImageIter(3, path_imglist=folder / "list.lst", **how)
    assert labels(made) == [[[0, 0], [1, 2], [2, 4]]] and made.seq == [10, 11, 12]
    again = ImageIter(3, imglist=[(i, 2 * i, f"{i}.png") for i in range(3)], **how)
    values = [next(m).data[0].asnumpy() for m in (again, pictures(folder))]
    np.testing.assert_array_equal(*values)


@pytest.mark.parametrize("handle, expected", [("pad", 3), ("discard", 2), ("roll_over", 2)])
def test_what_becomes_of_a_last_shorter_batch(folder, handle, expected):
    batches = pictures(folder, last_batch_handle=handle)
    first = labels(batches)
    batches.reset()
    second = labels(batches)
    assert len(first) == expected
    assert second[0] == ([6, 0, 1] if handle == "roll_over" else [0, 1, 2])


def test_augmenters_are_made_in_order_and_say_themselves():
    made = CreateAugmenter((3, 6, 5), resize=9, rand_mirror=True, std=nd.array([1, 2, 3]))
    assert [json.loads(a.dumps())[0] for a in made] == [
        "resizeaug",
        "centercropaug",
        "horizontalflipaug",
        "castaug",
        "colornormalizeaug",
    ]
    values = SequentialAug(made)(nd.array(PICTURES[0], dtype="uint8"))
    assert values.shape == (6, 5, 3) and values.dtype == np.float32
    (halves,) = CreateAugmenter((3, 8, 12), std=np.array([2.0]))[-1:]
    expected = PICTURES[0] / np.float32(2)
    np.testing.assert_array_equal(halves(nd.array(PICTURES[0])).asnumpy(), expected)
    with pytest.raises(NotImplementedError):
        Augmenter()(expected)


def test_colours_change_and_repeat_after_the_seed():
    how = dict(brightness=0.2, contrast=0.2, saturation=0.2, hue=0.2, pca_noise=0.1, rand_gray=0.5)
    change = SequentialAug(CreateAugmenter((3, 8, 12), rand_crop=True, rand_resize=True, **how))
    rounds = []
    for _ in range(2):
        mx.random.seed(2)
        rounds.append([change(nd.array(PICTURES[0], dtype="uint8")).asnumpy() for _ in range(6)])
    np.testing.assert_array_equal(*rounds)
    assert len({a.tobytes() for a in rounds[0]}) == 6
    grey = [(a == a[..., :1]).all() for a in rounds[0]]
    assert 0 < sum(grey) < 6


def test_names_are_mxnets():
    assert image.ImageIter is ImageIter and mx.io.ImageRecordIter is ImageRecordIter
    assert image.CreateAugmenter is CreateAugmenter and "ImageIter" in dir(mx.image)
    with pytest.raises(AttributeError, match="has no 'DetAugmenter'"):
        image.DetAugmenter  # noqa: B018


def broken(tmp_path, *actual):
    file = MXIndexedRecordIO(tmp_path / "x.idx", tmp_path / "x.rec", "w")
    for i, record in enumerate(actual):
        file.write_idx(i, record)
    file.close()
    return {"path_imgrec": tmp_path / "x.rec", "batch_size": 1}


def test_records_that_hold_no_pictures_are_named(folder, tmp_path):
    how = broken(tmp_path, pack(IRHeader(0, 1, 0, 0), b"no picture"))
    with pytest.raises(FileError, match="x.rec', record 0 cannot be read as a picture"):
        next(records(folder, **how))
    with pytest.raises(FileError, match="sample 0: the bytes cannot be read as a picture"):
        next(pictures(folder, **how))
    with pytest.raises(FileError, match="a record of 3 bytes; needed: 24"):
        next(records(folder, **broken(tmp_path, b"abc")))
    with pytest.raises(AttrError, match="has no pictures for part 0"):
        records(folder, **broken(tmp_path))
    (tmp_path / "x.rec").write_bytes((folder / "some.rec").read_bytes()[:-5])
    with pytest.raises(FileError, match="was the file cut off"):
        records(folder, **how)


@pytest.mark.parametrize(
    "kind, more, error, message",
    [
        (records, {"data_shape": (4, 5)}, AttrError, r"data_shape=\(4, 5\) .*1 or 3 channels"),
        (pictures, {"data_shape": (1, 4, 5)}, AttrError, "with 3 channels is needed"),
        (records, {"part_index": 1}, AttrError, "part_index=1, but there are parts 0 to 0"),
        (records, {"std_g": 0}, AttrError, "a std of 0"),
        (records, {"max_rotate_angle": 10}, AttrError, "no argument is called 'max_rotate_angle'"),
        (records, {"inter_method": 9}, AttrError, "inter_method='9' does not fit"),
        (pictures, {"path_imgrec": None}, AttrError, "path_imglist or imglist is needed"),
        (pictures, {"num_parts": 9}, AttrError, "of 7 pictures, part 0 has none"),
        (pictures, {"rand_resize": True}, AttrError, "needs rand_crop=True"),
        (pictures, {"aug_list": [], "resize": 3}, AttrError, "aug_list decides alone; resize"),
        (pictures, {"spam": 3}, AttrError, "no argument is called 'spam'"),
    ],
)
def test_wrong_settings_are_one_sentence(folder, kind, more, error, message):
    with pytest.raises(error, match=message):
        kind(folder, **more)


def test_what_is_found_while_going_through_is_one_sentence(folder, tmp_path):
    with pytest.raises(FileError, match="has 1 labels, but label_width=2 is given"):
        next(records(folder, label_width=2))
    with pytest.raises(HybridError, match="7 pictures do not fill a batch of 20 twice"):
        next(records(folder, batch_size=20))
    with pytest.raises(AttrError, match=r"augmenters made \(3, 8, 12\) of a picture"):
        next(pictures(folder, aug_list=[]))
    (tmp_path / "x.lst").write_text("1\tname.png\n")
    with pytest.raises(FileError, match="line 1: .*a whole number, labels and a file's name"):
        ImageIter(1, (3, 4, 5), path_imglist=tmp_path / "x.lst")
