"""What becomes of each way of misuse in PyTorch and in Paddle, for the table in docs/misuse.md.

`python3 misuse.py > misuse.txt`; PyTorch 2.15.0 and Paddle 3.3.1 on the CPU made the file here.
Each function below commits one misuse in a process of its own. It returns True where all works as
meant and False where nothing is told and the result is wrong or the mistake unseen; an exception is
'error' before backward starts and 'error in backward' after.
"""

import os
import signal
import sys
import traceback

FRAMEWORKS = ["torch", "paddle"]
VERBOSE = "-v" in sys.argv


class Torch:
    def __init__(self):
        import torch

        self.m, self.Base, self.name = torch, torch.autograd.Function, f"PyTorch {torch.__version__.split('+')[0]}"

    def tensor(self, data, dtype="float64"):
        return self.m.tensor(data, dtype=getattr(self.m, dtype))

    def leaf(self, data, dtype="float64"):
        return self.tensor(data, dtype).requires_grad_(True)

    def saved(self, ctx):
        return ctx.saved_tensors

    def cast(self, x, dtype):
        return x.to(getattr(self.m, dtype))

    def hook(self, x, f):
        return x.register_hook(f)

    def fill(self, x, value):
        with self.m.no_grad():
            x.fill_(value)

    def seeded(self, y, seed):
        y.backward(seed)

    def first(self, y, x):
        return self.m.autograd.grad(y.sum(), x, create_graph=True)[0]

    def hooks(self, pack, unpack):
        return self.m.autograd.graph.saved_tensors_hooks(pack, unpack)


class Paddle:
    def __init__(self):
        import paddle

        self.m, self.Base, self.name = paddle, paddle.autograd.PyLayer, f"Paddle {paddle.__version__}"

    def tensor(self, data, dtype="float64"):
        return self.m.to_tensor(data, dtype=dtype)

    def leaf(self, data, dtype="float64"):
        return self.m.to_tensor(data, dtype=dtype, stop_gradient=False)

    def saved(self, ctx):
        return ctx.saved_tensor()

    def cast(self, x, dtype):
        return x.astype(dtype)

    def hook(self, x, f):
        return x.register_hook(f)

    def fill(self, x, value):
        with self.m.no_grad():
            x.fill_(value)

    def seeded(self, y, seed):
        self.m.autograd.backward([y], [seed])

    def first(self, y, x):
        return self.m.grad([y.sum()], [x], create_graph=True)[0]

    def hooks(self, pack, unpack):
        return self.m.autograd.saved_tensors_hooks(pack, unpack)


def stage(name):
    global STAGE
    STAGE = name


def run(y):
    stage("error in backward")
    y.sum().backward()


def grad(x):
    return None if x.grad is None else x.grad.tolist()


def op(forward, backward):
    """The framework's own way to write an op."""
    body = {}
    if forward is not None:
        body["forward"] = staticmethod(forward)
    if backward is not None:
        body["backward"] = staticmethod(backward)
    return type("Op", (F.Base,), body)


def alone(gradient):
    """The gradient of the first of two arguments; PyTorch counts the plain one too."""
    return (gradient, None) if F.name.startswith("PyTorch") else gradient


def checked(f, inputs):
    """What no framework tells unasked; PyTorch has a checker that may be asked."""
    if not F.name.startswith("PyTorch"):
        return False
    from torch.autograd.gradcheck import GradcheckError, gradcheck

    try:
        gradcheck(f, inputs)
    except GradcheckError:
        return "found by `gradcheck`"
    return False


def double(backward):
    """An op of one input with this backward."""
    return op(lambda ctx, x: x * 2, backward)


WAYS = {}


def way(f):
    WAYS[f.__name__] = f
    return f


@way
def too_few_returned():
    x, w = F.leaf([1.0]), F.leaf([2.0])
    run(op(lambda ctx, x, w: x * 2 + w * 3, lambda ctx, dy: dy * 2).apply(x, w))
    return False


@way
def too_many_returned():
    run(double(lambda ctx, dy: (dy * 2, dy)).apply(F.leaf([1.0])))
    return False


@way
def nothing_returned():
    x = F.leaf([1.0])
    run(double(lambda ctx, dy: None).apply(x))
    return False


