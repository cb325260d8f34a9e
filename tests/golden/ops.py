"""Figures for tests/tests/ops/golden.rs: every op of the library in PyTorch, forward and gradients,
and forward in NumPy where NumPy has the op, edge values included.

`python3 ops.py > ops.txt`; PyTorch 2.15.0 and NumPy 2.4.6 on the CPU made the file here.

A case is a line that begins with `case`: the op's name, what tells it from other cases, the element
type. Then come its inputs (`in`, or `index` for integers), the output by PyTorch (`torch`) and by
NumPy (`numpy`), and for each float input the gradient (`grad`) of the outputs' sum, weighted by
`weights`. A line of numbers: the shape, a bar, the numbers.
"""

import math
import sys
import warnings

import numpy as np
import torch
import torch.nn.functional as F

warnings.filterwarnings("ignore")
np.seterr(all="ignore")

UNARY_EDGES = {
    "float64": [5e-324, -5e-324, 1e-310, 2.2250738585072014e-308, 1e-8, -1e-8, 709.7, -745.1, 1e15, 1e300, -1e300, 1.7976931348623157e308],
    "float32": [1.401298464324817e-45, -1.401298464324817e-45, 1e-40, 1.1754943508222875e-38, 1e-8, -1e-8, 88.7, -103.9, 1e15, 1e30, -1e30, 3.4028234663852886e38],
}
COMMON = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.0, -2.0, 2.5, -2.5, 0.25, 3.7, -3.7, 10.0, -10.0, 40.0, -40.0, 100.0, -100.0, 1e-3, -1e-3, 0.999, 1.0001, 1.5707963267948966, 3.141592653589793, 1e5, math.inf, -math.inf, math.nan]
PAIR = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, 1e-20, 1e20, math.inf, -math.inf, math.nan]


def weights(shape):
    """Never 0: 1, -0.5, 2 in turn."""
    n = int(np.prod(shape))
    return np.array([[1.0, -0.5, 2.0][i % 3] for i in range(n)]).reshape(shape)


def numbers(kind, array):
    array = np.asarray(array)
    words = [repr(float(x)) if array.dtype.kind == "f" else str(int(x)) for x in array.ravel()]
    print(kind, *array.shape, "|", *words)


def case(name, variant, dtype, inputs, by_torch, by_numpy=None, differentiable=True):
    floats = [np.asarray(x, dtype=dtype) if np.asarray(x).dtype.kind == "f" else np.asarray(x, dtype=np.int64) for x in inputs]
    print("case", name, variant or "-", dtype)
    leaves = []
    for x in floats:
        numbers("in" if x.dtype.kind == "f" else "index", x)
        leaves.append(torch.tensor(x, requires_grad=x.dtype.kind == "f" and differentiable))
    y = by_torch(*leaves)
    numbers("torch", y.detach().numpy())
    if by_numpy is not None:
        z = np.asarray(by_numpy(*floats))
        numbers("numpy", z.astype(dtype) if z.dtype.kind == "f" else z)
    wanted = [x for x in leaves if x.requires_grad]
    if differentiable and wanted:
        w = torch.tensor(weights(y.shape), dtype=y.dtype)
        grads = torch.autograd.grad(y, wanted, w, allow_unused=True)
        for x, g in zip(wanted, grads):
            numbers("grad", np.zeros(x.shape, dtype) if g is None else g.numpy())


def smooth(shape, k=7, scale=0.25, shift=-1.0):
    """Multiples of a quarter, with repetitions."""
    n = int(np.prod(shape))
    return np.array([((k * i + 3) % 11) * scale + shift for i in range(n)]).reshape(shape)


def log_gamma(x):
    """NumPy has none, and Python's raises errors at poles and beyond the range."""
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


