"""The server pulls the model to its goal."""

import numpy as np
from flwr.app import Array, ArrayRecord
from flwr.serverapp import ServerApp

from safari.flower import SafariStrategy

app = ServerApp()


@app.main()
def main(grid, context):
    config = context.run_config

    def pull(arrays, round):
        return {name: array + np.float32(config["goal"] - array) / 2 for name, array in arrays.items()}

    strategy = SafariStrategy(
        config["q"],
        pull,
        fleet=10,
        round_deadline=config["deadline"],
        start_deadline=0.0,
        silent_rounds=None,
        checkpoint=config["checkpoint"],
        metrics_port=config["metrics-port"] or None,
    )
    start = ArrayRecord({"w": Array(np.zeros(3, np.float32))})
    strategy.start(grid, initial_arrays=start, num_rounds=config["rounds"])
