"""Models, and the names they go by in a spec."""

from safari.models import softmax_kernel
from safari.models.base import Model, Params
from safari.models.cnn import CNN
from safari.models.logistic import Logistic
from safari.models.mlp import MLP

MODELS: dict[str, type[Model]] = {"logistic": Logistic, "mlp": MLP, "cnn": CNN}

__all__ = ["CNN", "MLP", "MODELS", "Logistic", "Model", "Params", "softmax_kernel"]