@way
def too_few_taken():
    y, z = op(lambda ctx, x: (x * 2, x * 3), lambda ctx, dy: dy * 2).apply(F.leaf([1.0]))
    run(y + z)
    return False


@way
def too_many_taken():
    run(double(lambda ctx, dy, dz: dy * 2).apply(F.leaf([1.0])))
    return False


@way
def gradient_for_a_plain_argument():
    run(op(lambda ctx, x, n: x * n, lambda ctx, dy: (dy * 2, dy)).apply(F.leaf([1.0]), 2))
    return False


@way
def gradient_for_an_input_that_wants_none():
    a, b = F.leaf([1.0]), F.tensor([1.0])
    run(op(lambda ctx, a, b: a + b, lambda ctx, dy: (dy * 1, dy * 1)).apply(a, b))
    return grad(a) == [1.0] and grad(b) is None


@way
def swapped_of_two_shapes():
    x, w = F.leaf([1.0, 2.0]), F.leaf([[1.0], [1.0], [1.0]])

    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    def backward(ctx, dy):
        x, w = F.saved(ctx)
        return (dy * x).sum(1, keepdim=True), (dy * w).sum(0)

    run(op(forward, backward).apply(x, w))
    return grad(x) == [3.0, 3.0]


@way
def swapped_of_two_types():
    x, w = F.leaf([1.0, 2.0]), F.leaf([3.0, 5.0], "float32")

    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * F.cast(w, "float64")

    def backward(ctx, dy):
        x, w = F.saved(ctx)
        return F.cast(dy * x, "float32"), dy * F.cast(w, "float64")

    run(op(forward, backward).apply(x, w))
    return grad(x) == [3.0, 5.0]


@way
def swapped_of_one_shape():
    x, w = F.leaf([1.0, 2.0]), F.leaf([3.0, 5.0])

    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    def backward(ctx, dy):
        x, w = F.saved(ctx)
        return dy * x, dy * w

    Op = op(forward, backward)
    run(Op.apply(x, w))
    return grad(x) == [3.0, 5.0] or checked(Op.apply, (x, w))


@way
def shape_that_broadcasts():
    x = F.leaf([1.0, 2.0])
    run(double(lambda ctx, dy: dy.sum()).apply(x))
    return False


@way
def shape_that_does_not():
    run(double(lambda ctx, dy: F.tensor([0.0] * 5)).apply(F.leaf([1.0, 2.0])))
    return False


@way
def another_element_type():
    x = F.leaf([1.0, 2.0])
    run(double(lambda ctx, dy: F.cast(dy * 2, "float32")).apply(x))
    return x.grad.dtype == x.dtype


@way
def number_for_a_gradient():
    run(double(lambda ctx, dy: 1.0).apply(F.leaf([1.0])))
    return False


@way
def none_where_needed():
    x, w = F.leaf([1.0]), F.leaf([1.0])
    run(op(lambda ctx, x, w: x * w, lambda ctx, dy: (dy * 1, None)).apply(x, w))
    return grad(w) == [1.0]


@way
def unguarded_none():
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    y, _ = op(forward, lambda ctx, dy, dz: dy * 2 + dz * 3).apply(F.leaf([1.0]))
    run(y)
    return False


@way
def one_tensor_twice():
    a, b = F.leaf([1.0]), F.leaf([1.0])
    run(op(lambda ctx, a, b: a + b, lambda ctx, dy: (dy, dy)).apply(a, b))
    run(a * 5)
    return (grad(a), grad(b)) == ([6.0], [1.0])


@way
def gradient_changed_in_place():
    a, b = F.leaf([1.0]), F.leaf([1.0])

    def backward(ctx, dy):
        given = dy * 1
        F.fill(dy, 100.0)
        return given

    run(op(lambda ctx, x: x * 1, backward).apply(a) + b * 2)
    return (grad(a), grad(b)) == ([1.0], [2.0])


@way
def list_not_in_a_list():
    a, b = F.leaf([1.0]), F.leaf([2.0])
    run(op(lambda ctx, xs: xs[0] + xs[1], lambda ctx, dy: dy).apply([a, b]))
    return grad(a) == grad(b) == [1.0]


@way
def list_too_short():
    a, b = F.leaf([1.0]), F.leaf([2.0])
    run(op(lambda ctx, xs: xs[0] + xs[1], lambda ctx, dy: [dy]).apply([a, b]))
    return grad(a) == grad(b) == [1.0]


