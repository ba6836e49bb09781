"""A page of each kind, from numbers like those that safari leaves: as large as people's, in no time."""

import json

import numpy as np
import polars as pl

from safari.report.advice_page import Advised, Tried, advice_page
from safari.report.fleet_blocks import Fleet
from safari.report.fleet_page import fleet_page
from safari.report.page import Number, Page
from safari.report.run_page import run_page
from safari.report.statistics import Estimate, estimate
from safari.report.sweep_page import sweep_page

SPEC = '[data]\nsource = "patients.csv"\n'
FACTS = {"command": "safari compare hospitals.toml --seeds 3 --out ../runs/a-comparison --quiet", "runs": "9"}
WARDS = ("ashford", "birch", "cedar", "dover", "elm", "falcon", "grove", "harbour", "ivy", "juniper")


def run(algorithm, seed, recall, accuracy=0.9, **settings):
    """The row of a run in a sweep."""
    return {
        "cell": f"{algorithm}{seed}",
        "settings": json.dumps({"algorithm.name": algorithm, **settings, "train.seed": seed}),
        "seed": seed,
        "accuracy": accuracy + 0.001 * seed,
        "accuracy_round": accuracy,
        "balanced_accuracy": sum(recall) / 2,
        "macro_f1": sum(recall) / 2,
        "worst_recall": min(recall),
        "worst_class": "sepsis",
        "accuracy_ceiling": 0.95,
        "diverged_at": None,
        "stopped_at": None,
        "rounds": 2,
        "client_rounds": 1,
        "server_rounds": 1,
        "both_rounds": 0,
        "idle_rounds": 0,
        "bytes_up": 10**6,
        "bytes_down": 10**6,
        "classes": ["flu", "sepsis"],
        "recall": recall,
        "class_precision": [0.95, 0.8],
        "confusion": [[170, 10], [10, 10]],
        "exposure": [0.9, 0.1],
        "absent": [2],
        "coverage": "1 of 3 clients never take part (cedar); they hold 90 % of sepsis.",
        "participants": ["ash", "birch", "cedar"],
        "asked": [8, 9, 0],
        "answered": [7, 9, 0],
        "curve_round": [1, 2],
        "curve_accuracy": [0.5, accuracy],
        "curve_accuracy_round": [0.6, accuracy],
        "curve_recall": [[0.5, 0.0], recall],
    }


COMPARED = [run("fedavg", seed, [0.95, 0.05 + 0.01 * seed]) for seed in range(3)]
COMPARED += [run("safari", seed, [0.94, 0.55 + 0.02 * seed]) for seed in range(3)]


def comparison() -> Page:
    others = [run("server-only", seed, [0.85, 0.5 + 0.01 * seed], accuracy=0.8) for seed in range(3)]
    others += [run("scaffold", seed, [0.91, 0.2 + 0.03 * seed], accuracy=0.88) for seed in range(3)]
    return sweep_page(
        "FedAvg and SAFARI on patients.csv", pl.DataFrame([*COMPARED, *others]), [], SPEC, FACTS
    )


def sweep() -> Page:
    rows = [
        run(
            "safari",
            seed,
            [0.9, 0.6 - 0.3 * q],
            accuracy=0.6 + 0.03 * np.log(size) - 0.2 * (q == 1),
            **{"algorithm.q": q, "data.server.samples": size},
        )
        for q in (0.0, 0.2, 0.5, 0.8, 1.0)
        for size in (20, 100, 1000)
        for seed in range(2)
    ]
    return sweep_page("SAFARI by q and server samples on patients.csv", pl.DataFrame(rows), [], SPEC, FACTS)


def single() -> Page:
    kinds = ["client", "client", "server"] * 20
    shares = np.linspace(0.4, 0.9, len(kinds))
    history = pl.DataFrame(
        {
            "round": range(1, len(kinds) + 1),
            "kind": kinds,
            "q": np.linspace(0.9, 0.5, len(kinds)),
            "accuracy": shares,
            "accuracy_round": shares - 0.05,
        }
    )
    return run_page("SAFARI on patients.csv", run("safari", 0, [0.95, 0.4]), history, SPEC, FACTS)


def advice() -> Page:
    tried = [Tried("your spec", None, estimate([60.0, 70.0, 65.0]), None)]
    tried += [Tried("FedAvg", "fedavg", estimate([50.0, 55.0, 60.0]), Estimate(3, -10.0, 3.0, -22.5, 2.5))]
    tried += [
        Tried(f"SAFARI with q = {q} and 14 server steps a round", "safari", estimate([70.0, 72.0]), None)
        for q in (0.2, 0.5, 0.8)
    ]
    return advice_page(
        Advised(
            title="Advice on hospitals.toml",
            verdict="Keep your spec: none of 4 other settings is better by balanced accuracy beyond doubt.",
            reasons=("3 of 12 clients never take part; they hold 90 % of sepsis.",),
            metric="balanced accuracy",
            share=True,
            tried=tried,
            sizes=[(240, estimate([70.0, 75.0]), Estimate(2, 5.0, 1.0, -1.0, 11.0))],
            command="safari run hospitals.toml",
            numbers=(Number("4", "settings tried beside yours"), Number("84 s", "the pilot took")),
        ),
        SPEC,
        FACTS,
    )


def fleet() -> Page:
    rounds, events = [], []
    for number in range(1, 13):
        kind = "server" if number % 4 == 0 else "client"
        scores = {"accuracy": 0.5 + 0.03 * number, "accuracy_round": 0.48 + 0.03 * number}
        scores["recall"] = [0.9, 0.6 + 0.02 * number, 0.05 * number]
        rounds.append({"round": number, "kind": kind, "q": 0.8, **scores})
        for client in () if kind == "server" else (0, 1, 2, 3):
            happened = {"round": number, "client": client, "name": WARDS[client], "node": client}
            why = "a change of length 26.2, above 5 times the median of 0.784 (norm_bound)"
            found = {2: ("rejected", why), 3: ("late", "no answer within 60 s")}.get(client, ("answered", ""))
            events.append({**happened, "event": "asked", "detail": ""})
            numbers = {"norm": 0.5 + 0.1 * client, "share": 0.5, "seconds": 3.0 + client}
            events.append({**happened, "event": found[0], "detail": found[1], **numbers})
    return fleet_page(
        Fleet(
            name="hospitals",
            rounds=rounds,
            events=events,
            clients=WARDS,
            seen=frozenset(range(9)),
            planned=40,
            finished=False,
            seconds=90.0,
            saved="2026-11-19 04:06:33",
            delivered=12,
            options={"algorithm.q": 0.8},
            classes=("flu", "pneumonia", "sepsis"),
        ),
        SPEC,
        FACTS,
    )


PAGES = {"run": single, "comparison": comparison, "sweep": sweep, "advice": advice, "fleet": fleet}
