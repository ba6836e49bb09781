"""The clients of a spec, as a Flower app.

The server says which client of the spec a node is. Every message is a process of its own in Flower, so what
is heavy is imported where it is needed.
"""

from logging import ERROR
from pathlib import Path
from typing import TYPE_CHECKING, cast

from flwr.app import Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common import log

from safari.errors import InputError
from safari.flower.identity import identify

if TYPE_CHECKING:
    from safari.flower.spec_job import Deployed

BROADCAST, CLIENT = "broadcast", "client"
"""Records of a message: what the server sends beside the model, and what it tells this client alone."""

DOES_NOT_FIT = 2
"""The code of an answer without a model, as Flower has it for an app that fails."""


def client_app(spec: Path) -> ClientApp:
    """The clients of a spec."""
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        try:
            return _trained(spec, message, context)
        except InputError as error:
            log(ERROR, "safari: %s", error)
            return Message(Error(DOES_NOT_FIT, str(error)), reply_to=message)

    return identify(app)


def _trained(spec: Path, message: Message, context: Context) -> Message:
    from safari.flower.arrays import array_record, numpy_arrays
    from safari.flower.spec_job import WEIGHT

    client = int(str(message.content.config_records[CLIENT]["number"]))
    job = _job(spec, message, context, client)
    number = int(str(message.content.config_records["config"]["server-round"]))
    records = message.content.array_records
    sent = numpy_arrays(records[BROADCAST]) if BROADCAST in records else {}
    arrays = job.train(numpy_arrays(records["arrays"]), sent, client, number)
    metrics = MetricRecord({"num-examples": job.samples(client), WEIGHT: job.weight(client)})
    content = RecordDict({"arrays": array_record(arrays), "metrics": metrics})
    return Message(content, reply_to=message)


def _job(spec: Path, message: Message, context: Context, client: int) -> "Deployed":
    """What the node runs: with its own file, or with its part of a named set."""
    from safari.flower.spec_job import job_of, node_job_of

    told, overrides = message.content.config_records[CLIENT], str(context.run_config.get("overrides", ""))
    own = context.node_config.get("data")
    if "terms" in told:
        if own is None:
            hint = """must be given: start the node with --node-config 'client-name="NAME" data="FILE"'"""
            raise InputError("data", "(nothing)", hint)
        weights = cast("list[float] | None", told.get("class-weights"))
        return node_job_of(spec, overrides, Path(str(own)), str(told["terms"]), client, weights)
    if own is not None:
        raise InputError(
            "data", str(own), "is for a fleet whose samples lie on the nodes; this one has a named set"
        )
    return job_of(spec, overrides)
