"""Pictures beside MXNet's: read, resized, cut, recoloured; datasets of published files."""

import builtins
import gzip
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

import minihybrid as mx
from minihybrid import AttrError, ShapeError, image, nd
from minihybrid.core.files import FileError
from minihybrid.gluon import nn
from minihybrid.gluon.data import DataLoader, vision
from minihybrid.gluon.data.vision import transforms

GOLDEN = Path(__file__).parents[1] / "golden/vision"
with np.load(GOLDEN / "answers.npz") as stored:
    ANSWERS = {name: stored[name] for name in stored}
SMALL = ANSWERS["given small"]


def array(values):
    return nd.array(values, dtype=values.dtype)


def close(actual, expected, most=0.0):
    actual = actual.asnumpy() if isinstance(actual, nd.NDArray) else actual
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    np.testing.assert_allclose(actual.astype(float), expected.astype(float), rtol=0, atol=most)


def answers(first):
    """[(rest of the name, answer)] of the answers whose name begins with a word."""
    actual = [(name.split()[1:], a) for name, a in ANSWERS.items() if name.split()[0] == first]
    assert actual
    return actual


# -- pictures --------------------------------------------------------------------------
def test_pictures_are_read_as_mxnet_reads_them():
    for (name, flag), expected in answers("read"):
        path = GOLDEN / "pictures" / name
        # The grey of colours is rounded otherwise.
        most = 1 if flag == "0" and name in ("colours.png", "palette.png") else 0
        most = 1 if (name, flag) == ("transparent.png", "0") else most
        close(image.imread(str(path), int(flag)), expected, most)
        close(image.imdecode(path.read_bytes(), int(flag)), expected, most)
    blue = image.imread(path, to_rgb=False).asnumpy()
    assert (blue == image.imread(path).asnumpy()[:, :, ::-1]).all()


def test_sizes_are_changed_as_opencv_does():
    """Bytes are the same, each one."""
    for (name, w, h, kind), expected in answers("resize"):
        x = array(ANSWERS[f"given {name}"])
        most = 1e-5 if name == "float" else 0
        close(image.imresize(x, int(w), int(h), int(kind)), expected, most)