UNARY = {
    "neg": (torch.neg, np.negative),
    "abs": (torch.abs, np.abs),
    "signum": (torch.sign, np.sign),
    "step": (lambda x: torch.heaviside(x.detach(), torch.zeros((), dtype=x.dtype)) + 0 * torch.where(x.isfinite(), x, 0), lambda x: np.heaviside(x, 0)),
    "floor": (torch.floor, np.floor),
    "ceil": (torch.ceil, np.ceil),
    "round": (torch.round, np.round),
    "square": (torch.square, np.square),
    "sqrt": (torch.sqrt, np.sqrt),
    "rsqrt": (torch.rsqrt, lambda x: 1 / np.sqrt(x)),
    "recip": (torch.reciprocal, np.reciprocal),
    "exp": (torch.exp, np.exp),
    "exp_m1": (torch.expm1, np.expm1),
    "ln": (torch.log, np.log),
    "ln_1p": (torch.log1p, np.log1p),
    "log2": (torch.log2, np.log2),
    "log10": (torch.log10, np.log10),
    "sin": (torch.sin, np.sin),
    "cos": (torch.cos, np.cos),
    "tan": (torch.tan, np.tan),
    "asin": (torch.asin, np.arcsin),
    "acos": (torch.acos, np.arccos),
    "atan": (torch.atan, np.arctan),
    "sinh": (torch.sinh, np.sinh),
    "cosh": (torch.cosh, np.cosh),
    "tanh": (torch.tanh, np.tanh),
    "sigmoid": (torch.sigmoid, None),
    "softplus": (lambda x: torch.logaddexp(x, torch.zeros_like(x)), lambda x: np.logaddexp(0, x)),
    "silu": (F.silu, None),
    "erf": (torch.erf, lambda x: np.array([math.erf(v) for v in x])),
    "erfinv": (torch.erfinv, None),
    "digamma": (torch.digamma, None),
    "lgamma": (torch.lgamma, lambda x: np.array([log_gamma(v) for v in x])),
    "relu": (F.relu, lambda x: np.maximum(x, 0)),
    "gelu": (F.gelu, None),
}
PARAMETER = {
    "leaky_relu": {"0.1": (lambda x: F.leaky_relu(x, 0.1), None)},
    "elu": {"1.3": (lambda x: F.elu(x, 1.3), None)},
    "clamp": {"-0.5,1.5": (lambda x: torch.clamp(x, -0.5, 1.5), lambda x: np.clip(x, -0.5, 1.5))},
    "nan_to_num": {"0.5": (lambda x: torch.where(x.isnan(), 0.5, x), lambda x: np.where(np.isnan(x), x.dtype.type(0.5), x))},
    "pow": {str(p): (lambda x, p=p: torch.pow(x, p), lambda x, p=p: np.power(x, x.dtype.type(p))) for p in [0.0, 1.0, 2.0, 3.0, 0.5, -1.0, -2.5]},
    "maximum": {"0.5": (lambda x: torch.clamp(x, min=0.5), lambda x: np.maximum(x, x.dtype.type(0.5)))},
    "minimum": {"0.5": (lambda x: torch.clamp(x, max=0.5), lambda x: np.minimum(x, x.dtype.type(0.5)))},
    "add": {"0.7": (lambda x: x + 0.7, lambda x: x + x.dtype.type(0.7))},
    "sub": {"0.7": (lambda x: 0.7 - x, lambda x: x.dtype.type(0.7) - x)},
    "mul": {"0.7": (lambda x: x * 0.7, lambda x: x * x.dtype.type(0.7))},
    "div": {"0.7": (lambda x: 0.7 / x, lambda x: x.dtype.type(0.7) / x)},
}
BINARY = {
    "add": (torch.add, np.add),
    "sub": (torch.sub, np.subtract),
    "mul": (torch.mul, np.multiply),
    "div": (torch.div, np.divide),
    "pow": (torch.pow, np.power),
    "maximum": (torch.maximum, np.maximum),
    "minimum": (torch.minimum, np.minimum),
    "hypot": (torch.hypot, np.hypot),
    "atan2": (torch.atan2, np.arctan2),
    "logaddexp": (torch.logaddexp, np.logaddexp),
    "xlogy": (torch.xlogy, None),
    "remainder": (torch.remainder, np.remainder),
    "copysign": (torch.copysign, np.copysign),
}
COMPARISONS = {
    "equal": (torch.eq, np.equal),
    "not_equal": (torch.ne, np.not_equal),
    "greater": (torch.gt, np.greater),
    "greater_equal": (torch.ge, np.greater_equal),
    "less": (torch.lt, np.less),
    "less_equal": (torch.le, np.less_equal),
}
SCALAR_COMPARISONS = {"eq_scalar": torch.eq, "ne_scalar": torch.ne, "gt_scalar": torch.gt, "ge_scalar": torch.ge, "lt_scalar": torch.lt, "le_scalar": torch.le}


