# The ops as JAX writes them.
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def leaf(*shape):
    return jax.random.normal(jax.random.PRNGKey(len(shape)), shape)


# == tanh
@jax.custom_vjp
def op(x):
    return jnp.tanh(x)

def forward(x):
    y = op(x)
    return y, y

def backward(y, dy):
    return (dy * (1.0 - y * y),)

op.defvjp(forward, backward)
args = (leaf(2, 3),)
# a sign: (dy * (1.0 -> (-dy * (1.0
# a term dropped: y * y -> y
# dy ignored: (dy * (1.0 - y * y),) -> ((1.0 - y * y),)
# another tensor saved: return y, y -> return y, x
# another element type: (dy * (1.0 - y * y),) -> ((dy * (1.0 - y * y)).astype(jnp.float32),)

# == product
@jax.custom_vjp
def op(x, w):
    return x * w

def forward(x, w):
    return x * w, (x, w)

def backward(saved, dy):
    x, w = saved
    return dy * w, dy * x

op.defvjp(forward, backward)
args = (leaf(2, 3), leaf(2, 3) + 1)
# two gradients exchanged: dy * w, dy * x -> dy * x, dy * w
# a sign: dy * w, dy * x -> dy * w, -dy * x
# dy ignored: dy * w, dy * x -> w, dy * x
# a gradient too few: dy * w, dy * x -> (dy * w,)
# a gradient too many: dy * w, dy * x -> dy * w, dy * x, dy * x

# == linear
@jax.custom_vjp
def op(x, w):
    return x @ w

def forward(x, w):
    return x @ w, (x, w)

def backward(saved, dy):
    x, w = saved
    return dy @ w.T, x.T @ dy

op.defvjp(forward, backward)
args = (leaf(2, 3), leaf(3, 4) + 1)
# two gradients exchanged: dy @ w.T, x.T @ dy -> x.T @ dy, dy @ w.T
# a transposition missing: dy @ w.T -> dy @ w
# the wrong factor transposed: x.T @ dy -> dy.T @ x
# dy ignored: x.T @ dy -> x.T @ jnp.ones_like(dy)
# a sign: x.T @ dy -> -x.T @ dy

# == bias
@jax.custom_vjp
def op(x, b):
    return x + b

def forward(x, b):
    return x + b, None

def backward(saved, dy):
    return dy, dy.sum(0)

op.defvjp(forward, backward)
args = (leaf(2, 3), leaf(3))
# a sum over a broadcast axis missing: dy.sum(0) -> dy
# a sum over the wrong axis: dy.sum(0) -> dy.sum(1)
# a mean for a sum: dy.sum(0) -> dy.mean(0)
# two gradients exchanged: return dy, dy.sum(0) -> return dy.sum(0), dy
# a sum that keeps the axis: dy.sum(0) -> dy.sum(0, keepdims=True)

# == scale
from functools import partial

@partial(jax.custom_vjp, nondiff_argnums=(1,))
def scaled(x, s):
    return x * s

def forward(x, s):
    return x * s, None

def backward(s, saved, dy):
    return (dy * s,)

scaled.defvjp(forward, backward)
op = lambda x: scaled(x, 3.0)
args = (leaf(2, 3),)
# a factor dropped: (dy * s,) -> (dy,)
# dy ignored: (dy * s,) -> (jnp.ones_like(dy) * s,)
# a gradient for a number too: (dy * s,) -> (dy * s, dy.sum())
# a sign: (dy * s,) -> (dy * -s,)
# a factor twice: (dy * s,) -> (dy * s * s,)

# == select
@jax.custom_vjp
def select(x, i):
    return x[i]

def forward(x, i):
    return x[i], (x, i)

def backward(saved, dy):
    x, i = saved
    zeros = jnp.zeros_like(x)
    return zeros.at[i].add(dy), None

