"""Sources: published layouts, the user's own file, and what is said when they are broken."""

import gzip
import pickle
import struct
from collections.abc import Callable

import numpy as np
import pytest

import safari
from refusals import assert_refused
from safari.data.sources import CATALOG, find_source, load
from safari.data.sources.download import Download, fetch
from safari.registry import SOURCES


def idx_bytes(array):
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return head + array.astype(np.uint8).tobytes()


@pytest.fixture
def small_mnist(tmp_path):
    """Forty training and ten test images in the published layout."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "mnist"
    folder.mkdir()
    for stem, count in (("train", 40), ("t10k", 10)):
        images, labels = rng.integers(0, 256, (count, 28, 28)), np.arange(count) % 10
        (folder / f"{stem}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx_bytes(images)))
        (folder / f"{stem}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx_bytes(labels)))
    return tmp_path


def test_idx_files_are_read_from_the_named_folder(small_mnist):
    dataset = load("mnist", str(small_mnist))
    assert dataset.shape == (28, 28, 1)
    assert dataset.x.shape == (40, 784)
    assert dataset.classes == 10
    np.testing.assert_array_equal(dataset.y_test, np.arange(10))


def test_the_environment_names_the_folder_too(small_mnist, monkeypatch):
    monkeypatch.setenv("SAFARI_DATA", str(small_mnist))
    assert CATALOG["mnist"].find(None) == small_mnist / "mnist"
    assert len(load("mnist").y) == 40


def cifar_records(count, rng):
    return rng.integers(0, 10, count).astype(np.uint8), rng.integers(0, 256, (count, 3072)).astype(np.uint8)


def test_both_layouts_of_cifar_give_the_same_images(tmp_path):
    rng = np.random.default_rng(0)
    binary, python = tmp_path / "a" / "cifar-10-batches-bin", tmp_path / "b" / "cifar-10-batches-py"
    binary.mkdir(parents=True)
    python.mkdir(parents=True)
    for name in [*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]:
        labels, pixels = cifar_records(20, rng)
        (binary / f"{name}.bin").write_bytes(np.concatenate([labels[:, None], pixels], axis=1).tobytes())
        (python / name).write_bytes(pickle.dumps({b"data": pixels, b"labels": labels.tolist()}, protocol=2))
    one, two = load("cifar10", str(tmp_path / "a")), load("cifar10", str(tmp_path / "b"))
    np.testing.assert_array_equal(one.x, two.x)
    np.testing.assert_array_equal(one.y_test, two.y_test)
    assert one.shape == (32, 32, 3)
    assert one.augment
    red = np.asarray(one.shaped(one.x))[0, :, :, 0].ravel()
    np.testing.assert_array_equal(
        red, np.frombuffer((binary / "data_batch_1.bin").read_bytes(), np.uint8)[1:1025]
    )


def test_a_pickle_that_wants_to_run_code_is_refused(tmp_path):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for name in [*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]:
        (folder / name).write_bytes(b"cos\nsystem\n(S'echo harm'\ntR.")
    with pytest.raises(safari.InputError, match=r"it wants os\.system"):
        load("cifar10", str(tmp_path))


def test_own_file_with_all_columns(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 4)), np.arange(50) % 2
    np.savez(tmp_path / "own.npz", x=x, y=y, client=np.arange(50) // 10, x_test=x[:10], y_test=y[:10])
    federation = safari.federate(str(tmp_path / "own.npz"), safari.ByColumn(), safari.ServerSet(5))
    assert federation.size == 5
    assert federation.dataset.x.dtype == np.float32
    assert len(federation.dataset.y_test) == 10


def test_own_file_without_a_test_set_holds_a_fifth_of_each_class_out(tmp_path):
    y = np.repeat([0, 1], [50, 100])
    np.savez(tmp_path / "own.npz", x=np.arange(150.0)[:, None], y=y)
    dataset = load(str(tmp_path / "own.npz"))
    assert np.bincount(np.asarray(dataset.y_test)).tolist() == [10, 20]
    assert len(dataset.y) == 120


def test_fetching_without_a_network_says_so(tmp_path):
    download = Download(("http://127.0.0.1:9/nothing",), {"file.gz": "md5:0"})
    with pytest.raises(safari.InputError, match=r"could not be fetched .* SAFARI_DATA") as caught:
        fetch("mnist", download, tmp_path / "cache", progress=False)
    assert "\n" not in str(caught.value)


def test_fetched_files_are_checked_against_their_checksum(tmp_path):
    """A local web server stands for the publisher; a wrong checksum is refused."""
    import functools
    import hashlib
    import http.server
    import threading

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    served = tmp_path / "served"
    served.mkdir()
    (served / "file.gz").write_bytes(b"published")
    handler = functools.partial(Quiet, directory=served)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        mirror = f"http://127.0.0.1:{server.server_port}"
        md5 = hashlib.md5(b"published").hexdigest()
        folder = fetch(
            "set", Download((mirror,), {"file.gz": f"md5:{md5}"}), tmp_path / "good", progress=False
        )
        assert (folder / "file.gz").read_bytes() == b"published"
        with pytest.raises(safari.InputError, match="could not be fetched"):
            fetch(
                "set", Download((mirror,), {"file.gz": "md5:" + "0" * 32}), tmp_path / "bad", progress=False
            )
        server.shutdown()
    assert not (tmp_path / "bad" / "file.gz").exists()


def test_the_real_data_sets_read(real_data):
    for name, shape in {"mnist": (28, 28, 1), "fashion-mnist": (28, 28, 1), "cifar10": (32, 32, 3)}.items():
        dataset = load(name, str(real_data))
        assert dataset.shape == shape
        assert len(dataset.y_test) == 10_000
        assert dataset.classes == 10


def test_digits_are_those_of_scikit_learn():
    from sklearn.datasets import load_digits

    dataset, bunch = load("digits"), load_digits()
    assert len(dataset.y) + len(dataset.y_test) == 1797
    np.testing.assert_array_equal(np.asarray(dataset.shaped(dataset.x))[:4, :, :, 0], bunch.images[:4])
    assert np.bincount(bunch.target).sum() == 1797


def test_every_named_set_is_in_the_catalog_and_is_a_source():
    assert [name for name in SOURCES if name not in ("file", "nodes")] == list(CATALOG)
    for name in CATALOG:
        assert find_source(name, "somewhere") == SOURCES[name]("somewhere")


@pytest.mark.parametrize("kind", [safari.MNIST, safari.FashionMNIST])
def test_a_named_set_as_a_noun_reads_what_its_name_reads(small_mnist, kind):
    (small_mnist / "mnist").rename(small_mnist / "raw")
    federation = safari.federate(kind(str(small_mnist / "raw")), safari.IID(2), safari.ServerSet(5))
    assert federation.dataset.shape == (28, 28, 1)
    assert len(federation.dataset.y) == 40
    assert federation.dataset.name == {safari.MNIST: "mnist", safari.FashionMNIST: "fashion-mnist"}[kind]


def test_digits_as_a_noun_are_the_embedded_ones():
    assert safari.federate(safari.Digits()).dataset is load("digits")


def test_a_file_as_a_noun_is_the_file_by_its_path(tmp_path):
    path = str(tmp_path / "own.npz")
    np.savez(path, x=np.arange(150.0)[:, None], y=np.arange(150) % 3)
    by_noun, by_path = (safari.federate(source, safari.IID(3)) for source in (safari.File(path), path))
    np.testing.assert_array_equal(by_noun.samples, by_path.samples)
    assert by_noun.dataset.name == by_path.dataset.name == "own"


class Spirals(safari.Source):
    """A source of a user's own, with a whole number and a number."""

    samples: int = 90
    noise: float = 0.1

    def load(self):
        if self.samples < 9:
            raise safari.InputError("samples", self.samples, "must be 9 or more")
        rng, y = np.random.default_rng(0), np.arange(self.samples) % 3
        angle = np.linspace(0, 4, self.samples) + 2 * y
        x = np.stack([np.cos(angle), np.sin(angle)], 1) + self.noise * rng.standard_normal((self.samples, 2))
        return safari.Dataset(x, y, x[:9], y[:9], name="spirals")


