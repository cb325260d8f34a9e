"""jax with `jit` of a whole row: these are not figures of an eager engine."""

import os
import sys

import kit

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = (
    f"--xla_cpu_multi_thread_eigen={'true' if kit.THREADS > 1 else 'false'} "
    f"intra_op_parallelism_threads={kit.THREADS}"
)

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


@jax.custom_vjp
def tanh(x):
    return jnp.tanh(x)


def forward(x):
    y = jnp.tanh(x)
    return y, y


def backward(y, dy):
    return (dy * (1.0 - y * y),)


tanh.defvjp(forward, backward)


def compiled(function, *arguments, answer=lambda result: result):
    function = jax.jit(function)
    return kit.Work(lambda: jax.block_until_ready(function(*arguments)), answer)


def repeated(op, times):
    def run(x):
        for _ in range(times):
            x = op(x)
        return x

    return run


def chain(with_backward):
    x = jnp.asarray(kit.numbers(6, "float64").reshape(2, 3))
    run = repeated(tanh, kit.CHAIN)
    return compiled(jax.grad(lambda x: run(x).mean()) if with_backward else run, x)


def built_in():
    x = jnp.asarray(kit.numbers(6).reshape(2, 3))
    a, b = jnp.full((2, 3), 1.02, jnp.float32), jnp.full((2, 3), 0.001, jnp.float32)

    def run(x, a, b):
        return repeated(lambda y: jnp.tanh(y * a + b), kit.CHAIN)(x).mean()

    return compiled(jax.grad(run), x, a, b)


def elementwise(op, n, with_backward=True):
    x, seed = jnp.asarray(kit.numbers(n)), jnp.ones(n, jnp.float32)
    if not with_backward:
        return compiled(op, x)

    def run(x, seed):
        y, pull = jax.vjp(op, x)
        return y, pull(seed)[0]

    return compiled(run, x, seed, answer=lambda result: result[1])


def normal(x):
    centered = x - x.mean(1, keepdims=True)
    return centered * jax.lax.rsqrt((centered**2).mean(1, keepdims=True) + 1e-5)


def moves(row):
    side = kit.SIDE
    x = jnp.asarray(kit.numbers(side * side).reshape(side, side))
    other, seed = x * 0.5, x**2 * 0.25
    mask = other > 0
    columns = jnp.asarray(kit.places(side))
    index = jnp.asarray(kit.places(side * side).reshape(side, side))
    op, given = {
        "select": (lambda x, columns: jnp.take(x, columns, 1), [columns]),
        "gather": (lambda x, index: jnp.take_along_axis(x, index, 1), [index]),
        "flip": (lambda x: jnp.flip(x, 1), []),
        "cumsum": (lambda x: jnp.cumsum(x, 1), []),
        "where": (lambda x, mask, other: jnp.where(mask, x, other), [mask, other]),
        "softmax": (jax.nn.log_softmax, []),
        "norm": (normal, []),
    }[row]

    def run(x, seed, *given):
        y, pull = jax.vjp(lambda x: op(x, *given), x)
        return y, pull(seed)[0]

    return compiled(run, x, seed, *given, answer=lambda result: result[1].ravel())


def conv():
    x, w = jnp.asarray(kit.tensor(kit.PICTURES)), jnp.asarray(kit.tensor(kit.KERNELS, 0.05))
    seed = jnp.asarray(kit.tensor(kit.MAPS))

    def run(x, w, seed):
        y, pull = jax.vjp(lambda x, w: jax.lax.conv(x, w, (1, 1), "SAME"), x, w)
        return y, pull(seed)

    answer = lambda result: jnp.concatenate([g.ravel() for g in result[1]])
    return compiled(run, x, w, seed, answer=answer)


def pool():
    x, window = jnp.asarray(kit.tensor(kit.MAPS)), (1, 1, 2, 2)
    op = lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")
    seed = op(x) * 0.25

    def run(x, seed):
        y, pull = jax.vjp(op, x)
        return y, pull(seed)[0]

    return compiled(run, x, seed, answer=lambda result: result[1].ravel())


