"""What a method states about itself: its paper, what it needs, what it costs, what it cannot do."""

from dataclasses import dataclass
from enum import StrEnum


class Idea(StrEnum):
    """What methods have in common; the list of methods is grouped by it, in this order.

    Examples:
        >>> import safari
        >>> safari.Idea.DRIFT.value
        'less drift on the clients'
    """

    SERVER_STEPS = "the server trains too"
    SERVER_GRADIENT = "server gradients steer the clients"
    SERVER_SAMPLES = "clients get samples of the server's"
    SERVER_JUDGES = "the server's samples judge the clients"
    AVERAGE = "an average of the clients"
    DRIFT = "less drift on the clients"
    SERVER_OPTIMISER = "an optimiser on the server"
    ABSENT = "absent clients are remembered"
    RATES = "clients count by how often they take part"


@dataclass(frozen=True)
class Paper:
    """Where a method was published.

    Args:
        authors: "Zhao et al."
        title: of the paper, in full.
        venue: "ICML", "arXiv 1806.00582".
        year: when.

    Examples:
        >>> import safari
        >>> print(safari.FedAvg.about.paper.authors, safari.FedAvg.about.paper.year)
        McMahan et al. 2017
    """

    authors: str
    title: str
    venue: str
    year: int

    def __str__(self) -> str:
        return f"{self.authors}: {self.title} ({self.venue}, {self.year})"


@dataclass(frozen=True)
class About:
    """The facts about a method that `safari algorithms` and the league show.

    Costs are in models: 1 is as many numbers as the model has. Those of a combinator are what it costs
    with its default parts. What can be measured (models up and down, memory) the tests measure.

    Args:
        idea: what it has in common with others.
        paper: where it was published; not set: nowhere.
        rests_on: what the rule was taken from, in plain words: "the paper", "the authors' code".
        passes_ceiling: whether the model can get classes right that no participating client holds.
        server_set: whether the server needs samples of its own.
        label_counts: whether the server must know how many samples of each class clients hold.
        rates: whether the server must know how often each client takes part.
        raw_samples: whether raw samples leave whoever holds them.
        down: models sent to each client that is asked.
        up: models that each reporting client sends back.
        server_memory: models that the server keeps between rounds, beside the model itself.
        for_each_client: models that the server keeps for every client.
        client_memory: models that every client keeps between rounds.
        client_passes: passes over all its samples that a client computes gradients in a round, beside its
            local steps.
        extra: further work, in plain words: "a gradient over all samples of a client".

    Examples:
        >>> import safari
        >>> about = safari.SCAFFOLD.about
        >>> about.down, about.up, about.client_memory, about.passes_ceiling
        (2, 2, 1, False)
    """

    idea: Idea
    paper: Paper | None = None
    rests_on: str = "the paper"
    passes_ceiling: bool = False
    server_set: bool = False
    label_counts: bool = False
    rates: bool = False
    raw_samples: bool = False
    down: float = 1
    up: float = 1
    server_memory: float = 0
    for_each_client: float = 0
    client_memory: float = 0
    client_passes: float = 0
    extra: str = ""