PARTS = {
    "Resize 5": transforms.Resize(5),
    "Resize 5 keep": transforms.Resize(5, keep_ratio=True),
    "Resize 6 9": transforms.Resize((6, 9)),
    "CenterCrop 6 4": transforms.CenterCrop((6, 4)),
    "CenterCrop 9 20": transforms.CenterCrop((9, 20)),
    "CropResize": transforms.CropResize(1, 2, 4, 3),
    "CropResize 7 5": transforms.CropResize(1, 2, 4, 3, (7, 5), 1),
    "resize_short": lambda x: image.resize_short(x, 4),
    "fixed_crop": lambda x: image.fixed_crop(x, 1, 2, 5, 6, (4, 3)),
    "ToTensor": transforms.ToTensor(),
    "Cast": transforms.Cast("float16"),
    "Normalize": transforms.Compose(
        [transforms.ToTensor(), transforms.Normalize((0.1, 0.2, 0.3), (0.5, 0.6, 0.7))]
    ),
    "Normalize 1": transforms.Compose([transforms.ToTensor(), transforms.Normalize(0.25, 0.5)]),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_pictures_are_those_of_mxnet(name):
    close(PARTS[name](array(SMALL)), ANSWERS[name], 1e-6)


def test_several_pictures_at_once():
    both = np.stack([SMALL, SMALL[::-1]])
    for transform in (transforms.Resize((6, 9)), transforms.ToTensor()):
        actual = transform(array(both)).asnumpy()
        for one, expected in zip(actual, both, strict=True):
            close(one, transform(array(expected.copy())).asnumpy())


@pytest.mark.parametrize("name", ["brightness", "contrast", "hue"])
def test_colours_change_as_in_mxnet(name):
    change = getattr(transforms, f"Random{name.title()}")(0).changed
    for (factor,), expected in answers(name):
        made = change(SMALL.astype("float32"), np.float32(factor))
        close(transforms.limited(made, "uint8"), expected, 1 if name == "hue" else 0)


def test_saturation_is_the_difference_to_grey():
    change = transforms.RandomSaturation(0).changed
    grey = SMALL @ np.float32([0.299, 0.587, 0.114])
    np.testing.assert_allclose(change(SMALL, 0), np.stack([grey] * 3, -1), rtol=1e-6)
    np.testing.assert_array_equal(change(SMALL, 1), SMALL)


def test_light_is_added_along_the_main_directions():
    made = SMALL + transforms.LIGHTING @ np.float32([0.3, -0.2, 0.5])
    close(transforms.limited(made, "uint8"), ANSWERS["lighting"])


RANDOM = {
    "RandomCrop": transforms.RandomCrop((5, 4)),
    "RandomResizedCrop": transforms.RandomResizedCrop((5, 4)),
    "RandomFlipLeftRight": transforms.RandomFlipLeftRight(),
    "RandomFlipTopBottom": transforms.RandomFlipTopBottom(),
    "RandomBrightness": transforms.RandomBrightness(0.5),
    "RandomContrast": transforms.RandomContrast(0.5),
    "RandomSaturation": transforms.RandomSaturation(0.5),
    "RandomHue": transforms.RandomHue(0.5),
    "RandomColorJitter": transforms.RandomColorJitter(0.1, 0.2, 0.3, 0.4),
    "RandomLighting": transforms.RandomLighting(0.5),
    "RandomApply": transforms.RandomApply(transforms.Resize(3)),
    "random_crop": lambda x: image.random_crop(x, (5, 4))[0],
    "interp 10": lambda x: image.imresize(x, 9, 5, 10),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_changes_repeat_after_the_seed_and_are_not_always_the_same(name):
    rounds = []
    for _ in range(2):
        mx.random.seed(5)
        rounds.append([RANDOM[name](array(SMALL)).asnumpy() for _ in range(12)])
    for first, again in zip(*rounds, strict=True):
        np.testing.assert_array_equal(first, again)
    assert len({a.tobytes() for a in rounds[0]}) > 1
    assert {a.dtype for a in rounds[0]} == {np.dtype("uint8")}


def test_flips_are_flips_and_crops_are_parts():
    mx.random.seed(0)
    flips = transforms.RandomFlipLeftRight(), transforms.RandomFlipTopBottom()
    for flip, expected in zip(flips, (SMALL[:, ::-1], SMALL[::-1]), strict=True):
        actual = [flip(array(SMALL)).asnumpy() for _ in range(20)]
        same = [(a == SMALL).all() for a in actual]
        assert 0 < sum(same) < 20
        assert all(
            (a == (SMALL if s else expected)).all() for a, s in zip(actual, same, strict=True)
        )
    for _ in range(5):
        part, (x, y, w, h) = image.random_crop(array(SMALL), (5, 4))
        assert (w, h) == (5, 4) and (part.asnumpy() == SMALL[y : y + h, x : x + w]).all()
        part, (x, y, w, h) = image.random_size_crop(array(SMALL), (3, 3), 0.2, (0.5, 2))
        assert part.shape == (3, 3, 3) and 0 <= x <= 16 - w and 0 <= y <= 12 - h


def test_a_random_crop_pads_first():
    mx.random.seed(0)
    padded = np.pad(SMALL, [(2, 2), (2, 2), (0, 0)], constant_values=7)
    h, w, _ = SMALL.shape
    crop, actual = transforms.RandomCrop((w, h), pad=2, pad_value=7), set()
    for _ in range(40):
        part = crop(array(SMALL)).asnumpy()
        actual |= {
            (y, x)
            for y in range(5)
            for x in range(5)
            if (part == padded[y : y + h, x : x + w]).all()
        }
    assert len(actual) > 12
    assert (transforms.RandomCrop((w, h))(array(SMALL)).asnumpy() == SMALL).all()


def test_a_net_may_begin_with_transforms():
    net = mx.gluon.nn.HybridSequential()
    net.add(transforms.ToTensor(), transforms.Normalize((0.1, 0.2, 0.3), 0.5))
    eager = net(array(SMALL)).asnumpy()
    net.hybridize(backend="numpy")
    np.testing.assert_allclose(net(array(SMALL)).asnumpy(), eager, atol=1e-6)


def test_color_normalize_takes_either():
    x = nd.ones((1, 1, 3)) * 4
    actual = image.color_normalize(x, nd.array([1, 2, 3]), nd.array([3, 2, 1]))
    assert actual.asnumpy().ravel().tolist() == [1, 1, 1]
    assert image.color_normalize(x, None) is x


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: image.imresize(nd.ones((4, 4)), 2, 2), ShapeError, r"\(height, width, channels\)"),
        (lambda: image.imresize(nd.ones((4, 4, 3)), 0, 2), AttrError, "w=0 does not fit"),
        (lambda: image.imresize(nd.ones((4, 4, 3)), 2, 2, 7), AttrError, "7 is unknown; there"),
        (lambda: image.fixed_crop(nd.ones((4, 5, 3)), 2, 0, 4, 1), ShapeError, "5 x 4 "),
        (lambda: image.imdecode("text"), AttrError, "the bytes of a file are needed"),
        (lambda: image.imdecode(b"text"), FileError, "cannot be read as a picture"),
        (lambda: image.imdecode(b"P6 1 1 255 abc", 2), AttrError, "flag=2, but 1"),
        (lambda: image.imread("nowhere.png"), FileError, "'nowhere.png': No such file"),
        (lambda: transforms.Resize((1, 2, 3)), AttrError, r"needed: \(width, height\)"),
        (lambda: transforms.Normalize("a"), AttrError, "one for each channel"),
        (lambda: transforms.RandomHue(-1), AttrError, "RandomHue: hue=-1 does not fit"),
        (lambda: transforms.RandomCrop(3, pad=-1), AttrError, "RandomCrop: pad=-1 does not fit"),
        (lambda: transforms.RandomApply([], 2), AttrError, "p=2 does not fit"),
    ],
)
def test_wrong_calls_are_one_sentence(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_picture_that_says_it_is_huge_is_refused_at_once():
    for name in ("colours.png", "colours.bmp"):
        data = bytearray((GOLDEN / "pictures" / name).read_bytes())
        at, order = (16, "big") if name.endswith("png") else (18, "little")
        data[at : at + 8] = (1 << 24).to_bytes(4, order) * 2
        with pytest.raises(FileError, match="16777216 x 16777216 pixels|cannot be read"):
            image.imdecode(bytes(data))
    data = (GOLDEN / "pictures/colours.jpg").read_bytes()
    with pytest.raises(FileError, match="cannot be read as a picture"):
        image.imdecode(data[:300])


def test_without_pillow_the_extra_is_named(monkeypatch):
    usual = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("PIL"):
            raise ImportError(name)
        return usual(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'pip install "minihybrid\[image\]"'):
        image.imdecode(b"")


# -- datasets --------------------------------------------------------------------------
FILES = {name.removeprefix("file "): a for name, a in ANSWERS.items() if name.startswith("file ")}


def put(folder, files, pack=lambda x: x, end=""):
    for name, content in files.items():
        (folder / f"{name}{end}").write_bytes(pack(bytes(content)))
    return folder


@pytest.mark.parametrize("kind", [vision.MNIST, vision.FashionMNIST])
@pytest.mark.parametrize("pack, end", [(bytes, ""), (gzip.compress, ".gz")])
def test_digits_are_those_that_mxnet_reads(tmp_path, kind, pack, end):
    actual = kind(put(tmp_path, FILES, pack, end))
    assert len(actual) == 5
    close(actual._data, ANSWERS["mnist data"])
    close(actual._label, ANSWERS["mnist label"])
    x, y = actual[3]
    close(x, ANSWERS["mnist x"])
    assert y == ANSWERS["mnist y"] and y.dtype == np.int32


def test_digits_go_through_transforms_into_batches(tmp_path):
    put(tmp_path, FILES)
    tensors = vision.MNIST(tmp_path).transform_first(transforms.ToTensor())
    x, y = next(iter(DataLoader(tensors, batch_size=4, num_workers=2)))
    assert x.shape == (4, 1, 28, 28) and x.dtype == np.float32 and y.dtype == np.int32
    both = vision.MNIST(tmp_path, transform=lambda x, y: (x.astype("float32") / 255, y))
    np.testing.assert_allclose(both[0][0].asnumpy()[:, :, 0], x[0, 0].asnumpy(), rtol=1e-6)


def test_missing_files_are_named_and_nothing_is_downloaded(tmp_path, monkeypatch):
    with pytest.raises(FileError, match=r"MNIST: the folder .* has no train-images-idx3-ubyte and"):
        vision.MNIST(str(tmp_path))
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    for kind, folder in ((vision.FashionMNIST, "fashion-mnist"), (vision.CIFAR100, "cifar100")):
        with pytest.raises(FileError, match=f"{folder}' has no .*nothing is downloaded"):
            kind(train=False)
    assert not list(tmp_path.iterdir())


IMAGES, LABELS = (bytes(FILES[f"train-{n}-ubyte"]) for n in ("images-idx3", "labels-idx1"))
HUGE = bytes((0, 0, 8, 3)) + b"\xff" * 12


@pytest.mark.parametrize(
    "images, labels, message",
    [
        (IMAGES[:-1], LABELS, "header says 5 x 28 x 28 bytes, but there are fewer"),
        (IMAGES + b"1", LABELS, "but there are more"),
        (LABELS, LABELS, r"isn't an idx file of bytes \(axes: 3\): it starts with 00000801"),
        (b"", LABELS, "starts with nothing"),
        (IMAGES, bytes((0, 0, 8, 1, 0, 0, 0, 1, 7)), "has 5 images and 1 labels"),
        (HUGE, LABELS, "4294967295 x 4294967295 x 4294967295 bytes, but there are fewer"),
        (gzip.compress(HUGE, mtime=0), LABELS, "but there are fewer"),
        (gzip.compress(IMAGES, mtime=0)[:200], LABELS, "can't be unpacked"),
        (b"\x1f\x8bnot at all", LABELS, "can't be unpacked"),
    ],
)
def test_damaged_files_of_digits_are_refused(tmp_path, images, labels, message):
    put(tmp_path, {"train-images-idx3-ubyte": images, "train-labels-idx1-ubyte": labels})
    with pytest.raises(FileError, match=message):
        vision.MNIST(tmp_path)


def rows(n, n_labels):
    return np.random.default_rng(n).integers(0, 256, (n, n_labels + 3072), dtype=np.uint8)


def archive(path, files):
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


@pytest.mark.parametrize("how", ["flat", "folder", "archive"])
def test_small_pictures_are_read_from_all_their_files(tmp_path, how):
    parts = [rows(n, 1) for n in (1, 2, 3, 1, 2)]
    files = {f"data_batch_{i}.bin": part.tobytes() for i, part in enumerate(parts, 1)}
    inside = tmp_path / "cifar-10-batches-bin"
    if how == "archive":
        actual = {f"cifar-10-batches-bin/{name}": content for name, content in files.items()}
        archive(tmp_path / "cifar-10-binary.tar.gz", actual)
    else:
        inside.mkdir()
        put(inside if how == "folder" else tmp_path, files)
    actual, expected = vision.CIFAR10(tmp_path), np.concatenate(parts)
    assert len(actual) == 9 and actual[8][0].shape == (32, 32, 3)
    assert [y for _, y in (actual[i] for i in range(9))] == expected[:, 0].tolist()
    pixels = actual._data.asnumpy().transpose(0, 3, 1, 2).reshape(9, -1)
    np.testing.assert_array_equal(pixels, expected[:, 1:])


def test_labels_are_groups_or_classes(tmp_path):
    data = rows(4, 2)
    put(tmp_path, {"test.bin": data.tobytes()})
    for fine in (False, True):
        actual = vision.CIFAR100(tmp_path, fine, train=False)
        assert actual._label.tolist() == data[:, int(fine)].tolist()
        np.testing.assert_array_equal(actual[2][0].asnumpy()[0, 0], data[2, 2::1024])


def test_damaged_files_of_small_pictures_are_refused(tmp_path):
    (tmp_path / "test_batch.bin").write_bytes(bytes(3074))
    with pytest.raises(FileError, match="test_batch.bin .* has 3074 bytes; needed: 3073 per image"):
        vision.CIFAR10(tmp_path, train=False)
    archive(tmp_path / "cifar-10-binary.tar.gz", {"other": b""})
    with pytest.raises(FileError, match="has no data_batch_1.bin; is it the archive of CIFAR10"):
        vision.CIFAR10(tmp_path)
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(b"\x1f\x8b no")
    with pytest.raises(FileError, match="can't be unpacked"):
        vision.CIFAR10(tmp_path)


def test_folders_are_classes(tmp_path):
    for folder, name in (("b", "grey.png"), ("a", "colours.jpg"), ("a", "colours.png")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_bytes((GOLDEN / "pictures" / name).read_bytes())
    actual = vision.ImageFolderDataset(str(tmp_path))
    assert actual.synsets == ["a", "b"] and [label for _, label in actual.items] == [0, 0, 1]
    assert len(actual) == 3 and Path(actual.items[2][0]).name == "grey.png"
    x, label = actual[1]
    close(x, ANSWERS["read colours.png 1"])
    assert label == 0
    grey = vision.ImageFolderDataset(tmp_path, flag=0, transform=lambda x, y: (x.shape, y))
    assert grey[2] == ((11, 14, 1), 1)
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "b" / "notes.txt").write_text("")
    with pytest.warns(UserWarning) as warned:
        assert len(vision.ImageFolderDataset(tmp_path)) == 3
    assert [str(t.message).split("is ")[1] for t in warned] == [
        "none of .jpg, .jpeg, .png, and left out",
        "no folder, and left out",
    ]
    assert [Path(t.filename).name for t in warned] == ["test_vision.py"] * 2
    with pytest.raises(FileError, match="cannot read the folder '.*nowhere'"):
        vision.ImageFolderDataset(tmp_path / "nowhere")


@pytest.mark.parametrize("more, names", [([], 0), ([transforms.Normalize(0.5, 0.5)], 1)])
def test_transforms_in_a_row_take_a_name_as_in_mxnet(more, names):
    """So the net behind them has the names that are in MXNet's files."""

    def number():
        return int(nn.HybridSequential().prefix.removeprefix("hybridsequential").rstrip("_"))

    before = number()
    made = transforms.Compose([transforms.Resize(2), transforms.ToTensor(), *more])
    assert number() == before + names + 1
    assert len(made) == 2 and made(nd.ones((4, 6, 3), dtype="uint8")).shape == (3, 2, 2)