def test_a_source_of_ones_own_is_used():
    federation = safari.federate(Spirals(60), safari.IID(clients=4), safari.ServerSet(8))
    assert federation.dataset.name == "spirals"
    assert len(federation.dataset.y) == 60
    assert federation.size == 4
    assert len(safari.train(federation, safari.FedAvg(), rounds=2).history) == 2


class Gives(safari.Source):
    """Gives what it was told to."""

    what: Callable

    def load(self):
        return self.what()


WRONG_SOURCES = {
    "its own words": (Spirals(2), "source.samples = 2: ", "must be 9 or more"),
    "nothing": (Gives(lambda: None), "source = Gives(", "must return a safari.Dataset, not NoneType"),
    "arrays": (Gives(lambda: (np.ones((9, 2)), np.arange(9))), "source = Gives(", "not tuple"),
    "an error": (Gives(lambda: np.load("nowhere")), "source = Gives(", "fails (FileNotFoundError: "),
    "bad labels": (
        Gives(lambda: safari.Dataset(np.ones((9, 2)), np.ones(5), np.ones((9, 2)), np.ones(9))),
        "y = array of shape (5,): ",
        "one label for each of the 9 samples",
    ),
    "a folder that is not there": (safari.MNIST("nowhere"), "source.folder = nowhere: ", "no such folder"),
    "a file that is not there": (safari.File("nowhere.npz"), "source = nowhere.npz: ", "no such file"),
    "an unknown name": ("mnits", "source = mnits: ", "must be one of digits, mnist, fashion-mnist, cifar10"),
}


@pytest.mark.parametrize("case", WRONG_SOURCES)
def test_a_source_that_is_wrong_is_refused_in_one_line(case):
    source, key, allowed = WRONG_SOURCES[case]
    assert_refused(lambda: safari.federate(source), key, allowed)


@pytest.mark.parametrize("source", ["own.npz", safari.Digits(), load("digits")])
def test_a_folder_is_for_a_name_alone(source):
    assert_refused(lambda: safari.federate(source, folder="somewhere"), "folder = somewhere: ", "is for ")


def test_a_source_without_load_cannot_be_made():
    class Unfinished(safari.Source):
        pass

    with pytest.raises(TypeError, match=r"abstract method '?load"):
        Unfinished()
