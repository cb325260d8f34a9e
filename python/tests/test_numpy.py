"""Ops on arrays of NumPy: layouts, gradients, errors, memory, threads."""

import gc
import threading
import time

import my_ops
import numpy as np
import pytest
from autograd_bridge.numpy import bind
from memory import is_flat

ops = bind(my_ops)


def layouts():
    base = np.linspace(-2, 2, 720, dtype=np.float32).reshape(8, 9, 10)
    read_only = base.copy()
    read_only.flags.writeable = False
    unaligned = np.frombuffer(b"\0" + base.tobytes(), np.uint8)[1:].view(np.float32).reshape(base.shape)
    swapped = base.astype(">f4")
    return {
        "whole": base,
        "transposed": base.transpose(2, 0, 1),
        "step": base[::2, 1:, ::3],
        "negative": base[::-1, :, ::-2],
        "broadcast": np.broadcast_to(base[0, 0], (6, 10)),
        "small": base[0, 0, :3],
        "empty": base[:, :0],
        "scalar": np.float32(0.5),
        "no axes": np.array(0.5, np.float32),
        "read-only": read_only,
        "unaligned": unaligned,
        "other bytes": swapped,
        "a number": 0.5,
        "a list": [0.5, 1.0],
    }


@pytest.mark.parametrize("layout", layouts())
def test_every_layout_is_read(layout):
    x = layouts()[layout]
    y, kept = ops.cus_tanh.forward(x)
    expected = np.tanh(np.asarray(x, np.float32))
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    assert y.shape == expected.shape and y.dtype == np.float32
    dy = np.ones_like(expected)
    (dx,) = ops.cus_tanh.backward(kept, dy)
    np.testing.assert_allclose(dx, 1 - expected**2, atol=1e-6)


def test_large_arrays_are_not_copied():
    x = np.zeros((100, 100), np.float32)
    before = my_ops.live_imports()
    y, kept = ops.scale.forward(x, x)
    # Both inputs are saved, by NumPy itself.
    assert kept.saved[0] is x and kept.saved[1] is x and my_ops.live_imports() == before
    y[0, 0] = 7.0
    assert y.flags.writeable and x[0, 0] == 0.0


def test_all_forms_of_ops():
    x = np.arange(12, dtype=np.float32).reshape(4, 3) / 12
    rows = np.array([3, 1, 3], np.int32)
    np.testing.assert_allclose(ops.gate(x, rows), (2 * x[rows]) ** 2, rtol=1e-6)
    y, kept = ops.gate.forward(x, rows, by=3.0)
    np.testing.assert_allclose(y, (3 * x[rows]) ** 2, rtol=1e-6)
    dx, drows = ops.gate.backward(kept, np.ones_like(y))
    expected = np.zeros_like(x)
    np.add.at(expected, rows, 18 * x[rows])
    np.testing.assert_allclose(dx, expected, rtol=1e-5)
    assert drows is None
    total, kept = ops.total.forward([x, x, 2 * x])
    np.testing.assert_allclose(total, 4 * x)
    assert [of.shape for of in ops.total.backward(kept, x)] == [(4, 3)] * 3
    (low, high), kept = ops.min_max.forward(x, 1 - x)
    np.testing.assert_array_equal(low + high, np.ones_like(x))
    da, db = ops.min_max.backward(kept, None, x)
    np.testing.assert_allclose(da + db, x)
    np.testing.assert_allclose(ops.shift(x), x + 1)
    np.testing.assert_allclose(ops.shift(x, x), 2 * x)
    y, kept = ops.shift.forward(x, by=x)
    assert ops.shift.backward(kept, x, needs=[True, False])[1] is None
    for dtype in (np.float32, np.float64):
        y, kept = ops.scale.forward(x.astype(dtype), x.astype(dtype))
        assert y.dtype == dtype and ops.scale.backward(kept, y)[0].dtype == dtype
        y, kept = ops.gelu.forward(x.astype(dtype))
        step = 1e-3
        slope = (ops.gelu(x.astype(dtype) + step) - ops.gelu(x.astype(dtype) - step)) / (2 * step)
        np.testing.assert_allclose(ops.gelu.backward(kept, np.ones_like(y))[0], slope, atol=1e-3)
        # Where the cube of the formula would overflow.
        y, kept = ops.gelu.forward(np.array([-1e30, 1e30], dtype))
        np.testing.assert_array_equal(ops.gelu.backward(kept, np.ones_like(y))[0], [0, 1])


