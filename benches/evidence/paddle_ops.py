# The ops as Paddle writes them.
import paddle
import paddle.nn.functional as F
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

args = (leaf(2, 3),)
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

args = (leaf(2, 3), leaf(2, 3))
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

args = (leaf(2, 3), leaf(3, 4))
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

args = (leaf(2, 3), leaf(3))
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

args = (leaf(2, 3), 3.0)
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

args = (leaf(4, 3), paddle.to_tensor([0, 2, 2]))
# written, not added: paddle.index_add(zeros, i, 0, dy) -> paddle.scatter(zeros, i, dy)
# an integer input given a gradient: dy), None -> dy), paddle.zeros(i.shape)
# zeros returned: paddle.index_add(zeros, i, 0, dy) -> zeros
# the output's shape returned: paddle.index_add(zeros, i, 0, dy) -> dy
# a sign: i, 0, dy) -> i, 0, -dy)

# == softmax
class Op(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = F.softmax(x, 1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensor()
        return y * (dy - (dy * y).sum(1, keepdim=True))

args = (leaf(2, 3),)
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

args = (leaf(2, 3),)
# a term dropped: (dy - y * (dy * y).sum(1, keepdim=True)) / n -> dy / n
# a factor dropped: True)) / n -> True))
# an axis lost by a sum: (dy * y).sum(1, keepdim=True) -> (dy * y).sum(1)
# a sign: dy - y -> dy + y
# a factor twice: True)) / n -> True)) / n / n

# == rms_norm
class Op(PyLayer):
    @staticmethod
    def forward(ctx, x, g):
        scale = (x * x).mean(1, keepdim=True).rsqrt()
        ctx.save_for_backward(x, g, scale)
        return x * scale * g

    @staticmethod
    def backward(ctx, dy):
        x, g, scale = ctx.saved_tensor()
        unit, dunit = x * scale, dy * g
        mean = (dunit * unit).mean(1, keepdim=True)
        return (dunit - unit * mean) * scale, (dy * unit).sum(0)

args = (leaf(2, 3), leaf(3))
# a sum over a broadcast axis missing: (dy * unit).sum(0) -> dy * unit
# a term dropped: (dunit - unit * mean) -> dunit
# a factor dropped: x * scale, dy * g -> x * scale, dy
# a sum for a mean: .mean(1, keepdim=True) -> .sum(1, keepdim=True)
# a sum over the wrong axis: .sum(0) -> .sum(1)

# == cross_entropy
class Op(PyLayer):
    @staticmethod
    def forward(ctx, z, t):
        ctx.save_for_backward(F.softmax(z, 1), t)
        return -F.log_softmax(z, 1).take_along_axis(t.unsqueeze(1), 1).squeeze(1)

    @staticmethod
    def backward(ctx, dy):
        p, t = ctx.saved_tensor()
        target = F.one_hot(t, 4)
        return (p - target) * dy.unsqueeze(1), None

args = (leaf(2, 4), paddle.to_tensor([0, 3]))
# dy ignored: (p - target) * dy.unsqueeze(1) -> p - target
# a term dropped: (p - target) -> p
# a sign: (p - target) -> (p + target)
# an integer input given a gradient: dy.unsqueeze(1), None -> dy.unsqueeze(1), dy
# an axis not added: dy.unsqueeze(1) -> dy

# == mean
class Op(PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.mean(1)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        return dy.unsqueeze(1).expand(x.shape) / x.shape[1]

args = (leaf(2, 3),)
# a factor dropped: / x.shape[1] -> * 1
# an axis not added: dy.unsqueeze(1) -> dy
# a broadcast missing: dy.unsqueeze(1).expand(x.shape) -> dy.unsqueeze(1)
# the wrong axis counted: x.shape[1] -> x.shape[0]
# dy ignored: dy.unsqueeze(1) -> paddle.ones_like(dy.unsqueeze(1))

# == outer
class Op(PyLayer):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return paddle.outer(a, b)

    @staticmethod
    def backward(ctx, dy):
        a, b = ctx.saved_tensor()
        return dy @ b, dy.T @ a

args = (leaf(2), leaf(3))
# two gradients exchanged: dy @ b, dy.T @ a -> dy.T @ a, dy @ b
# a transposition missing: dy.T @ a -> dy @ a
# another element type: dy.T @ a -> (dy.T @ a).astype("float32")
# dy ignored: dy @ b -> paddle.ones_like(dy) @ b
# a sign: dy.T @ a -> -dy.T @ a

# == concat
class Op(PyLayer):
    @staticmethod
    def forward(ctx, a, b):
        return paddle.concat([a, b], 1)

    @staticmethod
    def backward(ctx, dy):
        return dy[:, 0:2], dy[:, 2:5]

args = (leaf(4, 2), leaf(4, 3))
# two gradients exchanged: dy[:, 0:2], dy[:, 2:5] -> dy[:, 2:5], dy[:, 0:2]
# the wrong start: dy[:, 2:5] -> dy[:, 1:4]
# cut along the wrong axis: dy[:, 0:2] -> dy[0:2]
# the output's shape returned: dy[:, 2:5] -> dy
# a sign: dy[:, 2:5] -> -dy[:, 2:5]

# == columns
class Op(PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x[:, 1:3].clone()

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        dx = paddle.zeros_like(x)
        dx[:, 1:3] = dy
        return dx

args = (leaf(2, 4),)
# put at the wrong place: 1:3 -> 0:2
# put along the wrong axis: [:, 1:3] -> [0:2]
# zeros returned: dx[:, 1:3] = dy -> pass
# the output's shape returned: return dx -> return dy
# dy ignored: 1:3] = dy -> 1:3] = 1.0

# == where
class Op(PyLayer):
    @staticmethod
    def forward(ctx, c, a, b):
        ctx.save_for_backward(c)
        return paddle.where(c, a, b)

    @staticmethod
    def backward(ctx, dy):
        (c,) = ctx.saved_tensor()
        zero = paddle.zeros_like(dy)
        return None, paddle.where(c, dy, zero), paddle.where(c, zero, dy)

args = (paddle.to_tensor([[True, False, True]] * 2), leaf(2, 3), leaf(2, 3))
# two gradients exchanged: paddle.where(c, dy, zero), paddle.where(c, zero, dy) -> paddle.where(c, zero, dy), paddle.where(c, dy, zero)
# the mask ignored: paddle.where(c, zero, dy) -> dy
# dy ignored: paddle.where(c, dy, zero) -> paddle.where(c, zero + 1, zero)
# an integer input given a gradient: return None, -> return zero,
# a sign: paddle.where(c, zero, dy) -> -paddle.where(c, zero, dy)

# == cumsum
class Op(PyLayer):
    @staticmethod
    def forward(ctx, x):
        return x.cumsum(1)

    @staticmethod
    def backward(ctx, dy):
        return dy.flip([1]).cumsum(1).flip([1])

args = (leaf(2, 3),)
# not reversed: dy.flip([1]).cumsum(1).flip([1]) -> dy.cumsum(1)
# reversed once: .cumsum(1).flip([1]) -> .cumsum(1)
# a sum over the wrong axis: cumsum(1) -> cumsum(0)
# dy ignored: dy.flip([1]) -> paddle.ones_like(dy).flip([1])
# a sum missing: dy.flip([1]).cumsum(1) -> dy.flip([1])

# == gated
class Op(PyLayer):
    @staticmethod
    def forward(ctx, a, b):
        s = F.sigmoid(b)
        ctx.save_for_backward(a, s)
        return a * s

    @staticmethod
    def backward(ctx, dy):
        a, s = ctx.saved_tensor()
        return dy * s, dy * a * s * (1.0 - s)

args = (leaf(2, 3), leaf(2, 3))
# two gradients exchanged: dy * s, dy * a * s * (1.0 - s) -> dy * a * s * (1.0 - s), dy * s
# a factor dropped: * s * (1.0 - s) -> * (1.0 - s)
# dy ignored: dy * a * s -> a * s
# another tensor saved: save_for_backward(a, s) -> save_for_backward(a, b)
# another element type: return dy * s, -> return (dy * s).astype("float32"),

# == attention
class Op(PyLayer):
    @staticmethod
    def forward(ctx, q, k, v):
        s = q @ k.T
        p = F.softmax(s, 1)
        ctx.save_for_backward(q, k, v, p)
        return p @ v

    @staticmethod
    def backward(ctx, dy):
        q, k, v, p = ctx.saved_tensor()
        dp = dy @ v.T
        ds = p * (dp - (dp * p).sum(1, keepdim=True))
        return ds @ k, ds.T @ q, p.T @ dy

args = (leaf(2, 3), leaf(4, 3), leaf(4, 3))
# a term dropped: (dp - (dp * p).sum(1, keepdim=True)) -> dp
# a transposition missing: ds.T @ q -> ds @ q
# two gradients exchanged: ds.T @ q, p.T @ dy -> p.T @ dy, ds.T @ q
# dy ignored: p.T @ dy -> p.T @ paddle.ones_like(dy)
# another tensor saved: (q, k, v, p) -> (q, k, v, s)

# == distances
class Op(PyLayer):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return (a.unsqueeze(1) - b).square().sum(2)

    @staticmethod
    def backward(ctx, dy):
        a, b = ctx.saved_tensor()
        da = (a * dy.sum(1, keepdim=True) - dy @ b) * 2.0
        db = (b * dy.T.sum(1, keepdim=True) - dy.T @ a) * 2.0
        return da, db

args = (leaf(2, 3), leaf(4, 3))
# a factor dropped: - dy @ b) * 2.0 -> - dy @ b)
# a sign: - dy @ b -> + dy @ b
# a sum over the wrong axis: dy.sum(1, keepdim=True) -> dy.sum(0, keepdim=True)
# two gradients exchanged: return da, db -> return db, da
# a term dropped: (b * dy.T.sum(1, keepdim=True) - dy.T @ a) -> b * dy.T.sum(1, keepdim=True)

# == shifted
class Op(PyLayer):
    @staticmethod
    def forward(ctx, x):
        h = x * 2.0
        h.add_(paddle.ones_like(h))
        ctx.save_for_backward(h)
        return h * h

    @staticmethod
    def backward(ctx, dy):
        (h,) = ctx.saved_tensor()
        return dy * h * 4.0

args = (leaf(2, 3),)
# saved before a change: h.add_(paddle.ones_like(h)) ctx.save_for_backward(h) -> ctx.save_for_backward(h); h.add_(paddle.ones_like(h))
# a factor dropped: * 4.0 -> * 2.0
# dy ignored: dy * h -> h
# a sign: dy * h -> -dy * h
# another tensor saved: save_for_backward(h) -> save_for_backward(x)
