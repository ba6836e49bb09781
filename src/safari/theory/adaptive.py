r"""q chosen from what is known before a round: the rules of `algorithms.q_rules`, with the constants.

Near a stationary point every rule lets $q_r$ go to 0, unless the clients that take part have
no bias there.
"""

from safari.algorithms import q_rules
from safari.theory.nonconvex import Constants


def rule_a(constants: Constants, gradient: float) -> float:
    """From |grad F|^2 and the dissimilarity sigma_G^2 alone."""
    return q_rules.rule_a(gradient, constants.dissimilarity, constants.smoothness, constants.server_rate)


def rule_b(constants: Constants, gradient: float, bias: float) -> float:
    """From |grad F|^2 and b^2, the squared bias of those who take part (an upper bound is safe)."""
    return q_rules.rule_b(gradient, bias, constants.smoothness, constants.server_rate)


def rule_c(constants: Constants, gradient: float, agreement: float, client_gradient: float) -> float:
    """From |grad F|^2, <grad F, grad F_S> and |grad F_S|^2."""
    rates = (constants.smoothness, constants.server_rate)
    return q_rules.rule_c(gradient, agreement, client_gradient, *rates)


def strongly_convex_rule(smoothness: float, convexity: float, gradient: float, bias_at_best: float) -> float:
    """min(1, mu |grad F| / (8 L b*)); b* is the bias at the minimum, an upper bound is safe."""
    return q_rules.convex_rule(gradient, bias_at_best**2, smoothness, convexity)


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
