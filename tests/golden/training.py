"""Figures for tests/tests/nn/training.rs, made by PyTorch in float64. `python3 training.py >
training.txt`; PyTorch 2.15 made the file here.

Each line: a name, and numbers: the parameter after each of six steps, or the step size of each step.
"""

import torch
from torch.optim import SGD, RMSprop
from torch.optim.lr_scheduler import (
    ChainedScheduler, CosineAnnealingLR, ExponentialLR, LinearLR, SequentialLR, StepLR,
)

torch.set_default_dtype(torch.float64)


def tell(name, numbers):
    print(name, *(repr(x) for x in numbers))


def gradient(step):
    """Multiples of 1/4 from -5/4 to 5/4."""
    return torch.tensor([((7 * i + 3 * step) % 11 - 5) / 4 for i in range(4)])


def steps(name, **options):
    p = torch.tensor([0.5, -1.25, 2.0, 0.0], requires_grad=True)
    optimizer = RMSprop([p], **options)
    found = []
    for t in range(1, 7):
        p.grad = gradient(t)
        optimizer.step()
        found += p.tolist()
    tell(name, found)


steps("rmsprop", lr=0.01)
steps("rmsprop_momentum", lr=0.1, alpha=0.9, momentum=0.8, eps=1e-3)
steps("rmsprop_centered", lr=0.1, alpha=0.7, centered=True, eps=1e-2, weight_decay=0.2)
steps("rmsprop_all", lr=0.1, alpha=0.7, centered=True, momentum=0.5, eps=0.1, weight_decay=0.1)


def rates(name, schedule, count=12, lr=0.1):
    optimizer = SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    schedule = schedule(optimizer)
    found = []
    for _ in range(count):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    tell(name, found)


rates("step", lambda o: StepLR(o, 3, 0.5))
rates("linear", lambda o: LinearLR(o, 1.0, 0.2, 8))
rates("cosine", lambda o: CosineAnnealingLR(o, 11, 0.01))
rates("exponential", lambda o: ExponentialLR(o, 0.9))
rates("then", lambda o: SequentialLR(o, [StepLR(o, 2, 0.5), ExponentialLR(o, 0.9)], [5]))
rates("warm_up", lambda o: SequentialLR(o, [LinearLR(o, 0.25, 1.0, 3), ExponentialLR(o, 0.9)], [3]))
rates("times", lambda o: ChainedScheduler([StepLR(o, 3, 0.5), ExponentialLR(o, 0.9)]))
