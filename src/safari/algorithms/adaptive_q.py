"""`AdaptiveQ`: a q that is chosen before every round from what the server knows."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from safari.algorithms.q_rules import convex_rule, rule_a, rule_b, rule_c_from_bias
from safari.algorithms.task import Task, inner
from safari.data import Federation, Shard
from safari.errors import check, check_choice, check_count, check_fraction, check_not_negative
from safari.models import Params
from safari.registry import Noun

RULES = ("A", "B", "C", "convex")
LEAST_HELD = 2
ESTIMATION = 1_000_003
"""Folded into a round's server key: batches that serve estimation alone, never an update."""


class Knowledge(eqx.Module):
    """What is known before a round: its q, two estimates of grad F, and the largest bias seen."""

    q: Float[Array, ""]
    half_a: Params
    half_b: Params
    gradient: Float[Array, ""]
    bias: Float[Array, ""]
    client_rounds: Int[Array, ""]


class AdaptiveQ(Noun):
    r"""q_r from the server's own gradient and from what client rounds so far revealed.

    After every round the server estimates $|\nabla F|^2$ by the product of two disjoint halves
    of a batch (unbiased; its positive part is used) that no update sees. The clients' average
    change, divided by $\eta_c K$, is their mean gradient; its difference to the server's is the
    bias b. The noise of the clients' side only raises that estimate, which is safe. The first round
    is the server's; the first client round after it is taken on trust. Where no gradient is left to
    be seen, clients could only do harm: q is 0. A small server set that the model has learnt by
    heart looks like that, unless a part of it is held out.

    Args:
        rule: `A` knows a bound on the dissimilarity sigma_G^2, `B` and `C` use the largest b^2 seen,
            `convex` is for strongly convex problems.
        smoothness: L. With 0 (the default) rules B and C look at gradient and bias alone: heuristics,
            for rates that no theorem covers.
        convexity: mu, for rule `convex`.
        dissimilarity: sigma_G^2, for rule `A`.
        forget: the largest b^2 seen is multiplied by this in every round.
        least: q_r is at least this.
        most: q_r is at most this.
        batch_size: samples of the estimate, both halves together.
        holdout: the share of the server's samples that serve estimation alone. With 0 all serve both,
            and the estimate is of the server set's gradient instead of the population's.

    Examples:
        >>> import safari
        >>> adaptive = safari.Safari(q=safari.AdaptiveQ(rule="C", forget=0.95))
        >>> safari.train(safari.federate("digits"), adaptive, rounds=2).history["q"][0]
        0.0
    """

    rule: Literal["A", "B", "C", "convex"] = "B"
    smoothness: float = 0.0
    convexity: float = 0.0
    dissimilarity: float = 0.0
    forget: float = 1.0
    least: float = 0.0
    most: float = 1.0
    batch_size: int = 128
    holdout: float = eqx.field(static=True, default=0.2)

    def __check_init__(self) -> None:
        check_choice("rule", self.rule, RULES)
        for name in ("smoothness", "convexity", "dissimilarity"):
            check_not_negative(name, getattr(self, name))
        for name in ("forget", "least", "most"):
            check_fraction(name, getattr(self, name))
        check(self.least <= self.most, "least", self.least, "must be at most `most`")
        check_count("batch_size", self.batch_size, 2)
        check_fraction("holdout", self.holdout)
        if self.rule == "convex":
            known = self.smoothness > 0 and self.convexity > 0
            check(known, "smoothness", self.smoothness, "rule convex needs smoothness and convexity above 0")
        if self.rule == "A":
            check(self.dissimilarity > 0, "dissimilarity", self.dissimilarity, "rule A needs it, above 0")

    def shards(self, server: Shard) -> tuple[Shard, Shard]:
        """What the server trains on, and what it estimates from."""
        if self.holdout == 0:
            return server, server
        held = jnp.maximum((self.holdout * server.count).astype(jnp.int32), LEAST_HELD)
        kept = server.count - held
        return Shard(server.start, kept), Shard(server.start + kept, held)

    def check_fits(self, federation: Federation) -> None:
        """Refuse a server set that is too small to hold a part of it out. Host code."""
        kept, held = self.shards(federation.server)
        check(
            int(kept.count) >= 1 and int(held.count) >= 1,
            "algorithm.q.holdout",
            self.holdout,
            f"leaves {max(int(kept.count), 0)} of {federation.server_samples} server samples to train on",
        )

    def start(self, params: Params) -> Knowledge:
        """Before the first round nothing is known: it is the server's."""
        nothing = jax.tree.map(jnp.zeros_like, params)
        zero = jnp.float32(0)
        return Knowledge(zero, nothing, nothing, zero, zero, jnp.int32(0))

    def observe(
        self,
        known: Knowledge,
        task: Task,
        params: Params,
        key: Key[Array, ""],
        server_rate: Float[Array, ""] | float,
        client_gradient: Params | None,
    ) -> Knowledge:
        """What is known before the next round, which starts at `params`.

        `client_gradient` is the clients' mean gradient where the round just past began, if it
        was a client round.
        """
        return self.learn(known, self.halves(task, params, key), server_rate, client_gradient)

    def learn(
        self,
        known: Knowledge,
        halves: tuple[Params, Params],
        server_rate: Float[Array, ""] | float,
        client_gradient: Params | None,
    ) -> Knowledge:
        """What is known once `halves` of a batch have shown the gradient at the parameters of now."""
        bias, client_rounds = known.bias * self.forget, known.client_rounds
        if client_gradient is not None:
            off = [jax.tree.map(jnp.subtract, half, client_gradient) for half in (known.half_a, known.half_b)]
            bias = jnp.maximum(bias, inner(*off))
            client_rounds = client_rounds + 1
        gradient = jnp.maximum(inner(*halves), 0.0)
        chosen = jnp.where(gradient > 0, self._q(gradient, bias, server_rate), 0.0)
        q = jnp.where(client_rounds == 0, 1.0, chosen)
        q = jnp.clip(q, self.least, self.most).astype(jnp.float32)
        return Knowledge(q, *halves, gradient, bias, client_rounds)

    def _q(self, gradient: Array, bias: Array, rate: Array | float) -> Array:
        if self.rule == "A":
            return rule_a(gradient, self.dissimilarity, self.smoothness, rate)
        if self.rule == "convex":
            return convex_rule(gradient, bias, self.smoothness, self.convexity)
        chosen = rule_b if self.rule == "B" else rule_c_from_bias
        return chosen(gradient, bias, self.smoothness, rate)

    def halves(self, task: Task, params: Params, key: Key[Array, ""]) -> tuple[Params, Params]:
        """Mean gradients of two disjoint halves of a batch of the server's samples.

        `key` is that of the round's server batches.
        """
        size, key = min(self.batch_size, task.federation.server_most), jax.random.fold_in(key, ESTIMATION)
        halves = task.halves(params, self.shards(task.federation.server)[1], key, size)
        return halves.a, halves.b
