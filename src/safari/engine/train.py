"""`train`: train an algorithm on a federation."""

from collections.abc import Callable
from pathlib import Path

from safari.algorithms import Algorithm, Precision, Safari, Schedule
from safari.data import Federation
from safari.engine.delivery import DELIVER, Deliver
from safari.engine.progress import bar
from safari.engine.result import Result
from safari.engine.run import prepare
from safari.engine.size import check_fits
from safari.engine.trained_model import TrainedModel
from safari.engine.training import Diverged, Training
from safari.models import Logistic, Model, Params, as_model
from safari.participation import Participation


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
    deliver: Deliver = DELIVER,
    patience: int | None = None,
    schedule: Schedule | None = None,
    start: Path | TrainedModel | Params | None = None,
    metrics: tuple[str, ...] = (),
    class_weights: str | tuple[float, ...] | dict[str, float] | None = None,
    diagnostics: bool = False,
    on_progress: Callable[[Training], None] | None = None,
    progress: bool | None = None,
) -> Result:
    """Train `algorithm` on `federation` and return what it delivers.

    Args:
        federation: who holds which samples.
        algorithm: how parameters change from round to round.
        model: the classifier; a `safari.Model`, or an equinox module that is called with one sample.
        participation: who takes part.
        rounds: how many.
        seed: names every random draw of the run: initialisation, participation, coin, batches.
        evaluate_every: the test set is scored every so many rounds, and after the last.
        precision: that of the model's products: `float32`, or the faster `tf32` and `bfloat16` of
            GPUs. Parameters are float32 throughout.
        deliver: which model is delivered: `synced`, the one that the last round left in which the server
            acted (before the first such round the current one); `last`, the one after the last round;
            `best`, of the evaluated rounds the one with the highest balanced accuracy on the
            federation's validation samples (the lower loss breaks ties); `average`, of the models that
            rounds left in which the server acted, where each weighs 0.9 times as much as the next.
        patience: training stops once so many rounds have gone by without a better score on the
            federation's validation samples; not set: never.
        schedule: a factor on the clients' local rate and the server's rate, round by round; not set: 1.
        start: the parameters to begin with: a model's .safetensors file or a run directory, a
            `TrainedModel`, or the parameters themselves; not set: the model's own.
        metrics: functions of your own, `module:function` or `file.py:function`, each of the true classes
            and the probabilities of the test set; what they say of the delivered model is in the summary.
        class_weights: a factor on the loss of a sample by its class: a number for each class, in their order;
            a table of numbers by class, where all others count 1; or `balanced`, by one over the class's
            count in the server's set. Not set: all samples count the same.
        diagnostics: estimate in every round what the theory asks for (gradients, biases, noise,
            curvature), without changing the run.
        on_progress: called about twice a second with the training so far: its `history`, `done` of
            `rounds`, `finished`, `result()`. What it raises ends the training.
        progress: whether to show a bar; not set: only in a notebook.

    Returns:
        The delivered model, its metrics and the history of all rounds.

    Raises:
        Diverged: if the parameters leave the finite numbers.
        InputError: if the parts do not fit together.

    Examples:
        >>> import safari
        >>> federation = safari.federate("digits")
        >>> missing = safari.Participation(excluded=4, per_round=5)
        >>> result = safari.train(federation, safari.FedAvg(), participation=missing, rounds=3)
        >>> result.history["kind"].to_list()
        ['client', 'client', 'client']
    """
    run = prepare(
        federation, algorithm, as_model(model), participation, rounds, seed, evaluate_every, precision,
        deliver=deliver, patience=patience, schedule=schedule, start=start, metrics=metrics,
        class_weights=class_weights,
    )  # fmt: skip
    check_fits(run)
    training = Training(run, diagnostics=diagnostics)
    with bar(progress) as show:
        while not training.finished:
            training.advance()
            show(training)
            if on_progress is not None:
                on_progress(training)
    result = training.result()
    if result.diverged_at is not None:
        raise Diverged(result)
    return result
