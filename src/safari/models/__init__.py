"""Models: `init` makes parameters, `apply` turns parameters and samples into logits."""

from safari.models.base import Model, Params
from safari.models.cnn import CNN
from safari.models.description import describe_model, make_model
from safari.models.equinox_module import EquinoxModel, as_model, build_module
from safari.models.leaves import from_named, named_arrays, named_leaves
from safari.models.logistic import Logistic
from safari.models.mlp import MLP

__all__ = [
    "CNN",
    "MLP",
    "EquinoxModel",
    "Logistic",
    "Model",
    "Params",
    "as_model",
    "build_module",
    "describe_model",
    "from_named",
    "make_model",
    "named_arrays",
    "named_leaves",
]
