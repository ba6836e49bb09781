"""`safari theory convergence` on the terminal: what was measured, what it proves, what it does not."""

from collections.abc import Iterator

from rich.table import Table

from safari.theory.finished_run import Findings, Measured


def measured_table(found: Findings) -> Table:
    """The constants and the run's own quantities."""
    table = Table(title="Measured along the run", title_justify="left")
    table.add_column("quantity")
    table.add_column("value", justify="right")
    table.add_column("std. error", justify="right")
    constants = found.constants
    smoothness = "closed form" if found.closed_form else "largest seen"
    largest = {
        f"L, smoothness ({smoothness})": constants.smoothness,
        "sigma^2, client minibatch noise (largest)": constants.client_noise,
        "sigma_s^2, server minibatch noise (largest)": constants.server_noise,
        "sigma_G^2, dissimilarity (largest, all clients)": constants.dissimilarity,
    }
    for name, value in largest.items():
        table.add_row(name, f"{value:.4g}", "")
    means = {
        "|grad F|^2, mean over rounds": found.gradient,
        "G1, |grad F|^2 in server rounds": found.server_gradient,
        "G2, client move in client rounds (lower estimate)": found.move,
        "b^2, bias of those that ever take part, mean over rounds": found.bias,
        "|grad F_T - grad F|^2, the server set's own bias": found.server_gap,
    }
    for name, one in means.items():
        table.add_row(name, *_pair(one))
    return table


def certificate_table(found: Findings) -> Table:
    """The certificate, term by term, beside the bound that holds for any fixed q."""
    table = Table(title="Bounds on the average |grad F|^2 (theorem 4, corrected)", title_justify="left")
    table.add_column("term")
    void = " (void)" if found.not_covered else ""
    table.add_column(f"certificate of this run{void}", justify="right")
    table.add_column("any run with as many client rounds, fixed q", justify="right")
    after, before = found.terms, found.before_the_run()
    names = {
        "start": "start, F_0 - inf F over the path",
        "server_noise": "noise of the server's steps",
        "drift": "drift of the clients",
        "client_noise": "noise of the clients' steps",
        "bias": "bias paid, gradients earned",
    }
    for key, name in names.items():
        table.add_row(name, f"{getattr(after, key):.4g}", f"{getattr(before, key) / before.scale:.4g}")
    table.add_section()
    table.add_row(
        "total (error: of gradients, moves and biases alone)",
        f"{after.total:.4g} +- {found.terms_error:.2g}",
        f"{before.total:.4g}",
    )
    table.add_row("measured", _plus_minus(found.gradient), _plus_minus(found.gradient))
    return table


def convergence_words(found: Findings) -> Iterator[str]:
    """What it means, in sentences."""
    if found.not_covered:
        yield "Theorem 4 does not cover this run; the certificate is no promise here, because"
        yield from (f"  - {reason}" for reason in found.not_covered)
        server, client = found.covered_rates
        yield (
            f"It would cover algorithm.server.steps=1 algorithm.server.rate={server:g} "
            f"algorithm.clients.local_rate={client!r} (twice the server's rate over the local steps)."
        )
    else:
        holds = found.terms.total + 2 * found.terms_error >= found.gradient.value
        verdict = "is not below" if holds else "IS BELOW"
        yield f"All conditions of theorem 4 hold. The certificate {verdict} what was measured."
    if not found.closed_form:
        yield "L is the largest curvature seen, a lower estimate; so are bounds made of it."
    if not found.not_covered and found.q_after is not None and found.printed_q is not None:
        yield (
            f"q was {found.q:.3g} (share of client rounds). By the run's means the bound without a bias "
            f"term would have followed for q up to {found.q_after:.3g}; the paper's printed limit, from "
            f"maxima, reads {found.printed_q:.3g} and proves nothing."
        )
    if found.before_the_run().total == float("inf"):
        yield "For a fixed q nothing can be promised at these rates (inf)."
    if not found.fixed_q:
        return
    yield (
        f"A fixed q may stop at |grad F|^2 of up to q b^2 = {found.floor:.3g}. Where b does not vanish, no "
        "fixed q above 0 satisfies the condition near a stationary point: lower q over time "
        '(algorithm.q = "adaptive"), or q = 0.'
    )


def _pair(one: Measured) -> tuple[str, str]:
    return f"{one.value:.4g}", "" if one.error is None else f"{one.error:.2g}"


def _plus_minus(one: Measured) -> str:
    value, error = _pair(one)
    return f"{value} +- {error}" if error else value