@way
def save_twice():
    def forward(ctx, x, w):
        ctx.save_for_backward(x)
        ctx.save_for_backward(w)
        return x * w

    def backward(ctx, dy):
        (x,) = F.saved(ctx)
        return dy * 3, dy * x

    x, w = F.leaf([2.0]), F.leaf([3.0])
    run(op(forward, backward).apply(x, w))
    return grad(w) == [2.0]


@way
def save_in_backward():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, dy):
        (x,) = F.saved(ctx)
        ctx.save_for_backward(dy)
        return dy * x * 2

    run(op(forward, backward).apply(F.leaf([2.0])))
    return False


@way
def save_a_number():
    def forward(ctx, x):
        ctx.save_for_backward(3.0)
        return x * 3

    x = F.leaf([2.0])
    run(op(forward, lambda ctx, dy: dy * F.saved(ctx)[0]).apply(x))
    return grad(x) == [3.0]


@way
def wrong_destructuring():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, dy):
        x, y = F.saved(ctx)
        return dy * x * 2

    run(op(forward, backward).apply(F.leaf([2.0])))
    return False


@way
def never_saved():
    run(double(lambda ctx, dy: dy * F.saved(ctx)[0]).apply(F.leaf([2.0])))
    return False


@way
def saved_on_one_path():
    def forward(ctx, x, save):
        if save:
            ctx.save_for_backward(x)
        return x * x

    run(op(forward, lambda ctx, dy: dy * F.saved(ctx)[0] * 2).apply(F.leaf([2.0]), False))
    return False


def square():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    return op(forward, lambda ctx, dy: dy * F.saved(ctx)[0] * 2)


def exponential():
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    return op(forward, lambda ctx, dy: dy * F.saved(ctx)[0])


@way
def saved_input_changed():
    x = F.leaf([1.0])
    h = x * 1
    y = square().apply(h)
    F.fill(h, 10.0)
    run(y)
    return grad(x) == [2.0]


@way
def saved_output_changed():
    x = F.leaf([0.0])
    y = exponential().apply(x)
    F.fill(y, 7.0)
    run(y)
    return grad(x) == [1.0]


@way
def input_changed_by_forward():
    x = F.leaf([1.0])
    h = x * 1
    kept = square().apply(h)

    def forward(ctx, x):
        F.fill(x, 7.0)
        return x * 2

    run(op(forward, lambda ctx, dy: dy * 2).apply(h) + kept)
    return grad(x) == [4.0]


class Counted:
    pass


def leaks(forward):
    """Whether something that the context holds outlives the op's outputs."""
    import gc
    import weakref

    gc.disable()
    counted = Counted()
    alive = weakref.ref(counted)
    x = F.leaf([1.0])
    y = op(lambda ctx, x: forward(ctx, x, counted), lambda ctx, dy: dy).apply(x)
    del counted, y, x
    # The closure above is gone too; what is left is the context.
    return alive() is not None


@way
def output_in_attributes():
    def forward(ctx, x, counted):
        y = x.exp()
        ctx.y, ctx.counted = y, counted
        return y

    return "leak" if leaks(forward) else True


@way
def output_saved_never_run():
    def forward(ctx, x, counted):
        y = x.exp()
        ctx.save_for_backward(y)
        ctx.counted = counted
        return y

    return "leak" if leaks(forward) else True


@way
def intermediate_twice():
    def forward(ctx, x):
        e = x.exp()
        ctx.save_for_backward(e)
        return e + 1

    x = F.leaf([0.0])
    y = op(forward, lambda ctx, dy: dy * F.saved(ctx)[0]).apply(x)
    stage("error in backward")
    first = F.first(y * 1, x)
    run(first + 0 * x)
    return grad(x) == [1.0]


@way
def backward_reads_numbers():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    x = F.leaf([3.0])
    y = op(forward, lambda ctx, dy: dy * (2 * F.saved(ctx)[0].item())).apply(x)
    stage("error in backward")
    first = F.first(y, x)
    run(first + 0 * x)
    return grad(x) == [2.0]


@way
def second_order_of_once():
    if F.name.startswith("PyTorch"):
        from torch.autograd.function import once_differentiable
    else:
        from paddle.autograd.py_layer import once_differentiable
    Op = double(once_differentiable(lambda ctx, dy: dy * 2))
    x = F.leaf([1.0])
    stage("error in backward")
    first = F.first(Op.apply(x) * x, x)
    run(first)
    return grad(x) == [4.0]


