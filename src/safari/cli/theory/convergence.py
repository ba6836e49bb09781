"""`safari theory convergence`: what a finished run proves of itself."""

from pathlib import Path
from typing import Annotated, Any

import typer

from safari.cli.session import command, show
from safari.errors import InputError


def convergence_command(
    run: Annotated[Path, typer.Argument(help="A finished run directory, trained with diagnostics.")],
) -> None:
    """Theorem 4: the certificate of a finished run, term by term."""
    with command():
        from safari.experiment.checksums import read_spec, read_table
        from safari.experiment.directory import DIAGNOSTICS, METRICS, SUMMARY
        from safari.experiment.spec import complete
        from safari.report.convergence import certificate_table, convergence_words, measured_table
        from safari.theory.finished_run import findings

        if not (run / SUMMARY).is_file():
            raise InputError("RUN", str(run), "is not a finished run directory (no summary.json in it)")
        if not (run / DIAGNOSTICS).is_file():
            raise InputError(
                "RUN", str(run), "has no diagnostics; train it again with train.diagnostics=true"
            )
        history, seen = read_table(run / METRICS), read_table(run / DIAGNOSTICS)
        active = history["kind"] != "idle"
        rates = _rates(run, complete(read_spec(run)))
        found = findings(history.filter(active)["kind"].to_list(), seen.filter(active), rates)
        show(measured_table(found))
        show(certificate_table(found))
        for line in convergence_words(found):
            print(line)


def _rates(run: Path, spec: Any) -> Any:
    """The step sizes of a spec's run, and L where the model has a closed form."""
    from safari.algorithms import AdaptiveQ, FedAvg, Safari
    from safari.models import Logistic
    from safari.theory.finished_run import Rates
    from safari.theory.smoothness import softmax_smoothness

    prepared = spec.prepare()
    algorithm, federation = prepared.algorithm, prepared.task.federation
    if not isinstance(algorithm, Safari) or type(algorithm.clients) is not FedAvg:
        name = spec.tables["algorithm"]["name"]
        raise InputError("RUN", str(run), f"trained {name}; theorem 4 is about SAFARI over FedAvg")
    if float(algorithm.clients.global_rate) != 1.0:
        raise InputError("RUN", str(run), "has a global_rate other than 1; theorem 4 averages the clients")
    if prepared.schedule is not None:
        raise InputError("RUN", str(run), "has a schedule; theorem 4 is about rates that stay as they are")
    logistic = type(prepared.task.model) is Logistic and not federation.augment
    return Rates(
        client_rate=float(algorithm.clients.local_rate),
        local_steps=int(algorithm.clients.steps(federation.median_size)),
        per_round=int(prepared.roster.per_round),
        server_rate=float(algorithm.server.rate),
        server_steps=int(algorithm.server.steps),
        smoothness=softmax_smoothness(federation) if logistic else None,
        convex=logistic,
        fixed_q=not isinstance(algorithm.q, AdaptiveQ),
    )
