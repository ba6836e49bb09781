r"""Estimating what the bounds need, from minibatch gradients: unbiased where that is possible.

Halves a, b of one batch of size B are disjoint. $\langle g_a, g_b \rangle$ is unbiased for
$|\nabla F|^2$ (and may be negative); $|g_a - g_b|^2 / 4$ estimates the variance of the whole
batch's mean. Values seen along a run bound the suprema of the assumptions from below.
"""

import numpy as np


def squared_gradient(half_a: np.ndarray, half_b: np.ndarray) -> float:
    """Unbiased for |grad F|^2."""
    return float(half_a @ half_b)


def batch_noise(half_a: np.ndarray, half_b: np.ndarray) -> float:
    """Unbiased for the variance of the whole batch's mean gradient (sigma_s^2 at this size)."""
    return float(np.sum((half_a - half_b) ** 2)) / 4


def sample_noise(half_a: np.ndarray, half_b: np.ndarray, batch: int) -> float:
    """Unbiased for the variance of one sample's gradient."""
    return batch * batch_noise(half_a, half_b)


def squared_bias(
    server_a: np.ndarray, server_b: np.ndarray, clients_a: np.ndarray, clients_b: np.ndarray
) -> float:
    """Unbiased for b^2 = |grad F_S - grad F|^2, from halves of the server's and clients' batches."""
    return float((server_a - clients_a) @ (server_b - clients_b))


def drift_shrink(curvature_step: float, steps: int) -> float:
    """How much an update understates the gradient: (1 - (1 - z)^K) / (z K), z = eta_c h."""
    return (1 - (1 - curvature_step) ** steps) / (curvature_step * steps)


def update_excess(curvature_step: float, steps: int, noise: float, per_round: int) -> float:
    """E |D|^2 - E B for curvature h: what noise adds to the square of an update."""
    decay = sum(1 - (1 - curvature_step) ** step for step in range(steps))
    return noise / per_round * (steps - 2 * decay)


def logistic_smoothness(features: np.ndarray, penalty: float, classes: int) -> float:
    """An upper bound on L of (multinomial) logistic regression; `features` with a bias column."""
    largest = float(np.linalg.eigvalsh(features.T @ features / len(features))[-1])
    return penalty + (0.25 if classes == 2 else 0.5) * largest


def unseen_dissimilarity(omega: float, bias: float) -> float:
    """|mean gradient of the unseen clients - grad F|, from b_A alone: a lower bound of sigma_G."""
    return omega / (1 - omega) * bias
