"""Ops as functions of PyTorch."""

import formulas
import my_ops
import numpy as np
import pytest
import torch
from autograd_bridge.eager import Caller
from autograd_bridge.signature import Signature
from autograd_bridge.torch import _Printed, bind
from memory import is_flat

ops = bind(my_ops)


def ramp(*shape, dtype=torch.float32):
    count = int(np.prod(shape))
    return torch.linspace(-2, 2, count, dtype=dtype).reshape(shape).requires_grad_()


def gelu(x):
    return torch.nn.functional.gelu(x, approximate="tanh")


ROWS = torch.tensor([3, 1, 3], dtype=torch.int32)
PAIRS = {
    "cus_tanh": (ops.cus_tanh, torch.tanh, [(40, 25)]),
    "small": (ops.cus_tanh, torch.tanh, [(3,)]),
    "gelu": (ops.gelu, gelu, [(40, 25)]),
    "scale": (ops.scale, lambda x, by: x * by, [(1000,), (1000,)]),
    "shift": (ops.shift, lambda x: x + 1, [(1000,)]),
    "shift by": (ops.shift, lambda x, by: x + by, [(1000,), (1000,)]),
    "total": (lambda a, b: ops.total([a, b, a]), lambda a, b: 2 * a + b, [(1000,), (1000,)]),
    "min_max": (lambda a, b: sum(ops.min_max(a, 2 * b)), lambda a, b: a + 2 * b, [(1000,), (1000,)]),
    "gate": (lambda x: ops.gate(x, ROWS, by=3), lambda x: (x[ROWS.long()] * 3) ** 2, [(40, 25)]),
}


@pytest.mark.parametrize("name", PAIRS)
def test_values_and_gradients(name):
    op, plain, shapes = PAIRS[name]
    args = [ramp(*shape) for shape in shapes]
    results = []
    for f in (op, plain):
        y = f(*args)
        results.append([y, *torch.autograd.grad((y * y).sum(), args)])
    for found, expected in zip(*results):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_gradients_are_right_by_finite_differences():
    x = ramp(2, 3, dtype=torch.float64)
    by = (ramp(2, 3, dtype=torch.float64) + 3).detach().requires_grad_()
    for op, args in ((ops.scale, (x, by)), (ops.gelu, (x,))):
        assert torch.autograd.gradcheck(op, args)
        assert torch.autograd.gradgradcheck(op, args)


def test_second_order_through_a_saved_output():
    x = ramp(50)
    for f, results in ((ops.cus_tanh, found := []), (torch.tanh, expected := [])):
        (dx,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
        results.extend(torch.autograd.grad((dx * x).sum(), x))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_what_has_no_second_gradient_says_so():
    a = ramp(100)
    low, _ = ops.min_max(a, a + 1)
    with pytest.raises(RuntimeError, match="MinMax: saved tensor 0 is neither an input nor an output"):
        (da,) = torch.autograd.grad(low.sum() * 2, a, create_graph=True)
        # The gradient of the gradient is needed for a gradient that depends on `a`.
        low, _ = ops.min_max(a, a + 1)
        (da,) = torch.autograd.grad((low**2).sum(), a, create_graph=True)
        torch.autograd.grad(da.sum(), a)


def test_a_saved_tensor_that_is_changed_is_found():
    x = ramp(100)
    h = x * 1.0
    y = ops.scale(h, h)
    h.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_func_grad_and_vmap():
    x = ramp(5, 7).detach()
    grad, plain = (torch.func.grad(lambda x, f=f: f(x).sum()) for f in (ops.cus_tanh, torch.tanh))
    torch.testing.assert_close(grad(x), plain(x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(torch.func.vmap(ops.cus_tanh)(x), torch.tanh(x))
    torch.testing.assert_close(torch.func.vmap(ops.scale, (0, None))(x, x[0]), x * x[0])


def test_forward_mode_is_refused_by_name():
    x = ramp(5).detach()
    with pytest.raises(RuntimeError, match="CusTanh: there is no forward mode"):
        torch.func.jvp(ops.cus_tanh, (x,), (x,))


def test_autocast_calls_an_op_in_its_own_type():
    x = ramp(50)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert ops.cus_tanh(x.bfloat16()).dtype == torch.float32


def test_a_formula_runs_on_other_devices_and_no_other_op_does():
    x = torch.zeros(3, device="meta")
    assert ops.gelu(x).shape == (3,)
    with pytest.raises(TypeError, match="CusTanh: tensors must be on the CPU, found meta"):
        ops.cus_tanh(x)


def printed(name, arrays, plain=()):
    """The value and the gradients by the text of a formula, which runs on other devices."""
    signature = Signature(my_ops.__ops__[name])
    caller = Caller(my_ops, signature, torch.Tensor, torch.from_dlpack)
    values = (None,) * (len(signature.parameters) - len(plain)) + tuple(plain)
    text = caller.formula(values, "torch", {"torch": torch})
    tensors = [torch.from_numpy(of).requires_grad_(of.dtype != bool) for of in arrays]
    (y,) = _Printed.apply(text, *tensors)
    grads = torch.autograd.grad(y, [of for of in tensors if of.requires_grad], torch.ones_like(y))
    return [of.detach().numpy() for of in (y, *grads)]


# PyTorch's own remainder, where the quotient is beyond the numbers.
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
    x = ramp(10)
    refuse(TypeError, "Shift: `x` must have element type float32, found float64", lambda: ops.shift(x.double()))
    refuse(TypeError, "CusTanh: `x` must have elements of .*, found float16", lambda: ops.cus_tanh(x.half()))
    refuse(TypeError, "CusTanh: `x` must be a tensor, found str", lambda: ops.cus_tanh("a"))
    refuse(ValueError, "Gate: forward failed: `by` must be positive", lambda: ops.gate(ramp(4, 3), ROWS, -1.0))
    refuse(RuntimeError, "Panics: forward panicked: a negative number", lambda: ops.panics(x))
    out, err = capfd.readouterr()
    assert "panicked at" not in out + err


def test_memory_is_flat_and_every_import_is_freed():
    x = ramp(1000)
    assert is_flat(lambda: torch.autograd.grad(ops.scale(x, x).sum(), x))
