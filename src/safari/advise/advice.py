"""From the pilot to a recommendation: what is better than the user's own spec, and how sure that is."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import polars as pl

from safari.advise.goal import Goal
from safari.advise.pilot import FOLDS, Arm, Ground, Pilot
from safari.report.statistics import Estimate

QS = (0.2, 0.5, 0.8, 0.95)
STEP_SHARES = (0.2, 1.0)
FIRST_FOLDS = 2
"""All settings are tried on so many folds, the finalists on all."""
FINALISTS = 3
FEW = 5 * FOLDS
"""A class of which the server has fewer samples is hard to judge by."""
SIZE_FACTORS = (0.25, 4.0)
OWN, FEDAVG = Arm(), Arm("fedavg")
AFTER_EVERY = Arm("clg-sgd", clients="scaffold", deliver="average")
"""SAFARI's best form in the league: a server round after every client round, SCAFFOLD's clients, the average
of the models."""
COUNTED_RUNS = (
    FIRST_FOLDS * ((len(QS) + 2) * len(STEP_SHARES) + 2)
    + (FOLDS - FIRST_FOLDS) * (FINALISTS + 3)
    + FOLDS * len(SIZE_FACTORS)
)


@dataclass(frozen=True)
class Advice:
    """What to do, why, and how sure that is. Scores are of held-out samples, never of the test set."""

    goal: Goal
    ground: Ground
    rounds: int
    asked_rounds: int
    scores: dict[Arm, Estimate]
    over_own: dict[Arm, Estimate]
    server_only: Arm
    best: Arm
    with_server: Arm
    over_fedavg: Estimate
    over_server: Estimate
    sizes: dict[int, tuple[Estimate, Estimate]]
    seconds: float
    allowed_seconds: float

    @property
    def tried(self) -> int:
        """How many settings beside the user's own were tried."""
        return len(self.scores) - 1

    @property
    def chosen(self) -> Arm:
        """The arm that is recommended: the user's own unless another is better beyond doubt."""
        better = [arm for arm, gain in self.over_own.items() if gain.low > 0]
        return max(better, key=lambda arm: self.over_own[arm].mean, default=OWN)

    @property
    def verdict(self) -> str:
        if self.chosen == OWN:
            others = f"none of {self.tried} other settings is better"
            return f"Keep your spec: {others} by {self.goal.words} beyond doubt."
        gain = _points(self.over_own[self.chosen], self.goal)
        return f"Change your spec: {named(self.chosen)} is better by {gain} of {self.goal.words}."

    @property
    def overrides(self) -> list[str]:
        """The recommendation as key=value of `safari run`."""
        return [f"{key}={value}" for key, value in self.chosen.settings.items()]

    def to_json(self) -> dict[str, Any]:
        measured = {
            "scores": [
                {**asdict(arm), **asdict(found), "over_own": _plain(self.over_own.get(arm))}
                for arm, found in self.scores.items()
            ],
            "with_server_over_fedavg": asdict(self.over_fedavg),
            "safari_over_server_only": asdict(self.over_server),
            "server_samples": {
                size: {**asdict(score), "over_own_size": asdict(gain)}
                for size, (score, gain) in self.sizes.items()
            },
            "ground": asdict(self.ground),
        }
        return _without_nan(
            {
                "verdict": self.verdict,
                "metric": self.goal.metric.name,
                "recommended": self.overrides,
                "recommended_setting": asdict(self.chosen),
                "reasons": reasons(self),
                "measured": measured,
                "pilot_rounds": self.rounds,
                "rounds": self.asked_rounds,
                "seconds": self.seconds,
            }
        )


def advise(pilot: Pilot, observed: pl.DataFrame | None = None) -> Advice:
    """Measure, then recommend; `observed` are diagnostics of a run of the same spec."""
    began = pilot.seconds_left
    ground = pilot.ground(observed)
    pilot.set_rounds(ground, COUNTED_RUNS)
    steps = sorted({max(1, round(share * ground.local_steps)) for share in STEP_SHARES})
    assisted = [Arm("safari", q, count) for q in QS for count in steps]
    assisted += [replace(AFTER_EVERY, steps=count) for count in steps]
    alone = [Arm("server-only", steps=count) for count in steps]
    tried = [FEDAVG, *alone, *assisted]
    pilot.train([OWN, *tried], range(FIRST_FOLDS))
    ranked = sorted(assisted, key=lambda arm: -pilot.goal.sign * pilot.score(arm).mean)
    server_only = max(alone, key=lambda arm: pilot.goal.sign * pilot.score(arm).mean)
    finalists = [FEDAVG, server_only, *ranked[:FINALISTS]]
    pilot.train([OWN, *finalists], range(FOLDS))
    best = max(ranked[:FINALISTS], key=lambda arm: pilot.goal.sign * pilot.score(arm).mean)
    with_server = max(finalists[1:], key=lambda arm: pilot.gain(arm, FEDAVG, len(tried)).low)
    sizes = _sizes(pilot, best, ground, len(tried))
    return Advice(
        goal=pilot.goal,
        ground=ground,
        rounds=pilot.rounds,
        asked_rounds=pilot.spec.tables["train"]["rounds"],
        scores={arm: pilot.score(arm) for arm in (OWN, *tried)},
        over_own={arm: pilot.gain(arm, OWN, len(tried)) for arm in finalists},
        server_only=server_only,
        best=best,
        with_server=with_server,
        over_fedavg=pilot.gain(with_server, FEDAVG, len(tried)),
        over_server=pilot.gain(best, server_only, len(tried)),
        sizes=sizes,
        seconds=began - pilot.seconds_left,
        allowed_seconds=pilot.seconds,
    )


