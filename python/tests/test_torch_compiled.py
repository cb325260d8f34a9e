"""Ops of PyTorch under its compilers, in other processes and on other threads."""

import os
import socket
import subprocess
import sys
import threading

import my_ops
import pytest
import torch
from autograd_bridge.torch import bind
from test_torch import PAIRS, ROWS, ramp, refuse

ops = bind(my_ops)


@pytest.fixture(autouse=True)
def nothing_is_compiled():
    torch.compiler.reset()


def results(f, args):
    y = f(*args)
    return [y, *torch.autograd.grad((y * y).sum(), args)]


@pytest.mark.parametrize("name", PAIRS)
def test_a_whole_graph_equals_eager_calls(name):
    op, _, shapes = PAIRS[name]
    args = [ramp(*shape) for shape in shapes]
    compiled = torch.compile(lambda *args: op(*(of * 2 for of in args)) + 1, backend="aot_eager", fullgraph=True)
    found = results(compiled, args)
    for of, expected in zip(found, results(lambda *args: op(*(of * 2 for of in args)) + 1, args)):
        torch.testing.assert_close(of, expected)


def test_what_was_compiled_for_one_op_is_not_used_for_another():
    x = ramp(50)
    for op in (ops.cus_tanh, ops.shift, ops.gelu):
        compiled = torch.compile(lambda x: op(x), backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), op(x))


@pytest.mark.parametrize("op", [ops.cus_tanh, ops.gelu])
def test_the_default_compiler(op):
    x = ramp(50)
    found = results(torch.compile(lambda x: op(x * 2) + 1, fullgraph=True), [x])
    for of, expected in zip(found, results(lambda x: op(x * 2) + 1, [x])):
        torch.testing.assert_close(of, expected)


@pytest.mark.parametrize("name", ["cus_tanh", "gelu", "scale"])
def test_dynamic_shapes(name):
    op, _, shapes = PAIRS[name]
    compiled = torch.compile(lambda *args: op(*args), backend="aot_eager", fullgraph=True, dynamic=True)
    for length in (5, 9, 1000):
        args = [ramp(length) for _ in shapes]
        for of, expected in zip(results(compiled, args), results(op, args)):
            torch.testing.assert_close(of, expected)


class Model(torch.nn.Module):
    def __init__(self, op):
        super().__init__()
        self.op = op

    def forward(self, x):
        return self.op(x) * 2


def exported(op, strict):
    length = torch.export.Dim("length", min=2)
    return torch.export.export(Model(op), (ramp(3, 5).detach(),), dynamic_shapes=({0: length},), strict=strict)


@pytest.mark.parametrize("strict", [False, True])
def test_a_program_is_exported_for_all_lengths(strict):
    for op in (ops.cus_tanh, ops.gelu):
        program = exported(op, strict).module()
        for length in (2, 7):
            x = ramp(length, 5).detach()
            torch.testing.assert_close(program(x), op(x) * 2)
    refuse(Exception, "Shift: lengths that are symbols need an op with a `shapes", lambda: exported(ops.shift, strict))


def test_compiled_transforms_equal_eager_ones_or_are_refused():
    x = ramp(5, 7).detach()
    for transform in (lambda f: torch.func.grad(lambda x: f(x).sum()), lambda f: torch.func.vmap(f)):
        for op in (ops.cus_tanh, ops.gelu):
            compiled = torch.compile(lambda x: transform(op)(x), backend="aot_eager", fullgraph=True)
            torch.testing.assert_close(compiled(x), transform(op)(x))
    for op, name in ((ops.cus_tanh, "CusTanh"), (ops.gelu, "Gelu")):
        jvp = torch.compile(lambda x: torch.func.jvp(op, (x,), (x,)), backend="aot_eager")
        refuse(Exception, f"{name}: there is no forward mode", lambda: jvp(x))


