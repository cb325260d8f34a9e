"""Figures for tests/tests/ops/golden.rs of ops that move, choose and make elements, by NumPy alone.

`python3 moves.py > moves.txt`; NumPy 2.4.6 made the file here. The form is that of ops.py.

An op that moves elements is given their numbers (0, 1, ..) in place of the elements. That shows where each
comes from, so that the gradient of the squares' weighted sum is added up there.
"""

import numpy as np

# What stands in the place of a constant.
CONSTANT = -1


def weights(shape):
    """Never 0: 1, -0.5, 2 in turn."""
    n = int(np.prod(shape))
    return np.array([[1.0, -0.5, 2.0][i % 3] for i in range(n)]).reshape(shape)


def smooth(shape, k=7, scale=0.25, shift=-1.0):
    """Multiples of a quarter, with repetitions."""
    n = int(np.prod(shape))
    return np.array([((k * i + 3) % 11) * scale + shift for i in range(n)]).reshape(shape)


def numbers(kind, array):
    array = np.asarray(array)
    words = [repr(float(x)) if array.dtype.kind == "f" else str(int(x)) for x in array.ravel()]
    print(kind, *array.shape, "|", *words)


def case(name, variant, dtype, inputs, value, grads=()):
    print("case", name, variant or "-", dtype)
    for x in inputs:
        x = np.asarray(x)
        numbers("in" if x.dtype.kind == "f" else "index", x.astype(dtype) if x.dtype.kind == "f" else x)
    value = np.asarray(value)
    numbers("numpy", value.astype(dtype) if value.dtype.kind == "f" else value)
    for grad in grads:
        numbers("grad", np.asarray(grad).astype(dtype))


def move(name, variant, dtype, inputs, f, constant=0.5, index=()):
    """Squares of elements of the float inputs, moved by `f`."""
    sizes = np.cumsum([0] + [x.size for x in inputs])
    places = [np.arange(a, b).reshape(x.shape) for a, b, x in zip(sizes, sizes[1:], inputs)]
    source = np.asarray(f(*places))
    flat = np.concatenate([x.ravel() for x in inputs] + [[constant]])
    moved = flat[source]
    slopes = 2 * moved * weights(moved.shape)
    grad = np.zeros(len(flat))
    np.add.at(grad, source.ravel(), slopes.ravel())
    grads = [grad[a:b].reshape(x.shape) for a, b, x in zip(sizes, sizes[1:], inputs)]
    case(name, variant, dtype, list(inputs) + list(index), moved * moved, grads)


def shapes(dtype):
    x = smooth([2, 3, 4])
    for variant, f in {
        ("swap_axes", "0,-1"): lambda x: np.swapaxes(x, 0, -1),
        ("t", ""): lambda x: np.swapaxes(x, -1, -2),
        ("unsqueeze_axes", "0,-2"): lambda x: np.expand_dims(x, (0, -2)),
        ("unsqueeze_axes", "4,1"): lambda x: np.expand_dims(x, (4, 1)),
        ("roll", "2,1"): lambda x: np.roll(x, 1, 2),
        ("roll", "1,-4"): lambda x: np.roll(x, -4, 1),
        ("roll", "-1,4"): lambda x: np.roll(x, 4, -1),
        ("unfold", "2,2,1"): lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, 2),
        ("unfold", "1,2,2"): lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, 1)[:, ::2],
        ("chunk", "3,2"): lambda x: x[:, :, 2:],
        ("chunk", "2,1"): lambda x: x[:, 2:],
        ("chunk", "9,0"): lambda x: x[1:],
        ("split_with_sizes", "2,1,2,1"): lambda x: np.split(x, [1, 3], 2)[1],
        ("split_with_sizes", "2,4,0"): lambda x: np.split(x, [4], 2)[1],
        ("repeat", "2,1,3"): lambda x: np.tile(x, (2, 1, 3)),
        ("repeat", "2,1,2,1"): lambda x: np.tile(x, (2, 1, 2, 1)),
        ("repeat", "1,0,1"): lambda x: np.tile(x, (1, 0, 1)),
    }.items():
        move(*variant, dtype, [x], f)
    for mode, theirs in {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}.items():
        more = {"constant_values": CONSTANT} if mode == "constant" else {}
        for widths in [[(1, 2)], [(2, 0), (0, 3)], [(1, 1), (0, 0), (3, 3)], [(7, 9)], []]:
            words = ",".join(str(n) for pair in widths for n in pair)
            full = [(0, 0)] * (3 - len(widths)) + widths
            move("pad", f"{mode}:{words}", dtype, [x], lambda x: np.pad(x, full, mode=theirs, **more))
        one = [(2, 1)]
        move("pad", f"{mode}:2,1", dtype, [smooth([1])], lambda x: np.pad(x, one, mode=theirs, **more))
    move("squeeze_axes", "2,0", dtype, [smooth([1, 3, 1])], lambda x: np.squeeze(x, (0, 2)))
    move("squeeze_axes", "", dtype, [smooth([1, 3, 1])], lambda x: x)


