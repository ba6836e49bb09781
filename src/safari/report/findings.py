"""What a sweep or a comparison shows, in words: who is best by which metric, and how sure that is."""

import math
from collections import Counter

from safari.report.metric_names import DEFAULT, Metric, metric_named
from safari.report.page_blocks import Findings, Number
from safari.report.settings import Setting, Settings
from safari.report.statistics import Estimate, paired

MAIN = "balanced_accuracy"
"""The metric of the first sentence, where it is known; accuracy elsewhere."""
MOST_SPELT, MOST_NUMBERS = 4, 6


def findings(settings: Settings, missing: list[str]) -> Findings:
    """The first sentence is about the main metric; then the others, who takes part, and what is missing."""
    known = known_metrics(settings)
    if not known:
        return Findings("findings", "Findings", "No run has a result yet.", tuple(_state(settings, missing)))
    main = next((metric for metric in known if metric.name == MAIN), known[0])
    lead, *others = [_best(settings, metric) for metric in (main, *(one for one in known if one != main))]
    points = [*others, *_certainty(settings), *coverage(settings), *_state(settings, missing)]
    return Findings("findings", "Findings", lead, tuple(points), _numbers(settings, main, known))


def known_metrics(settings: Settings) -> list[Metric]:
    """Of the usual metrics those that the runs have."""
    usual = [metric_named(name) for name in DEFAULT]
    return [metric for metric in usual if any(setting.scores(metric) for setting in settings.all)]


def _best(settings: Settings, metric: Metric) -> str:
    """Which setting is best, and which cannot be told from it; all differences paired over the seeds."""
    scored = [(setting, found) for setting in settings.all if (found := setting.estimate(metric))]
    title = metric.title[0].upper() + metric.title[1:] + _which_class(settings, metric)
    if len(scored) == 1:
        return f"{title}: {_score(scored[0][1])}."
    best, found = max(scored, key=lambda one: one[1].mean)
    head = f"{title} is highest with {best.label}: {_score(found)}"
    behind = [(setting, paired(best.scores(metric), setting.scores(metric))) for setting, _ in scored]
    gaps = [(setting, gap) for setting, gap in behind if setting is not best and gap is not None]
    if not gaps or any(gap.count < 2 for _, gap in gaps):
        means = ", ".join(
            f"{setting.label} {_score(found)}" for setting, found in scored if setting is not best
        )
        return f"{head}." if len(scored) > MOST_SPELT + 1 else f"{head}; {means}."
    gaps.sort(key=lambda one: one[1].mean)
    ties = [setting for setting, gap in gaps if gap.low <= 0]
    if len(gaps) > MOST_SPELT:
        return f"{head}; {len(ties)} of the {len(gaps)} others cannot be told from it."
    near = [one for one in gaps if one[0] in ties]
    far = [one for one in gaps if one[0] not in ties]
    return f"{head}.{_near(near)}{_far(far)}"


def _near(gaps: list[tuple[Setting, Estimate]]) -> str:
    """Of the settings that cannot be told from the best."""
    words = [f"({gap.mean:.1f} points below, {_between(gap)})" for _, gap in gaps]
    if len(gaps) == 1:
        return f" {_begun(gaps[0][0].label)} cannot be told from it {words[0]}."
    named = "; ".join(f"{one.label} {word}" for (one, _), word in zip(gaps, words, strict=True))
    return f" Cannot be told from it: {named}." if gaps else ""


def _far(gaps: list[tuple[Setting, Estimate]]) -> str:
    """Of the settings that are worse than the best."""
    if len(gaps) == 1:
        [(one, gap)] = gaps
        return f" {_begun(one.label)} is {gap.mean:.1f} points below ({_between(gap)})."
    named = "; ".join(f"{one.label} by {gap.mean:.1f} points ({_between(gap)})" for one, gap in gaps)
    return f" Below it: {named}." if gaps else ""


def _between(gap: Estimate) -> str:
    return f"{gap.low:.1f} to {gap.high:.1f}"


def _begun(label: str) -> str:
    """At the beginning of a sentence; a symbol such as q stays as it is."""
    return label[0].upper() + label[1:] if label[:2].isalpha() else label


def _score(found: Estimate) -> str:
    return f"{found.mean:.1f} %"


def _which_class(settings: Settings, metric: Metric) -> str:
    """The name of the worst class, where all runs have the same."""
    if metric.name != "worst_recall":
        return ""
    worst = Counter(run.get("worst_class") for setting in settings.all for run in setting.sound)
    return f" ({next(iter(worst))})" if len(worst) == 1 and next(iter(worst)) else ""


def _certainty(settings: Settings) -> list[str]:
    if len(settings.all) == 1 and settings.seeds > 1:
        return []
    if settings.seeds == 1:
        many = "A single run" if len(settings.all) == 1 else "Each number is of a single run"
        return [f"{many}: another seed may give other numbers, and nothing here says how far they lie apart."]
    if len(settings.all) <= MOST_SPELT + 1:
        return [f"Differences are paired over {settings.seeds} seeds; in brackets their 95 % intervals."]
    return [
        "A setting cannot be told from the best where the 95 % interval of their difference, paired over "
        f"{settings.seeds} seeds, holds zero; that the best was chosen among many is not allowed for."
    ]


def coverage(settings: Settings) -> list[str]:
    """Who never takes part and what they hold, where that is the same for all runs."""
    said = {run.get("coverage") for setting in settings.all for run in setting.runs}
    if len(said) == 1 and (only := next(iter(said))):
        return [str(only)]
    absent = [len(run["absent"]) for setting in settings.all for run in setting.runs if run.get("absent")]
    if not absent:
        return []
    least, most = min(absent), max(absent)
    many = f"{most}" if least == most else f"{least} to {most}"
    return [f"{many} clients never take part; which ones they are differs between the runs."]


def _state(settings: Settings, missing: list[str]) -> list[str]:
    said = []
    if missing:
        named = "; ".join(missing[:MOST_NUMBERS])
        more = f" and {len(missing) - MOST_NUMBERS} more" if len(missing) > MOST_NUMBERS else ""
        said.append(f"{len(missing)} runs are missing; nothing stands for them. Missing: {named}{more}.")
    diverged = sum(len(setting.runs) - len(setting.sound) for setting in settings.all)
    if diverged:
        said.append(f"{diverged} runs diverged; they are counted, and left out of all numbers.")
    return said


def _numbers(settings: Settings, main: Metric, known: list[Metric]) -> tuple[Number, ...]:
    """A number a setting, if they are few: the main metric, the others beside it."""
    if len(settings.all) > MOST_NUMBERS:
        return ()
    found = []
    for setting in settings.all:
        scored = {metric: setting.estimate(metric) for metric in known}
        whole = scored.pop(main)
        if whole is None:
            continue
        spread = "" if math.isnan(whole.deviation) else f" ± {whole.deviation:.1f}"
        beside = [f"{_short(metric)} {one.mean:.1f}" for metric, one in scored.items() if one]
        found.append(
            Number(f"{whole.mean:.1f}{spread} %", f"{main.title}, {setting.label}", "; ".join(beside))
        )
    return tuple(found)


def _short(metric: Metric) -> str:
    return "worst class" if metric.name == "worst_recall" else metric.title