@way
def attribute_with_a_slip():
    def forward(ctx, x):
        ctx.scale = 3.0
        return x * 3

    run(op(forward, lambda ctx, dy: dy * ctx.scael).apply(F.leaf([1.0])))
    return False


@way
def context_call_with_a_slip():
    def forward(ctx, x):
        ctx.save_for_backwards(x)
        return x * 2

    run(op(forward, lambda ctx, dy: dy * 2).apply(F.leaf([1.0])))
    return False


@way
def backward_with_a_slip():
    Op = type("Op", (F.Base,), {"forward": staticmethod(lambda ctx, x: x * 2), "backwards": staticmethod(lambda ctx, dy: dy * 2)})
    run(Op.apply(F.leaf([1.0])))
    return False


@way
def no_backward():
    run(op(lambda ctx, x: x * 2, None).apply(F.leaf([1.0])))
    return False


@way
def no_forward():
    run(op(None, lambda ctx, dy: dy * 2).apply(F.leaf([1.0])))
    return False


@way
def two_forwards():
    source = """
class Op(F.Base):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def forward(ctx, x):
        return x * 3
    @staticmethod
    def backward(ctx, dy):
        return dy * 2
"""
    space = {"F": F}
    exec(source, space)
    x = F.leaf([1.0])
    run(space["Op"].apply(x))
    return False


@way
def no_context():
    run(op(lambda x: x * 2, lambda dy: dy * 2).apply(F.leaf([1.0])))
    return False


@way
def mark_an_input():
    def forward(ctx, x):
        ctx.mark_non_differentiable(x)
        return x * 2

    run(op(forward, lambda ctx, dy: dy * 2).apply(F.leaf([1.0])))
    return False


@way
def mark_another_tensor():
    def forward(ctx, x):
        ctx.mark_non_differentiable(x * 3)
        return x * 2

    run(op(forward, lambda ctx, dy: dy * 2).apply(F.leaf([1.0])))
    return False


@way
def mark_twice():
    def forward(ctx, x):
        a, b = x * 2, x * 3
        ctx.mark_non_differentiable(a)
        ctx.mark_non_differentiable(b)
        return a, b, x * 4

    a, b, c = op(forward, lambda ctx, da, db, dc: dc * 4).apply(F.leaf([1.0]))
    wants = [getattr(t, "requires_grad", None) if F.name.startswith("PyTorch") else not t.stop_gradient for t in (a, b, c)]
    run(c)
    return wants == [False, False, True]


@way
def no_tensor_output():
    y = op(lambda ctx, x: list(x.shape), lambda ctx, dy: dy).apply(F.leaf([1.0]))
    return False


@way
def integer_output():
    y = op(lambda ctx, x: F.cast(x, "int64"), lambda ctx, dy: dy).apply(F.leaf([1.0]))
    run(F.cast(y, "float64"))
    return False


@way
def integer_input():
    i = F.leaf([1, 0], "int64")
    run(op(lambda ctx, x, i: x[i], lambda ctx, dy: (dy, dy)).apply(F.leaf([1.0, 2.0]), i))
    return False


@way
def no_tensor_input():
    y = op(lambda ctx, n: F.tensor([float(n)]), lambda ctx, dy: dy).apply(3)
    run(y)
    return False


@way
def input_returned():
    x = F.leaf([1.0])
    y = op(lambda ctx, x: x, lambda ctx, dy: dy * 3).apply(x)
    run(y)
    return grad(x) == [3.0]


@way
def tensor_in_a_tuple():
    x, w = F.leaf([2.0]), F.leaf([3.0])
    run(op(lambda ctx, x, both: x * both[0], lambda ctx, dy: alone(dy * 3)).apply(x, (w,)))
    return grad(w) == [2.0]


@way
def tensor_in_a_map():
    x, w = F.leaf([2.0]), F.leaf([3.0])
    run(op(lambda ctx, x, named: x * named["w"], lambda ctx, dy: alone(dy * 3)).apply(x, {"w": w}))
    return grad(w) == [2.0]


