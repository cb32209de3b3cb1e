"""Files of records: what MXNet writes and reads, and what strangers may write."""

import copy
import json
import multiprocessing
import os
import pickle
import struct
import subprocess
from pathlib import Path

import envs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from minihybrid.recordio import IRHeader, MXIndexedRecordIO, MXRecordIO, pack, pack_img, unpack

from minihybrid import nd, recordio
from minihybrid.core.files import FileError
from minihybrid.core.op import AttrError, HybridError
from minihybrid.gluon.data import DataLoader, RecordFileDataset
from minihybrid.gluon.data.vision import ImageRecordDataset

PROGRAM = Path(__file__).parent / "elsewhere/records.py"
MAGIC = struct.pack("<I", 0xCED7230A)
# Nothing; lengths around 4; the magic number at multiples of 4, and beside them.
RECORDS = [
    b"",
    b"abc",
    b"abcd",
    MAGIC,
    MAGIC * 2,
    b"abcd" + MAGIC + b"xyz" + MAGIC,
    bytes(range(9)),
]
RECORDS += [b"ab" + MAGIC, MAGIC + b"q", b"abcd" + MAGIC + b"q", MAGIC[:3]]
PICTURE = np.random.default_rng(3).integers(0, 256, (5, 4, 3), dtype=np.uint8)


def written(folder, records, name="some"):
    file = MXIndexedRecordIO(folder / f"{name}.idx", folder / f"{name}.rec", "w")
    for i, record in enumerate(records):
        file.write_idx(i, record)
    file.close()
    return folder / f"{name}.rec"


def opened(path):
    return MXIndexedRecordIO(path.with_suffix(".idx"), path, "r")


def all_of(path):
    file, actual = MXRecordIO(path, "r"), []
    while (record := file.read()) is not None:
        actual.append(record)
    return actual


def test_records_come_back_in_order_and_by_key(tmp_path):
    path = written(tmp_path, RECORDS)
    assert all_of(path) == RECORDS
    file = opened(path)
    assert [file.read_idx(k) for k in reversed(file.keys)] == RECORDS[::-1]
    file.reset()
    assert file.read() == RECORDS[0]
    assert file.idx[3] == 32 and path.stat().st_size % 4 == 0


@given(st.lists(st.lists(st.sampled_from([b"a", b"\n", MAGIC, b"word"])).map(b"".join)))
def test_any_bytes_come_back(tmp_path_factory, records):
    assert all_of(written(tmp_path_factory.mktemp("any"), records)) == records


def test_the_bytes_are_those_of_mxnet(tmp_path):
    """Its own file of the last record but two: cut where the magic number stands."""
    path = written(tmp_path, [RECORDS[5]])
    parts = [(1, b"abcd"), (3, b"xyz" + MAGIC)]
    expected = b"".join(MAGIC + struct.pack("<I", flag << 29 | len(p)) + p for flag, p in parts)
    assert path.read_bytes() == expected + b"\0"
    assert path.with_suffix(".idx").read_bytes() == b"0\t0\n"