def scalars():
    x = jnp.asarray(kit.numbers(kit.ELEMENTWISE))
    a, b, c = kit.ABC
    run = jax.value_and_grad(lambda x: (jax.nn.relu(x * a + b) * c).sum())
    return compiled(run, x, answer=lambda result: result[1])


def tensors():
    x = jnp.asarray(kit.numbers(kit.ELEMENTWISE))
    abc = [jnp.full(kit.ELEMENTWISE, v, jnp.float32) for v in kit.ABC]
    loss = lambda x, a, b, c: (jax.nn.relu(x * a + b) * c).sum()
    run = jax.value_and_grad(loss, argnums=(0, 1, 2, 3))
    return compiled(run, x, *abc, answer=lambda result: result[1][0] + result[1][1])


def product(m, k, n, dtype="float32"):
    a = jnp.asarray(kit.numbers(m * k, dtype).reshape(m, k))
    b = jnp.asarray(kit.numbers(k * n, dtype).reshape(k, n))
    seed = jnp.ones((m, n), dtype)

    def run(a, b, seed):
        c, pull = jax.vjp(jnp.matmul, a, b)
        return c, pull(seed)

    answer = lambda result: jnp.concatenate([g.ravel() for g in result[1]])
    return compiled(run, a, b, seed, answer=answer)


def step():
    parameters = [(jnp.asarray(w), jnp.asarray(b)) for w, b in kit.weights(kit.WIDTHS)]
    x = jnp.asarray(kit.numbers(kit.BATCH * kit.WIDTHS[0]).reshape(kit.BATCH, -1))
    y = jnp.asarray(kit.classes(kit.BATCH, kit.WIDTHS[3]))

    def loss(parameters, x, y):
        hidden = x
        for i, (w, b) in enumerate(parameters):
            hidden = hidden @ w + b
            if i < 2:
                hidden = tanh(hidden)
        return -jnp.take_along_axis(jax.nn.log_softmax(hidden), y[:, None], 1).mean()

    @jax.jit
    def update(parameters, x, y):
        value, grads = jax.value_and_grad(loss)(parameters, x, y)
        rate = jnp.float32(kit.RATE)
        return value, jax.tree.map(lambda p, g: p - rate * g, parameters, grads)

    def run():
        nonlocal parameters
        value, parameters = update(parameters, x, y)
        return float(value)

    return kit.three_steps(run)


def memory():
    n, ops = kit.MEMORY
    x, seed = jnp.asarray(kit.numbers(n)), jnp.ones(n, jnp.float32)
    run = jax.jit(lambda x, seed: jax.vjp(repeated(tanh, ops), x)[1](seed)[0])
    run = run.lower(x, seed).compile()
    return kit.Work(lambda: run(x, seed).block_until_ready(), lambda grad: grad[:64])


def rows(row):
    if row == "W1" or row.startswith("W1-"):
        return chain("forward" not in row)
    if row.startswith("W3-formula"):
        return elementwise(jnp.tanh, kit.size(row))
    if row.startswith("W3-"):
        return elementwise(tanh, kit.size(row), "forward" not in row)
    if row.startswith("W5-f64-"):
        return product(*[kit.size(row)] * 3, dtype="float64")
    if row == "W5-row":
        return product(1, 784, 128)
    if row.startswith("W5-"):
        return product(*[kit.size(row)] * 3)
    if row in ("select", "gather", "flip", "cumsum", "where", "softmax", "norm"):
        return moves(row)
    others = {
        "W2": built_in,
        "W4-scalars": scalars,
        "W4-formula": scalars,
        "W4-tensors": tensors,
        "W6": step,
        "W8": memory,
        "conv": conv,
        "pool": pool,
        "gelu": lambda: elementwise(jax.nn.gelu, 1_000_000),
    }
    return others[row]() if row in others else None


if sys.argv[1:] == ["first"]:
    data = jax.random.normal(jax.random.key(2023), (2, 3), "float64")
    print(jax.grad(lambda x: tanh(x).mean())(data))
else:
    kit.serve(rows)
