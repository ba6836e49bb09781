"""How long one run of `safari league fedawe` would take on this machine: python benchmarks/fedawe.py

Times a step of a client (a batch of 128 images through the network and back) in processor seconds, and
multiplies by the steps of a run: 2000 rounds of 10 steps on each of 100 clients, all of which the program
trains, whoever came.
"""

import time

import jax

from safari.league.fedawe import Network

STEPS, REPEATS = 2000 * 100 * 10, 10


def main() -> None:
    network, x = Network(), jax.random.normal(jax.random.key(1), (128, 32, 32, 3))
    params = network.init(jax.random.key(0), (32, 32, 3), 10)
    gradient = jax.jit(jax.grad(lambda params: -jax.nn.log_softmax(network.apply(params, x))[:, 0].mean()))
    jax.block_until_ready(gradient(params))
    began = time.process_time()
    for _ in range(REPEATS):
        jax.block_until_ready(gradient(params))
    each = (time.process_time() - began) / REPEATS
    print(f"{each:.3f} processor seconds a step, {each * STEPS / 3600:.0f} processor hours a run")


if __name__ == "__main__":
    main()
