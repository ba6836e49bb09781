"""`Cohort`: who was picked for a round, and who of them reported back."""

import equinox as eqx
from jaxtyping import Array, Bool, Int


class Cohort(eqx.Module):
    """Slots for the clients of a round, in ascending order of client; empty slots last.

    `picked` marks filled slots: those clients were sent the model. `reported` marks the
    picked clients that did not drop out: their updates count.
    """

    clients: Int[Array, " slots"]
    picked: Bool[Array, " slots"]
    reported: Bool[Array, " slots"]