@pytest.mark.external
def test_mxnet_reads_our_files_and_we_read_its(tmp_path):
    try:
        python = envs.python_of("mxnet")
    except envs.NotAvailable as reason:
        pytest.skip(str(reason))
    ours = written(tmp_path, RECORDS, "here")
    images = [pack_img(IRHeader(0, 7, 0, 0), PICTURE, 9, ".png")]
    images += [pack_img(IRHeader(0, 3, 0, 0), PICTURE[:, :, 0], 9, ".png")]
    pictures = written(tmp_path, images, "pictures")
    program = [python, PROGRAM, tmp_path, json.dumps([r.hex() for r in RECORDS])]
    run = subprocess.run(program, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr[-2000:]
    actual = json.loads(run.stdout.splitlines()[-1])
    assert actual["by key"] == actual["in order"] == [r.hex() for r in RECORDS]
    assert (tmp_path / "mxnet.rec").read_bytes() == ours.read_bytes()
    assert (tmp_path / "mxnet.idx").read_bytes() == (tmp_path / "here.idx").read_bytes()
    assert all_of(tmp_path / "mxnet.rec") == RECORDS
    header = IRHeader(9, [1.5, -2], 3, 1 << 40)
    packed = [pack(header, b"picture"), pack(IRHeader(9, 4, 3, 0), b"picture")]
    assert actual["packed"] == [p.hex() for p in packed]
    samples = [[x.asnumpy().tolist(), float(y)] for x, y in ImageRecordDataset(pictures)]
    assert actual["pictures"] == samples and samples[0][0] == PICTURE[:, :, ::-1].tolist()


# -- labels and pictures ---------------------------------------------------------------
@pytest.mark.parametrize("label", [3, 2.5, np.float32(1), [1, 2], np.ones((2, 2)), nd.array([5])])
def test_labels_come_back(label):
    header, data = unpack(pack(IRHeader(5, label, 1 << 63, 7), b"rest"))
    assert data == b"rest" and header[2:] == (1 << 63, 7)
    label = label.asnumpy() if isinstance(label, nd.NDArray) else label
    assert header.flag == (0 if np.isscalar(label) else np.size(label))
    np.testing.assert_array_equal(header.label, np.ravel(label) if header.flag else label)


def test_pictures_come_back_blue_first():
    for values in (PICTURE, PICTURE[:, :, 0], np.dstack([PICTURE, PICTURE[:, :, :1]])):
        header, actual = recordio.unpack_img(pack_img((0, 4.0, 2, 0), values, 9, ".PNG"))
        assert header == (0, 4.0, 2, 0) and (actual == values).all()
    flat = np.full((16, 16, 3), (200, 30, 90), np.uint8)
    packed = pack_img(IRHeader(0, 1, 0, 0), flat)
    assert abs(recordio.unpack_img(packed)[1].astype(int) - flat).max() < 4  # JPEG's loss
    assert recordio.unpack_img(packed, 0)[1].shape == (16, 16)
    assert recordio.unpack_img(pack_img((0, 1, 0, 0), flat[:, :, 0]), 1)[1].shape == (16, 16, 3)


def test_datasets_of_records(tmp_path):
    images = [pack_img(IRHeader(0, i, i, 0), PICTURE + np.uint8(i), 9, ".png") for i in range(6)]
    path = written(tmp_path, images)
    raw = RecordFileDataset(str(path))
    assert len(raw) == 6 and raw[4] == images[4]
    made = ImageRecordDataset(path, transform=lambda x, y: (x.astype("float32") / 255, y))
    for x, y in DataLoader(made, 3, num_workers=3):  # its threads read one file
        expected = np.stack([PICTURE[:, :, ::-1] + np.uint8(i) for i in y.asnumpy()])
        np.testing.assert_allclose(x.asnumpy() * 255, expected, atol=1e-4)
    assert ImageRecordDataset(path, flag=0)[0][0].shape == (5, 4, 1)


# -- whole files, other processes ------------------------------------------------------
def test_an_old_file_stays_until_the_new_one_is_closed(tmp_path):
    path = written(tmp_path, [b"old"])
    file = MXIndexedRecordIO(path.with_suffix(".idx"), path, "w")
    file.write_idx(0, b"new")
    assert all_of(path) == [b"old"]
    file.reset()  # begins with nothing
    file.write_idx(1, b"newer")
    file.close()
    assert all_of(path) == [b"newer"] and opened(path).keys == [1]
    with pytest.raises(AttrError):
        MXIndexedRecordIO(path.with_suffix(".idx"), path, "w").write_idx("x", b"")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["some.idx", "some.rec"]


def test_a_copy_reads_for_itself(tmp_path):
    file = opened(written(tmp_path, [b"one", b"two"]))
    file.read()
    for again in (copy.copy(file), pickle.loads(pickle.dumps(file))):
        assert again.read() == b"one" and again.keys == [0, 1]
    assert file.read() == b"two"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="only processes that fork share a place")
def test_a_forked_process_reads_at_a_place_of_its_own(tmp_path):
    file = opened(written(tmp_path, [b"one", b"two"]))
    file.read()
    queue = multiprocessing.get_context("fork").SimpleQueue()

    def child():
        try:
            file.read()
        except HybridError as error:
            queue.put((str(error), file.read_idx(0), file.read()))

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    message, *records = queue.get()
    assert "opened by another process" in message and records == [b"one", b"two"]
    assert file.read() == b"two"


# -- what does not fit -----------------------------------------------------------------
def head(flag, n):
    return MAGIC + struct.pack("<I", flag << 29 | n)


