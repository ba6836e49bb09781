"""Writes docs/league.md from the directories in docs/league: python docs/make_league.py

Each was made by `safari league` (in parts, put together by `safari merge`), then reduced to what the tables
need: python docs/make_league.py add DIRECTORY. Its spec.toml says by which commands and commit, on which
machine and when.
"""

import json
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from league_claims import claims, made_by, table

from safari.experiment.checksums import SPEC, SUMS, digest, pack_sums
from safari.experiment.sweep.store import FINISHED, finished_files, read_finished, write_rows
from safari.league import SETTINGS, League, read_league
from safari.league.directory import CHOSEN, FINAL
from safari.league.entries import FORMS, KNOWN, POINTS, SAFARI
from safari.league.plan import FOLDS, TUNED
from safari.league.table import Row, rivals, rows_of
from safari.league.terminal import COSTS, costs_of, findings, gives, gives_of, interval, where_safari_loses
from safari.report.statistics import Estimate, estimate, paired

OUT = re.compile(r" --out [^\s\"]+| --quiet")
"""Where somebody's machine put the directory is nobody else's concern."""
FOLDER = Path(__file__).parent / "league"
PAGE = Path(__file__).with_name("league.md")
DEFAULTS = FOLDER.parents[1] / "benchmarks" / "results" / "forms.json"
HEAD = f"""# The league

Every method of safari, and SAFARI among them, on the same federations, tuned alike. `python
docs/make_league.py` writes this page from the directories in `docs/league`, which `safari league` made.
Nothing is filled in by hand. To make a table yourself: `safari league digits`; to see it as a page with
figures: `safari report docs/league/digits`.

## How to read the tables

- **Tuned alike.** Every method has a grid of {POINTS} points. A point is judged on samples that the
  server holds out: under each seed one of {FOLDS} folds of its own set, on which nobody then trains. The
  test set is for the tables alone. With 50 or 60 server samples such a choice is uncertain, for all
  methods alike; *default* is the method without tuning, with the rates of the setting.
- **Equal rounds, equal gradients.** The first column is after equally many rounds, *equal gradients* after
  as many gradients on the clients as FedAvg's clients compute: SAFARI, whose server takes rounds for
  itself, trains longer; FedCLG, whose clients compute further gradients over all their samples, trains
  shorter.
- **Scores** are percent of the test set, mean and deviation over the seeds; every seed draws its own
  federation. *missing classes* is the mean recall of the classes that no client holds that takes part.
- **Differences** to SAFARI are of the balanced accuracy, paired over the seeds, with a 95 % interval each.
  Of thirty such intervals one or two exclude zero by luck.
- **Costs** are of one run: of how many samples the clients together compute gradients, steps of the
  server, models sent down and up, and models kept between rounds.

## What cannot pass the ceiling, and why

The ceiling is the share of the test set whose classes are held by clients that take part. What a client
never saw does not enter its model. So a method whose server only weighs, remembers or extrapolates client
models gets the missing classes wrong, whatever it is tuned to: FedAvg and all methods without a server
set, and also FLTrust and FedLAW, which use the server's samples to judge the clients and not to train.
What passes it puts gradients of the server's samples into the model. The tables say *no* and *yes*.
"""

ABOUT_FORMS = """\
The paper's form is `safari`. The others change one thing or several: SCAFFOLD or another method on the
clients, an average of the models that server rounds left (`train.deliver = "average"`), more server
steps, a fixed order of rounds instead of a coin (`turns`), a server round after every client round
(`clg-sgd`). Each is tuned as every method is. First their scores on the samples that the server holds
out, by which a form has to be chosen; then their balanced accuracy on the test set, and the difference to the
paper's form, bold where its interval excludes zero.

"""

ABOUT_DEFAULTS = """\
### With one set of defaults

Tuning takes sixty runs for one federation. So each form was also given one set of defaults for all
settings: the point of its grid whose held-out score, averaged over the settings, is the highest. Rates are
multiples of a setting's own. Then every form trained with its defaults everywhere, and the test set was
looked at once.

"""

MISSING = """\
`cifar10` and `fedawe` need a GPU. `fedawe` redoes table 2 of Xiang et al. (NeurIPS 2024) with the paper's
network, schedule, rates and availability, and tunes nothing; what the paper printed stands in
`safari.league.fedawe.PRINTED`. On two cores one of its runs would take 27 processor hours (`python
benchmarks/fedawe.py`: 0.049 processor seconds a step), and it has 42. So beside the two checks
above no number of this page is compared with one that others published. Each method is held by its version
in NumPy, and [Methods](methods.md) says what its rule rests on.
"""

Tables: TypeAlias = dict[str, tuple[League, list[Row]]]
"""By setting the league, and the rows of its table."""


def league() -> str:
    """The page."""
    tables = read_tables()
    parts = [HEAD, *losses(tables), *forms(tables), *with_defaults()]
    for key, (one, rows) in tables.items():
        parts += section(key, one, rows)
    return "".join([*parts, *claims(), *missing(tables)])