def test_the_library_ops_pass_the_checks_of_pytorch():
    x = ramp(4, 3).detach()
    for op, tensors, call in (
        ("CusTanh", [x], "[[0], [null], [true]]"),
        ("Gate", [x, ROWS], "[[0, 0, null], [null, null, 2.0], [true, false]]"),
    ):
        library = getattr(torch.ops.my_ops, op).default
        torch.library.opcheck(library, (tensors, call))
        grads = [torch.ones_like(of) for of in library(tensors, call)]
        torch.library.opcheck(getattr(torch.ops.my_ops, f"{op}_backward").default, (tensors, grads, call))


def test_errors_of_a_compiled_call_are_those_of_the_op():
    compiled = torch.compile(lambda x, by: ops.gate(x, ROWS, by), backend="aot_eager", fullgraph=True)
    x = ramp(4, 3)
    refuse(Exception, "Gate: forward failed: `by` must be positive", lambda: compiled(x, -1.0))
    refuse(Exception, "Gate: `by` must be a number, found 'a'", lambda: compiled(x, "a"))
    compiled = torch.compile(lambda x: ops.panics(x), backend="aot_eager", fullgraph=True)
    refuse(RuntimeError, "Panics: forward panicked: a negative number", lambda: compiled(x))
    compiled = torch.compile(lambda x: ops.positive(x), backend="aot_eager", fullgraph=True)
    refuse(ValueError, "Positive: forward failed: `x` must be positive", lambda: compiled(x))
    torch.testing.assert_close(compiled(x + 3), torch.log(x + 3))


def test_a_compiled_backward_with_random_numbers_is_refused():
    x = ramp(50)
    y = ops.noisy(x, 2.0)
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], y / x)
    compiled = torch.compile(lambda x: ops.noisy(x, 2.0), backend="aot_eager", fullgraph=True)
    refuse(RuntimeError, "Noisy: what is compiled runs forward again", lambda: compiled(x).sum().backward())


def test_backward_on_other_threads():
    x = ramp(100_000)
    expected = torch.autograd.grad(torch.tanh(x).sum(), x)[0]
    outputs = [ops.cus_tanh(x).sum() for _ in range(8)]
    found = [None] * 8

    def run(i):
        found[i] = torch.autograd.grad(outputs[i], x)[0]

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    for of in found:
        torch.testing.assert_close(of, expected, rtol=1e-4, atol=1e-5)


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, at):
        # Large enough for threads.
        return ops.cus_tanh(torch.full((2_000_000,), at / 8)).mean()


def test_a_data_loader_forks():
    # The threads of this process are not in its children.
    expected = torch.stack([Samples()[at] for at in range(8)])
    loader = torch.utils.data.DataLoader(Samples(), batch_size=4, num_workers=2, multiprocessing_context="fork", timeout=60)
    torch.testing.assert_close(torch.cat(list(loader)), expected)


RANK = """
import os, sys
import my_ops, torch
import torch.distributed as dist
from autograd_bridge.torch import bind
ops = bind(my_ops)
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(8, 32), torch.nn.Linear(32, 1)

    def forward(self, x):
        return self.b(ops.gelu(ops.cus_tanh(self.a(x))))

model = Model()
parallel = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
inputs = torch.randn(16, 8)
for _ in range(3):
    optimizer.zero_grad()
    parallel(inputs[8 * rank : 8 * rank + 8]).square().mean().backward()
    optimizer.step()
mine = torch.cat([of.detach().flatten() for of in model.parameters()])
others = [torch.empty_like(mine) for _ in range(2)]
dist.all_gather(others, mine)
assert torch.equal(others[0], others[1])
torch.manual_seed(0)
alone = Model()
optimizer = torch.optim.SGD(alone.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    alone(inputs).square().mean().backward()
    optimizer.step()
torch.testing.assert_close(mine, torch.cat([of.detach().flatten() for of in alone.parameters()]), rtol=1e-4, atol=1e-5)
print("equal")
dist.destroy_process_group()
"""


def test_two_processes_train_as_one():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE="2", OMP_NUM_THREADS="1")
    start = lambda rank: subprocess.Popen(
        [sys.executable, "-c", RANK], env=dict(env, RANK=str(rank)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for process in [start(rank) for rank in range(2)]:
        out, err = process.communicate(timeout=120)
        assert out == "equal\n", err
