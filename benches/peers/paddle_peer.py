"""Paddle: PyLayer, and its static graph with py_func."""

import os
import sys
import warnings

warnings.filterwarnings("ignore")
# The only mode in which Paddle's py_func runs.
if sys.argv[1:] == ["static"]:
    os.environ["FLAGS_enable_pir_api"] = "0"

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle.autograd import PyLayer

import kit


class CusTanh(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = paddle.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensor()
        return paddle._C_ops.tanh_grad(y, dy)


tanh = CusTanh.apply


def leaf(data):
    return paddle.to_tensor(data, stop_gradient=False)


def array(t):
    return t.numpy()


def gradients(y, seed, *leaves):
    """Runs backward from `y`, a scalar if there is no seed, after clearing the old gradients."""
    for x in leaves:
        x.clear_gradient(False)
    paddle.autograd.backward([y], [seed])
    return [x.grad for x in leaves]


def chain(backward):
    x = leaf(kit.numbers(6, "float64").reshape(2, 3))

    def run():
        y = x
        for _ in range(kit.CHAIN):
            y = tanh(y)
        if not backward:
            return y
        return gradients(y.mean(), None, x)[0]

    return kit.Work(run, array)


def built_in():
    x = leaf(kit.numbers(6).reshape(2, 3))
    a, b = paddle.full([2, 3], 1.02), paddle.full([2, 3], 0.001)

    def run():
        y = x
        for _ in range(kit.CHAIN):
            y = paddle.tanh(y * a + b)
        return gradients(y.mean(), None, x)[0]

    return kit.Work(run, array)


def elementwise(op, n, backward=True):
    x = leaf(kit.numbers(n))
    seed = paddle.ones([n])

    def run():
        y = op(x)
        if not backward:
            return y
        return gradients(y, seed, x)[0]

    return kit.Work(run, array)


def scalars():
    x = leaf(kit.numbers(kit.ELEMENTWISE))
    a, b, c = kit.ABC

    def run():
        return gradients((F.relu(x * a + b) * c).sum(), None, x)[0]

    return kit.Work(run, array)


def tensors():
    x = leaf(kit.numbers(kit.ELEMENTWISE))
    a, b, c = (leaf(np.full(kit.ELEMENTWISE, v, "float32")) for v in kit.ABC)

    def run():
        return gradients((F.relu(x * a + b) * c).sum(), None, x, a, b, c)

    return kit.Work(run, lambda grads: array(grads[0] + grads[1]))


def product(m, k, n, dtype="float32"):
    a = leaf(kit.numbers(m * k, dtype).reshape(m, k))
    b = leaf(kit.numbers(k * n, dtype).reshape(k, n))
    seed = paddle.ones([m, n], dtype)

    def run():
        return gradients(paddle.matmul(a, b), seed, a, b)

    return kit.Work(run, lambda grads: np.concatenate([array(g).ravel() for g in grads]))


def step():
    parameters = [(leaf(w), leaf(b)) for w, b in kit.weights(kit.WIDTHS)]
    flat = [p for pair in parameters for p in pair]
    sgd = paddle.optimizer.SGD(kit.RATE, parameters=flat)
    x = paddle.to_tensor(kit.numbers(kit.BATCH * kit.WIDTHS[0]).reshape(kit.BATCH, -1))
    y = paddle.to_tensor(kit.classes(kit.BATCH, kit.WIDTHS[3]))

    def run():
        hidden = x
        for i, (w, b) in enumerate(parameters):
            hidden = F.linear(hidden, w, b)
            if i < 2:
                hidden = tanh(hidden)
        loss = F.cross_entropy(hidden, y)
        loss.backward()
        sgd.step()
        sgd.clear_grad(False)
        return float(loss)

    return kit.three_steps(run)


def scalar_chain(n):
    if n > 1_000_000:
        return None
    x = leaf(np.ones((), "float64"))
    a, b = (paddle.to_tensor(np.asarray(v)) for v in kit.SCALARS)

    def run():
        y = x
        for i in range(n):
            y = y * a if i % 2 == 0 else y + b
        return gradients(y, None, x)[0]

    return kit.Work(run, array)


def memory():
    n, ops = kit.MEMORY
    x = leaf(kit.numbers(n))
    seed = paddle.ones([n])

    def run():
        y = x
        for _ in range(ops):
            y = tanh(y)
        return gradients(y, seed, x)[0]

    return kit.Work(run, lambda grad: array(grad)[:64])


def fan_out():
    x = leaf(kit.numbers(6))

    def run():
        total = x * 0.5
        for _ in range(1, kit.USES):
            total = total + x * 0.5
        return gradients(total.sum(), None, x)[0]

    return kit.Work(run, array)


def net(train):
    """The document's net: 4 -> 4 x (200, user's tanh) -> 10."""
    paddle.enable_static()
    widths = (4, 200, 200, 200, 200, 10)
    startup, main = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        x = paddle.static.data("x", [None, 4], "float32")
        y = paddle.static.data("y", [None, 1], "int64")
        hidden = x
        for i, (w, b) in enumerate(kit.weights(widths)):
            hidden = paddle.static.nn.fc(
                hidden,
                widths[i + 1],
                weight_attr=paddle.nn.initializer.Assign(w),
                bias_attr=paddle.nn.initializer.Assign(b),
            )
            if i < 4:
                out = main.current_block().create_var(
                    name=f"h{i}", dtype="float32", shape=hidden.shape
                )
                hidden = paddle.static.py_func(
                    func=lambda x: np.tanh(np.array(x)),
                    x=hidden,
                    out=out,
                    backward_func=lambda y, dy: np.array(dy) * (1 - np.square(np.array(y))),
                    skip_vars_in_backward_input=hidden,
                )
        loss = F.cross_entropy(hidden, y)
        if train:
            paddle.optimizer.SGD(1e-6).minimize(loss)
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(startup)
    feed = {"x": kit.numbers(40).reshape(10, 4), "y": np.arange(10, dtype="int64")[:, None]}
    return kit.Work(lambda: executor.run(main, feed=feed, fetch_list=[loss])[0], lambda loss: loss)


def integers():
    paddle.enable_static()
    startup, main = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        x = paddle.static.data("x", [2, 3], "int32")
        y = paddle.static.data("y", [2, 3], "int32")
        out = main.current_block().create_var(name="sum", dtype="int32", shape=[2, 3])
        paddle.static.py_func(func=lambda x, y: np.array(x) + np.array(y), x=[x, y], out=out)
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(startup)
    feed = {
        "x": np.array([[1, 2, 3], [4, 5, 6]], "int32"),
        "y": np.array([[7, 8, 9], [1, 2, 3]], "int32"),
    }
    return kit.Work(lambda: executor.run(main, feed=feed, fetch_list=[out])[0], lambda sum: sum)


def rows(row):
    if row == "W1" or row.startswith("W1-"):
        return chain("forward" not in row)
    if row.startswith("W3-formula"):
        return elementwise(paddle.tanh, kit.size(row))
    if row.startswith("W3-"):
        return elementwise(tanh, kit.size(row), "forward" not in row)
    if row.startswith("W5-f64-"):
        return product(*[kit.size(row)] * 3, dtype="float64")
    if row == "W5-row":
        return product(1, 784, 128)
    if row.startswith("W5-"):
        return product(*[kit.size(row)] * 3)
    if row.startswith("W7-"):
        return scalar_chain(kit.size(row))
    others = {
        "W2": built_in,
        "W4-scalars": scalars,
        "W4-formula": scalars,
        "W4-tensors": tensors,
        "W6": step,
        "W8": memory,
        "W9": fan_out,
        "gelu": lambda: elementwise(lambda x: F.gelu(x, approximate=True), 1_000_000),
    }
    return others[row]() if row in others else None


def static_rows(row):
    others = {"W11-forward": lambda: net(False), "W11-step": lambda: net(True)}
    others["W11-add"] = integers
    return others[row]() if row in others else None


if sys.argv[1:] == ["first"]:
    data = paddle.randn([2, 3], "float64")
    data.stop_gradient = False
    tanh(data).mean().backward()
    print(data.grad)
else:
    kit.serve(static_rows if sys.argv[1:] == ["static"] else rows)
