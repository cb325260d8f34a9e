"""Figures for tests/tests/ops/golden.rs of order, powers, norms and losses along axes, of labelled sums, linear systems and factorizations, by PyTorch and NumPy.

`python3 axes.py > axes.txt`; the versions and the form are those of ops.py.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F

from ops import case, smooth


def orders(dtype):
    distinct = np.random.default_rng(5).permutation(24).reshape(2, 3, 4) / 8 - 1.5
    nan = np.array([[math.nan, 1.0, 2.0, 0.0], [math.inf, -math.inf, math.nan, 1.0]])
    for label, x in {"plain": distinct, "ties": smooth([2, 3, 4])}.items():
        for axis in [0, 1, -1]:
            for descending in [0, 1]:
                words = f"{label}:{axis},{descending}"
                case("sort", words, dtype, [x], lambda x: torch.sort(x, dim=axis, descending=bool(descending), stable=True)[0].square())
                case("argsort", words, dtype, [x], lambda x: torch.argsort(x, dim=axis, descending=bool(descending), stable=True), differentiable=False)
            # Of equal elements theirs take any.
            if label == "plain":
                case("topk", f"2,{axis}", dtype, [x], lambda x: torch.topk(x, 2, axis)[0].square())
                case("median_axes", f"{axis}", dtype, [x], lambda x: torch.median(x, axis)[0].square())
                case("median_axes_keep", f"{axis}", dtype, [x], lambda x: torch.median(x, axis, True)[0].square())
            case("max_with_indices", f"{label}:{axis}", dtype, [x], lambda x: torch.max(x, axis)[0].square())
            case("min_with_indices", f"{label}:{axis}", dtype, [x], lambda x: torch.min(x, axis)[0].square())
    case("sort", "nan:1,0", dtype, [nan], lambda x: torch.sort(x, dim=1, stable=True)[0], lambda x: np.sort(x, 1), differentiable=False)
    case("argsort", "nan:1,0", dtype, [nan], lambda x: torch.argsort(x, dim=1, stable=True), lambda x: np.argsort(x, 1, "stable"), differentiable=False)
    case("median", "", dtype, [distinct], lambda x: torch.median(x).square())
    case("median", "nan", dtype, [nan], lambda x: torch.median(x), differentiable=False)
    case("median_axes", "0,2", dtype, [distinct], lambda x: torch.median(x.permute(1, 0, 2).flatten(1), 1)[0].square())


def powers(dtype):
    zeros = np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 5.0], [1.0, 4.0, 0.5]])
    for label, x in {"plain": smooth([2, 3, 4]) + 0.1, "zeros": zeros, "one": zeros[:, :1], "empty": zeros[:, :0]}.items():
        for axis in [0, -1]:
            case("cumprod", f"{label}:{axis}", dtype, [x], lambda x: torch.cumprod(x, axis), lambda x: np.cumprod(x, axis))
    # Only products in order are those of NumPy: others of these overflow or underflow. PyTorch multiplies in float64.
    great = 1e200 if dtype == "float64" else 1e25
    runs = {"overflow": [0.0, great, great, 1.0], "underflow": [1e-200, 1e-200, 1e200, 1e200], "signs": [-1.0, -0.0, 2.0, -3.0]}
    for label, x in runs.items():
        case("cumprod", f"{label}:0", dtype, [np.array(x)], lambda x: torch.cumprod(x, 0), lambda x: np.cumprod(x, 0), differentiable=False)
    x = smooth([2, 3, 4]) + 0.1
    for p in [0.5, 1.0, 2.0, 2.5, 3.0, 4.0, math.inf, -math.inf, 0.0, -1.0, -2.0, -0.5]:
        for axes in [(0,), (-1,), (0, 2), (0, 1, 2)]:
            words = ",".join(map(str, axes))
            case("norm_axes", f"{p}:{words}", dtype, [x], lambda x: torch.linalg.vector_norm(x, p, axes), differentiable=p != 0)
        case("norm_axes_keep", f"{p}:1", dtype, [x], lambda x: torch.linalg.vector_norm(x, p, (1,), True), differentiable=p != 0)
        # Theirs gives 0 to all elements of a row that is 0.
        case("norm_axes", f"{p}:1", dtype, [zeros], lambda x: torch.linalg.vector_norm(x, p, 1), differentiable=1 < p < math.inf or -math.inf < p < 0)
    case("norm_axes", "2.0:0", dtype, [np.zeros([3, 2])], lambda x: torch.linalg.vector_norm(x, 2.0, 0))
    case("norm_axes", "3.0:1", dtype, [np.zeros([3, 0])], lambda x: torch.linalg.vector_norm(x, 3.0, 1))
    for p in [0.5, 2.0, 2.5, 3.0, -1.0, -2.5]:
        case("norm_axes", f"{p}:1", dtype, [np.array([[math.inf, 1.0], [math.nan, 1.0], [-math.inf, 0.0]])], lambda x: torch.linalg.vector_norm(x, p, 1))


def kept(dtype):
    x = smooth([2, 3, 4], 5)
    for axes in [(1,), (-1, 0)]:
        words = "kept:" + ",".join(map(str, axes))
        case("logsumexp_keep", words, dtype, [x], lambda x: torch.logsumexp(x, axes, True))
        for correction in [0, 1]:
            case("var_axes_keep", f"{words}:{correction}", dtype, [x], lambda x: torch.var(x, axes, correction=correction, keepdim=True))
            case("std_axes_keep", f"{words}:{correction}", dtype, [x], lambda x: torch.std(x, axes, correction=correction, keepdim=True))
        for name, f in {"any": torch.any, "all": torch.all}.items():
            case(f"{name}_axes_keep", words, dtype, [x], lambda x: f(x != 0, axes, True), differentiable=False)


def losses(dtype):
    targets = np.array([4, 1, 2])
    many = np.array([[[0, 1], [2, 1]], [[1, 2], [0, 0]]])
    weight = np.array([0.5, 1.0, 2.0, 0.25, 1.5])
    case("cross_entropy", "axes", dtype, [smooth([2, 3, 2, 2]), many], F.cross_entropy)
    for reduction in ["mean", "sum", "none"]:
        for words in ["", "ignore", "weight", "smooth", "ignore_weight", "ignore_smooth", "weight_smooth", "ignore_weight_smooth"]:
            for x, index in [(smooth([3, 5]), targets), (smooth([2, 3, 2, 2]), many)]:
                def by_torch(x, index):
                    return F.cross_entropy(
                        x,
                        index,
                        weight=torch.tensor(weight[: x.shape[1]], dtype=x.dtype) if "weight" in words else None,
                        ignore_index=1 if "ignore" in words else -100,
                        label_smoothing=0.1 if "smooth" in words else 0.0,
                        reduction=reduction,
                    )
                case("cross_entropy_with", f"{words}_{reduction}", dtype, [x, index], by_torch)
    case("cross_entropy_with", "ignore_mean", dtype, [smooth([2, 3]), np.array([1, 1])], lambda x, i: F.cross_entropy(x, i, ignore_index=1), differentiable=False)
    a = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -40.0, 100.0, 1e-3])
    b = np.array([0.0, 1.0, 0.0, 0.0, 0.5, 2.0, -39.0, 0.25, 1.0])
    p, q = (smooth([3, 4], k, 0.09, 0.05) for k in (7, 5))
    case("l1_loss", "", dtype, [a, b], F.l1_loss)
    for delta in [0.5, 1.0, 50.0]:
        case("huber_loss", f"{delta}", dtype, [a, b], lambda x, t: F.huber_loss(x, t, delta=delta))
    case("kl_div", "", dtype, [np.log(p), q], lambda x, t: F.kl_div(x, t, reduction="batchmean"))
    for name, f, given, own in [
        ("mse_loss", F.mse_loss, [a, b], {}),
        ("l1_loss", F.l1_loss, [a, b], {}),
        ("smooth_l1_loss", F.smooth_l1_loss, [a, b], {}),
        ("huber_loss", F.huber_loss, [a, b], {"delta": 0.5}),
        ("kl_div", F.kl_div, [np.log(p), q], {}),
        ("binary_cross_entropy", F.binary_cross_entropy, [p, q], {}),
        ("binary_cross_entropy_with_logits", F.binary_cross_entropy_with_logits, [a, b], {}),
    ]:
        for reduction in ["mean", "sum", "none"] + ["batchmean"] * (name == "kl_div"):
            words = ":".join([reduction] + [str(value) for value in own.values()])
            case(f"{name}_with", words, dtype, given, lambda x, t: f(x, t, reduction=reduction, **own))
    case("kl_div", "zeros", dtype, [np.array([-1.0, -2.0, -math.inf]), np.array([0.0, 1.0, 0.0])], lambda x, t: F.kl_div(x, t, reduction="batchmean"), differentiable=False)
    case("binary_cross_entropy", "", dtype, [p, q], F.binary_cross_entropy)
    case("binary_cross_entropy", "ends", dtype, [np.array([0.0, 1.0, 0.0, 1.0, 0.5, 1e-30]), np.array([0.0, 1.0, 1.0, 0.0, 1.0, 1.0])], F.binary_cross_entropy)


def sums(dtype):
    shapes = {"a": 2, "b": 3, "c": 4, "d": 2}
    for equation in [
        "ab,bc->ac", "ab,bc", "ba,cb->ca", "ab,ab->ab", "ab,ab->a", "ab,ab->", "a,b->ab", "a,b->ba", "abc,acd->abd", "abc,acd->dba", "ad->da",
        "ad->a", "ab->", "ad,ad,a->d", "ab,bc,cd->ad", "aa->a", "aa->", "aba->ba", "aad,bd->ab", "aa,ab->b", "abc,bad->", "ba", "b,a,c", ",a->a",
    ]:
        terms = equation.split("->")[0].split(",")
        operands = [smooth([shapes[letter] for letter in term], k) for term, k in zip(terms, (7, 5, 3))]
        case("einsum", equation, dtype, operands, lambda *x: torch.einsum(equation, *x), lambda *x: np.einsum(equation, *x))
    for equation, given in {
        "...ab,...bc->...ac": [[2, 1, 2, 3], [4, 3, 2]],
        "...a,...a->...": [[2, 3], [3]],
        "a...->...a": [[2, 3, 4]],
        "...a,ab": [[2, 2, 3], [3, 2]],
        "a...b,b...->a...": [[2, 3, 4], [4, 1]],
        "ab,ab->ab": [[2, 1], [1, 3]],
        "ab,bc->ac": [[2, 0], [0, 3]],
        "...->...": [[2, 3]],
    }.items():
        operands = [smooth(shape, k) for shape, k in zip(given, (7, 5))]
        case("einsum", equation, dtype, operands, lambda *x: torch.einsum(equation, *x))


def systems(dtype):
    unit = np.eye(3) * 4
    for label, a in {"plain": smooth([3, 3]) + unit, "stack": smooth([2, 2, 3, 3], 5) + unit, "permuted": (smooth([3, 3]) + unit)[[2, 0, 1]], "one": np.array([[-2.0]]), "empty": np.zeros([2, 0, 0])}.items():
        n = a.shape[-1]
        case("inv", label, dtype, [a], torch.linalg.inv, np.linalg.inv)
        case("slogdet", label, dtype, [a], lambda a: torch.linalg.slogdet(a)[1], lambda a: np.linalg.slogdet(a)[1])
        case("slogdet", f"{label}:sign", dtype, [a], lambda a: torch.linalg.slogdet(a)[0], lambda a: np.linalg.slogdet(a)[0], differentiable=False)
        case("solve", label, dtype, [a, smooth([n, 2])], torch.linalg.solve, np.linalg.solve)
        # A vector beside a stack is a column here, as in NumPy.
        case("solve", f"{label}:vector", dtype, [a, smooth([n])], lambda a, b: torch.linalg.solve(a, b[:, None])[..., 0])
        case("cholesky", label, dtype, [a @ np.swapaxes(a, -1, -2)], torch.linalg.cholesky, np.linalg.cholesky)
    case("solve", "broadcast", dtype, [smooth([2, 1, 3, 3]) + unit, smooth([4, 3, 1])], torch.linalg.solve, np.linalg.solve)
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    case("slogdet", "singular", dtype, [singular], lambda a: torch.linalg.slogdet(a)[1], differentiable=False)
    case("slogdet", "singular:sign", dtype, [singular], lambda a: torch.linalg.slogdet(a)[0], differentiable=False)


def factors(dtype):
    half = lambda a: (a + a.mT) / 2
    def eigh(a):
        w, v = torch.linalg.eigh(half(a))
        return (v * torch.tanh(w)[..., None, :]) @ v.mT + w[..., None, :]
    def qr(a):
        q, r = torch.linalg.qr(a)
        return q.square() @ r.square()
    def svd(a):
        u, s, vt = torch.linalg.svd(a, full_matrices=False)
        return (u * torch.tanh(s)[..., None, :]) @ vt + s.sum(-1)[..., None, None]
    apart = np.diag([4.0, 9.0, 14.0])
    for label, a in {"plain": smooth([3, 3]) + apart, "stack": smooth([2, 3, 3], 5) + apart, "one": np.array([[2.0]]), "empty": np.zeros([2, 0, 0])}.items():
        n = a.shape[-1]
        b = smooth([n, 2])
        for word in ["upper", "lower"]:
            case("solve_triangular", f"{label},{word}", dtype, [a, b], lambda a, b: torch.linalg.solve_triangular(a, b, upper=word == "upper"))
        case("cholesky_solve", label, dtype, [a, b], lambda l, b: torch.cholesky_solve(b.expand(*l.shape[:-1], 2), l.tril()))
        case("eigh", label, dtype, [a + np.swapaxes(a, -1, -2)], eigh)
    for label, a in {"square": smooth([3, 3]) + apart, "tall": smooth([2, 4, 3], 5) + np.eye(4, 3) * 3, "wide": smooth([2, 3], 4) + np.eye(2, 3) * 2, "none": np.zeros([3, 0])}.items():
        case("qr", label, dtype, [a], qr)
        if label != "none":
            case("svd", label, dtype, [a], svd)
        case("pinv", label, dtype, [a], torch.linalg.pinv, np.linalg.pinv)
        if label not in ["wide", "none"]:
            case("lstsq", label, dtype, [a, smooth([a.shape[-2], 2])], lambda a, b: torch.linalg.pinv(a) @ b, lambda a, b: np.linalg.pinv(a) @ b)


if __name__ == "__main__":
    for dtype in ["float64", "float32"]:
        orders(dtype)
        powers(dtype)
        kept(dtype)
        losses(dtype)
        sums(dtype)
        systems(dtype)
        factors(dtype)
