"""The report page of a single run: how good its model is, for which classes, and who trained it."""

from typing import Any

import polars as pl

from safari.report.class_blocks import class_blocks
from safari.report.client_blocks import who_took_part
from safari.report.colours import algorithm_inks
from safari.report.findings import coverage
from safari.report.page_blocks import Block, Findings, Number, Page
from safari.report.run_blocks import accuracy_curves, q_curve, round_strip
from safari.report.settings import Settings

Row = dict[str, Any]
FAR = 0.9
"""A class that is recognised less often than so many times the average is far off."""
KINDS = {
    "client": "were the clients'",
    "server": "were the server's",
    "both": "were of both sides",
    "idle": "were idle",
}


def run_page(title: str, row: Row, history: pl.DataFrame, spec: str, facts: dict[str, str]) -> Page:
    """The page of a finished run: `row` is what a sweep would have of it, `history` has a row a round."""
    settings = Settings.of(pl.DataFrame([row], infer_schema_length=None))
    algorithm = settings.all[0].algorithm
    rounds = history["round"].to_list()
    ceiling = row["accuracy_ceiling"]
    curves = accuracy_curves(
        rounds,
        history["accuracy"].to_list(),
        history["accuracy_round"].to_list(),
        algorithm_inks([algorithm])[algorithm],
        None if ceiling is None else 100 * ceiling,
    )
    blocks: list[Block] = [
        Findings("findings", "Findings", _lead(row), tuple(_points(row, settings)), _numbers(row)),
        *class_blocks(settings),
        *curves,
        *round_strip(rounds, history["kind"].to_list()),
        *q_curve(rounds, history["q"].to_list()),
        *who_took_part(settings),
    ]
    return Page(title, f"One run of {len(history)} rounds", tuple(blocks), spec, facts)


def unfinished_page(title: str, directory: str, spec: str, facts: dict[str, str]) -> Page:
    """The page of a run that is not finished yet."""
    on = f"`safari run --resume {directory}` goes on with it, where nobody else does."
    return Page(
        title,
        "Not finished",
        (Findings("findings", "Findings", "This run is not finished.", (on,)),),
        spec,
        facts,
    )


def _lead(row: Row) -> str:
    if row["diverged_at"] is not None:
        return f"The run diverged in round {row['diverged_at']}: there is no model."
    if row["accuracy"] is None:
        return "The model was not scored: it had no test set."
    right = f"The delivered model gets {_percent(row['accuracy'])} of the test set right"
    if row.get("worst_class") is None:
        return f"{right}."
    worst = f"{_percent(row['worst_recall'])} of {row['worst_class']}, the class that it recognises least"
    return f"{right}, {'but only' if row['worst_recall'] < FAR * row['accuracy'] else 'and'} {worst}."


def _points(row: Row, settings: Settings) -> list[str]:
    found = coverage(settings)
    classes, exposure = row.get("classes"), row.get("exposure")
    if classes and exposure and row.get("worst_class") in classes:
        held = exposure[classes.index(row["worst_class"])]
        share = "nothing" if held == 0 else _percent(held)
        found.append(
            f"Of {row['worst_class']}, the clients that can come hold {share} of the training samples."
        )
    kinds = [f"{row[f'{kind}_rounds']} {words}" for kind, words in KINDS.items() if row[f"{kind}_rounds"]]
    sent = f"{row['bytes_down'] / 1e6:.1f} MB went to clients, {row['bytes_up'] / 1e6:.1f} MB came back"
    found.append(f"Of {row['rounds']} rounds, {', '.join(kinds)}; {sent}.")
    if row.get("stopped_at") is not None:
        found.append(f"It stopped early, after round {row['stopped_at']}.")
    if row.get("epsilon") is not None:
        found.append(f"It spent epsilon = {row['epsilon']:.3g} of differential privacy.")
    again = "safari compare --seeds says how far numbers lie apart"
    return [*found, f"This is a single run: another seed may give other numbers; {again}."]


def _numbers(row: Row) -> tuple[Number, ...]:
    shares = {
        "accuracy": ("accuracy", "delivered model, test set"),
        "balanced_accuracy": ("balanced accuracy", "mean recall of the classes"),
        "worst_recall": ("recall of the worst class", row.get("worst_class") or ""),
        "macro_f1": ("macro F1", ""),
    }
    found = [Number(_percent(row[key]), *words) for key, words in shares.items() if row.get(key) is not None]
    ceiling = row["accuracy_ceiling"]
    if ceiling is not None and ceiling < 1:
        found.append(Number(_percent(ceiling), "ceiling of client-only training"))
    if row.get("worst_client_accuracy") is not None:
        found.append(
            Number(
                _percent(row["worst_client_accuracy"]), "accuracy at the worst client", row["worst_client"]
            )
        )
    return tuple(found)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
