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
