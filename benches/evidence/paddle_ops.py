# The ops as Paddle writes them.
import paddle
from paddle.autograd import PyLayer

paddle.seed(1)


def leaf(*shape):
    x = paddle.randn(shape, dtype="float64")
    x.stop_gradient = False
    return x


# == tanh
class Op(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = paddle.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensor()
        return dy * (1.0 - y * y)

call = lambda: Op.apply(leaf(2, 3))
# a sign: dy * (1.0 -> -dy * (1.0
# a term dropped: y * y -> y
# dy ignored: dy * (1.0 - y * y) -> 1.0 - y * y
# another tensor saved: save_for_backward(y) -> save_for_backward(x)
# another element type: dy * (1.0 - y * y) -> (dy * (1.0 - y * y)).astype("float32")

# == product
class Op(PyLayer):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensor()
        return dy * w, dy * x

call = lambda: Op.apply(leaf(2, 3), leaf(2, 3))
# two gradients exchanged: dy * w, dy * x -> dy * x, dy * w
# a sign: dy * w, dy * x -> dy * w, -dy * x
# dy ignored: dy * w, dy * x -> w, dy * x
# a gradient too few: dy * w, dy * x -> dy * w
# a gradient too many: dy * w, dy * x -> dy * w, dy * x, dy * x

# == linear
class Op(PyLayer):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensor()
        return dy @ w.T, x.T @ dy

call = lambda: Op.apply(leaf(2, 3), leaf(3, 4))
# two gradients exchanged: dy @ w.T, x.T @ dy -> x.T @ dy, dy @ w.T
# a transposition missing: dy @ w.T -> dy @ w
# the wrong factor transposed: x.T @ dy -> dy.T @ x
# dy ignored: x.T @ dy -> x.T @ paddle.ones_like(dy)
# a sign: x.T @ dy -> -x.T @ dy

# == bias
class Op(PyLayer):
    @staticmethod
    def forward(ctx, x, b):
        return x + b

    @staticmethod
    def backward(ctx, dy):
        return dy, dy.sum(0)

call = lambda: Op.apply(leaf(2, 3), leaf(3))
# a sum over a broadcast axis missing: dy.sum(0) -> dy
# a sum over the wrong axis: dy.sum(0) -> dy.sum(1)
# a mean for a sum: dy.sum(0) -> dy.mean(0)
# two gradients exchanged: return dy, dy.sum(0) -> return dy.sum(0), dy
# a sum that keeps the axis: dy.sum(0) -> dy.sum(0, keepdim=True)

# == scale
class Op(PyLayer):
    @staticmethod
    def forward(ctx, x, s):
        ctx.s = s
        return x * s

    @staticmethod
    def backward(ctx, dy):
        s = ctx.s
        return dy * s

call = lambda: Op.apply(leaf(2, 3), 3.0)
# a factor dropped: return dy * s -> return dy
# dy ignored: return dy * s -> return paddle.ones_like(dy) * s
# a gradient for a number too: return dy * s -> return dy * s, dy.sum()
# a sign: return dy * s -> return dy * -s
# a factor twice: return dy * s -> return dy * s * s

# == select
class Op(PyLayer):
    @staticmethod
    def forward(ctx, x, i):
        ctx.save_for_backward(x, i)
        return paddle.index_select(x, i)

    @staticmethod
    def backward(ctx, dy):
        x, i = ctx.saved_tensor()
        zeros = paddle.zeros_like(x)
        return paddle.index_add(zeros, i, 0, dy), None

call = lambda: Op.apply(leaf(4, 3), paddle.to_tensor([0, 2, 2]))
# written, not added: paddle.index_add(zeros, i, 0, dy) -> paddle.scatter(zeros, i, dy)
# an integer input given a gradient: dy), None -> dy), paddle.zeros(i.shape)
# zeros returned: paddle.index_add(zeros, i, 0, dy) -> zeros
# the output's shape returned: paddle.index_add(zeros, i, 0, dy) -> dy
# a sign: i, 0, dy) -> i, 0, -dy)

# == softmax
class Op(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = paddle.nn.functional.softmax(x, 1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensor()
        return y * (dy - (dy * y).sum(1, keepdim=True))

call = lambda: Op.apply(leaf(2, 3))
# a sum over the wrong axis: sum(1, keep -> sum(0, keep
# a term dropped: dy - (dy * y).sum(1, keepdim=True) -> dy
# a sum over all axes: sum(1, keepdim=True) -> sum()
# dy ignored: (dy * y).sum( -> y.sum(
# another tensor saved: save_for_backward(y) -> save_for_backward(x)

# == unit
class Op(PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / (x * x).sum(1, keepdim=True).sqrt()

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        n = (x * x).sum(1, keepdim=True).sqrt()
        y = x / n
        return (dy - y * (dy * y).sum(1, keepdim=True)) / n

call = lambda: Op.apply(leaf(2, 3))
# a term dropped: (dy - y * (dy * y).sum(1, keepdim=True)) / n -> dy / n
# a factor dropped: True)) / n -> True))
# an axis lost by a sum: (dy * y).sum(1, keepdim=True) -> (dy * y).sum(1)
# a sign: dy - y -> dy + y
# a factor twice: True)) / n -> True)) / n / n