def elementwise(dtype):
    points = np.array(COMMON + UNARY_EDGES[dtype])
    for name, (t, n) in UNARY.items():
        case(name, "", dtype, [points], t, n)
    for name, variants in PARAMETER.items():
        for variant, (t, n) in variants.items():
            case(name, variant, dtype, [points], t, n)
    a, b = np.meshgrid(PAIR, PAIR)
    for name, (t, n) in BINARY.items():
        case(name, "pairs", dtype, [a.ravel(), b.ravel()], t, n)
        case(name, "broadcast", dtype, [smooth([4, 1, 3], shift=0.25), smooth([2, 1], 5, shift=0.5)], t, n)
        case(name, "empty", dtype, [np.zeros([0, 3]), np.ones([3])], t, n)
    for name in ["add", "sub", "mul", "div"]:
        t, n = BINARY[name]
        case(f"{name}_assign", "pairs", dtype, [a.ravel(), b.ravel()], t, n)
    case("set_item", "1", dtype, [points], lambda x: torch.cat([x[:1], torch.full([1], 7.0, dtype=x.dtype), x[2:]]), None)
    for name, (t, n) in COMPARISONS.items():
        case(name, "pairs", dtype, [a.ravel(), b.ravel()], t, n, differentiable=False)
    for name, t in SCALAR_COMPARISONS.items():
        case(name, "1", dtype, [points], lambda x: t(x, 1.0), None, differentiable=False)
    case("is_nan", "", dtype, [points], torch.isnan, np.isnan, differentiable=False)
    case("where_else", "", dtype, [a.ravel(), b.ravel()], lambda x, y: torch.where(x < y, x, y), lambda x, y: np.where(x < y, x, y))
    case("cast", "float32", dtype, [points], lambda x: x.to(torch.float32), lambda x: x.astype(np.float32))
    case("cast", "float64", dtype, [points], lambda x: x.to(torch.float64), lambda x: x.astype(np.float64))
    case("cast", "bool", dtype, [points], lambda x: x.to(torch.bool), lambda x: x.astype(bool), differentiable=False)
    inside = np.array([0.0, -0.0, 1.9, -1.9, 0.5, -0.5, 100.7, -100.7, 1e-3])
    case("cast", "int64", dtype, [inside], lambda x: x.to(torch.int64), lambda x: x.astype(np.int64), differentiable=False)


def all_axes(f):
    """PyTorch's extremes over several axes are `amax` and `amin`."""
    return lambda x, axes, keep: f(x, dim=axes, keepdim=keep)


def prod(x, axes, keep):
    for axis in sorted(range(x.dim()) if not axes else [a % x.dim() for a in axes], reverse=True):
        x = torch.prod(x, axis, keepdim=keep)
    return x


REDUCTIONS = {
    "sum": (all_axes(torch.sum), np.sum),
    "mean": (all_axes(torch.mean), np.mean),
    "prod": (prod, np.prod),
    "max": (lambda x, axes, keep: torch.amax(x, dim=axes, keepdim=keep), np.max),
    "min": (lambda x, axes, keep: torch.amin(x, dim=axes, keepdim=keep), np.min),
}


def data(dtype):
    """Ties, zeros of both signs, then rows with infinities and NaN."""
    plain = smooth([2, 3, 4])
    signs = np.array([[0.0, -0.0, 0.0], [-0.0, -0.0, -0.0], [1.0, 1.0, 1.0], [-1.0, 2.0, 2.0]])
    odd = np.array([[math.inf, 1.0, math.inf], [-math.inf, 2.0, 0.0], [math.inf, -math.inf, 1.0], [math.nan, 1.0, math.inf], [-math.inf] * 3, [1e30, -1e30, 1e-30]])
    return {"plain": plain, "signs": signs, "odd": odd}


