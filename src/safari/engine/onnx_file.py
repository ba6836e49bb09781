"""A trained model as an ONNX file, for programs that know nothing of Python or JAX."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from safari.engine.model_file import write_whole
from safari.errors import InputError, check
from safari.registry import reason

if TYPE_CHECKING:
    from safari.engine.trained_model import TrainedModel

INPUT, OUTPUT = "samples", "probabilities"


def write_onnx(trained: "TrainedModel", path: Path) -> None:
    """Write the model as a graph from raw samples to the probabilities of the classes.

    The input `samples` is float32, any number of samples first; scaling is part of the graph. The
    names of the classes and of the features stand in the file's metadata as JSON.

    Raises:
        InputError: if the converter is not installed, does not know an operation of the model, or the file
            cannot be written.
    """
    check(path.suffix == ".onnx", "path", str(path), "must end in .onnx")
    try:
        import onnx
        from jax2onnx import to_onnx
    except ImportError:
        hint = (
            "needs jax2onnx: pip install 'safari-fl[onnx]', or pip install '.[onnx]' in safari's own folder"
        )
        raise InputError("export", "onnx", hint) from None

    def graph(samples: jax.Array) -> jax.Array:
        x = samples if trained.fill is None else jnp.where(samples != samples, trained.fill, samples)
        x = trained.normalised(x)
        return jax.nn.softmax(trained.model.portable_apply(trained.params, jnp.asarray(x)))

    names = {"input_names": [INPUT], "output_names": [OUTPUT]}
    try:
        found = to_onnx(graph, inputs=[("samples", *trained.shape)], model_name="safari", **names)
    except Exception as error:  # a model of the user's own may hold anything
        name = type(trained.model).__name__
        raise InputError("model", name, f"cannot be converted to ONNX ({reason(error)})") from None
    facts = {"labels": trained.labels, "features": trained.features}
    onnx.helper.set_model_props(found, {name: json.dumps(fact) for name, fact in facts.items()})
    write_whole(path, found.SerializeToString())
