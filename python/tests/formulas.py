"""The functions of formulas on 100,000 points and on special numbers: what a framework makes of their text is compared
with the kernels of Rust."""

import my_ops
import numpy as np
from autograd_bridge.numpy import bind

ONE = """exp exp_m1 ln ln_1p log2 log10 tanh sigmoid softplus erf erfinv digamma lgamma sin cos tan asin acos atan sinh
cosh sqrt rsqrt recip abs signum floor ceil round trunc""".split()
TWO = "powf min max hypot atan2 logaddexp xlogy remainder copysign div".split()
POINTS = 100_000
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 3e38, -3e38, -1, 1, 0.5, -0.5, 1.5, 2.5, -2.5, 2, -2, 88, -88, 1e5, 8388609]

ops = bind(my_ops)

# Near ±1, where these gradients are infinite: 1 - a * a, which cancels, is rounded once or twice.
NEAR_POLES = {
    "asin": lambda a, b: 0.99 < abs(a) < 1,
    "acos": lambda a, b: 0.99 < abs(a) < 1,
    "erfinv": lambda a, b: 0.99 < abs(a) < 1,
}


def arguments(dtype):
    """Random numbers, then all pairs of special ones."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=POINTS) * 3, rng.normal(size=POINTS)
    pairs = [of.ravel() for of in np.meshgrid(SPECIAL, SPECIAL, indexing="ij")]
    return [np.concatenate(of).astype(dtype) for of in zip((a, b), pairs)]


def differences(name, found, a, b, listed):
    """Beside the listed cases, where the value or a gradient differs, with its numbers: by more than 1e-5 of `max(1, |value|)`, or by being NaN,
    infinite, or a zero of the other sign. Results below the normal numbers count as zero."""
    y, kept = ops.function.forward(a, b, name)
    expected = [y, *ops.function.backward(kept, np.ones_like(y))]
    all = []
    for what, f, e in zip(("value", "da", "db"), found, expected):
        assert f.dtype == e.dtype and f.shape == e.shape
        f, e = _flushed(f), _flushed(e)
        with np.errstate(all="ignore"):
            near = np.abs(f - e) <= 1e-5 * np.maximum(1, np.abs(e))
        exact = (f == e) & (np.signbit(f) == np.signbit(e)) | (np.isnan(f) & np.isnan(e))
        same = exact | (near & np.isfinite(e) & ((e != 0) | (f != 0)))
        wrong, *numbers = np.broadcast_arrays(~same, a, b, f, e)
        all += [(what, *map(float, of)) for of in zip(*(each[wrong] for each in numbers))]
    is_listed = {**NEAR_POLES, **listed}.get(name, lambda a, b: False)
    return [of for of in all if not is_listed(*of[1:3])]


def _flushed(of):
    return np.where(np.abs(of) < np.finfo(of.dtype).tiny, np.copysign(of.dtype.type(0), of), of)


def arguments_of(name):
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=POINTS).astype(np.float32) * scale for scale in (3, 1))
    return [a, b, rng.random(POINTS) < 0.5] if name == "choice" else [a]


def check(name, args, found):
    """The value and the gradients of a formula: within 1e-5 of `max(1, |value|)`."""
    op = getattr(ops, name)
    y, kept = op.forward(*args)
    expected = [y, *(of for of in op.backward(kept, np.ones_like(y)) if of is not None)]
    assert len(found) == len(expected)
    for f, e in zip(found, expected):
        error = np.abs(np.asarray(f, np.float64) - e) / np.maximum(1, np.abs(e))
        assert error.max() < 1e-5
