"""SAFARI's forms with one set of defaults each, in all settings: python benchmarks/forms.py LEAGUE...

LEAGUE are directories that `safari league SETTING --methods safari,forms` (or `all,forms`) made, one for each
setting, with what they tuned. A form's defaults are the point of its grid whose held-out score, averaged over
the settings, is the highest: multiples of a setting's rates, and q. Then every form trains with its defaults
under every seed of every setting, and the test set is looked at once. Writes benchmarks/results/forms.json,
from which docs/make_league.py makes a section of docs/league.md.
"""

import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from safari.experiment.sweep import SweepSpec, new_sweep, read_sweep
from safari.experiment.versions import provenance
from safari.league.directory import TUNING, about_league, read_league
from safari.league.entries import FORMS, SAFARI, Times, entries_named
from safari.league.plan import cell_of, read_planned, resolved_points
from safari.report.statistics import estimate, paired

RESULT = Path(__file__).parent / "results" / "forms.json"
LABELS = (SAFARI, *FORMS)
ENTRIES = {entry.label: entry for entry in entries_named(LABELS)}
Scores = Mapping[int, float]
"""Balanced accuracy in per cent, by seed."""


def held_out(league: Path) -> dict[tuple[str, int], float]:
    """The mean score on held-out samples of every form at every point of its grid; 0 where a run diverged."""
    planned = read_planned(json.loads((league / f"{TUNING}.json").read_text()))
    rows = {row["cell"]: row for row in read_sweep(league / TUNING)[1].iter_rows(named=True)}
    found: dict[tuple[str, int], list[float]] = {}
    for one in planned:
        if one.method in LABELS:
            assert json.loads(rows[one.cell]["settings"])["data.score"] == "validation"
            score = 100 * (rows[one.cell]["balanced_accuracy"] or 0.0)
            diverged = rows[one.cell]["diverged_at"] is not None
            found.setdefault((one.method, int(one.variant)), []).append(0.0 if diverged else score)
    return {point: sum(scores) / len(scores) for point, scores in found.items()}


def chosen(scores: Mapping[str, Mapping[tuple[str, int], float]]) -> dict[str, tuple[int, float]]:
    """For every form the point with the highest mean over the settings, and that mean."""
    found = {}
    for label, entry in ENTRIES.items():
        means = {
            number: sum(of[label, number] for of in scores.values()) / len(scores)
            for number in range(len(entry.points()))
        }
        best = max(means, key=lambda number: means[number])
        found[label] = (best, means[best])
    return found


def in_words(label: str, number: int) -> dict[str, str]:
    """A point: multiples of the setting's rates, other keys as they are."""
    point = ENTRIES[label].points()[number]
    return {
        path: f"{value.factor:g} x" if isinstance(value, Times) else f"{value:g}"
        for path, value in point.items()
    }


def tested(league: Path, points: Mapping[str, int], work: Path) -> dict[str, Scores]:
    """The scores on the test set of every form with its point, in the setting of a league."""
    asked = read_league(league)
    setting = asked.settings[0]
    seeds = range(setting.seed, setting.seed + asked.seeds)
    cells = {
        (label, seed): cell_of(
            setting, ENTRIES[label], resolved_points(setting, ENTRIES[label])[number], seed
        )
        for label, number in points.items()
        for seed in seeds
    }
    spec = SweepSpec({}, tuple({cell.key: cell.settings for cell in cells.values()}.values()))
    rows = {
        row["cell"]: row
        for row in new_sweep(spec, work / setting.key, lambda _: None, {}).iter_rows(named=True)
    }
    return {
        label: {seed: 100 * (rows[cells[label, seed].key]["balanced_accuracy"] or 0.0) for seed in seeds}
        for label in points
    }


def row_of(scores: Mapping[str, Scores]) -> dict:
    """A setting: every form's score, and its difference to the best form of this setting."""
    means = {label: estimate(list(of.values())).mean for label, of in scores.items()}
    best = max(means, key=lambda label: means[label])
    forms = {}
    for label, of in scores.items():
        apart, to_safari = paired(dict(of), dict(scores[best])), paired(dict(of), dict(scores[SAFARI]))
        assert apart is not None
        assert to_safari is not None
        forms[label] = {
            "score": asdict(estimate(list(of.values()))),
            "less_best": asdict(apart),
            "less_safari": asdict(to_safari),
            "within_best": label == best or apart.high >= 0,
        }
    return {"best": best, "forms": forms}


def main(leagues: list[Path]) -> None:
    keys = {league: read_league(league).settings[0].key for league in leagues}
    scores = {keys[league]: held_out(league) for league in leagues}
    points = chosen(scores)
    numbers = {label: number for label, (number, _) in points.items()}
    with tempfile.TemporaryDirectory() as work:
        settings = {}
        for league in leagues:
            settings[keys[league]] = row_of(tested(league, numbers, Path(work)))
            print(keys[league], json.dumps(settings[keys[league]]["best"]), flush=True)
    forms = {
        label: {
            "defaults": in_words(label, number),
            "held_out": round(mean, 2),
            "held_out_by_setting": {key: round(of[label, number], 2) for key, of in scores.items()},
        }
        for label, (number, mean) in points.items()
    }
    tuned = {keys[league]: about_league(league).get("made", {}) for league in leagues}
    made = {**provenance(), "command": "python benchmarks/forms.py LEAGUE..."}
    RESULT.write_text(
        json.dumps({"forms": forms, "settings": settings, "tuned": tuned, "made": made}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main([Path(text) for text in sys.argv[1:]])
