"""Ops of Rust beside those of a framework, in one run: ``python bench/ratios.py jax numpy paddle torch``.

Each row is the median of interleaved calls, as a multiple of the framework's own. A formula is compared with the same in
the framework, tanh with the framework's tanh or a layer of its ops.
"""

import os
import statistics
import sys
import threading
import time

import my_ops
import numpy as np

SIZES = ((6, 400), (1_000_000, 40))


def medians(functions, rounds):
    for function in functions.values():
        function()
    times = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(of) for name, of in times.items()}


def report(what, n, functions, rounds):
    found = medians(functions, rounds)
    ours, *others = found.items()
    ratios = ", ".join(f"{ours[1] / time:.2f}x of {name}" for name, time in others)
    print(f"{what}, {n:>7} elements: {ours[1] * 1e6:9.1f} us, {ratios}")


def report_threads(what, call):
    """Two threads that call at once, each with one thread of Rust, as a multiple of one."""

    def timed(count):
        threads = [threading.Thread(target=lambda: [call() for _ in range(10)]) for _ in range(count)]
        start = time.perf_counter()
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        return time.perf_counter() - start

    my_ops.set_num_threads(1)
    timed(2)
    ratio = statistics.median(timed(2) / timed(1) for _ in range(9))
    print(f"{what}, two threads at once: {ratio:.2f}x of one")
    my_ops.set_num_threads(os.cpu_count() or 1)


def numpy():
    from autograd_bridge.numpy import bind

    ops = bind(my_ops)

    def own(x):
        y = np.tanh(x)
        return x * (1 - y * y)

    def ours(x):
        y, kept = ops.cus_tanh.forward(x)
        return ops.cus_tanh.backward(kept, x)

    for n, rounds in SIZES:
        x = np.linspace(-2, 2, n, dtype=np.float32)
        report("NumPy, tanh and its gradient", n, {"ours": lambda: ours(x), "np.tanh": lambda: own(x)}, rounds)
    x = np.linspace(-2, 2, 3_000_000, dtype=np.float32)
    report_threads("NumPy", lambda: ops.cus_tanh(x))


def jax():
    import jax
    import jax.numpy as jnp
    from autograd_bridge.jax import bind

    ops = bind(my_ops)

    def gelu(x):
        return 0.5 * x * (1.0 + jnp.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))

    def gradient(f):
        run = jax.jit(jax.value_and_grad(lambda x: f(x).sum()))
        return lambda x: jax.block_until_ready(run(x))

    for what, of, own in (("a formula", ops.gelu, gelu), ("tanh", ops.cus_tanh, jnp.tanh)):
        of, own = gradient(of), gradient(own)
        for n, rounds in SIZES:
            x = jnp.linspace(-2, 2, n)
            report(f"JAX under jit, {what} and its gradient", n, {"ours": lambda: of(x), "jax.numpy": lambda: own(x)}, rounds)
    x = jnp.linspace(-2, 2, 3_000_000)
    report_threads("JAX", lambda: jax.block_until_ready(ops.cus_tanh(x)))


def paddle():
    import paddle
    from autograd_bridge.paddle import bind

    ops = bind(my_ops)

    class Tanh(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            y = paddle.tanh(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, dy):
            (y,) = ctx.saved_tensor()
            return dy * (1 - paddle.square(y))

    for n, rounds in SIZES:
        x = paddle.linspace(-2, 2, n, dtype="float32")
        x.stop_gradient = False
        dy = paddle.ones_like(x)

        def run(f):
            f(x).backward(dy)
            x.clear_grad()

        functions = {"ours": lambda: run(ops.cus_tanh), "a PyLayer": lambda: run(Tanh.apply), "paddle.tanh": lambda: run(paddle.tanh)}
        report("Paddle, tanh and its gradient", n, functions, rounds)
    x = paddle.linspace(-2, 2, 3_000_000, dtype="float32")
    report_threads("Paddle", lambda: ops.cus_tanh(x))


def torch():
    import torch
    from autograd_bridge.torch import bind

    ops = bind(my_ops)

    class Tanh(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.tanh(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, dy):
            (y,) = ctx.saved_tensors
            return dy * (1 - y * y)

    for n, rounds in SIZES:
        x = torch.linspace(-2, 2, n).requires_grad_()
        dy = torch.ones_like(x)

        def run(f):
            torch.autograd.grad(f(x), x, dy)

        functions = {"ours": lambda: run(ops.cus_tanh), "a Function": lambda: run(Tanh.apply), "torch.tanh": lambda: run(torch.tanh)}
        report("PyTorch, tanh and its gradient", n, functions, rounds)
    x = torch.linspace(-2, 2, 3_000_000)
    report_threads("PyTorch", lambda: ops.cus_tanh(x))


for name in sys.argv[1:]:
    globals()[name]()