@pytest.mark.parametrize(
    "data, message",
    [
        (b"text", "at byte 0 no record begins .74657874."),
        (head(0, 4) + b"abc", "it has 4 bytes, but 3 follow; was the file cut off"),
        (head(0, (1 << 29) - 1), "it has 536870911 bytes, but 0 follow"),
        (head(1, 0), r"at byte 8 no record begins \(nothing\)"),
        (head(1, 0) + head(0, 0), "a flag of 2 or 3 and a length"),
        (head(2, 0), "a flag of 0 or 1 and a length"),
        (head(5, 0), "no record begins"),
        (head(0, 1)[:7], "no record begins"),
        (b"\0" + head(0, 0), "no record begins"),
    ],
)
def test_damaged_files_are_refused(tmp_path, data, message):
    path = tmp_path / "x.rec"
    path.write_bytes(data)
    with pytest.raises(FileError, match=message):
        MXRecordIO(path, "r").read()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_changed_files_are_read_or_refused(tmp_path_factory, data):
    """Nothing else, and never more than the file has."""
    path = written(tmp_path_factory.mktemp("changed"), [b"abcd", RECORDS[5], b"x"])
    for name in (path, path.with_suffix(".idx")):
        content = bytearray(name.read_bytes())
        for _ in range(data.draw(st.integers(0, 2))):
            at = data.draw(st.integers(0, len(content) - 1))
            content[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
            content = content or bytearray(b"0")
        name.write_bytes(content)
    for read in (lambda: sum(map(len, all_of(path))), lambda: len(opened(path).read_idx(0))):
        try:
            assert read() <= path.stat().st_size
        except HybridError:
            pass
    try:
        walked = MXIndexedRecordIO(None, path, "r")
        assert sum(len(walked.read_idx(k)) for k in walked.keys) <= path.stat().st_size
    except FileError:
        pass


def test_without_an_index_the_file_is_walked_through(tmp_path):
    file = MXIndexedRecordIO(None, written(tmp_path, RECORDS), "r")
    assert [file.read_idx(k) for k in range(len(RECORDS))] == RECORDS
    assert file.idx == opened(tmp_path / "some.rec").idx
    assert copy.copy(file).read_idx(3) == RECORDS[3]


@pytest.mark.parametrize(
    "index, message",
    [
        (b"0\t12\n", "record 0 is said to begin at byte 12, but '.*x.rec' has 12"),
        (b"0\t0\n1\t99999999999999999999\n", r"line 2: b'1\\t9"),
        (b"a\t0\n", r"line 1: b'a\\t0' is no key \(int\), a tab and a place"),
        (b"0\n", "a tab and a place; needed: the index of"),
        (b"0\t-4\n", "a tab and a place"),
        (b"\xff\t0\n", "a tab and a place"),
    ],
)
def test_a_wrong_index_is_refused(tmp_path, index, message):
    (tmp_path / "x.rec").write_bytes(head(0, 4) + b"abcd")
    (tmp_path / "x.idx").write_bytes(index)
    with pytest.raises(FileError, match=message):
        opened(tmp_path / "x.rec")


def test_an_index_that_points_between_records_is_seen_when_it_is_read(tmp_path):
    (tmp_path / "x.rec").write_bytes(head(0, 8) + b"abcdefgh")
    (tmp_path / "x.idx").write_bytes(b"0\t4\n")
    with pytest.raises(FileError, match="at byte 4 no record begins.*is the index another's"):
        RecordFileDataset(tmp_path / "x.rec")[0]


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda p: MXRecordIO(p, "a"), AttrError, r"flag='a' \(a str\), but 'r'"),
        (lambda p: MXRecordIO(p.parent, "r"), FileError, "no regular file"),
        (lambda p: MXRecordIO(p.parent, "w"), FileError, "no regular file"),
        (lambda p: MXRecordIO(p.parent / "no", "r"), FileError, "No such file"),
        (lambda p: MXRecordIO(p.parent / "no" / "x", "w"), FileError, "No such file"),
        (lambda p: MXRecordIO(p, "r").write(b""), HybridError, "open to read only"),
        (lambda p: MXRecordIO(p.parent / "new", "w").read(), HybridError, "open to write only"),
        (lambda p: MXRecordIO(p.parent / "new", "w").write("a"), AttrError, "bytes are needed"),
        (lambda p: opened(p).read_idx(5), AttrError, "no record 5 .an int. in .* such as 0"),
        (lambda p: copy.copy(MXRecordIO(p.parent / "new", "w")), HybridError, "cannot be copied"),
        (lambda p: unpack(b"short"), FileError, "a record of 5 bytes; needed: 24"),
        (lambda p: unpack(struct.pack("<IfQQ", 9, 0, 0, 0)), FileError, "that 9 labels"),
        (lambda p: pack((0, "a", 0, 0), b""), AttrError, "does not fit; needed: IRHeader"),
        (lambda p: pack((0, 1, -1, 0), b""), AttrError, "does not fit; needed: IRHeader"),
        (lambda p: pack((0, 1), b""), AttrError, "does not fit; needed: IRHeader"),
        (lambda p: pack_img((0, 1, 0, 0), PICTURE * 1.0), AttrError, "float64; needed: uint8"),
        (lambda p: pack_img((0, 1, 0, 0), PICTURE, 9, ".gif"), AttrError, "img_fmt='.gif', but"),
        (lambda p: recordio.unpack_img(pack((0, 1, 0, 0), b"x")), FileError, "the picture of a"),
        (lambda p: recordio.unpack_img(b"", 3), FileError, "of 0 bytes"),
    ],
)
def test_wrong_calls_are_one_sentence(tmp_path, call, error, message):
    with pytest.raises(error, match=message):
        call(written(tmp_path, [b"one"]))


def test_a_closed_file_says_so(tmp_path):
    file = opened(written(tmp_path, [b"one"]))
    file.close()
    with pytest.raises(HybridError, match="is closed; open it with open()"):
        file.read_idx(0)
    file.open()
    assert file.read_idx(0) == b"one"
