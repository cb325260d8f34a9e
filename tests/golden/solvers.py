"""Figures for tests/tests/engine/solver_figures.rs, by PyTorch in float64: `python3 solvers.py > solvers.txt`;
PyTorch 2.15 made the file here.

The steps of each solver are differentiated, by reverse mode, twice. Each line: the solver, what it is of, and the
numbers: the solution `y`, the gradients `x0`, `x1`.. of its sum with weights, and the gradients `xx0`, `xx1`.. of
the sum of their squares.
"""

import torch

torch.set_default_dtype(torch.float64)


def fixed_point(w, b):
    x = torch.zeros(3)
    for _ in range(300):
        x = torch.tanh(w @ x + b)
    return x


def custom_root(a):
    """x² + y² = r and x y = s, by Newton's method."""
    x, y = torch.tensor(2.5), torch.tensor(0.5)
    for _ in range(30):
        f, g = x * x + y * y - a[0], x * y - a[1]
        det = 2 * (x * x - y * y)
        x, y = x - (x * f - 2 * y * g) / det, y - (2 * x * g - y * f) / det
    return torch.stack([x, y])


def odeint(y, times, rates):
    """Predators and prey whose rates depend on time, by the classical method of Runge and Kutta."""
    def slope(t, y):
        return y * rates[:2] * (1 + 0.1 * torch.sin(t)) + y.prod() * rates[2:]
    solution = [y]
    for start, end in zip(times, times[1:]):
        steps = 1500
        h = (end - start) / steps
        for i in range(steps):
            t = start + h * i
            a = slope(t, y)
            b = slope(t + h / 2, y + a * h / 2)
            c = slope(t + h / 2, y + b * h / 2)
            y = y + (a + 2 * b + 2 * c + slope(t + h, y + c * h)) * h / 6
        solution.append(y)
    return torch.stack(solution)


def case(solver, *inputs):
    inputs = [torch.tensor(x).requires_grad_() for x in inputs]
    y = solver(*inputs)
    weights = torch.tensor([1.0, -0.5, 2.0]).repeat(y.numel())[: y.numel()].reshape(y.shape)
    grads = torch.autograd.grad((y * weights).sum(), inputs, create_graph=True)
    second = torch.autograd.grad(sum(grad.square().sum() for grad in grads), inputs)
    lines = [("y", y), *((f"x{i}", x) for i, x in enumerate(grads)), *((f"xx{i}", x) for i, x in enumerate(second))]
    for what, numbers in lines:
        print(solver.__name__, what, *(repr(x) for x in numbers.detach().reshape(-1).tolist()))


case(fixed_point, [[0.3, -0.4, 0.1], [0.2, 0.5, -0.3], [0.0, 0.25, -0.6]], [0.5, -0.2, 0.1])
case(custom_root, [5.0, 2.0])
case(odeint, [1.0, 0.5], [0.0, 1.0, 2.5], [0.6, -0.4, -0.5, 0.3])
