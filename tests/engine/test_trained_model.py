"""What training hands over predicts the same in another process, from its file alone."""

import subprocess
import sys

import equinox as eqx
import jax
import numpy as np
import pytest
from safetensors.numpy import save_file

import safari

X = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
Y = (X[:, 0] + X[:, 1] > 0).astype(int) + (X[:, 2] > 1)


class Net(eqx.Module):
    first: eqx.nn.Linear
    shift: np.ndarray

    def __init__(self, key, shape, classes):
        self.first = eqx.nn.Linear(shape[0], classes, key=key)
        self.shift = np.arange(3)

    def __call__(self, x):
        return self.first(x) + self.shift


def federation(**more):
    dataset = safari.Dataset(X[:200], Y[:200], X[200:], Y[200:], **more)
    return safari.federate(dataset, safari.IID(clients=4), safari.ServerSet(40))


@pytest.fixture(scope="module")
def trained():
    named = federation(labels=["flu", "cold", "sepsis"], scale=np.full(6, 0.5), shift=np.ones(6))
    return safari.train(named, safari.FedAvg(batch_size=10), model=safari.MLP(hidden=(8,)), rounds=3)


def test_it_scores_what_the_history_says(trained):
    right = trained.model.predict(X[200:]) == np.array(["flu", "cold", "sepsis"])[Y[200:]]
    assert right.mean() == pytest.approx(trained.accuracy, abs=1e-12)


def test_a_fresh_process_predicts_the_same_bits(trained, tmp_path):
    trained.model.save(tmp_path / "model.safetensors")
    np.save(tmp_path / "x.npy", X)
    script = "import sys, numpy, safari; model = safari.load(sys.argv[1]); x = numpy.load(sys.argv[2])"
    script += "; numpy.save(sys.argv[3], model.predict_proba(x))"
    paths = [str(tmp_path / name) for name in ("model.safetensors", "x.npy", "found.npy")]
    subprocess.run([sys.executable, "-c", script, *paths], check=True, timeout=120)
    np.testing.assert_array_equal(np.load(paths[2]), trained.model.predict_proba(X))


def test_one_sample_is_predicted_as_among_others(trained):
    np.testing.assert_array_equal(trained.model.predict_proba(X[7:8])[0], trained.model.predict_proba(X)[7])


def test_no_samples_give_no_predictions(trained):
    assert trained.model.predict_proba(np.zeros((0, 6))).shape == (0, 3)


def test_classes_without_names_are_predicted_as_numbers():
    found = safari.train(federation(), safari.FedAvg(batch_size=10), rounds=1).model.predict(X[:5])
    assert found.dtype.kind == "i"


def test_an_equinox_module_is_saved_with_its_constants(tmp_path):
    net = Net(jax.random.key(1), (6,), 3)
    result = safari.train(federation(), safari.FedAvg(batch_size=10), model=net, rounds=1)
    path = tmp_path / "net.safetensors"
    result.model.save(path)
    with pytest.raises(safari.InputError, match="pass it, safari"):
        safari.load(path)
    other = Net(jax.random.key(2), (6,), 3)
    found = safari.load(path, model=eqx.tree_at(lambda one: one.shift, other, other.shift + 5))
    np.testing.assert_array_equal(found.predict_proba(X), result.model.predict_proba(X))


def damaged(content):
    middle = len(content) - 40
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda content: b"", "is damaged, or no .safetensors file"),
        (lambda content: content[:-9], "is damaged, or no .safetensors file"),
        (damaged, "its checksum does not fit"),
        (lambda content: content.replace(b"sepsis", b"asthma"), "its checksum does not fit"),
        (lambda content: b"\x93NUMPY" + content, "is damaged, or no .safetensors file"),
    ],
)
def test_a_damaged_file_is_refused(trained, tmp_path, make, message):
    path = tmp_path / "model.safetensors"
    trained.model.save(path)
    path.write_bytes(make(path.read_bytes()))
    with pytest.raises(safari.InputError, match=message) as error:
        safari.load(path)
    assert str(path)[:40] in str(error.value)


def test_a_foreign_file_is_refused(tmp_path):
    save_file({"weight": X}, tmp_path / "foreign.safetensors")
    with pytest.raises(safari.InputError, match="not what they belong to"):
        safari.load(tmp_path / "foreign.safetensors")


def test_a_model_of_other_shapes_is_refused(trained, tmp_path):
    trained.model.save(tmp_path / "model.safetensors")
    with pytest.raises(safari.InputError, match="of another shape than MLP has"):
        safari.load(tmp_path / "model.safetensors", model=safari.MLP(hidden=(9,)))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (X[:, :5], "the model was trained on"),
        (X[0], "must be samples first"),
        (np.full((2, 6), np.nan), "must be finite"),
        (np.full((2, 6), "a"), "must hold numbers"),
    ],
)
def test_samples_that_do_not_fit_are_refused(trained, x, message):
    with pytest.raises(safari.InputError, match=message):
        trained.model.predict(x)


def test_a_run_that_has_not_finished_holds_no_model(tmp_path):
    with pytest.raises(safari.InputError, match="no run that has finished"):
        safari.load(tmp_path)


def test_it_is_saved_as_safetensors_only(trained, tmp_path):
    with pytest.raises(safari.InputError, match="must end in"):
        trained.model.save(tmp_path / "model.pt")
