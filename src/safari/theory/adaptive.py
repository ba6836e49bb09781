r"""q chosen from what is known before a round: rules A, B, C and the strongly convex rule.

If $X_r = q_r N_r - (1 - q_r) a g_r \le 0$ in every round, the average squared gradient is
bounded as theorem 4 says, with q replaced by the average of $q_r$. Near a stationary point
every rule lets $q_r$ go to 0, unless the clients that take part have no bias there.
"""

from safari.theory.nonconvex import Constants, share


def rule_a(constants: Constants, gradient: float) -> float:
    """From |grad F|^2 and the dissimilarity sigma_G^2 alone."""
    return share(constants.slack * gradient, 4 * constants.dissimilarity)


def rule_b(constants: Constants, gradient: float, bias: float) -> float:
    """From |grad F|^2 and b^2, the squared bias of those who take part (an upper bound is safe)."""
    L, rate = constants.smoothness, constants.server_rate
    return share(constants.slack * gradient, 4 * bias - (1 - 480 * L**2 * rate**2) * gradient)


def rule_c(
    constants: Constants, gradient: float, agreement: float, client_gradient: float, split: float = 0.25
) -> float:
    """From |grad F|^2, <grad F, grad F_S> and |grad F_S|^2."""
    L, rate = constants.smoothness, constants.server_rate
    loss = split + 120 * L**2 * rate**2 * (1 / split + 8 * L * rate)
    gain = 2 * agreement - loss * gradient - 8 * L * rate * client_gradient
    if gain >= gradient / 2:
        return 1.0
    return constants.slack * gradient / 2 / ((1 - L * rate / 2) * gradient - gain)


def strongly_convex_rule(smoothness: float, convexity: float, gradient: float, bias_at_best: float) -> float:
    """min(1, mu |grad F| / (8 L b*)); b* is the bias at the minimum, an upper bound is safe."""
    if bias_at_best <= 0:
        return 1.0
    return min(1.0, convexity * gradient**0.5 / (8 * smoothness * bias_at_best))


def sampled_bias(bias: float, spread: float, per_round: int, available: int) -> float:
    """E b_r^2 for m clients drawn uniformly without replacement from those that ever take part.

    `bias` is |grad F_A - grad F|^2, `spread` the variance s_A^2 among the available.
    """
    return bias + (1 - per_round / available) * spread / per_round


def noisy_excess(constants: Constants, gradient: float, estimates: tuple[float, ...]) -> float:
    """E X under rule A when it is fed the positive part of equally likely estimates of |grad F|^2."""
    total = 0.0
    for estimate in estimates:
        q = rule_a(constants, max(estimate, 0.0))
        total += 4 * constants.dissimilarity * q - (1 - q) * constants.slack * gradient
    return total / len(estimates)
