"""A spec whose clients' samples lie on their nodes: its run as the server sees it, and as a node does."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from safari.algorithms import ClientAlgorithm, Safari
from safari.data import Federation, Nodes, Terms, at_node
from safari.engine import Run
from safari.errors import check
from safari.experiment.schema import NAME
from safari.experiment.spec import Spec, complete

FLOWER_CAN = "cannot run on Flower: client methods and safari can"
NO_SIZES = (
    "needs to know how many samples the clients hold, which the server of a fleet does not: write a number "
    'of steps, or "epoch", or give the clients a number of steps to match (algorithm.clients.local_steps)'
)


def run_at_server(spec: Spec) -> Run:
    """The run of a spec, of which the server uses its own part alone where samples lie on the nodes.

    Raises:
        InputError: if the server's files do not fit, or the method needs to know what clients hold.
    """
    if not spec.on_nodes:
        return spec.prepare()
    clients, server = clients_of(spec), spec.tables["algorithm"].get("server", {})
    match = server.get("steps") == "match" and clients.local_steps is None
    check(not match, "algorithm.server.steps", "match", NO_SIZES)
    federation = spec.at_server()
    _refuse_what_nobody_knows(spec, federation)
    if spec.tables["data"]["client_names"] is None:
        spec = _of_whoever_connects(spec)
    return spec.prepare(federation)


def run_at_node(
    spec: Spec, terms: Terms, path: Path, client: int, class_weights: Sequence[float] | None
) -> Run:
    """The run of a spec of which a node plays one client, with the samples of its own file.

    Args:
        spec: the spec.
        terms: what the server told.
        path: the node's own file.
        client: which client it is.
        class_weights: a factor on the loss of each class, as the server told.

    Raises:
        InputError: if the file does not fit.
    """
    source = spec.source()
    assert isinstance(source, Nodes)
    samples = terms.samples(path, source)
    names = spec.tables["data"]["client_names"]
    clients = client + 1 if names is None else len(names)
    federation = at_node(samples, terms, clients, bool(spec.tables["data"]["augment"]))
    federation = replace(federation, largest=max(federation.largest, clients_of(spec).batch_size))
    algorithm = spec.tables["algorithm"]
    alone = {NAME: algorithm["clients"][NAME], "clients": algorithm["clients"]}
    weights = None if class_weights is None else tuple(class_weights)
    train = {**spec.tables["train"], "start": None, "metrics": (), "class_weights": weights}
    tables = {**_of_whoever_connects(spec).tables, "algorithm": alone, "train": train}
    return Spec(tables).prepare(federation)


def clients_of(spec: Spec) -> ClientAlgorithm:
    """The algorithm that the clients run, alone or inside SAFARI."""
    algorithm = spec.algorithm()
    clients = algorithm.clients if isinstance(algorithm, Safari) else algorithm
    check(
        isinstance(clients, ClientAlgorithm), f"algorithm.{NAME}", spec.tables["algorithm"][NAME], FLOWER_CAN
    )
    return cast(ClientAlgorithm, clients)


def _refuse_what_nobody_knows(spec: Spec, federation: Federation) -> None:
    """Refuse a method that needs the clients' samples, or to know what they hold."""
    clients, name = clients_of(spec), spec.tables["algorithm"]["clients"][NAME]
    about = clients.about
    knows = about is not None and (about.label_counts or about.raw_samples)
    moves = knows or clients.bind(federation, spec.seed)[1] is not federation
    hint = "cannot run where samples lie on the nodes: it needs to know what clients hold"
    check(not moves, f"algorithm.clients.{NAME}", name, hint)
    each = about is not None and about.for_each_client > 0
    listed = spec.tables["data"]["client_names"] is not None
    check(
        listed or not each,
        "data.client_names",
        "(not set)",
        f"must name all clients, of each of whom {name} keeps a model",
    )


def _of_whoever_connects(spec: Spec) -> Spec:
    """The spec without what it says of who takes part: a fleet shows that by itself."""
    return Spec({**spec.tables, "participation": complete({}).tables["participation"]})
