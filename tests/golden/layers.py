"""Figures for tests/tests/nn/layers.rs, made by PyTorch in float64. `python3 layers.py >
layers.txt`; PyTorch 2.15 made the file here.

Each line: a name, what it is of, and the numbers: the result, and the gradients of the sum of the
result times given numbers.
"""

import torch
from torch import nn

torch.set_default_dtype(torch.float64)


def numbers(shape, seed):
    """Numbers around 0, the same in every run."""
    n = torch.Size(shape).numel()
    return torch.tensor([(i * 7919 + seed) % 1009 / 252 - 2 for i in range(n)]).reshape(shape)


def tell(name, what, tensor):
    print(name, what, *(repr(x) for x in tensor.detach().reshape(-1).tolist()))


def layer(name, module, *shapes, call=None, steps=1):
    with torch.no_grad():
        for i, parameter in enumerate(module.parameters()):
            parameter.copy_(numbers(parameter.shape, 100 + 31 * i) / 2)
    for step in range(steps):
        inputs = [numbers(shape, 7 + 13 * i + step).requires_grad_() for i, shape in enumerate(shapes)]
        module.zero_grad()
        y = (call or module)(*inputs)
        (y * numbers(y.shape, 29)).sum().backward()
    tell(name, "y", y)
    for i, x in enumerate(inputs):
        tell(name, f"x{i}", x.grad)
    for i, parameter in enumerate(module.parameters()):
        tell(name, f"p{i}", parameter.grad)
    for what, buffer in module.named_buffers():
        tell(name, what, buffer.double())


layer("batch_norm1d", nn.BatchNorm1d(3), (4, 3), steps=2)
layer("batch_norm1d_length", nn.BatchNorm1d(2, eps=1e-2, momentum=0.3), (2, 2, 5), steps=2)
layer("batch_norm1d_eval", nn.BatchNorm1d(2).eval(), (3, 2, 4))
layer("group_norm", nn.GroupNorm(2, 4), (2, 4, 3, 2))
layer("group_norm_flat", nn.GroupNorm(3, 6, eps=1e-2), (3, 6))
layer("instance_norm", nn.GroupNorm(3, 3), (2, 3, 5))
layer("rms_norm", nn.RMSNorm(5), (2, 3, 5))
layer("rms_norm_two_axes", nn.RMSNorm((2, 3), eps=1e-2), (4, 2, 3))
layer("conv1d", nn.Conv1d(2, 3, 3), (2, 2, 7))
layer("conv1d_options", nn.Conv1d(4, 6, 2, stride=2, padding=1, dilation=2, groups=2), (2, 4, 8))
layer("sequential", nn.Sequential(nn.Linear(4, 5), nn.GELU(), nn.Linear(5, 3), nn.LogSoftmax(-1)), (6, 4))

layer("layer_norm", nn.LayerNorm(5), (2, 3, 5))
layer("layer_norm_two_axes", nn.LayerNorm((2, 3), eps=1e-2), (4, 2, 3))
layer("batch_norm2d", nn.BatchNorm2d(2, momentum=0.3), (2, 2, 3, 2), steps=2)
layer("conv2d", nn.Conv2d(4, 6, (2, 3), stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2, bias=False), (2, 4, 5, 6))
activations = [nn.ReLU(), nn.LeakyReLU(0.2), nn.ELU(0.7), nn.SiLU(), nn.Softplus(), nn.Tanh(), nn.Sigmoid(), nn.Softmax(1)]
layer("activations", nn.Sequential(nn.Linear(4, 5), *activations), (6, 4))

mha = nn.MultiheadAttention(6, 2, batch_first=True)
layer("attention", mha, (2, 3, 6), (2, 4, 6), (2, 4, 6), call=lambda q, k, v: mha(q, k, v)[0])
padding = torch.tensor([[False, False, False, True], [False, True, False, False]])
mask = torch.tensor([[False, True, False, False], [False, False, False, False], [True, False, False, False]])
masked = lambda q, k, v: mha(q, k, v, key_padding_mask=padding, attn_mask=mask)[0]
layer("attention_masked", mha, (2, 3, 6), (2, 4, 6), (2, 4, 6), call=masked)
far = torch.tensor([[0.5, 0.0, -1.5, -torch.inf], [0.0, 2.0, 0.0, 0.0]])
added = lambda q, k, v, mask: mha(q, k, v, key_padding_mask=far, attn_mask=mask)[0]
layer("attention_added", mha, (2, 3, 6), (2, 4, 6), (2, 4, 6), (3, 4), call=added)
causal = torch.ones(4, 4, dtype=torch.bool).triu(1)
layer("attention_causal", mha, (2, 4, 6), call=lambda x: mha(x, x, x, attn_mask=causal)[0])
plain = nn.MultiheadAttention(4, 1, bias=False, batch_first=True)
layer("attention_without_bias", plain, (1, 3, 4), call=lambda x: plain(x, x, x, need_weights=False)[0])
