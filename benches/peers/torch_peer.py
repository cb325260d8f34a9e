"""PyTorch. The custom op saves its output, and its backward calls the built-in rule if there is one,
which is the fastest way in Python."""

import sys

import torch
import torch.nn.functional as F

import kit

torch.set_num_threads(kit.THREADS)


class CusTanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        return torch.ops.aten.tanh_backward(dy, y)


tanh = CusTanh.apply


def leaf(data):
    return torch.from_numpy(data).clone().requires_grad_()


def array(t):
    return t.detach().numpy()


def gradients(*leaves):
    grads = [x.grad for x in leaves]
    for x in leaves:
        x.grad = None
    return grads


def chain(backward):
    x = leaf(kit.numbers(6, "float64").reshape(2, 3))

    def run():
        y = x
        for _ in range(kit.CHAIN):
            y = tanh(y)
        if not backward:
            return y
        y.mean().backward()
        return gradients(x)[0]

    return kit.Work(run, array)


def built_in():
    x = leaf(kit.numbers(6).reshape(2, 3))
    a, b = torch.full((2, 3), 1.02), torch.full((2, 3), 0.001)

    def run():
        y = x
        for _ in range(kit.CHAIN):
            y = torch.tanh(y * a + b)
        y.mean().backward()
        return gradients(x)[0]

    return kit.Work(run, array)


def elementwise(op, n, backward=True):
    x = leaf(kit.numbers(n))
    seed = torch.ones(n)

    def run():
        y = op(x)
        if not backward:
            return y
        y.backward(seed)
        return gradients(x)[0]

    return kit.Work(run, array)


def moves(row):
    side = kit.SIDE
    x = leaf(kit.numbers(side * side).reshape(side, side))
    other, seed = x.detach() * 0.5, x.detach() ** 2 * 0.25
    mask = other > 0
    columns = torch.from_numpy(kit.places(side))
    index = torch.from_numpy(kit.places(side * side).reshape(side, side))
    op = {
        "select": lambda: x.index_select(1, columns),
        "gather": lambda: x.gather(1, index),
        "flip": lambda: x.flip(1),
        "cumsum": lambda: x.cumsum(1),
        "where": lambda: torch.where(mask, x, other),
        "softmax": lambda: F.log_softmax(x, 1),
        "norm": lambda: F.layer_norm(x, (side,)),
    }[row]

    def run():
        op().backward(seed)
        return gradients(x)[0]

    return kit.Work(run, array)


def conv():
    x, w = leaf(kit.tensor(kit.PICTURES)), leaf(kit.tensor(kit.KERNELS, 0.05))
    seed = torch.from_numpy(kit.tensor(kit.MAPS))

    def run():
        F.conv2d(x, w, padding=1).backward(seed)
        return gradients(x, w)

    return kit.Work(run, lambda grads: torch.cat([g.ravel() for g in grads]).numpy())


def pool():
    x = leaf(kit.tensor(kit.MAPS))
    seed = F.max_pool2d(x, 2).detach() * 0.25

    def run():
        F.max_pool2d(x, 2).backward(seed)
        return gradients(x)[0]

    return kit.Work(run, array)


def scalars():
    x = leaf(kit.numbers(kit.ELEMENTWISE))
    a, b, c = kit.ABC

    def run():
        ((x * a + b).relu() * c).sum().backward()
        return gradients(x)[0]

    return kit.Work(run, array)


def tensors():
    x = leaf(kit.numbers(kit.ELEMENTWISE))
    a, b, c = (torch.full((kit.ELEMENTWISE,), v).requires_grad_() for v in kit.ABC)

    def run():
        ((x * a + b).relu() * c).sum().backward()
        return gradients(x, a, b, c)

    return kit.Work(run, lambda grads: array(grads[0] + grads[1]))


def product(m, k, n, dtype="float32"):
    a = leaf(kit.numbers(m * k, dtype).reshape(m, k))
    b = leaf(kit.numbers(k * n, dtype).reshape(k, n))
    seed = torch.ones(m, n, dtype=a.dtype)

    def run():
        (a @ b).backward(seed)
        return gradients(a, b)

    return kit.Work(run, lambda grads: torch.cat([g.ravel() for g in grads]).numpy())


def step():
    parameters = [(leaf(w), leaf(b)) for w, b in kit.weights(kit.WIDTHS)]
    flat = [p for pair in parameters for p in pair]
    sgd = torch.optim.SGD(flat, lr=kit.RATE, foreach=False)
    x = torch.from_numpy(kit.numbers(kit.BATCH * kit.WIDTHS[0]).reshape(kit.BATCH, -1))
    y = torch.from_numpy(kit.classes(kit.BATCH, kit.WIDTHS[3]))

    def run():
        hidden = x
        for i, (w, b) in enumerate(parameters):
            hidden = torch.addmm(b, hidden, w)
            if i < 2:
                hidden = tanh(hidden)
        loss = F.cross_entropy(hidden, y)
        loss.backward()
        sgd.step()
        sgd.zero_grad()
        return loss.item()

    return kit.three_steps(run)


def scalar_chain(n):
    if n > 1_000_000:
        return None
    x = torch.ones((), dtype=torch.float64, requires_grad=True)
    a, b = (torch.tensor(v, dtype=torch.float64) for v in kit.SCALARS)

    def run():
        y = x
        for i in range(n):
            y = y * a if i % 2 == 0 else y + b
        y.backward()
        return gradients(x)[0]

    return kit.Work(run, array)


def memory():
    n, ops = kit.MEMORY
    x = leaf(kit.numbers(n))
    seed = torch.ones(n)

    def run():
        y = x
        for _ in range(ops):
            y = tanh(y)
        y.backward(seed)
        return gradients(x)[0]

    return kit.Work(run, lambda grad: array(grad)[:64])


def fan_out():
    x = leaf(kit.numbers(6))

    def run():
        total = x * 0.5
        for _ in range(1, kit.USES):
            total = total + x * 0.5
        total.sum().backward()
        return gradients(x)[0]

    return kit.Work(run, array)


def rows(row):
    if row == "W1" or row.startswith("W1-"):
        return chain("forward" not in row)
    if row.startswith("W3-formula"):
        return elementwise(torch.tanh, kit.size(row))
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
    if row in ("select", "gather", "flip", "cumsum", "where", "softmax", "norm"):
        return moves(row)
    others = {
        "W2": built_in,
        "W4-scalars": scalars,
        "W4-formula": scalars,
        "W4-tensors": tensors,
        "W6": step,
        "W8": memory,
        "W9": fan_out,
        "conv": conv,
        "pool": pool,
        "gelu": lambda: elementwise(lambda x: F.gelu(x, approximate="tanh"), 1_000_000),
    }
    return others[row]() if row in others else None


if sys.argv[1:] == ["first"]:
    data = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    tanh(data).mean().backward()
    print(data.grad)
else:
    kit.serve(rows)