@way
def tensor_in_a_layer():
    x = F.leaf([[2.0]], "float32")
    layer = F.m.nn.Linear(1, 1)
    run(op(lambda ctx, x, layer: layer(x), lambda ctx, dy: alone(dy * 3)).apply(x, layer))
    return layer.weight.grad is not None


@way
def tensor_in_a_closure():
    x, w = F.leaf([2.0]), F.leaf([3.0])
    Op = op(lambda ctx, x, f: f(x), lambda ctx, dy: alone(dy * 3))
    run(Op.apply(x, lambda x: x * w))
    return grad(w) == [2.0] or checked(lambda x, w: Op.apply(x, lambda x: x * w), (x, w))


@way
def tensor_in_a_struct():
    class Weights:
        pass

    x, weights = F.leaf([2.0]), Weights()
    weights.w = F.leaf([3.0])
    Op = op(lambda ctx, x, weights: x * weights.w, lambda ctx, dy: alone(dy * 3))
    run(Op.apply(x, weights))
    return grad(weights.w) == [2.0]


@way
def keyword_order():
    a, b, c = (F.leaf([1.0]) for _ in range(3))
    Op = op(lambda ctx, a, b, c: a + b + c, lambda ctx, dy: (dy * 1, dy * 20, dy * 300))
    run(Op.apply(c=c, b=b, a=a))
    return [grad(t) for t in (a, b, c)] == [[1.0], [20.0], [300.0]]


@way
def keyword_with_a_slip():
    Op = op(lambda ctx, x, scale=2.0: x * scale, lambda ctx, dy: dy * 2)
    run(Op.apply(F.leaf([1.0]), scael=3.0))
    return False


@way
def keyword_twice():
    Op = op(lambda ctx, x, scale=2.0: x * scale, lambda ctx, dy: dy * 2)
    run(Op.apply(F.leaf([1.0]), 2.0, scale=3.0))
    return False


@way
def argument_too_few():
    run(op(lambda ctx, x, w: x * w, lambda ctx, dy: (dy, dy)).apply(F.leaf([1.0])))
    return False


@way
def argument_of_another_type():
    x = F.leaf([1.0], "float32")
    run(op(lambda ctx, x: x * 2, lambda ctx, dy: dy * F.tensor([2.0])).apply(x))
    return x.grad.dtype == x.dtype


@way
def forward_called():
    x = F.leaf([1.0])
    Op = double(lambda ctx, dy: dy * 5)
    run(Op.forward(None, x))
    return grad(x) == [5.0]


@way
def another_length():
    F.tensor([0.0] * 5).reshape([2, 3])
    return False


@way
def second_backward():
    x = F.leaf([0.0])
    y = exponential().apply(x).sum()
    run(y)
    run(y)
    return grad(x) == [1.0]


@way
def no_seed():
    x = F.leaf([0.0, 0.0])
    y = exponential().apply(x)
    stage("error in backward")
    y.backward()
    return grad(x) == [1.0, 1.0]


@way
def seed_of_another_shape():
    y = exponential().apply(F.leaf([0.0, 0.0]))
    stage("error in backward")
    F.seeded(y, F.tensor([1.0, 2.0, 3.0]))
    return False


@way
def seed_of_another_type():
    x = F.leaf([0.0])
    y = exponential().apply(x)
    stage("error in backward")
    F.seeded(y, F.tensor([1.0], "float32"))
    return grad(x) == [1.0]


@way
def seeds_of_another_count():
    x = F.leaf([0.0])
    y, z = exponential().apply(x), square().apply(x)
    stage("error in backward")
    F.m.autograd.backward([y, z], [F.tensor([1.0])])
    return False


@way
def hook_of_another_shape():
    y = exponential().apply(F.leaf([0.0, 0.0]))
    F.hook(y, lambda g: F.tensor([0.0] * 5))
    run(y)
    return False


@way
def hook_returns_a_number():
    x = F.leaf([0.0])
    y = x * 1
    F.hook(y, lambda g: 2.0)
    run(y)
    return False


@way
def unpack_of_another_shape():
    with F.hooks(lambda t: t, lambda t: F.tensor([0.0] * 3)):
        y = exponential().apply(F.leaf([0.0, 0.0]))
    run(y)
    return False


@way
def leaf_changed():
    x = F.leaf([1.0])
    x.add_(F.tensor([1.0]))
    return False


@way
def error_in_backward():
    def backward(ctx, dy):
        raise ValueError("no slope today")

    run(double(backward).apply(F.leaf([1.0])))
    return False


