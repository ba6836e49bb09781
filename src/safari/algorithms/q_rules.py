r"""How likely a client round may be, from what is known before it: rules A, B, C and the convex rule.

With $g = |\nabla F|^2$, $a = 1 - L \eta_s$ and $X_r = q_r N_r - (1 - q_r) a g_r \le 0$ in every
round, the average squared gradient is bounded as the paper's theorem 4 says, with q replaced by
the average of $q_r$. The rules differ in what $N_r$ they know. The formulas have no branches:
they serve numbers and traced arrays alike.
"""

from typing import Any

TINY = 1e-30


def share(have: Any, need: Any) -> Any:
    """have / (have + need), 1 where nothing is needed."""
    return (have + TINY) / (have + TINY + (need + abs(need)) / 2)


def rule_a(gradient: Any, dissimilarity: Any, smoothness: Any, rate: Any) -> Any:
    """From the dissimilarity sigma_G^2 alone: N = 4 sigma_G^2."""
    return share((1 - smoothness * rate) * gradient, 4 * dissimilarity)


def rule_b(gradient: Any, bias: Any, smoothness: Any, rate: Any) -> Any:
    """From b^2, the squared bias of those who take part (an upper bound is safe)."""
    need = 4 * bias - (1 - 480 * smoothness**2 * rate**2) * gradient
    return share((1 - smoothness * rate) * gradient, need)


def rule_c(
    gradient: Any, agreement: Any, client_gradient: Any, smoothness: Any, rate: Any, split: float = 0.25
) -> Any:
    """From <grad F, grad F_S> and |grad F_S|^2."""
    loss = split + 120 * smoothness**2 * rate**2 * (1 / split + 8 * smoothness * rate)
    gain = 2 * agreement - loss * gradient - 8 * smoothness * rate * client_gradient
    return share((1 - smoothness * rate) * gradient / 2, gradient / 2 - gain)


def rule_c_from_bias(gradient: Any, bias: Any, smoothness: Any, rate: Any) -> Any:
    """Rule C where only b^2 is known: the worst agreement that it allows."""
    length, off = gradient**0.5, bias**0.5
    return rule_c(gradient, gradient - off * length, (length + off) ** 2, smoothness, rate)


def convex_rule(gradient: Any, bias_at_best: Any, smoothness: Any, convexity: Any) -> Any:
    """min(1, mu |grad F| / (8 L b*)), b*^2 the squared bias at the minimum (an upper bound is safe)."""
    wanted = convexity * gradient**0.5
    limit = 8 * smoothness * bias_at_best**0.5
    return share(wanted, limit - wanted)