select.defvjp(forward, backward)
op = lambda x: select(x, jnp.array([0, 2, 2]))
args = (leaf(4, 3),)
# written, not added: zeros.at[i].add(dy) -> zeros.at[i].set(dy)
# an integer input given a gradient: .add(dy), None -> .add(dy), jnp.zeros(i.shape)
# zeros returned: zeros.at[i].add(dy) -> zeros
# the output's shape returned: zeros.at[i].add(dy) -> dy
# a sign: zeros.at[i].add(dy) -> zeros.at[i].add(-dy)

# == softmax
@jax.custom_vjp
def op(x):
    return jax.nn.softmax(x, 1)

def forward(x):
    y = op(x)
    return y, y

def backward(y, dy):
    return (y * (dy - (dy * y).sum(1, keepdims=True)),)

op.defvjp(forward, backward)
args = (leaf(2, 3),)
# a sum over the wrong axis: sum(1, keep -> sum(0, keep
# a term dropped: dy - (dy * y).sum(1, keepdims=True) -> dy
# a sum over all axes: sum(1, keepdims=True) -> sum()
# dy ignored: (dy * y).sum( -> y.sum(
# another tensor saved: return y, y -> return y, x

# == unit
@jax.custom_vjp
def op(x):
    return x / jnp.sqrt((x * x).sum(1, keepdims=True))

def forward(x):
    return op(x), x

def backward(x, dy):
    n = jnp.sqrt((x * x).sum(1, keepdims=True))
    y = x / n
    return ((dy - y * (dy * y).sum(1, keepdims=True)) / n,)

op.defvjp(forward, backward)
args = (leaf(2, 3),)
# a term dropped: (dy - y * (dy * y).sum(1, keepdims=True)) / n -> dy / n
# a factor dropped: ) / n, -> ),
# an axis lost by a sum: (dy * y).sum(1, keepdims=True) -> (dy * y).sum(1)
# a sign: dy - y -> dy + y
# a factor twice: ) / n, -> ) / n / n,

# == rms_norm
@jax.custom_vjp
def op(x, g):
    return x * jax.lax.rsqrt((x * x).mean(1, keepdims=True)) * g

def forward(x, g):
    scale = jax.lax.rsqrt((x * x).mean(1, keepdims=True))
    return x * scale * g, (x, g, scale)

def backward(saved, dy):
    x, g, scale = saved
    unit, dunit = x * scale, dy * g
    mean = (dunit * unit).mean(1, keepdims=True)
    return (dunit - unit * mean) * scale, (dy * unit).sum(0)

op.defvjp(forward, backward)
args = (leaf(2, 3), leaf(3))
# a sum over a broadcast axis missing: (dy * unit).sum(0) -> dy * unit
# a term dropped: (dunit - unit * mean) -> dunit
# a factor dropped: x * scale, dy * g -> x * scale, dy
# a sum for a mean: .mean(1, keepdims=True) -> .sum(1, keepdims=True)
# a sum over the wrong axis: .sum(0) -> .sum(1)

# == cross_entropy
@jax.custom_vjp
def cross_entropy(z, t):
    return -jnp.take_along_axis(jax.nn.log_softmax(z), t[:, None], 1)[:, 0]

def forward(z, t):
    return cross_entropy(z, t), (jax.nn.softmax(z), t)

def backward(saved, dy):
    p, t = saved
    target = jax.nn.one_hot(t, 4)
    return (p - target) * dy[:, None], None

cross_entropy.defvjp(forward, backward)
op = lambda z: cross_entropy(z, jnp.array([0, 3]))
args = (leaf(2, 4),)
# dy ignored: (p - target) * dy[:, None] -> p - target
# a term dropped: (p - target) -> p
# a sign: (p - target) -> (p + target)
# an integer input given a gradient: dy[:, None], None -> dy[:, None], dy
# an axis not added: dy[:, None], None -> dy, None

# == mean
@jax.custom_vjp
def op(x):
    return x.mean(1)

def forward(x):
    return x.mean(1), x

def backward(x, dy):
    return (jnp.broadcast_to(dy[:, None], x.shape) / x.shape[1],)