BAD = [
    (TypeError, "Shift: `x` must have element type float32, found float64", lambda: ops.shift(np.zeros(3))),
    (TypeError, "CusTanh: `x` must have elements of .*, found complex64", lambda: ops.cus_tanh(np.zeros(3, np.complex64))),
    (TypeError, "CusTanh: `x` must be a tensor, found str", lambda: ops.cus_tanh("a")),
    (TypeError, "CusTanh: `x` is missing", lambda: ops.cus_tanh()),
    (TypeError, "CusTanh: expected 1 arguments, found 2", lambda: ops.cus_tanh(1, 2)),
    (TypeError, "CusTanh: there is no parameter `y`; there are `x`", lambda: ops.cus_tanh(1, y=1)),
    (TypeError, "Gate: `by` must be a number, found 'a'", lambda: ops.gate(np.zeros((2, 2), np.float32), np.zeros(1, np.int32), "a")),
    (ValueError, "Gate: forward failed: `by` must be positive", lambda: ops.gate(np.zeros((2, 2), np.float32), np.zeros(1, np.int32), -1)),
    (RuntimeError, "Gate: forward panicked: .*index", lambda: ops.gate(np.zeros((2, 2), np.float32), np.array([9], np.int32))),
    (TypeError, r"Total: `xs\[1\]` must have element type float32", lambda: ops.total([np.zeros(2, np.float32), np.zeros(2)])),
    (TypeError, "Total: `xs` must be a list of tensors, found int", lambda: ops.total(1)),
    (RuntimeError, "Panics: forward panicked: a negative number", lambda: ops.panics(np.array([-1], np.float32))),
    (ValueError, "Positive: forward failed: `x` must be positive", lambda: ops.positive(np.array([-1], np.float32))),
    (ValueError, "Scale", lambda: ops.scale(np.zeros(3, np.int64), np.zeros(3, np.int64))),
    (ValueError, "CusTanh: the gradient of an output must be of", lambda: ops.cus_tanh.backward(ops.cus_tanh.forward(np.zeros(3, np.float32))[1], np.zeros(4, np.float32))),
    (ValueError, "CusTanh: expected 1 gradient", lambda: ops.cus_tanh.backward(ops.cus_tanh.forward(np.zeros(3, np.float32))[1])),
    (AttributeError, "there is no op `tanh`; there are cus_tanh", lambda: ops.tanh),
]


@pytest.mark.parametrize("at", range(len(BAD)))
def test_bad_input_is_an_error_that_names_op_and_parameter(at, capfd):
    kind, words, call = BAD[at]
    with pytest.raises(kind, match=words):
        call()
    out, err = capfd.readouterr()
    assert (out, err) == ("", ""), "a panic prints nothing"


def test_a_tensor_that_an_op_keeps_stays():
    ops.keeps(np.full(1000, 7, np.float32))
    gc.collect()
    junk = [np.full(1000, i, np.float32) for i in range(20)]
    np.testing.assert_array_equal(ops.keeps(junk[0]), np.full(1000, 7, np.float32))
    ops.keeps(np.zeros(1, np.float32))


def test_memory_is_flat_and_every_import_is_freed():
    x = np.ones(1000, np.float32)

    def call():
        y, kept = ops.scale.forward(x, x)
        ops.scale.backward(kept, y)

    assert is_flat(call)


def test_the_lock_of_the_interpreter_is_free():
    """Another thread runs Python while an op computes."""
    x = np.linspace(-1, 1, 20_000_000, dtype=np.float32)
    stamps, done = [], threading.Event()

    def other():
        while not done.is_set():
            stamps.append(time.perf_counter())
            time.sleep(0.0005)

    thread = threading.Thread(target=other)
    thread.start()
    start = time.perf_counter()
    ops.cus_tanh(x)
    end = time.perf_counter()
    done.set()
    thread.join()
    within = [stamp for stamp in stamps if start + 0.3 * (end - start) < stamp < end - 0.3 * (end - start)]
    assert within, (start, end, stamps)
