"""Tables and sentences of the theory, for the terminal."""

from collections.abc import Mapping, Sequence

from rich.table import Table

from safari.theory.counterexample import Examination, Path
from safari.theory.impossibility import PAPER_PROBABILITY, Failure, Participation


def impossibility_table(place: Participation, found: Sequence[Failure], repetitions: int) -> Table:
    """How often each learner failed, and how often it must."""
    title = (
        f"{place.clients} clients of {place.samples:,} samples, {place.participating} take part; "
        f"{repetitions:,} data sets; an error of {place.rare:.3g} counts as failure"
    )
    table = Table(title=title, title_justify="left")
    table.add_column("learner")
    for name in ("fails", "95 % interval", "at least (same construction)", "at least (paper)"):
        table.add_column(name, justify="right")
    for one in found:
        table.add_row(
            one.learner,
            f"{one.frequency:.4f}",
            f"{one.low:.4f} to {one.high:.4f}",
            f"{one.floor:.4f}",
            f"{PAPER_PROBABILITY:.4f}",
        )
    return table


def impossibility_words(place: Participation) -> str:
    """The statement for people."""
    return (
        f"Without server data no learner can guarantee an error below {place.client_floor:.3g} in the worst "
        f"case, whatever the number of samples (the paper: {place.paper_floor:.3g} with probability 1/20)."
    )


def generalization_table(rows: Sequence[tuple[int, float, float, float]]) -> Table:
    """The bounds side by side."""
    table = Table(title="Bounds on the excess error, constants taken as 1", title_justify="left")
    for name in ("server samples", "alpha", "with clients", "server only", "clients help"):
        table.add_column(name, justify="right")
    for size, alpha, assisted, alone in rows:
        verdict = "yes" if assisted < alone else "no"
        table.add_row(f"{size:,}", f"{alpha:.3g}", f"{assisted:.4g}", f"{alone:.4g}", verdict)
    return table


def counterexample_table(found: Examination) -> Table:
    """The printed statement, what happens, and what holds."""
    title = (
        f"F1 = (x-1)^2/2 takes part, F2 = (x+1)^2/2 never does; q = {found.q:g}, R = {found.rounds:,}, "
        "server rate 1/sqrt(R)"
    )
    table = Table(title=title, title_justify="left")
    table.add_column("quantity")
    table.add_column("value", justify="right")
    holds = "holds" if not 0 <= found.printed_limit < found.q else "fails"
    rows = {
        f"printed condition, q at most (it {holds})": found.printed_limit,
        "printed bound on the average |grad F|^2": found.printed_bound,
        "average |grad F|^2, exact": found.moments.gradient,
        "where x ends (the minimum is 0)": found.moments.last,
        "q b^2, up to which a fixed q may stop": found.floor,
        "bound for any fixed q, before the run": found.before_the_run,
        "certificate of the run": found.certificate,
    }
    for name, value in rows.items():
        table.add_row(name, f"{value:.4g}")
    return table


def adaptive_table(paths: Mapping[tuple[str, int], Path]) -> Table:
    """q chosen before every round: it converges, and uses few client rounds."""
    table = Table(title="The same federation, q chosen before every round", title_justify="left")
    for name in ("rule", "rounds", "average |grad F|^2", "share of client rounds"):
        table.add_column(name, justify="right")
    for (rule, rounds), found in paths.items():
        table.add_row(rule, f"{rounds:,}", f"{found.gradient:.3g}", f"{found.client_share:.3g}")
    return table
