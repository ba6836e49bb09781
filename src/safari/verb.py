"""The verb: train an algorithm on a federation."""

from collections.abc import Callable

from safari.algorithms import Algorithm, Precision, Safari
from safari.data import Federation
from safari.engine import prepare
from safari.models import Logistic, Model
from safari.participation import Participation
from safari.result import Result
from safari.training import Diverged, Training


def train(
    federation: Federation,
    algorithm: Algorithm = Safari(),
    *,
    model: Model = Logistic(),
    participation: Participation = Participation(),
    rounds: int = 100,
    seed: int = 0,
    evaluate_every: int = 1,
    precision: Precision = "float32",
    diagnostics: bool = False,
    on_progress: Callable[[Training], None] | None = None,
) -> Result:
    """Train `algorithm` for `rounds` rounds and return what it delivers.

    `seed` names every draw of the run: initialisation, participation, coin, batches.
    The test set is scored every `evaluate_every` rounds and after the last. `precision` is
    that of the model's products: `float32`, or the faster `tf32` and `bfloat16` of GPUs
    (parameters are float32 throughout). `diagnostics` estimates in every round what the theory
    asks for (gradients, biases, noise, curvature) without changing the run. `on_progress` is
    called about twice a second with the training so far. Raises `Diverged` if the parameters
    leave the finite numbers.
    """
    run = prepare(federation, algorithm, model, participation, rounds, seed, evaluate_every, precision)
    training = Training(run, diagnostics)
    while not training.finished:
        training.advance()
        if on_progress is not None:
            on_progress(training)
    result = training.result()
    if result.diverged_at is not None:
        raise Diverged(result)
    return result