def read_tables() -> Tables:
    found = [read_league(FOLDER / key) for key in SETTINGS if (FOLDER / key).is_dir()]
    return {one.settings[0].key: (one, rows_of(one, one.settings[0].key)) for one in found}


def losses(tables: Tables) -> Iterator[str]:
    yield "\n## Where SAFARI loses\n\n"
    for key, (_, rows) in tables.items():
        place = [row.method for row in rivals(rows)].index(SAFARI) + 1
        said = " ".join([findings(rows), *where_safari_loses(rows)])
        yield f"- **{key}**: SAFARI is number {place} of {len(rivals(rows))}. {said}\n"


def forms(tables: Tables) -> Iterator[str]:
    """SAFARI's forms beside the paper's, in every setting."""
    known = with_forms(tables)
    if not known:
        return
    yield "\n## SAFARI's own best form\n\n"
    yield ABOUT_FORMS
    if left := [key for key in tables if key not in known]:
        yield f"Not measured yet: {', '.join(left)}. So no form can be called the best everywhere.\n\n"
    labels = [SAFARI, *FORMS]
    scores = held_out(known)
    yield from table(
        ("form", *known, "mean rank"),
        sorted(
            (
                (
                    label,
                    *(percent(scores[key].get(label)) for key in known),
                    f"{mean_rank(label, scores):.1f}",
                )
                for label in labels
            ),
            key=lambda row: float(row[-1]),
        ),
        "On held-out samples (balanced accuracy)",
    )
    by_form = {key: {row.method: row for row in rows} for key, (_, rows) in known.items()}
    yield from table(
        ("form", *known),
        [(label, *(tested(by_form[key].get(label)) for key in known)) for label in labels],
        "On the test set: balanced accuracy, and difference to `safari`",
    )
    yield from rank_of_the_best(tables)


def rank_of_the_best(tables: Tables) -> Iterator[str]:
    """The form that held-out samples put first, beside the best of all methods."""
    form, beside = best_form(tables)
    shown = [
        (key, f"{rank} of {len(rivals(tables[key][1])) + 1}", best, f"{apart.mean:+.1f}", interval(apart))
        for key, (rank, best, apart) in beside.items()
    ]
    yield from table(
        ("setting", "its rank", "the best method", "minus the best method", "95 % interval"),
        shown,
        f"By held-out samples `{form}` is first. On the test set, among all methods, each tuned",
    )


def best_form(tables: Tables) -> tuple[str, dict[str, tuple[int, str, Estimate]]]:
    """The form with the best mean rank on held-out samples; and by setting, on the test set, its rank among
    all methods, the best of them, and its difference to that one."""
    known = with_forms(tables)
    scores = held_out(known)
    form = min((SAFARI, *FORMS), key=lambda label: mean_rank(label, scores))
    beside = {}
    for key, (one, rows) in known.items():
        mine = by_seed(one, form)
        others = {row.method: by_seed(one, row.method) for row in rivals(rows)}
        means = {method: estimate(list(of.values())).mean for method, of in others.items()}
        best = max(means, key=lambda method: means[method])
        apart = paired(mine, others[best])
        assert apart is not None
        rank = 1 + sum(mean > estimate(list(mine.values())).mean for mean in means.values())
        beside[key] = (rank, best, apart)
    return form, beside


def with_forms(tables: Tables) -> Tables:
    """The settings in which SAFARI's forms took part."""
    return {key: pair for key, pair in tables.items() if any(row.form for row in pair[1])}


def held_out(tables: Tables) -> dict[str, dict[str, float | None]]:
    """What every method scored on held-out samples, by setting."""
    return {key: {row.method: row.chosen.score for row in rows} for key, (_, rows) in tables.items()}


def by_seed(found: League, method: str) -> dict[int, float]:
    """The balanced accuracy of a tuned method, in per cent."""
    rows = {row["cell"]: row for row in found.results.iter_rows(named=True)}
    planned = [one for one in found.planned if (one.method, one.variant) == (method, TUNED)]
    finished = [rows[one.cell] for one in planned if one.cell in rows]
    return {row["seed"]: 100 * (row["balanced_accuracy"] or 0.0) for row in finished}


def with_defaults() -> Iterator[str]:
    """SAFARI's forms, each with one set of defaults in all settings."""
    if not DEFAULTS.exists():
        return
    found = json.loads(DEFAULTS.read_text())
    forms = sorted(found["forms"].items(), key=lambda pair: -pair[1]["held_out"])
    settings = found["settings"]
    yield ABOUT_DEFAULTS
    shown = [(label, in_words(one["defaults"]), f"{one['held_out']:.1f}") for label, one in forms]
    yield from table(
        ("form", "defaults", "held-out score"), shown, f"Defaults, chosen over {len(settings)} settings"
    )
    columns = ("setting", *(label for label, _ in forms))
    rows = [
        (key, *(beside_the_best(of["forms"][label]) for label, _ in forms)) for key, of in settings.items()
    ]
    yield from table(
        columns,
        rows,
        "On the test set: balanced accuracy with these defaults, and the difference to the best form of the "
        "setting, bold where the interval lies below zero",
    )
    yield from verdict(forms[0][0], {key: of["forms"] for key, of in settings.items()})
    yield f"\n{made_by(found['made'])}\n"


