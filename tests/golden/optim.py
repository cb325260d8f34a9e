"""Figures for tests/tests/optim.rs and nn.rs: the formulas of PyTorch's documentation in NumPy,
in float64. `python3 optim.py > optim.txt`; NumPy 2.4 made the file here.

Each line: a name, a step, and the numbers then. Gradients are given, so that nothing but the
formula counts.
"""

import numpy as np

START = np.array([0.5, -1.25, 2.0, 0.0])


def gradient(step):
    """Multiples of 1/4 from -5/4 to 5/4."""
    return np.array([((7 * i + 3 * step) % 11 - 5) / 4 for i in range(4)])


def sgd(lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False):
    p, b = START.copy(), None
    for t in range(1, 7):
        g = gradient(t) + weight_decay * p
        if momentum != 0:
            b = g if b is None else momentum * b + (1 - dampening) * g
            g = g + momentum * b if nesterov else b
        p = p - lr * g
        yield p


def adam(lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, decoupled=False):
    p, m, v = START.copy(), np.zeros(4), np.zeros(4)
    for t in range(1, 7):
        g = gradient(t)
        if decoupled:
            p = p - lr * weight_decay * p
        else:
            g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * np.square(g)
        m_hat = m / (1 - betas[0] ** t)
        v_hat = v / (1 - betas[1] ** t)
        p = p - lr * m_hat / (np.sqrt(v_hat) + eps)
        yield p


def tell(name, steps):
    for t, numbers in enumerate(steps, 1):
        print(name, t, *(repr(float(x)) for x in np.ravel(numbers)))


tell("sgd", sgd(0.1))
tell("sgd_weight_decay", sgd(0.1, weight_decay=0.3))
tell("sgd_momentum", sgd(0.1, momentum=0.9))
tell("sgd_dampening", sgd(0.1, momentum=0.9, dampening=0.4, weight_decay=0.1))
tell("sgd_nesterov", sgd(0.1, momentum=0.8, weight_decay=0.1, nesterov=True))
tell("adam", adam(0.01))
tell("adam_all", adam(0.1, betas=(0.7, 0.95), eps=0.01, weight_decay=0.2))
tell("adamw", adam(0.01, weight_decay=0.01, decoupled=True))
tell("adamw_all", adam(0.1, betas=(0.7, 0.95), eps=0.01, weight_decay=0.5, decoupled=True))

# Two batches of pictures [2, 2, 2, 3], then one that is normalised by what was collected.
pictures = [np.array([((5 * i + 3 * t) % 13 - 4) / 8 for i in range(24)]).reshape(2, 2, 2, 3) for t in range(3)]
weight, bias, eps, momentum = np.array([1.5, -0.5]), np.array([0.25, 2.0]), 1e-5, 0.1
column = lambda x: x.reshape(2, 1, 1)
mean, var = np.zeros(2), np.ones(2)
outputs, means, variances = [], [], []
for x in pictures[:2]:
    batch_mean, batch_var = x.mean((0, 2, 3)), x.var((0, 2, 3))
    y = (x - column(batch_mean)) / np.sqrt(column(batch_var) + eps)
    outputs.append(y * column(weight) + column(bias))
    mean = (1 - momentum) * mean + momentum * batch_mean
    var = (1 - momentum) * var + momentum * x.var((0, 2, 3), ddof=1)
    means.append(mean)
    variances.append(var)
y = (pictures[2] - column(mean)) / np.sqrt(column(var) + eps)
outputs.append(y * column(weight) + column(bias))
tell("batch_norm", outputs)
tell("batch_norm_mean", means)
tell("batch_norm_var", variances)

x = pictures[0]
weight = np.arange(6).reshape(2, 3) / 4
bias = 1 - weight
y = (x - x.mean((2, 3), keepdims=True)) / np.sqrt(x.var((2, 3), keepdims=True) + eps)
tell("layer_norm", [y * weight + bias])
