"""L in closed form, for softmax regression on a federation."""

import jax
import jax.numpy as jnp
import numpy as np

from safari.data import Federation

POWER_STEPS = 60
MARGIN = 1.01
"""Power iteration comes from below; so much is added."""


def softmax_smoothness(federation: Federation) -> float:
    """An upper bound on L: half the largest eigenvalue of any client's X'X / n, bias column included."""
    dataset = federation.dataset
    factor = 0.25 if dataset.classes == 2 else 0.5
    largest = 0.0
    for client in range(federation.size):
        rows = dataset.normalise(dataset.shaped(dataset.x[federation.held_by(client)]))
        features = jnp.concatenate([rows.reshape(len(rows), -1), jnp.ones((len(rows), 1))], axis=1)
        largest = max(largest, float(_largest_eigenvalue(features)))
    return factor * MARGIN * largest


@jax.jit
def _largest_eigenvalue(features: jax.Array) -> jax.Array:
    """Of X'X / n; entries of X'X are what they are, so the iteration starts from the mean row."""
    vector = jnp.asarray(np.ones(features.shape[1], np.float32)) + features.mean(axis=0)

    def step(_: jax.Array, vector: jax.Array) -> jax.Array:
        moved = features.T @ (features @ vector)
        return moved / (jnp.linalg.norm(moved) + 1e-30)

    vector = jax.lax.fori_loop(0, POWER_STEPS, step, vector)
    return jnp.sum((features @ vector) ** 2) / len(features)