def verdict(first: str, settings: dict[str, dict]) -> Iterator[str]:
    """Whether the form that held-out samples put first is so on the test set."""
    worse = [key for key, of in settings.items() if not of[first]["within_best"]]
    rest = f"; it is worse in {', '.join(worse)}" if worse else ""
    yield (
        f"By held-out samples `{first}` is first. On the test set it is the best form, or not worse than the "
        f"best by an interval, in {len(settings) - len(worse)} of {len(settings)} settings{rest}. "
    )
    apart = {key: of[first]["less_safari"] for key, of in settings.items()}
    above = [key for key, one in apart.items() if one["low"] > 0]
    below = [key for key, one in apart.items() if one["high"] < 0]
    rest = f" ({', '.join(below)})" if below else ""
    yield (
        "It beats the paper's form, whose defaults were chosen in the same way, by an interval above zero in "
        f"{len(above)} settings, and is worse by one in {len(below)}{rest}.\n"
    )


def in_words(defaults: dict[str, str]) -> str:
    """The keys without the table that they stand in."""
    return ", ".join(f"{path.removeprefix('algorithm.')} {value}" for path, value in defaults.items())


def beside_the_best(found: dict) -> str:
    score, apart = found["score"]["mean"], found["less_best"]
    if apart["mean"] == 0:
        return f"{score:.1f} (best)"
    bold = "**" if not found["within_best"] else ""
    return f"{bold}{score:.1f} ({apart['mean']:+.1f}, {apart['low']:+.1f} to {apart['high']:+.1f}){bold}"


def mean_rank(label: str, scores: dict[str, dict[str, float | None]]) -> float:
    """The mean over the settings of a form's rank on held-out samples; equal scores share a rank."""
    ranks = []
    for found in scores.values():
        mine = found.get(label) or 0.0
        others = [found.get(other) or 0.0 for other in (SAFARI, *FORMS) if other != label]
        ranks.append(1 + sum(one > mine for one in others) + sum(one == mine for one in others) / 2)
    return sum(ranks) / len(ranks)


def tested(row: Row | None) -> str:
    if row is None or row.score is None:
        return "missing"
    apart = row.difference
    shown = "" if apart is None else f" ({apart.mean:+.1f}, {interval(apart)})"
    bold = "**" if apart is not None and (apart.low > 0 or apart.high < 0) else ""
    return f"{bold}{row.score.mean:.1f}{shown}{bold}"


def percent(score: float | None) -> str:
    return "missing" if score is None else f"{100 * score:.1f}"


def section(key: str, found: League, rows: Sequence[Row]) -> Iterator[str]:
    setting = found.settings[0]
    yield f"\n## {key}\n\n{setting.title}. {found.seeds} seeds, {setting.rounds} rounds.\n\n"
    yield "; ".join(f"{name}: {value}" for name, value in made(found).items()) + ".\n\n"
    left = [name for name in KNOWN if name not in found.methods]
    if left:
        yield f"Not run in this setting: {', '.join(f'`{name}`' for name in left)}.\n\n"
    yield f"{findings(rows)}\n\n"
    shown = [row for row in rows if not row.form]
    yield from table(("method", *gives(setting)), [(row.method, *gives_of(row)) for row in shown])
    yield from table(
        ("method", *COSTS), [(row.method, *costs_of(row)) for row in shown], "What a run costs, tuned"
    )


def made(found: League) -> dict[str, str]:
    """How it was made: the commands of all parts as one."""
    facts = dict(found.made)
    parts = len(facts.get("command", "").split("; "))
    facts["command"] = f"`safari league {found.settings[0].key}`" + (
        f" in {parts} parts" if parts > 1 else ""
    )
    return facts


def missing(tables: Tables) -> Iterator[str]:
    """Settings that `safari league` knows and that nobody has run yet."""
    left = [key for key in SETTINGS if key not in tables]
    if left:
        yield "\n## What is missing\n\nNot run yet, and so not on this page: "
        yield f"{', '.join(f'`{key}`' for key in left)}.\n\n"
        yield MISSING


def add(source: Path) -> None:
    """Copy what the tables need of a league's directory, its finished runs in one file."""
    found = read_league(source)
    target = FOLDER / found.settings[0].key
    shutil.rmtree(target, ignore_errors=True)
    (target / FINAL / FINISHED).mkdir(parents=True)
    for folder, names in (("", (f"{CHOSEN}.json", f"{FINAL}.json")), (FINAL, ("cells.json",))):
        files = {name: (source / folder / name).read_bytes() for name in names}
        spec = (source / folder / SPEC).read_text(encoding="utf-8")
        files[SPEC] = OUT.sub("", spec).encode()
        files[SUMS] = pack_sums({name: [digest(content)] for name, content in files.items()})
        for name, content in files.items():
            (target / folder / name).write_bytes(content)
    assert finished_files(source / FINAL)
    write_rows(target / FINAL, "all", read_finished(source / FINAL))


if __name__ == "__main__":
    if sys.argv[1:2] == ["add"]:
        add(Path(sys.argv[2]))
    PAGE.write_text(league())