def reductions(dtype):
    for label, x in data(dtype).items():
        for name, (t, n) in REDUCTIONS.items():
            everything = tuple(range(x.ndim))
            case(name, label, dtype, [x], lambda x: t(x, everything, False), lambda x: n(x))
            for axes in [(-1,), (0,)] + ([(0, 2), (1, 2)] if x.ndim == 3 else []):
                words = ",".join(map(str, axes))
                case(f"{name}_axes", f"{label}:{words}", dtype, [x], lambda x: t(x, axes, False), lambda x: n(x, axis=axes))
                if label == "plain":
                    case(f"{name}_axes_keep", f"{label}:{words}", dtype, [x], lambda x: t(x, axes, True), lambda x: n(x, axis=axes, keepdims=True))
        for axes in [(-1,), (0,)]:
            words = f"{label}:{axes[0]}"
            case("logsumexp", words, dtype, [x], lambda x: torch.logsumexp(x, axes), None)
            case("softmax", words, dtype, [x], lambda x: torch.softmax(x, axes[0]), None)
            case("log_softmax", words, dtype, [x], lambda x: torch.log_softmax(x, axes[0]), None)
            case("cumsum", words, dtype, [x], lambda x: torch.cumsum(x, axes[0]), lambda x: np.cumsum(x, axes[0]))
            for correction in [0, 1]:
                case("var_axes", f"{words}:{correction}", dtype, [x], lambda x: torch.var(x, axes, correction=correction), lambda x: np.var(x, axes, ddof=correction))
                case("std_axes", f"{words}:{correction}", dtype, [x], lambda x: torch.std(x, axes, correction=correction), lambda x: np.std(x, axes, ddof=correction))
            case("argmax", words, dtype, [x], lambda x: torch.argmax(x, axes[0]), lambda x: np.argmax(x, axes[0]), differentiable=False)
            case("argmin", words, dtype, [x], lambda x: torch.argmin(x, axes[0]), lambda x: np.argmin(x, axes[0]), differentiable=False)
        case("norm", label, dtype, [x], lambda x: torch.linalg.vector_norm(x), lambda x: np.sqrt(np.sum(np.square(x))))
        case("normalize", f"{label}:0.01", dtype, [x], lambda x: F.layer_norm(x, x.shape[-1:], eps=0.01), None)
    case("norm", "zero", dtype, [np.zeros(3)], lambda x: torch.linalg.vector_norm(x), None)
    empty = np.zeros([2, 0])
    for name in ["sum", "prod"]:
        t, n = REDUCTIONS[name]
        case(name, "empty", dtype, [empty], lambda x: t(x, (0, 1), False), lambda x: n(x))
        case(f"{name}_axes", "empty:1", dtype, [empty], lambda x: t(x, (1,), False), lambda x: n(x, axis=1))
    case("mean", "empty", dtype, [empty], lambda x: torch.mean(x), None)
    case("logsumexp", "empty:1", dtype, [empty], lambda x: torch.logsumexp(x, 1), None)
    case("softmax", "empty:1", dtype, [empty], lambda x: torch.softmax(x, 1), None)
    case("cumsum", "empty:1", dtype, [empty], lambda x: torch.cumsum(x, 1), None)
    large = np.array([[1000.0, 1000.0, 999.0], [-1000.0, -1001.0, -1000.0]])
    for name, t in [("logsumexp", torch.logsumexp), ("softmax", torch.softmax), ("log_softmax", torch.log_softmax)]:
        case(name, "large:1", dtype, [large], lambda x: t(x, 1), None)
    zeros = np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 5.0], [1.0, 4.0, 0.5]])
    case("prod_axes", "zeros:1", dtype, [zeros], lambda x: torch.prod(x, 1), lambda x: np.prod(x, 1))
    case("prod_axes", "zeros:0", dtype, [zeros], lambda x: torch.prod(x, 0), lambda x: np.prod(x, 0))


