"""An exported model says what ours says, in another runtime."""

import json

import jax
import numpy as np
import pytest

import safari

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("jax2onnx")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (safari.Logistic(), (6,)),
        (safari.MLP(hidden=(8, 5)), (6,)),
        (safari.CNN(channels=(4, 6), kernel=3, hidden=8), (9, 8, 1)),
        (safari.CNN(channels=(16, 16), kernel=5, hidden=8), (12, 12, 3)),
    ],
)
def test_another_runtime_gives_the_same_probabilities(model, shape, tmp_path):
    rng = np.random.default_rng(0)
    params = model.init(jax.random.key(0), shape, 3)
    params = jax.tree.map(lambda leaf: leaf + 0.05 * rng.normal(size=leaf.shape).astype(np.float32), params)
    trained = safari.TrainedModel(
        model=model,
        params=params,
        shape=shape,
        labels=("flu", "pneumonia", "sepsis"),
        scale=np.full(shape, 0.3, np.float32),
        shift=np.full(shape, 0.1, np.float32),
        features=None,
        fill=np.full(shape, 2.0, np.float32),
    )
    path = tmp_path / "model.onnx"
    trained.export(path)
    x = rng.normal(size=(17, *shape)).astype(np.float32)
    x[0, 0] = np.nan
    session = onnxruntime.InferenceSession(path)
    found = session.run(["probabilities"], {"samples": x})[0]
    np.testing.assert_allclose(found, trained.predict_proba(x), atol=1e-5)
    labels = session.get_modelmeta().custom_metadata_map["labels"]
    assert json.loads(labels) == ["flu", "pneumonia", "sepsis"]