def choices(dtype):
    x, y = smooth([2, 3, 4]), smooth([3, 1], 5)
    third = np.arange(24).reshape(2, 3, 4) % 3 == 1
    move("masked_fill", "", dtype, [x], lambda x: np.where(third, CONSTANT, x))
    move("masked_select", "", dtype, [x], lambda x: x[third])
    move("masked_select", "none", dtype, [smooth([1])], lambda x: x[:0])
    on = x < y
    case("where_", "", dtype, [x, y], np.where(on, x, y), [np.where(on, weights(x.shape), 0), np.where(on, 0, weights(x.shape)).sum((0, 2))[:, None]])
    edges = np.array([1.0, 2.0, np.inf, -np.inf, 0.0])
    for label, other in {"same": edges, "near": edges + 0.25, "far": edges + 0.5, "infinite": -edges, "nan": edges * np.nan}.items():
        case("allclose", f"{label}:0", dtype, [edges, other], np.allclose(edges, other, rtol=0, atol=0.25))
    case("allclose", "right:0.5", dtype, [edges[:2] * 2, edges[:2] * 3], np.allclose(edges[:2] * 2, edges[:2] * 3, rtol=0.5, atol=0.25))
    a = np.array([[0.0, 1.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    case("xor", "", dtype, [a, a[:, ::-1].copy()], (a != 0) ^ (a[:, ::-1] != 0))
    case("nonzero", "", dtype, [a], np.argwhere(a != 0))
    for name, f in {"any": np.any, "all": np.all}.items():
        for axes in [(1,), (0,), (0, 1)]:
            case(f"{name}_axes", ",".join(map(str, axes)), dtype, [a], f(a != 0, axis=axes))
        case(f"{name}_axes", "1", dtype, [a[:, :0]], f(a[:, :0] != 0, axis=1))


def third(*shape):
    return np.arange(np.prod(shape)).reshape(shape) % 3 == 1


# Those of `indexed!` in tests/tests/ops/run.rs.
INDICES = [
    -1,
    np.s_[:, 1:-1],
    np.s_[0, ::2, None],
    np.s_[..., -2],
    np.s_[1:3, 3:, :-1],
    np.array([[0, 2], [1, -1]]),
    np.s_[:, [3, 0, 0]],
    np.s_[[0, 2], [1, -1]],
    np.s_[[0, 2], :, [[1], [0]]],
    np.s_[0, :, [1, 0, 1]],
    np.s_[:, third(4, 2)],
    third(3, 4, 2),
    np.s_[0:3:2, None, [-1]],
    np.s_[1:1, ...],
    np.s_[[1, 1, 0], 2, :-1],
]


def items(dtype):
    x = smooth([3, 4, 2])
    for number, index in enumerate(INDICES):
        move("i", str(number), dtype, [x], lambda x: x[index])
        shape = x[index].shape
        source = smooth(shape, 5)

        def assigned(x, source):
            x = x.copy()
            x[index] = source
            return x

        move("slice_assign", str(number), dtype, [x, source], assigned)
        # Broadcast along the first axis.
        source = smooth(shape[1:], 5)
        if number == 8:
            move("index_put", f"{number},0", dtype, [x, source], assigned)
        added = x.copy()
        np.add.at(added, index, source)
        slopes = 2 * added * weights(added.shape)
        case("index_put", f"{number},1", dtype, [x, source], added * added, [slopes, slopes[index].sum(0)])


def making(dtype):
    for start, end, step in [(0, 3, 1), (1, 2, 0.25), (2, -1, -0.75), (1, 1, 2), (-2, 7.5, 3)]:
        case("arange_step", f"{start},{end},{step}", dtype, [], np.arange(start, end, step))
    a, b = smooth([3]), smooth([4], 5)
    grid = np.meshgrid(a, b, indexing="ij")
    w = weights([3, 4])
    case("meshgrid", "", dtype, [a, b], grid[0] * grid[1], [(w * grid[1]).sum(1), (w * grid[0]).sum(0)])


for dtype in ["float64", "float32"]:
    shapes(dtype)
    choices(dtype)
    items(dtype)
    making(dtype)