def _sizes(pilot: Pilot, best: Arm, ground: Ground, tried: int) -> dict[int, tuple[Estimate, Estimate]]:
    """The score of the best arm with fewer and with more server samples, and what that changes."""
    if pilot.server_is_given or pilot.seconds_left <= 0:
        return {}
    arms = [
        replace(best, server_samples=max(FOLDS, round(factor * ground.server_samples)))
        for factor in SIZE_FACTORS
    ]
    possible = [arm for arm in arms if pilot.can_train(arm)]
    pilot.train(possible, range(FOLDS))
    return {
        arm.server_samples: (pilot.score(arm), pilot.gain(arm, best, tried))
        for arm in possible
        if arm.server_samples
    }


def named(arm: Arm) -> str:
    """An arm in words."""
    if arm == OWN:
        return "your spec"
    if arm == FEDAVG:
        return "FedAvg"
    plural = "" if arm.steps == 1 else "s"
    if arm.name == AFTER_EVERY.name:
        form = f"{arm.name} with {arm.clients} clients, averaged models"
        return f"{form} and {arm.steps} server step{plural} a round"
    if arm.name == "safari":
        return f"SAFARI with q = {arm.q:g} and {arm.steps} server step{plural} a round"
    return f"server-only training with {arm.steps} step{plural} a round"


def reasons(advice: Advice) -> list[str]:
    """Sentences: what was measured, and what follows."""
    return [
        _coverage_words(advice.ground),
        _against("The server's samples", advice.with_server, "FedAvg", advice.over_fedavg, advice.goal),
        _against("The clients", advice.best, "server-only training", advice.over_server, advice.goal),
        *_size_words(advice),
        *_sure(advice),
        _bias_words(advice.ground),
    ]


def _against(what: str, arm: Arm, other: str, gain: Estimate, goal: Goal) -> str:
    points = _points(gain, goal)
    if gain.low > 0:
        return f"{what} help: {named(arm)} beats {other} by {points}."
    if gain.high < 0:
        return f"{what} do harm: {named(arm)} is {points} against {other}."
    return f"{what} make no difference that {gain.count} folds can show: {points} against {other}."


def _coverage_words(ground: Ground) -> str:
    covered = ground.coverage
    if not ground.excluded:
        return f"All {ground.clients} clients can take part, and hold {len(covered.covered_classes)} classes."
    return str(covered)


def _bias_words(ground: Ground) -> str:
    if ground.bias.mean <= 0:
        return "The mean gradient of the clients that can come shows no bias against the whole federation's."
    return (
        f"{ground.place} the mean gradient of the clients that can come is off the whole federation's by "
        f"b^2 = {ground.bias.mean:.3g} (|grad F|^2 = {ground.gradient.mean:.3g}); a fixed q may stop at "
        "|grad F|^2 of up to q b^2. Noise of a minibatch gradient: "
        f"{ground.client_noise.mean:.3g} at a client, {ground.server_noise.mean:.3g} at the server."
    )


def _size_words(advice: Advice) -> list[str]:
    here, found = advice.ground.server_samples, []
    for size, (_, gain) in advice.sizes.items():
        word = "no difference that can be told"
        if gain.low > 0:
            word = "more samples are worth collecting" if size > here else "fewer did better here"
        elif gain.high < 0:
            word = "worse"
        points = _points(gain, advice.goal)
        found.append(f"{size:,} server samples instead of {here:,}: {points}; {word}.")
    return found


def _sure(advice: Advice) -> list[str]:
    lines = [
        f"Judged by {advice.goal.words} on held-out samples of the server's, in {FOLDS} folds, never on "
        f"the test set. Differences are paired; their intervals (95 %) allow for {advice.tried} settings "
        "tried and for folds that share samples."
    ]
    label, held = advice.ground.fewest
    if held == 0:
        lines.append(
            f"The server has no sample of class {label}: nothing here tells how well it is recognised."
        )
    elif held < FEW:
        lines.append(
            f"The server has {held} of class {label}, so a fold judges it by {held // FOLDS} or "
            f"{held // FOLDS + 1}: only large differences show."
        )
    if advice.rounds < advice.asked_rounds:
        lines.append(
            f"The pilot took {advice.rounds} of {advice.asked_rounds} rounds, for want of time; "
            "--seconds gives it more."
        )
    return lines


def _points(found: Estimate, goal: Goal) -> str:
    digits = 3 if goal.metric.name == "loss" else 1
    interval = f" ({found.low:+.{digits}f} to {found.high:+.{digits}f})" if found.count > 1 else ""
    return f"{found.mean:+.{digits}f}{goal.unit}{interval}"


def _plain(found: Estimate | None) -> dict[str, Any] | None:
    return None if found is None else asdict(found)


def _without_nan(value: Any) -> Any:
    """What JSON can hold: None where there is no number."""
    if isinstance(value, dict):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