op.defvjp(forward, backward)
args = (leaf(2, 3),)
# a factor dropped: / x.shape[1], -> ,
# an axis not added: dy[:, None] -> dy
# a broadcast missing: jnp.broadcast_to(dy[:, None], x.shape) -> dy[:, None]
# the wrong axis counted: x.shape[1] -> x.shape[0]
# dy ignored: dy[:, None] -> jnp.ones_like(dy[:, None])

# == outer
@jax.custom_vjp
def op(a, b):
    return jnp.outer(a, b)

def forward(a, b):
    return jnp.outer(a, b), (a, b)

def backward(saved, dy):
    a, b = saved
    return dy @ b, dy.T @ a

op.defvjp(forward, backward)
args = (leaf(2), leaf(3))
# two gradients exchanged: dy @ b, dy.T @ a -> dy.T @ a, dy @ b
# a transposition missing: dy.T @ a -> dy @ a
# another element type: dy.T @ a -> (dy.T @ a).astype(jnp.float32)
# dy ignored: dy @ b -> jnp.ones_like(dy) @ b
# a sign: dy.T @ a -> -dy.T @ a

# == concat
@jax.custom_vjp
def op(a, b):
    return jnp.concatenate([a, b], 1)

def forward(a, b):
    return op(a, b), None

def backward(saved, dy):
    return dy[:, 0:2], dy[:, 2:5]

op.defvjp(forward, backward)
args = (leaf(4, 2), leaf(4, 3))
# two gradients exchanged: dy[:, 0:2], dy[:, 2:5] -> dy[:, 2:5], dy[:, 0:2]
# the wrong start: dy[:, 2:5] -> dy[:, 1:4]
# cut along the wrong axis: dy[:, 0:2] -> dy[0:2]
# the output's shape returned: dy[:, 2:5] -> dy
# a sign: dy[:, 2:5] -> -dy[:, 2:5]

# == columns
@jax.custom_vjp
def op(x):
    return x[:, 1:3]

def forward(x):
    return x[:, 1:3], x

def backward(x, dy):
    zeros = jnp.zeros_like(x)
    return (zeros.at[:, 1:3].set(dy),)

op.defvjp(forward, backward)
args = (leaf(2, 4),)
# put at the wrong place: 1:3 -> 0:2
# put along the wrong axis: [:, 1:3] -> [0:2]
# zeros returned: zeros.at[:, 1:3].set(dy) -> zeros
# the output's shape returned: zeros.at[:, 1:3].set(dy) -> dy
# dy ignored: set(dy) -> set(1.0)

# == where
@jax.custom_vjp
def where(c, a, b):
    return jnp.where(c, a, b)

def forward(c, a, b):
    return jnp.where(c, a, b), c

def backward(c, dy):
    return None, jnp.where(c, dy, 0.0), jnp.where(c, 0.0, dy)

where.defvjp(forward, backward)
op = lambda a, b: where(jnp.array([[True, False, True]] * 2), a, b)
args = (leaf(2, 3), leaf(2, 3))
# two gradients exchanged: jnp.where(c, dy, 0.0), jnp.where(c, 0.0, dy) -> jnp.where(c, 0.0, dy), jnp.where(c, dy, 0.0)
# the mask ignored: jnp.where(c, 0.0, dy) -> dy
# dy ignored: jnp.where(c, dy, 0.0) -> jnp.where(c, 1.0, 0.0)
# an integer input given a gradient: return None, -> return jnp.zeros_like(dy),
# a sign: jnp.where(c, 0.0, dy) -> -jnp.where(c, 0.0, dy)

# == cumsum
@jax.custom_vjp
def op(x):
    return jnp.cumsum(x, 1)

def forward(x):
    return jnp.cumsum(x, 1), None

def backward(saved, dy):
    return (jnp.flip(jnp.cumsum(jnp.flip(dy, 1), 1), 1),)

