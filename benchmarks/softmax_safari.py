"""Job (a) in safari: python softmax_safari.py DATA.npz ROUNDS -> one line of JSON."""

import json
import resource
import sys
import time

import numpy as np

import safari

archive = np.load(sys.argv[1])
dataset = safari.Dataset(
    archive["x"], archive["y"], archive["x_test"], archive["y_test"], client=archive["client"]
)
federation = safari.federate(dataset, partition="client", server_samples=0)
rounds = int(sys.argv[2])

began = time.perf_counter()
result = safari.train(
    federation,
    safari.FedAvg(local_rate=0.1, local_epochs=1, batch_size=64),
    model=safari.Logistic(),
    participation=safari.Participation(per_round=5),
    rounds=rounds,
    evaluate_every=rounds,
)
print(
    json.dumps(
        {
            "seconds": result.train_seconds,
            "seconds_with_compilation": time.perf_counter() - began,
            "accuracy": result.accuracy,
            "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
    )
)
