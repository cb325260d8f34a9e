"""Ops as layers of Paddle."""

import os
import subprocess
import sys

import formulas
import my_ops
import numpy as np
import paddle
import pytest
from autograd_bridge.eager import Caller
from autograd_bridge.paddle import _on_device, bind
from autograd_bridge.signature import Signature
from memory import is_flat

ops = bind(my_ops)


def tensor(array, wants=True):
    of = paddle.to_tensor(array)
    of.stop_gradient = not wants
    return of


def ramp(*shape):
    return np.linspace(-2, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def tanh(x):
    return paddle.tanh(x)


def gelu(x):
    return 0.5 * x * (1.0 + paddle.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


ROWS = np.array([3, 1, 3], np.int32)
PAIRS = {
    "cus_tanh": (ops.cus_tanh, tanh, (ramp(40, 25),)),
    "small": (ops.cus_tanh, tanh, (ramp(3),)),
    "gelu": (ops.gelu, gelu, (ramp(40, 25),)),
    "scale": (ops.scale, lambda x, by: x * by, (ramp(1000), ramp(1000) + 3)),
    "shift": (ops.shift, lambda x: x + 1, (ramp(1000),)),
    "shift by": (ops.shift, lambda x, by: x + by, (ramp(1000), ramp(1000))),
    "total": (lambda a, b: ops.total([a, b, a]), lambda a, b: 2 * a + b, (ramp(1000), ramp(1000))),
    "gate": (
        lambda x: ops.gate(x, tensor(ROWS), by=3),
        lambda x: paddle.square(paddle.index_select(x, tensor(ROWS, False)) * 3.0),
        (ramp(40, 25),),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_values_and_gradients(name):
    op, plain, arrays = PAIRS[name]
    results = []
    for f in (op, plain):
        args = [tensor(array) for array in arrays]
        y = f(*args)
        (y * y).sum().backward()
        results.append([y.numpy(), *(of.grad.numpy() for of in args)])
    for found, expected in zip(*results):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["cus_tanh", "small", "gelu", "scale"])
def test_second_order(name):
    op, plain, arrays = PAIRS[name]
    results = []
    for f in (op, plain):
        args = [tensor(array) for array in arrays]
        # Paddle refuses a part of the inputs of a `PyLayer`.
        dx, *_ = paddle.grad([(f(*args) ** 2).sum()], args, create_graph=True)
        (dx * args[0]).sum().backward()
        results.append([of.grad.numpy() for of in args])
    for found, expected in zip(*results):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_a_gradient_that_is_not_wanted_is_not_computed():
    x, by = tensor(ramp(1000)), tensor(ramp(1000), False)
    ops.scale(x, by).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), by.numpy())
    assert by.grad is None
    y = ops.scale(tensor(ramp(1000), False), by)
    assert y.stop_gradient
    with paddle.no_grad():
        assert ops.cus_tanh(x).stop_gradient


def test_one_of_two_outputs_is_used():
    a, b = tensor(ramp(1000)), tensor(ramp(1000)[::-1].copy())
    low, high = ops.min_max(a, b)
    high.sum().backward()
    np.testing.assert_allclose(a.grad.numpy() + b.grad.numpy(), np.ones(1000))
    assert low.shape == high.shape


def test_tanh_of_the_documentation_of_paddle():
    paddle.seed(2023)
    data = paddle.randn([2, 3], dtype="float32")
    data.stop_gradient = False
    z = ops.cus_tanh(data)
    z.mean().backward()
    np.testing.assert_allclose(data.grad.numpy(), (1 - np.tanh(data.numpy()) ** 2) / 6, rtol=1e-5)


def test_the_seed_of_paddle_gives_the_figures_of_its_documentation():
    paddle.seed(2023)
    data = paddle.randn([2, 3], dtype="float64")
    data.stop_gradient = False
    ops.cus_tanh(data).mean().backward()
    expected = "[[0.16604150, 0.05858341, 0.14051214],\n        [0.15677770, 0.01564609, 0.02991660]]"
    assert expected in str(data.grad)


STATIC = """
import my_ops, numpy as np, paddle
from autograd_bridge.numpy import bind

tanh = bind(my_ops).cus_tanh
data = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
paddle.enable_static()
program = paddle.static.Program()
with paddle.static.program_guard(program):
    x = paddle.static.data("x", [2, 3], "float32")
    x.stop_gradient = False
    y = program.current_block().create_var(name="y", shape=[2, 3], dtype="float32")

    def backward(y, dy):
        y = np.array(y)
        return np.array(dy) * (1 - y * y)

    paddle.static.py_func(lambda x: tanh(np.array(x)), x, y, backward_func=backward, skip_vars_in_backward_input=x)
    (dx,) = paddle.static.gradients(paddle.mean(y), x)
    found = paddle.static.Executor().run(program, feed={"x": data}, fetch_list=[y, dx])
np.testing.assert_allclose(found[0], np.tanh(data), rtol=1e-5)
np.testing.assert_allclose(found[1], (1 - np.tanh(data) ** 2) / 6, rtol=1e-5, atol=1e-6)
print("right")
"""


def test_a_static_program_calls_an_op_by_py_func():
    # `py_func` belongs to programs of the old form.
    env = dict(os.environ, FLAGS_enable_pir_api="0")
    done = subprocess.run([sys.executable, "-c", STATIC], env=env, capture_output=True, text=True)
    assert done.stdout.endswith("right\n"), done.stderr


def printed(name, arrays, plain=()):
    """The value and the gradients by the text of a formula, which runs on other devices."""
    signature = Signature(my_ops.__ops__[name])
    caller = Caller(my_ops, signature, paddle.Tensor, paddle.from_dlpack)
    values = [None] * (len(signature.parameters) - len(plain)) + list(plain)
    text = caller.formula(values, "paddle", {"paddle": paddle})
    tensors = [tensor(of, of.dtype != bool) for of in arrays]
    y = _on_device(signature, text, tensors)
    y.backward(paddle.ones_like(y))
    return [y.numpy(), *(of.grad.numpy() for of in tensors if of.grad is not None)]


# Paddle's own remainder, where the quotient is beyond the numbers.
LISTED = {"remainder": lambda a, b: abs(a) == np.float32(3e38) and abs(b) < 1}


@pytest.mark.parametrize("name", formulas.ONE + formulas.TWO)
def test_the_text_of_a_function_is_its_kernel(name):
    for dtype in (np.float32, np.float64):
        a, b = formulas.arguments(dtype)
        assert formulas.differences(name, printed("function", [a, b], [name]), a, b, LISTED) == []


@pytest.mark.parametrize("name", ["choice", "gelu"])
def test_the_text_of_a_formula_is_its_kernel(name):
    args = formulas.arguments_of(name)
    formulas.check(name, args, printed(name, args))


def test_the_text_of_a_formula_has_the_shape_of_all_inputs():
    for name in ("exp", "hypot"):
        a, b = np.full((3, 1), 0.5, np.float32), np.full((2, 1, 4), 2, np.float32)
        assert formulas.differences(name, printed("function", [a, b], [name]), a, b, {}) == []


def refuse(kind, words, call):
    with pytest.raises(kind, match=words):
        call()


def test_bad_input_is_an_error_that_names_op_and_parameter(capfd):
    x = tensor(ramp(10))
    refuse(TypeError, "Shift: `x` must have element type float32, found float64", lambda: ops.shift(x.astype("float64")))
    refuse(TypeError, "CusTanh: `x` must have elements of .*, found float16", lambda: ops.cus_tanh(x.astype("float16")))
    refuse(TypeError, "CusTanh: `x` must be a tensor, found str", lambda: ops.cus_tanh("a"))
    refuse(TypeError, "CusTanh: there is no parameter `y`", lambda: ops.cus_tanh(x, y=1))
    refuse(ValueError, "Gate: forward failed: `by` must be positive", lambda: ops.gate(tensor(ramp(4, 3)), tensor(ROWS), -1.0))
    refuse(RuntimeError, "Panics: forward panicked: a negative number", lambda: ops.panics(x))
    out, err = capfd.readouterr()
    assert "panicked at" not in out + err


def test_memory_is_flat_and_every_import_is_freed():
    x = tensor(ramp(1000))

    def call():
        ops.scale(x, x).sum().backward()
        x.clear_grad()

    assert is_flat(call)
