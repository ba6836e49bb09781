"""The server: federated averaging."""

from flwr.app import ArrayRecord, MetricRecord
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg

from torchapp.task import Net, accuracy_and_loss

app = ServerApp()


@app.main()
def main(grid, context):
    model = Net()
    strategy = FedAvg(fraction_train=0.5, fraction_evaluate=0.0)
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
