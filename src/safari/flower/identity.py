"""Clients that say who they are. This runs on clients: it imports Flower and nothing more."""

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

QUESTION = "safari_name"
ANSWER = "client"
NAME_KEYS = ("client-name", "partition-id")


def identify(app: ClientApp) -> ClientApp:
    """Let the clients of `app` say who they are: `client-name` or `partition-id` of their node config."""

    @app.query(QUESTION)
    def answer(message: Message, context: Context) -> Message:
        config = context.node_config
        name = next((str(config[key]) for key in NAME_KEYS if key in config), "")
        return Message(RecordDict({ANSWER: ConfigRecord({"name": name})}), reply_to=message)

    return app
