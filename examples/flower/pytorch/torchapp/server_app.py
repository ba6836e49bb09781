"""The server: SAFARI, with federated averaging in client rounds."""

from flwr.app import ArrayRecord, MetricRecord
from flwr.serverapp import ServerApp

from safari.flower import SafariStrategy, torch_server_step
from torchapp.task import Net, accuracy_and_loss, server_loader

app = ServerApp()


@app.main()
def main(grid, context):
    model = Net()
    server_step = torch_server_step(model, server_loader(), lr=0.1, steps=20)
    place = context.run_config["checkpoint"]
    strategy = SafariStrategy(0.8, server_step, fleet=10, per_round=5, checkpoint=place)
    strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(model.state_dict()),
        num_rounds=context.run_config["rounds"],
        evaluate_fn=evaluate,
    )


def evaluate(server_round, arrays):
    model = Net()
    model.load_state_dict(arrays.to_torch_state_dict())
    accuracy, loss = accuracy_and_loss(model)
    return MetricRecord({"accuracy": accuracy, "loss": loss})