op.defvjp(forward, backward)
args = (leaf(2, 3),)
# not reversed: jnp.flip(jnp.cumsum(jnp.flip(dy, 1), 1), 1) -> jnp.cumsum(dy, 1)
# reversed once: jnp.flip(jnp.cumsum(jnp.flip(dy, 1), 1), 1) -> jnp.cumsum(jnp.flip(dy, 1), 1)
# a sum over the wrong axis: jnp.flip(dy, 1), 1) -> jnp.flip(dy, 1), 0)
# dy ignored: jnp.flip(dy, 1) -> jnp.flip(jnp.ones_like(dy), 1)
# a sum missing: jnp.cumsum(jnp.flip(dy, 1), 1) -> jnp.flip(dy, 1)

# == gated
@jax.custom_vjp
def op(a, b):
    return a * jax.nn.sigmoid(b)

def forward(a, b):
    s = jax.nn.sigmoid(b)
    return a * s, (a, s)

def backward(saved, dy):
    a, s = saved
    return dy * s, dy * a * s * (1.0 - s)

op.defvjp(forward, backward)
args = (leaf(2, 3), leaf(2, 3) + 1)
# two gradients exchanged: dy * s, dy * a * s * (1.0 - s) -> dy * a * s * (1.0 - s), dy * s
# a factor dropped: * s * (1.0 - s) -> * (1.0 - s)
# dy ignored: dy * a * s -> a * s
# another tensor saved: a * s, (a, s) -> a * s, (a, b)
# another element type: return dy * s, -> return (dy * s).astype(jnp.float32),

# == attention
@jax.custom_vjp
def op(q, k, v):
    return jax.nn.softmax(q @ k.T) @ v

def forward(q, k, v):
    s = q @ k.T
    p = jax.nn.softmax(s)
    return p @ v, (q, k, v, p)

def backward(saved, dy):
    q, k, v, p = saved
    dp = dy @ v.T
    ds = p * (dp - (dp * p).sum(1, keepdims=True))
    return ds @ k, ds.T @ q, p.T @ dy

op.defvjp(forward, backward)
args = (leaf(2, 3), leaf(4, 3) + 1, leaf(4, 3))
# a term dropped: (dp - (dp * p).sum(1, keepdims=True)) -> dp
# a transposition missing: ds.T @ q -> ds @ q
# two gradients exchanged: ds.T @ q, p.T @ dy -> p.T @ dy, ds.T @ q
# dy ignored: p.T @ dy -> p.T @ jnp.ones_like(dy)
# another tensor saved: (q, k, v, p) -> (q, k, v, s)

# == distances
@jax.custom_vjp
def op(a, b):
    return ((a[:, None] - b) ** 2).sum(2)

def forward(a, b):
    return op(a, b), (a, b)

def backward(saved, dy):
    a, b = saved
    da = (a * dy.sum(1, keepdims=True) - dy @ b) * 2.0
    db = (b * dy.T.sum(1, keepdims=True) - dy.T @ a) * 2.0
    return da, db

op.defvjp(forward, backward)
args = (leaf(2, 3), leaf(4, 3) + 1)
# a factor dropped: - dy @ b) * 2.0 -> - dy @ b)
# a sign: - dy @ b -> + dy @ b
# a sum over the wrong axis: dy.sum(1, keepdims=True) -> dy.sum(0, keepdims=True)
# two gradients exchanged: return da, db -> return db, da
# a term dropped: (b * dy.T.sum(1, keepdims=True) - dy.T @ a) -> b * dy.T.sum(1, keepdims=True)

# == shifted
@jax.custom_vjp
def op(x):
    return (x * 2.0 + 1.0) ** 2

def forward(x):
    h = x * 2.0
    before = h
    h += 1.0
    return h * h, h

def backward(h, dy):
    return (dy * h * 4.0,)

op.defvjp(forward, backward)
args = (leaf(2, 3),)
# saved before a change: return h * h, h -> return h * h, before
# a factor dropped: * 4.0 -> * 2.0
# dy ignored: dy * h -> h
# a sign: dy * h -> -dy * h
# another tensor saved: return h * h, h -> return h * h, x
