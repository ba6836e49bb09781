"""From the pilot to a recommendation, with reasons and with what it rests on."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from safari.advise.pilot import LEAST_ROUNDS, Arm, Ground, Pilot
from safari.errors import check
from safari.report.statistics import Estimate

QS = (0.2, 0.5, 0.8)
STEP_SHARES = (0.2, 1.0)
SEEDS = 3
CLOSE = 0.3
"""Points: arms nearer than this to the best count as good as it, and the cheapest is taken."""
MATTERS = 0.5
"""Points that server data, or clients, must be worth to be called for."""
SIZE_FACTORS = (0.25, 4.0)
OVERRUN = 1.3
FEDAVG, SERVER_ONLY = "fedavg", "server-only"
COUNTED_RUNS = (len(QS) + 1) * len(STEP_SHARES) + 1 + 3 * (SEEDS - 1) + len(SIZE_FACTORS)


@dataclass(frozen=True)
class Advice:
    """What to do, why, and how sure that is."""

    ground: Ground
    rounds: int
    asked_rounds: int
    fedavg: Arm
    server_only: Arm
    best: Arm
    arms: dict[Arm, Estimate]
    last: dict[Arm, float]
    over_fedavg: Estimate
    over_server: Estimate
    sizes: dict[int, Estimate]
    seconds: float
    allowed_seconds: float

    @property
    def need_server_data(self) -> bool:
        return self.over_fedavg.mean > MATTERS

    @property
    def clients_help(self) -> bool:
        return self.over_server.mean > MATTERS

    @property
    def verdict(self) -> str:
        if not self.need_server_data:
            return "You do not need server data: FedAvg alone does as well."
        if not self.clients_help:
            return "Clients add nothing here: training on the server's samples alone does as well."
        return "Use SAFARI: server data and clients together do better than either alone."

    @property
    def chosen(self) -> Arm:
        """The arm that is recommended."""
        if not self.need_server_data:
            return self.fedavg
        return self.best if self.clients_help else self.server_only

    @property
    def overrides(self) -> list[str]:
        """The recommendation as key=value of `safari run`."""
        return [f"{key}={value}" for key, value in self.chosen.settings.items()]

    @property
    def setting(self) -> dict[str, Any]:
        """The recommendation by name: algorithm, q, server steps and server samples."""
        chosen = self.chosen
        samples = self.ground.server_samples if self.need_server_data else 0
        return {"algorithm": chosen.name, "q": chosen.q, "steps": chosen.steps, "server_samples": samples}

    def to_json(self) -> dict[str, Any]:
        return _without_nan(
            {
                "verdict": self.verdict,
                "recommended": self.overrides,
                "recommended_setting": self.setting,
                "reasons": reasons(self),
                "measured": {
                    "accuracy": [
                        {**asdict(arm), **asdict(found), "after_last_rounds": self.last[arm]}
                        for arm, found in self.arms.items()
                    ],
                    "gain_over_fedavg": asdict(self.over_fedavg),
                    "gain_over_server_only": asdict(self.over_server),
                    "server_samples": {size: asdict(found) for size, found in self.sizes.items()},
                    "ground": asdict(self.ground),
                },
                "pilot_rounds": self.rounds,
                "rounds": self.asked_rounds,
                "seconds": self.seconds,
            }
        )


def advise(pilot: Pilot, observed: pl.DataFrame | None = None) -> Advice:
    """Measure, then recommend; `observed` are diagnostics of a run of the same spec."""
    began = pilot.seconds_left
    ground = pilot.ground(observed)
    check(
        ground.server_samples > 0,
        "data.server.samples",
        ground.server_samples,
        "advice is about server data: give the server at least 1 sample",
    )
    pilot.set_rounds(ground, COUNTED_RUNS)
    steps = sorted({max(1, round(share * ground.local_steps)) for share in STEP_SHARES})
    assisted = [Arm("safari", q, count) for q in QS for count in steps]
    fedavg, alone = Arm(FEDAVG), [Arm(SERVER_ONLY, steps=count) for count in steps]
    shown = [fedavg, *alone, *assisted]
    pilot.train(shown, [0])
    best, server_only = _cheapest(pilot, assisted), _cheapest(pilot, alone)
    pilot.train([fedavg, server_only, best], range(SEEDS))
    sizes = {ground.server_samples: pilot.accuracy(best, [0])}
    larger = [
        Arm("safari", best.q, best.steps, max(1, round(factor * ground.server_samples)))
        for factor in SIZE_FACTORS
    ]
    possible = [arm for arm in larger if pilot.can_train(arm)]
    if pilot.seconds_left > 0:
        pilot.train(possible, [0])
        sizes |= {arm.server_samples: pilot.accuracy(arm) for arm in possible if arm.server_samples}
    over_fedavg, over_server = pilot.gain(best, fedavg), pilot.gain(best, server_only)
    assert over_fedavg is not None
    assert over_server is not None
    return Advice(
        ground=ground,
        rounds=pilot.rounds,
        asked_rounds=pilot.spec.tables["train"]["rounds"],
        fedavg=fedavg,
        server_only=server_only,
        best=best,
        arms={arm: pilot.accuracy(arm) for arm in shown},
        last={arm: pilot.last(arm) for arm in shown},
        over_fedavg=over_fedavg,
        over_server=over_server,
        sizes=dict(sorted(sizes.items())),
        seconds=began - pilot.seconds_left,
        allowed_seconds=pilot.seconds,
    )


def _cheapest(pilot: Pilot, arms: list[Arm]) -> Arm:
    """Of those as good as the best, the one that asks the clients, then the server, least."""
    top = max(pilot.accuracy(arm).mean for arm in arms)
    close = [arm for arm in arms if pilot.accuracy(arm).mean >= top - CLOSE]
    return min(close, key=lambda arm: (arm.q or 0.0, arm.steps or 0))


def reasons(advice: Advice) -> list[str]:
    """Sentences: what was measured, and what follows."""
    ground, best = advice.ground, advice.best
    lines = [_coverage_words(ground), _bias_words(ground)]
    lines.append(f"SAFARI over FedAvg: {_points(advice.over_fedavg)}; over server-only training: "
                 f"{_points(advice.over_server)}.")  # fmt: skip
    if not (advice.need_server_data and advice.clients_help):
        return [*lines, *_sure(advice)]
    rivals = [arm for arm in advice.arms if arm.name == "safari"]
    top = max(rivals, key=lambda arm: advice.arms[arm].mean)
    if top == best:
        chosen = "the best of those tried, and no cheaper one comes near"
    else:
        chosen = (
            f"within {CLOSE} points of the best (q = {top.q:g} with {top.steps} steps), "
            "and it asks the clients less"
        )
    fall = advice.arms[best].mean - advice.last[best]
    lines.append(
        f"q = {best.q:g} and {best.steps} server steps a round: {chosen}. After client rounds the model is "
        f"{fall:.1f} points worse on average than what the server left, which is what SAFARI delivers."
    )
    lines.append(_size_words(advice))
    return [*lines, *_sure(advice)]


def _coverage_words(ground: Ground) -> str:
    covered = ground.coverage
    if not ground.excluded:
        return f"All {ground.clients} clients can take part, and hold {len(covered.covered_classes)} classes."
    return (
        f"{ground.excluded} of {ground.clients} clients never take part; the others hold "
        f"{len(covered.covered_classes)} classes, {100 * covered.covered_mass:.0f} % of the samples: "
        f"training on them alone cannot exceed {100 * covered.accuracy_ceiling:.1f} %."
    )


def _bias_words(ground: Ground) -> str:
    if ground.bias.mean <= 0:
        return "Their mean gradient shows no bias against the whole federation's."
    return (
        f"{ground.place} their mean gradient is off the whole federation's by "
        f"b^2 = {ground.bias.mean:.3g} (|grad F|^2 = {ground.gradient.mean:.3g}); a fixed q may stop at "
        "|grad F|^2 of up to q b^2. Noise of a minibatch gradient: "
        f"{ground.client_noise.mean:.3g} at a client, {ground.server_noise.mean:.3g} at the server."
    )


def _size_words(advice: Advice) -> str:
    known = advice.sizes
    here = advice.ground.server_samples
    others = ", ".join(
        f"{size:,} samples: {found.mean:.1f} % ({found.mean - known[here].mean:+.1f}, one seed)"
        for size, found in known.items()
        if size != here
    )
    if not others:
        return f"The server's {here:,} samples: no other number was tried."
    bigger = [size for size in known if size > here and known[size].mean - known[here].mean > MATTERS]
    if max(known) == here:
        word = "more could not be tried, the data have no samples to spare"
    else:
        word = f"more is worth collecting, {max(bigger):,} at least" if bigger else "more would add little"
    return f"The server's {here:,} samples give {known[here].mean:.1f} %; {others}: {word}."


def _sure(advice: Advice) -> list[str]:
    lines = [
        f"Rests on {SEEDS} seeds of FedAvg, of server-only training and of the best SAFARI, one of all "
        "else, judged on the test set; a recommendation takes the cheapest setting within "
        f"{CLOSE} points of the best."
    ]
    for other, gain in (("FedAvg", advice.over_fedavg), ("server-only training", advice.over_server)):
        if gain.count > 1 and gain.low < MATTERS < gain.high:
            lines.append(f"Whether SAFARI beats {other} by {MATTERS} points, {gain.count} seeds cannot tell.")
    if advice.seconds > OVERRUN * advice.allowed_seconds:
        lines.append(
            f"It took {advice.seconds:.0f} s instead of {advice.allowed_seconds:g}: compiling, and at least "
            f"{LEAST_ROUNDS} rounds of every run, take that long here."
        )
    if advice.rounds < advice.asked_rounds:
        lines.append(
            f"The pilot took {advice.rounds} of {advice.asked_rounds} rounds, for want of time; "
            "--seconds gives it more."
        )
    return lines


def _points(found: Estimate) -> str:
    if found.count < 2:
        return f"{found.mean:+.1f} points (one seed)"
    return f"{found.mean:+.1f} points ({found.low:+.1f} to {found.high:+.1f})"


def _without_nan(value: Any) -> Any:
    """What JSON can hold: None where there is no number."""
    if isinstance(value, dict):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
