"""Clients that say who they are. This runs on clients: it imports Flower and nothing more."""

from flwr.app import ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.clientapp import ClientApp

QUESTION = "safari_name"
ANSWER = "client"
NAME_KEYS = ("client-name", "partition-id")


def identify(app: ClientApp) -> ClientApp:
    """Let the clients of `app` say who they are: `client-name` or `partition-id` of their node config.

    The app's mods are for training. They do not see the question: some refuse a message without a model.
    """
    kind: type[ClientApp] = type(app)

    class Identified(kind):  # type: ignore[misc, valid-type]
        """The app, but for one message."""

        def __call__(self, message: Message, context: Context) -> Message:
            if message.metadata.message_type != f"{MessageType.QUERY}.{QUESTION}":
                return super().__call__(message, context)
            config = context.node_config
            name = next((str(config[key]) for key in NAME_KEYS if key in config), "")
            return Message(RecordDict({ANSWER: ConfigRecord({"name": name})}), reply_to=message)

    app.__class__ = Identified
    return app
