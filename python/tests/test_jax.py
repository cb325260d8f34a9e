"""Ops as functions of JAX."""

import os
import subprocess
import sys

import formulas
import jax
import jax.numpy as jnp
import my_ops
import numpy as np
import pytest
from autograd_bridge.jax import bind
from memory import is_flat

ops = bind(my_ops)
x = jnp.linspace(-2, 2, 7)
xs = jnp.stack([x, x + 1, x * 2])


def close(found, expected, tolerance=1e-5):
    found, expected = jax.tree.leaves(found), jax.tree.leaves(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def gelu(x, c=0.7978845608028654):
    return 0.5 * x * (1.0 + jnp.tanh(c * (x + 0.044715 * x**3)))


def gate(x, rows, by=2.0):
    return (x[rows] * by) ** 2


def scale(x, by):
    return x * by


def min_max(a, b):
    return jnp.minimum(a, b), jnp.maximum(a, b)


def one(f):
    return lambda *args: sum(jnp.sum(y) for y in jax.tree.leaves(f(*args)))


rows = jnp.array([3, 1, 3], jnp.int32)
# What JAX raises for an error of a call that runs.
RUN = (ValueError, jax.errors.JaxRuntimeError)
table = jnp.arange(12.0).reshape(4, 3) / 12
PAIRS = {
    "cus_tanh": (ops.cus_tanh, jnp.tanh, (x,)),
    "gelu": (ops.gelu, gelu, (x,)),
    "scale": (ops.scale, scale, (x, x + 3)),
    "shift": (ops.shift, lambda x: x + 1, (x,)),
    "shift by": (ops.shift, lambda x, by: x + by, (x, x * 3)),
    "total": (lambda a, b: ops.total([a, b, a]), lambda a, b: 2 * a + b, (x, x + 3)),
    "min_max": (ops.min_max, min_max, (x, x[::-1] + 0.1)),
    "gate": (lambda x: ops.gate(x, rows), lambda x: gate(x, rows), (table,)),
    "gate by": (lambda x: ops.gate(x, rows, by=3), lambda x: gate(x, rows, 3.0), (table,)),
    "positive": (ops.positive, jnp.log, (x + 3,)),
}
# Those whose gradient has a gradient in JAX.
TWICE = ["cus_tanh", "gelu", "scale", "shift", "shift by"]


@pytest.mark.parametrize("name", PAIRS)
def test_values_and_gradients(name):
    op, plain, args = PAIRS[name]
    every = tuple(range(len(args)))
    for wrap in (lambda f: f, jax.jit, jax.checkpoint):
        close(wrap(op)(*args), plain(*args))
        close(wrap(jax.grad(one(op), every))(*args), jax.grad(one(plain), every)(*args))
        value = jax.value_and_grad(lambda *a: one(wrap(op))(*a) ** 2)
        close(value(*args), jax.value_and_grad(lambda *a: one(plain)(*a) ** 2)(*args), 1e-4)


@pytest.mark.parametrize("name", PAIRS)
def test_vmap(name):
    op, plain, args = PAIRS[name]
    many = [jnp.stack([arg, arg * 0.5, arg + 1]) for arg in args]
    close(jax.vmap(op)(*many), jax.vmap(plain)(*many))
    close(jax.jit(jax.vmap(op))(*many), jax.vmap(plain)(*many))
    gradient = [jax.vmap(jax.grad(one(f))) for f in (op, plain)]
    close(gradient[0](*many), gradient[1](*many))
    if len(args) > 1:
        axes = (0,) + (None,) * (len(args) - 1)
        some = (many[0], *args[1:])
        close(jax.vmap(op, axes)(*some), jax.vmap(plain, axes)(*some))


@pytest.mark.parametrize("name", TWICE)
def test_second_order(name):
    op, plain, args = PAIRS[name]
    twice = [jax.grad(lambda *a, f=f: (jax.grad(one(f))(*a) * a[0]).sum()) for f in (op, plain)]
    close(twice[0](*args), twice[1](*args), 1e-4)
    close(jax.jit(twice[0])(*args), twice[1](*args), 1e-4)
    hessian = [jax.jacrev(jax.grad(one(f))) for f in (op, plain)]
    close(hessian[0](*args), hessian[1](*args), 1e-4)


def test_scan_and_a_model():
    def steps(f):
        return lambda x: jax.lax.scan(lambda carry, _: (f(carry), None), x, None, length=3)[0].sum()

    close(jax.grad(steps(ops.cus_tanh))(x), jax.grad(steps(jnp.tanh))(x))
    model = [jax.jit(jax.grad(lambda w, f=f: f(xs @ w).sum())) for f in (ops.cus_tanh, jnp.tanh)]
    close(model[0](jnp.eye(7)), model[1](jnp.eye(7)))


def test_a_formula_broadcasts_and_has_every_float_type():
    on = jnp.array([True, False, True])
    a, w = xs, jnp.float32(0.3)
    y = ops.choice(a[:, :3], w, on)
    assert y.shape == (3, 3)
    dw = jax.grad(lambda w: ops.choice(a[:, :3], w, on).sum())(w)
    assert dw.shape == ()
    step = 1e-2
    slope = (ops.choice(a[:, :3], w + step, on).sum() - ops.choice(a[:, :3], w - step, on).sum()) / (2 * step)
    np.testing.assert_allclose(dw, slope, rtol=0.02)
    half = ops.gelu(x.astype(jnp.bfloat16))
    assert half.dtype == jnp.bfloat16
    np.testing.assert_allclose(half.astype(np.float32), gelu(x), atol=0.03)


def refuse(kind, words, call):
    with pytest.raises(kind, match=words):
        jax.block_until_ready(call())


def test_bad_input_is_an_error_in_our_words(capfd):
    refuse(TypeError, "Shift: `x` must have element type float32, found int32", lambda: ops.shift(jnp.arange(4)))
    refuse(TypeError, "CusTanh: `x` must have element type", lambda: jax.jit(ops.cus_tanh)(jnp.arange(4)))
    refuse(TypeError, "CusTanh: there is no parameter `y`", lambda: ops.cus_tanh(x, y=1))
    refuse(TypeError, "CusTanh: `x` is missing", lambda: ops.cus_tanh())
    refuse(TypeError, "Gate: `by` must be a number, found 'a'", lambda: ops.gate(table, rows, "a"))
    refuse(TypeError, "Gate: `by` is a plain argument", lambda: jax.jit(lambda by: ops.gate(table, rows, by))(2.0))
    refuse(ValueError, "Gate: forward failed: `by` must be positive", lambda: ops.gate(table, rows, -1.0))
    refuse(TypeError, "Total: `xs` must be a list", lambda: ops.total(x))
    refuse(TypeError, "Gelu: `x` must have element type a float, found int32", lambda: ops.gelu(jnp.arange(3)))
    beyond = jnp.array([9], jnp.int32)
    refuse(RUN, "Gate: forward panicked", lambda: ops.gate(table, beyond))
    refuse(RUN, "Gate: forward panicked", lambda: jax.jit(ops.gate)(table, beyond))
    refuse(RUN, "Panics: forward panicked: a negative number", lambda: ops.panics(x))
    # Its shapes are known by `shapes(..)`: a run on zeros is refused.
    refuse(RUN, "Positive: forward failed: `x` must be positive", lambda: ops.positive(x))
    out, err = capfd.readouterr()
    assert "panicked at" not in out + err


def test_what_has_no_second_gradient_says_so():
    def twice(f):
        return lambda *a: jax.grad(lambda *a: jax.grad(one(f))(*a).sum())(*a)

    refuse(TypeError, "Gate: there is no second derivative in JAX, as the op keeps attributes", lambda: twice(lambda x: ops.gate(x, rows))(table))
    refuse(TypeError, "MinMax: there is no second derivative as the op saves", lambda: twice(ops.min_max)(x, x + 1))
    refuse(TypeError, "Positive: there is no second derivative in JAX, as the op does not run on zeros", lambda: twice(ops.positive)(x + 3))


def test_random_numbers_beside_attributes_are_refused():
    words = "Noisy: JAX runs forward again in backward, .* and forward draws random numbers"
    refuse(RuntimeError, words, lambda: jax.grad(lambda x: ops.noisy(x, 2.0).sum())(x))


@pytest.mark.parametrize("name", TWICE)
def test_forward_mode(name):
    op, plain, args = PAIRS[name]
    along = tuple(jnp.cos(arg) for arg in args)
    for wrap in (lambda f: f, jax.jit):
        tangents = [wrap(lambda args, along, f=f: jax.jvp(wrap(f), args, along))(args, along) for f in (op, plain)]
        close(tangents[0], tangents[1])
        columns = [wrap(jax.jacfwd(wrap(f)))(*args) for f in (op, plain)]
        close(columns[0], columns[1])


def test_forward_mode_of_a_formula_has_every_order():
    close(jax.hessian(one(ops.gelu))(x), jax.hessian(one(gelu))(x), 1e-4)
    third = [jax.jacfwd(jax.jacfwd(jax.grad(one(f)))) for f in (ops.gelu, gelu)]
    close(third[0](x), third[1](x), 1e-3)
    a, b = xs, x[:1]
    close(jax.jvp(lambda a, b: ops.function(a, b, "atan2"), (a, b), (b * a, b)), jax.jvp(jnp.arctan2, (a, b), (b * a, b)))


def test_a_forward_mode_that_is_not_there_says_so():
    for wrap in (lambda f: f, jax.jit):
        run = lambda f, *a: wrap(lambda *a: jax.jvp(wrap(f), a, a))(*a)
        refuse(TypeError, "Gate: there is no forward mode in JAX, as the op keeps attributes", lambda: run(lambda x: ops.gate(x, rows), table))
        refuse(TypeError, "MinMax: there is no forward mode as the op saves", lambda: run(ops.min_max, x, x + 1))
        words = "CusTanh: there is no second derivative of a backward in forward mode: use reverse mode"
        refuse(TypeError, words, lambda: wrap(jax.hessian(one(wrap(ops.cus_tanh))))(x))
        refuse(TypeError, words, lambda: wrap(jax.jacfwd(jax.jacfwd(wrap(ops.cus_tanh))))(x))


def test_a_program_is_exported_if_its_calls_are_allowed():
    check = jax.export.DisabledSafetyCheck.custom_call("autograd.my_ops.forward")
    refuse(ValueError, "autograd.my_ops.forward", lambda: jax.export.export(jax.jit(ops.cus_tanh))(x))
    exported = jax.export.export(jax.jit(ops.cus_tanh), disabled_checks=[check])(x)
    close(exported.call(x), jnp.tanh(x))
    # A formula is a program of JAX.
    close(jax.export.export(jax.jit(ops.gelu))(x).call(x), gelu(x))


def test_an_op_may_keep_an_input():
    first = jnp.full(1000, 7.0)
    jax.block_until_ready(ops.keeps(first))
    del first
    junk = [jnp.full(1000, float(i)) for i in range(20)]
    jax.block_until_ready(junk)
    kept = np.array(ops.keeps(junk[0]))
    assert kept.min() == kept.max() == 7.0
    ops.keeps(jnp.zeros(1)).block_until_ready()


LISTED = {
    # XLA chooses among zeros of both signs.
    "min": lambda a, b: a == b == 0,
    "max": lambda a, b: a == b == 0,
    # XLA computes `(a / b) / c` as `a / (b * c)`, which is beyond the numbers.
    "atan2": lambda a, b: abs(a) < 1e-19 and abs(b) < 1e-19,
}


def values(name, a, b):
    y, pull = jax.vjp(lambda a, b: ops.function(a, b, name), a, b)
    return [np.asarray(of) for of in (y, *pull(jnp.ones_like(y)))]


@pytest.mark.parametrize("name", formulas.ONE + formulas.TWO)
def test_the_text_of_a_function_is_its_kernel(name):
    for dtype in (np.float32, np.float64):
        with jax.enable_x64(dtype == np.float64):
            a, b = formulas.arguments(dtype)
            found = values(name, a, b)
        assert formulas.differences(name, found, a, b, LISTED) == []


@pytest.mark.parametrize("name", ["choice", "gelu"])
def test_the_text_of_a_formula_is_its_kernel(name):
    args = formulas.arguments_of(name)
    floats = [of for of in args if of.dtype == np.float32]
    y, pull = jax.vjp(lambda *floats: getattr(ops, name)(*floats, *args[len(floats) :]), *floats)
    formulas.check(name, args, [y, *pull(jnp.ones_like(y))])


def test_the_text_of_a_formula_has_the_shape_of_all_inputs():
    for name in ("exp", "hypot"):
        a, b = np.full((3, 1), 0.5, np.float32), np.full((2, 1, 4), 2, np.float32)
        assert formulas.differences(name, values(name, a, b), a, b, {}) == []


def test_memory_is_flat():
    step = jax.jit(jax.grad(lambda x: ops.scale(x, x).sum()))
    wide = jnp.ones(1000)
    assert is_flat(lambda: jax.block_until_ready(step(wide)))
    assert is_flat(lambda: jax.block_until_ready(ops.scale(wide, wide)))


def test_two_processes_share_a_compilation_cache(tmp_path):
    program = (
        "import jax, jax.numpy as jnp, my_ops\n"
        "from autograd_bridge.jax import bind\n"
        "ops = bind(my_ops)\n"
        "x = jnp.linspace(-2, 2, 7)\n"
        "print(float(jax.grad(lambda x: ops.cus_tanh(x).sum())(x)[0]), float(ops.scale(x, x)[0]))\n"
    )
    env = dict(os.environ, JAX_COMPILATION_CACHE_DIR=str(tmp_path), JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0", JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES="-1")
    outputs = [subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert outputs[0] == outputs[1] and "4.0" in outputs[0]
