"""The clients of a spec, as a Flower app.

Client i of the spec is the node whose `partition-id` is i. Every message is a process of its
own in Flower, so what is heavy is imported where it is needed.
"""

from pathlib import Path

from flwr.app import Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from safari.flower.identity import identify

BROADCAST = "broadcast"


def client_app(spec: Path) -> ClientApp:
    """The clients of a spec."""
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        from safari.flower.arrays import array_record, numpy_arrays
        from safari.flower.spec_job import WEIGHT, job_of

        job = job_of(spec, str(context.run_config.get("overrides", "")))
        client = int(context.node_config["partition-id"])
        number = int(str(message.content.config_records["config"]["server-round"]))
        records = message.content.array_records
        sent = numpy_arrays(records[BROADCAST]) if BROADCAST in records else {}
        arrays = job.train(numpy_arrays(records["arrays"]), sent, client, number)
        metrics = MetricRecord()
        metrics["num-examples"], metrics["client"] = job.samples(client), client
        metrics[WEIGHT] = job.weight(client)
        content = RecordDict({"arrays": array_record(arrays), "metrics": metrics})
        return Message(content, reply_to=message)

    return identify(app)