@way
def not_finite():
    # PyTorch looks for NaN only; here as there.
    if not F.name.startswith("PyTorch"):
        return None
    with F.m.autograd.detect_anomaly(check_nan=True):
        run(double(lambda ctx, dy: dy / 0.0).apply(F.leaf([1.0])))
    return False


@way
def long_chain():
    x = F.leaf([1.0])
    y = x
    Op = op(lambda ctx, x: x * 1, lambda ctx, dy: dy * 1)
    for _ in range(100_000):
        y = Op.apply(y)
    run(y)
    return grad(x) == [1.0]


@way
def tangent_of_another_shape():
    if not F.name.startswith("PyTorch"):
        return None
    import torch.autograd.forward_ad as fwd

    Op = type(
        "Op",
        (F.Base,),
        {
            "forward": staticmethod(lambda ctx, x: x * 2),
            "backward": staticmethod(lambda ctx, dy: dy * 2),
            "jvp": staticmethod(lambda ctx, dx: dx.sum()),
        },
    )
    with fwd.dual_level():
        x = fwd.make_dual(F.tensor([1.0, 2.0]), F.tensor([1.0, 1.0]))
        fwd.unpack_dual(Op.apply(x))
    return False


@way
def wrong_formula():
    x = F.leaf([1.0])
    Op = double(lambda ctx, dy: dy * 3)
    run(Op.apply(x))
    return grad(x) == [2.0] or checked(Op.apply, (x,))


def static(func, backward, fetch_grad):
    """A py_func whose output is declared [2]; the old kind of program is the only one that has it."""
    import numpy as np

    if F.name.startswith("PyTorch"):
        return None
    paddle = F.m
    paddle.enable_static()
    main = paddle.static.Program()
    with paddle.static.program_guard(main, paddle.static.Program()):
        x = paddle.static.data("x", [2], "float64")
        x.stop_gradient = False
        out = main.current_block().create_var(name="out", dtype="float64", shape=[2])
        y = paddle.static.py_func(func, x, out, backward_func=backward)
        loss = paddle.mean(y)
        fetch = paddle.static.gradients([loss], [x]) if fetch_grad else [y]
        stage("error in backward")
        exe = paddle.static.Executor(paddle.CPUPlace())
        exe.run(main, feed={"x": np.ones(2)}, fetch_list=fetch)
    return False


@way
def py_func_of_another_shape():
    import numpy as np

    return static(lambda x: np.ones(3), None, False)


@way
def py_func_none():
    import numpy as np

    return static(lambda x: np.array(x), lambda x, y, dy: None, True)


def outcome(f):
    """Runs it in a child, so that a crash is seen."""
    read, write = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(read)
        quiet = os.open(os.devnull, os.O_WRONLY)
        if not VERBOSE:
            os.dup2(quiet, 2)
        os.dup2(quiet, 1)
        signal.alarm(100)
        stage("error")
        try:
            right = f()
            result = {True: "right", False: "silent", None: "–"}.get(right, right)
        except Exception:
            if VERBOSE:
                traceback.print_exc()
            result = STAGE
        os.write(write, result.encode())
        os._exit(0)
    os.close(write)
    said = b""
    while part := os.read(read, 100):
        said += part
    os.close(read)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "hangs" if os.WTERMSIG(status) == signal.SIGALRM else "crash"
    return said.decode()


def main():
    """Each framework in a process of its own: two at once in one fork would quarrel over threads."""
    if len(sys.argv) > 1 and sys.argv[1] in FRAMEWORKS:
        global F
        os.environ["FLAGS_enable_pir_api"] = "0"
        F = {"torch": Torch, "paddle": Paddle}[sys.argv[1]]()
        print(F.name)
        for name, f in WAYS.items():
            print(name, "|", outcome(f))
        return
    import subprocess

    columns = []
    for framework in FRAMEWORKS:
        done = subprocess.run([sys.executable, __file__, framework], capture_output=True, text=True, check=True)
        columns.append(done.stdout.splitlines())
    print("way |", " | ".join(column[0] for column in columns))
    for lines in zip(*(column[1:] for column in columns)):
        name = lines[0].split(" | ")[0]
        print(name, "|", " | ".join(line.split(" | ")[1] for line in lines))


if __name__ == "__main__":
    main()