def shapes(dtype):
    x, s = smooth([2, 3, 4]), lambda y: y * y
    moves = {
        ("reshape", "4,6"): lambda x: x.reshape(4, 6),
        ("flatten", ""): lambda x: x.flatten(),
        ("transpose", ""): lambda x: x.transpose(-1, -2),
        ("permute", "2,0,1"): lambda x: x.permute(2, 0, 1),
        ("unsqueeze", "1"): lambda x: x.unsqueeze(1),
        ("squeeze", "0"): lambda x: x[:1].squeeze(0),
        ("narrow", "1,1,2"): lambda x: x.narrow(1, 1, 2),
        ("slice_axis", "2,0,4,3"): lambda x: x[:, :, 0:4:3],
        ("select", "1,2"): lambda x: x.select(1, 2),
        ("flip", "1"): lambda x: x.flip(1),
        ("split", "2,2"): lambda x: x.split(2, 2)[1],
        ("concat", "1"): lambda x: torch.cat([x, x * x], 1),
        ("stack", "1"): lambda x: torch.stack([x, x * x], 1),
        ("contiguous", ""): lambda x: x.contiguous(),
        ("copy", ""): lambda x: x.clone(),
        ("broadcast_to", "2,2,3,4"): lambda x: x.broadcast_to(2, 2, 3, 4),
        ("sum_to", "3,1"): lambda x: x.sum_to_size(3, 1),
        ("diagonal", "0"): lambda x: x.diagonal(0, -2, -1),
        ("diagonal", "2"): lambda x: x.diagonal(2, -2, -1),
        ("diagonal", "-1"): lambda x: x.diagonal(-1, -2, -1),
        ("diag", "0"): lambda x: torch.diag_embed(x, 0),
        ("diag", "-2"): lambda x: torch.diag_embed(x, -2),
        ("trace", ""): lambda x: x.diagonal(0, -2, -1).sum(-1),
        ("tril", "0"): lambda x: x.tril(0),
        ("tril", "-1"): lambda x: x.tril(-1),
        ("triu", "1"): lambda x: x.triu(1),
    }
    for (name, variant), f in moves.items():
        case(name, variant, dtype, [x], lambda x: s(f(x)))
    i = np.array([2, 0, 2])
    case("index_select", "1", dtype, [x, i], lambda x, i: s(x.index_select(1, i)))
    case("index_add", "1", dtype, [x, i, smooth([2, 3, 4], 5)], lambda x, i, y: s(x.index_add(1, i, y)))
    g = np.array([[[0, 3, 1], [1, 1, 1]]])
    case("gather", "2", dtype, [x, g], lambda x, i: s(x.gather(2, i)))
    case("scatter_add", "2", dtype, [x, g, smooth([1, 2, 3], 5)], lambda x, i, y: s(x.scatter_add(2, i, y)))
    case("scatter", "2", dtype, [x, np.array([[[0, 3, 1], [2, 1, 0]]]), smooth([1, 2, 3], 5)], lambda x, i, y: s(x.scatter(2, i, y)))
    case("segment_sum", "4", dtype, [x, np.array([3, 0])], lambda x, i: s(torch.zeros(4, 3, 4, dtype=x.dtype).index_add(0, i, x)))
    case("repeat_interleave", "2,1", dtype, [x], lambda x: s(x.repeat_interleave(2, 1)), lambda x: np.repeat(x, 2, 1) ** 2)
    counts = np.array([3, 0, 2])
    case("repeat_interleave_with_counts", "1", dtype, [x, counts], lambda x, n: s(x.repeat_interleave(n, 1)), lambda x, n: np.repeat(x, n, 1) ** 2)

    def reduced(x, i, y):
        by = lambda how: x.index_reduce(1, i, y, how)
        return s(by("mean") + by("amax") * 2.0 - by("amin") * 3.0 + by("prod") * 0.5)

    case("index_reduce", "1", dtype, [x, i, smooth([2, 3, 4], 5)], reduced)
    case("cdist", "", dtype, [x, smooth([2, 2, 4], 5)], lambda x, y: torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist"))
    n = np.array([3, 1, 3, 0, 7])
    case("bincount", "9", dtype, [n], lambda n: torch.bincount(n, minlength=9), lambda n: np.bincount(n, minlength=9), differentiable=False)
    case("unique", "", dtype, [np.array([2.0, -1.0, 2.0, 0.5])], torch.unique, np.unique, differentiable=False)
    for right in ["left", "right"]:
        case("searchsorted", right, dtype, [np.sort(smooth([7])), np.concatenate([smooth([7]), [9.0, -9.0, math.inf]])], lambda x, y: torch.searchsorted(x, y, side=right), lambda x, y: np.searchsorted(x, y, right), differentiable=False)
    case("one_hot", "4", dtype, [i], lambda i: F.one_hot(i, 4).to(getattr(torch, dtype)), lambda i: np.eye(4)[i], differentiable=False)
    for name, f, g in [("eye", lambda: torch.eye(3), lambda: np.eye(3)), ("arange", lambda: torch.arange(5), lambda: np.arange(5)), ("linspace", lambda: torch.linspace(-1, 2, 7, dtype=torch.float64), lambda: np.linspace(-1, 2, 7))]:
        case(name, "", dtype, [], lambda: f().to(getattr(torch, dtype)), lambda: g().astype(dtype), differentiable=False)
    a = np.array([0.0, 1.0, 2.0, 0.0])
    case("and", "", dtype, [a, a[::-1].copy()], lambda x, y: x.bool() & y.bool(), lambda x, y: (x != 0) & (y != 0), differentiable=False)
    case("or", "", dtype, [a, a[::-1].copy()], lambda x, y: x.bool() | y.bool(), lambda x, y: (x != 0) | (y != 0), differentiable=False)
    for name, t, n in [("any", torch.any, np.any), ("all", torch.all, np.all)]:
        for variant, x in [("mixed", a), ("zeros", a * 0), ("ones", a * 0 + 1), ("empty", a[:0])]:
            case(name, variant, dtype, [x], lambda x: t(x.bool()), lambda x: n(x != 0), differentiable=False)
    case("not", "", dtype, [a], lambda x: ~x.bool(), lambda x: x == 0, differentiable=False)


def products(dtype):
    pairs = [([3], [3]), ([2, 3], [3]), ([3], [3, 4]), ([2, 3], [3, 4]), ([5, 2, 3], [3, 4]), ([2, 1, 2, 3], [4, 3, 2]), ([3], [5, 3, 4]), ([2, 0], [0, 3]), ([0, 3], [3, 2]), ([17, 33], [33, 19])]
    for left, right in pairs:
        variant = "x".join(",".join(map(str, shape)) for shape in (left, right))
        case("matmul", variant, dtype, [smooth(left), smooth(right, 5)], torch.matmul, np.matmul)
    odd = np.array([[math.inf, 1.0], [math.nan, 2.0], [0.0, -0.0]])
    case("matmul", "odd", dtype, [odd, np.array([[1.0, 0.0], [2.0, 3.0]])], torch.matmul, np.matmul)
    case("outer", "", dtype, [smooth([3]), smooth([4], 5)], torch.outer, np.outer)
    w, b = smooth([4, 3], 5), smooth([4], 3)
    case("linear", "bias", dtype, [smooth([2, 2, 3]), w, b], F.linear)
    case("linear", "none", dtype, [smooth([2, 3]), w], F.linear)
    for variant, (x, w, options) in {
        "plain": ([2, 2, 4, 5], [3, 2, 3, 2], {}),
        "strided": ([1, 2, 5, 4], [2, 2, 2, 3], {"stride": (2, 1), "padding": (1, 2)}),
        "groups": ([2, 4, 4, 4], [4, 2, 2, 2], {"groups": 2}),
        "dilated": ([1, 1, 7, 7], [2, 1, 3, 2], {"dilation": (2, 3), "stride": 2}),
    }.items():
        case("conv2d", variant, dtype, [smooth(x), smooth(w, 5), smooth(w[:1], 3)], lambda x, w, b: F.conv2d(x, w, b, **options))
    ties = np.round(smooth([2, 2, 5, 5], 3))
    for variant, options in {"2": (2, {}), "3,2": ((3, 2), {"stride": (1, 2), "padding": (1, 0)}), "3": (3, {"stride": 2, "padding": 1})}.items():
        kernel, more = options
        distinct = np.random.default_rng(5).permutation(100).reshape(2, 2, 5, 5) / 8 - 6
        case("max_pool2d", variant, dtype, [distinct], lambda x: F.max_pool2d(x, kernel, **more))
        case("max_pool2d", f"{variant}:ties", dtype, [ties], lambda x: F.max_pool2d(x, kernel, **more))
        case("avg_pool2d", variant, dtype, [distinct], lambda x: F.avg_pool2d(x, kernel, count_include_pad=False, **more))


def losses(dtype):
    targets = np.array([4, 0, 2])
    for label, logits in {"plain": smooth([3, 5]), "large": smooth([3, 5]) * 1000, "odd": np.array([[math.inf, 0, 0, 0, 0], [-math.inf, 1, 2, 3, 4], [math.nan, 0, 0, 0, 0.0]])}.items():
        case("cross_entropy", label, dtype, [logits, targets], F.cross_entropy)
        case("nll_loss", label, dtype, [logits, targets], F.nll_loss)
    a = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -40.0, 100.0, 1e-3])
    b = np.array([0.0, 1.0, 0.0, 0.0, 0.5, 2.0, -39.0, 0.25, 1.0])
    for name, f in {"mse_loss": F.mse_loss, "smooth_l1_loss": F.smooth_l1_loss, "binary_cross_entropy_with_logits": F.binary_cross_entropy_with_logits}.items():
        case(name, "plain", dtype, [a, b], f)
        case(name, "scalar", dtype, [np.array(0.25), np.array(0.75)], f)
        case(name, "odd", dtype, [np.array([math.inf, 1.0]), np.array([1.0, 0.0])], f)
        case(name, "nan", dtype, [np.array([math.nan, 1.0]), np.array([1.0, 0.0])], f)
    case("dropout", "0", dtype, [a], lambda x: F.dropout(x, 0.0, True))
    case("dropout", "1", dtype, [a], lambda x: F.dropout(x, 1.0, True))
    case("dropout", "off", dtype, [a], lambda x: F.dropout(x, 0.5, False))


if __name__ == "__main__":
    for dtype in ["float64", "float32"]:
        elementwise(dtype)
        reductions(dtype)
        shapes(dtype)
        products(dtype)
        losses(dtype)
