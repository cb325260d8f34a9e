//! Every op, by name.

use autograd_core::{
    AnyTensor, Conv2dOptions, CrossEntropyOptions, Ellipsis, Float, IndexReduction, LossReduction,
    NewAxis, Padding, PoolOptions, Step, Tensor, linalg,
};

/// A float type, with its precision.
pub(crate) trait Number: Float {
    /// The distance from 1 to the next number.
    const PRECISION: f64;
}

impl Number for f32 {
    const PRECISION: f64 = f32::EPSILON as f64;
}

impl Number for f64 {
    const PRECISION: f64 = f64::EPSILON;
}

pub(crate) const REDUCTIONS: [IndexReduction; 4] =
    [IndexReduction::Mean, IndexReduction::Max, IndexReduction::Min, IndexReduction::Prod];

/// The locations in a drawing of a graph or a program are outside the library.
pub(crate) fn places_are_of_callers(op: &str, dot: &str) {
    let ours = dot.lines().find(|line| line.contains("autograd-core/src"));
    assert_eq!(ours, None, "{op}: an op has the place of its call");
}

/// The numbers of a variant: those after the colon, if there is one.
fn list<N: std::str::FromStr>(variant: &str) -> Vec<N> {
    let numbers = variant.split_once(':').map_or(variant, |(_, numbers)| numbers);
    numbers.split([',', ':']).filter_map(|n| n.parse().ok()).collect()
}

/// A mask of every third element.
fn pattern(shape: &[usize]) -> Tensor<bool> {
    let n: usize = shape.iter().product();
    Tensor::from_vec(shape, (0..n).map(|i| i % 3 == 1).collect()).unwrap()
}

/// Evaluates an expression with an index of `golden/moves.py`, for shape [3, 4, 2].
macro_rules! indexed {
    ($number:expr, $index:ident => $run:expr) => {
        indexed! { $number, $index => $run;
            0: -1,
            1: (.., 1..-1),
            2: (0, Step(.., 2), NewAxis),
            3: (Ellipsis, -2),
            4: (1..=2, 3.., ..-1),
            5: &Tensor::from([[0, 2], [1, -1]]),
            6: (.., &Tensor::from([3, 0, 0])),
            7: (&Tensor::from([0, 2]), &Tensor::from([1, -1])),
            8: (&Tensor::from([0, 2]), .., &Tensor::from([[1], [0]])),
            9: (0, .., &Tensor::from([1, 0, 1])),
            10: (.., &pattern(&[4, 2])),
            11: &pattern(&[3, 4, 2]),
            12: (Step(0..=2, 2), NewAxis, &Tensor::from([-1])),
            13: (1..1, Ellipsis),
            14: (&Tensor::from([1, 1, 0]), 2, ..-1),
        }
    };
    ($number:expr, $index:ident => $run:expr; $($n:literal: $of:expr,)*) => {
        match $number {
            $($n => {
                let $index = $of;
                $run
            })*
            other => panic!("no index {other}"),
        }
    };
}

/// The matrix itself, or one computed from it, far from singular or positive definite.
fn matrix<T: Number>(variant: &str, x: &Tensor<T>) -> Tensor<T> {
    let unit = || Tensor::<T>::eye(x.shape()[x.ndim() - 1]) * 4.0;
    match variant {
        "regular" => x + unit(),
        "definite" => x.matmul(&x.transpose()) + unit(),
        "symmetric" => (x + x.transpose()) * 0.5 + apart(x),
        "apart" => x + apart(x),
        _ => x.clone(),
    }
}

/// A diagonal that sets eigenvalues and singular values apart, in the shape of these matrices.
fn apart<T: Number>(x: &Tensor<T>) -> Tensor<T> {
    let [.., m, n] = *x.shape() else { panic!("{:?}", x.shape()) };
    let at = |i: usize| if i / n == i % n { 4.0 + 5.0 * (i / n) as f64 } else { 0.0 };
    Tensor::from_vec([m, n], (0..m * n).map(|i| T::from_f64(at(i))).collect()).unwrap()
}

/// Runs the op with this name. The variant has its arguments other than tensors: numbers, after a
/// colon if there is a label. Results of ops that move elements are squared, so that they have a
/// second derivative.
pub(crate) fn run<T: Number>(
    op: &str,
    variant: &str,
    t: &[Tensor<T>],
    index: &[Tensor<i64>],
) -> AnyTensor {
    run_alone(op, variant, t, index, |y| y.square().into())
}

/// As [`run`], with `moved` applied to the results of ops that move elements.
#[allow(clippy::reversed_empty_ranges, reason = "an end that counts from the end")]
pub(crate) fn run_alone<T: Number>(
    op: &str,
    variant: &str,
    t: &[Tensor<T>],
    index: &[Tensor<i64>],
    moved: fn(Tensor<T>) -> AnyTensor,
) -> AnyTensor {
    let integers = || list::<isize>(variant);
    let axis = || integers()[0];
    let sizes = || list::<usize>(variant);
    let number = || list::<f64>(variant)[0];
    let x = || &t[0];
    match (op, t) {
        ("neg", [x]) => x.neg().into(),
        ("abs", [x]) => x.abs().into(),
        ("signum", [x]) => x.signum().into(),
        ("step", [x]) => x.step().into(),
        ("floor", [x]) => x.floor().into(),
        ("ceil", [x]) => x.ceil().into(),
        ("round", [x]) => x.round().into(),
        ("square", [x]) => x.square().into(),
        ("sqrt", [x]) => x.sqrt().into(),
        ("rsqrt", [x]) => x.rsqrt().into(),
        ("recip", [x]) => x.recip().into(),
        ("exp", [x]) => x.exp().into(),
        ("exp_m1", [x]) => x.exp_m1().into(),
        ("ln", [x]) => x.ln().into(),
        ("log", [x]) => x.log().into(),
        ("ln_1p", [x]) => x.ln_1p().into(),
        ("log2", [x]) => x.log2().into(),
        ("log10", [x]) => x.log10().into(),
        ("sin", [x]) => x.sin().into(),
        ("cos", [x]) => x.cos().into(),
        ("tan", [x]) => x.tan().into(),
        ("asin", [x]) => x.asin().into(),
        ("acos", [x]) => x.acos().into(),
        ("atan", [x]) => x.atan().into(),
        ("sinh", [x]) => x.sinh().into(),
        ("cosh", [x]) => x.cosh().into(),
        ("tanh", [x]) => x.tanh().into(),
        ("sigmoid", [x]) => x.sigmoid().into(),
        ("softplus", [x]) => x.softplus().into(),
        ("silu", [x]) => x.silu().into(),
        ("erf", [x]) => x.erf().into(),
        ("erfinv", [x]) => x.erfinv().into(),
        ("digamma", [x]) => x.digamma().into(),
        ("lgamma", [x]) => x.lgamma().into(),
        ("relu", [x]) => x.relu().into(),
        ("gelu", [x]) => x.gelu().into(),
        ("leaky_relu", [x]) => x.leaky_relu(number()).into(),
        ("nan_to_num", [x]) => x.nan_to_num(number()).into(),
        ("elu", [x]) => x.elu(number()).into(),
        ("clamp", [x]) => x.clamp(list::<f64>(variant)[0], list::<f64>(variant)[1]).into(),
        ("pow", [x]) => x.pow(number()).into(),
        ("maximum", [x]) => x.maximum(number()).into(),
        ("minimum", [x]) => x.minimum(number()).into(),
        ("hypot", [x]) => x.hypot(number()).into(),
        ("atan2", [x]) => x.atan2(number()).into(),
        ("logaddexp", [x]) => x.logaddexp(number()).into(),
        ("xlogy", [x]) => x.xlogy(number()).into(),
        ("remainder", [x]) => x.remainder(number()).into(),
        ("copysign", [x]) => x.copysign(number()).into(),
        ("add", [x]) => (x + number()).into(),
        ("sub", [x]) => (number() - x).into(),
        ("mul", [x]) => (x * number()).into(),
        ("div", [x]) => (number() / x).into(),
        ("add", [x, y]) => (x + y).into(),
        ("sub", [x, y]) => (x - y).into(),
        ("mul", [x, y]) => (x * y).into(),
        ("div", [x, y]) => (x / y).into(),
        ("pow", [x, y]) => x.pow(y).into(),
        ("maximum", [x, y]) => x.maximum(y).into(),
        ("minimum", [x, y]) => x.minimum(y).into(),
        ("hypot", [x, y]) => x.hypot(y).into(),
        ("atan2", [x, y]) => x.atan2(y).into(),
        ("logaddexp", [x, y]) => x.logaddexp(y).into(),
        ("xlogy", [x, y]) => x.xlogy(y).into(),
        ("remainder", [x, y]) => x.remainder(y).into(),
        ("copysign", [x, y]) => x.copysign(y).into(),
        ("equal", [x, y]) => x.equal(y).into(),
        ("not_equal", [x, y]) => x.not_equal(y).into(),
        ("greater", [x, y]) => x.greater(y).into(),
        ("greater_equal", [x, y]) => x.greater_equal(y).into(),
        ("less", [x, y]) => x.less(y).into(),
        ("less_equal", [x, y]) => x.less_equal(y).into(),
        ("eq_scalar", [x]) => x.eq_scalar(T::ONE).into(),
        ("ne_scalar", [x]) => x.ne_scalar(T::ONE).into(),
        ("gt_scalar", [x]) => x.gt_scalar(T::ONE).into(),
        ("ge_scalar", [x]) => x.ge_scalar(T::ONE).into(),
        ("lt_scalar", [x]) => x.lt_scalar(T::ONE).into(),
        ("le_scalar", [x]) => x.le_scalar(T::ONE).into(),
        ("is_nan", [x]) => x.is_nan().into(),
        ("where_else", [x, y]) => x.less(y).where_else(x, y).into(),
        ("where_", [x, y]) => Tensor::where_(&x.less(y), x, y).into(),
        ("cast", [x]) => match variant {
            "float32" => x.cast::<f32>().into(),
            "float64" => x.cast::<f64>().into(),
            "int64" => x.cast::<i64>().into(),
            _ => x.cast::<bool>().into(),
        },
        ("add_assign", [x, y]) => {
            let mut z = x * 1.0;
            z += y;
            z.into()
        }
        ("sub_assign", [x, y]) => {
            let mut z = x * 1.0;
            z -= y;
            z.into()
        }
        ("mul_assign", [x, y]) => {
            let mut z = x * 1.0;
            z *= y;
            z.into()
        }
        ("div_assign", [x, y]) => {
            let mut z = x * 1.0;
            z /= y;
            z.into()
        }
        ("set_item", [x]) => {
            let mut z = x * 1.0;
            z.set_item(&[1], T::from_f64(7.0)).unwrap();
            z.into()
        }
        ("any", [x]) => Tensor::from(x.cast::<bool>().any()).into(),
        ("all", [x]) => Tensor::from(x.cast::<bool>().all()).into(),
        ("and", [x, y]) => x.cast::<bool>().and(&y.cast()).into(),
        ("or", [x, y]) => x.cast::<bool>().or(&y.cast()).into(),
        ("xor", [x, y]) => (x.cast::<bool>() ^ y.cast()).into(),
        ("any_axes", [x]) => x.cast::<bool>().any_axes(integers()).into(),
        ("all_axes", [x]) => x.cast::<bool>().all_axes(integers()).into(),
        ("nonzero", [x]) => x.cast::<bool>().nonzero().into(),
        ("not", [x]) => x.cast::<bool>().not().into(),
        ("sum", [x]) => x.sum().into(),
        ("mean", [x]) => x.mean().into(),
        ("prod", [x]) => x.prod().into(),
        ("max", [x]) => x.max().into(),
        ("min", [x]) => x.min().into(),
        ("sum_axes", [x]) => x.sum_axes(integers()).into(),
        ("mean_axes", [x]) => x.mean_axes(integers()).into(),
        ("prod_axes", [x]) => x.prod_axes(integers()).into(),
        ("max_axes", [x]) => x.max_axes(integers()).into(),
        ("min_axes", [x]) => x.min_axes(integers()).into(),
        ("sum_axes_keep", [x]) => x.sum_axes_keep(integers()).into(),
        ("mean_axes_keep", [x]) => x.mean_axes_keep(integers()).into(),
        ("prod_axes_keep", [x]) => x.prod_axes_keep(integers()).into(),
        ("max_axes_keep", [x]) => x.max_axes_keep(integers()).into(),
        ("min_axes_keep", [x]) => x.min_axes_keep(integers()).into(),
        ("logsumexp", [x]) => x.logsumexp(integers()).into(),
        ("softmax", [x]) => x.softmax(axis()).into(),
        ("log_softmax", [x]) => x.log_softmax(axis()).into(),
        ("cumsum", [x]) => x.cumsum(axis()).into(),
        ("var_axes", [x]) => x.var_axes([axis()], sizes()[sizes().len() - 1]).into(),
        ("std_axes", [x]) => x.std_axes([axis()], sizes()[sizes().len() - 1]).into(),
        ("argmax", [x]) => x.argmax(axis()).into(),
        ("argmin", [x]) => x.argmin(axis()).into(),
        ("logsumexp_keep", [x]) => x.logsumexp_keep(integers()).into(),
        ("var_axes_keep" | "std_axes_keep", [x]) => {
            let mut axes = integers();
            let correction = axes.pop().unwrap() as usize;
            let reduced = match op {
                "var_axes_keep" => x.var_axes_keep(axes, correction),
                _ => x.std_axes_keep(axes, correction),
            };
            reduced.into()
        }
        ("any_axes_keep", [x]) => x.cast::<bool>().any_axes_keep(integers()).into(),
        ("all_axes_keep", [x]) => x.cast::<bool>().all_axes_keep(integers()).into(),
        ("sort", [x]) if variant.starts_with("nan") => x.sort(axis(), false).0.into(),
        ("sort", [x]) => moved(x.sort(axis(), integers()[1] == 1).0),
        ("argsort", [x]) => x.argsort(axis(), integers()[1] == 1).into(),
        ("topk", [x]) => moved(x.topk(sizes()[0], integers()[1]).0),
        ("max_with_indices", [x]) => moved(x.max_with_indices(axis()).0),
        ("min_with_indices", [x]) => moved(x.min_with_indices(axis()).0),
        ("median", [x]) if variant == "nan" => x.median().into(),
        ("median", [x]) => moved(x.median()),
        ("median_axes", [x]) => moved(x.median_axes(integers())),
        ("median_axes_keep", [x]) => moved(x.median_axes_keep(integers())),
        ("cumprod", [x]) => x.cumprod(axis()).into(),
        ("norm_axes" | "norm_axes_keep", [x]) => {
            let (p, axes) = variant.split_once(':').unwrap();
            let (p, axes) = (p.parse().unwrap(), list::<isize>(axes));
            if op == "norm_axes" { x.norm_axes(axes, p) } else { x.norm_axes_keep(axes, p) }.into()
        }
        ("norm", [x]) => x.norm().into(),
        ("normalize", [x]) => x.normalize([-1], number()).into(),
        ("reshape", [x]) => moved(x.reshape(sizes())),
        ("flatten", [x]) => moved(x.flatten()),
        ("transpose", [x]) => moved(x.transpose()),
        ("swap_axes", [x]) => moved(x.swap_axes(integers()[0], integers()[1])),
        ("t", [x]) => moved(x.t()),
        ("unsqueeze_axes", [x]) => moved(x.unsqueeze_axes(&integers())),
        ("squeeze_axes", [x]) => {
            let axes = integers();
            let narrow = axes.iter().fold(x.clone(), |x, &axis| x.narrow(axis, 0, 1));
            moved(narrow.squeeze_axes(&axes))
        }
        ("roll", [x]) => moved(x.roll(integers()[1], axis())),
        ("unfold", [x]) => moved(x.unfold(axis(), sizes()[1], sizes()[2])),
        ("chunk", [x]) => moved(x.chunk(sizes()[0], integers()[1]).pop().unwrap()),
        ("split_with_sizes", [x]) => moved(x.split_with_sizes(&sizes()[1..], axis())[1].clone()),
        ("repeat", [x]) => moved(x.repeat(&sizes())),
        ("pad", [x]) => {
            let padding = match variant.split(':').next().unwrap() {
                "constant" => Padding::Constant(0.5),
                "reflect" => Padding::Reflect,
                "replicate" => Padding::Replicate,
                _ => Padding::Circular,
            };
            moved(x.pad(sizes().as_chunks::<2>().0, padding))
        }
        ("masked_fill", [x]) => moved(x.masked_fill(&pattern(x.shape()), T::from_f64(0.5))),
        ("masked_select", [x]) => moved(x.masked_select(&pattern(x.shape()))),
        ("allclose", [x, y]) => Tensor::from(x.allclose(y, number(), 0.25)).into(),
        ("i", [x]) => moved(indexed!(sizes()[0], index => x.i(index))),
        ("slice_assign", [x, y]) => moved(indexed!(sizes()[0], index => x.slice_assign(index, y))),
        ("index_put", [x, y]) => {
            let accumulate = sizes()[1] == 1;
            moved(indexed!(sizes()[0], index => x.index_put(index, y, accumulate)))
        }
        ("permute", [x]) => moved(x.permute(&integers())),
        ("unsqueeze", [x]) => moved(x.unsqueeze(axis())),
        ("squeeze", [x]) => moved(x.narrow(0, 0, 1).squeeze(axis())),
        ("narrow", [x]) => moved(x.narrow(axis(), sizes()[1], sizes()[2])),
        ("slice_axis", [x]) => moved(x.slice_axis(axis(), sizes()[1], sizes()[2], sizes()[3])),
        ("select", [x]) => moved(x.select(axis(), sizes()[1])),
        ("flip", [x]) => moved(x.flip(axis())),
        ("split", [x]) => moved(x.split(sizes()[0], integers()[1])[1].clone()),
        ("concat", [x]) => moved(Tensor::concat(&[x, &(x * x)], axis())),
        ("stack", [x]) => moved(Tensor::stack(&[x, &(x * x)], axis())),
        ("contiguous", [x]) => moved(x.contiguous()),
        ("copy", [x]) => moved(x.copy()),
        ("broadcast_to", [x]) => moved(x.broadcast_to(sizes())),
        ("sum_to", [x]) => moved(x.sum_to(&sizes())),
        ("tril", [x]) => moved(x.tril(axis())),
        ("triu", [x]) => moved(x.triu(axis())),
        ("index_select", [x]) => moved(x.index_select(axis(), &index[0])),
        ("index_add", [x, y]) => moved(x.index_add(axis(), &index[0], y)),
        ("gather", [x]) => moved(x.gather(axis(), &index[0])),
        ("scatter_add", [x, y]) => moved(x.scatter_add(axis(), &index[0], y)),
        ("diagonal", [x]) => moved(x.diagonal(axis())),
        ("diag", [x]) => moved(x.diag(axis())),
        ("trace", [x]) => moved(x.trace()),
        ("scatter", [x, y]) => moved(x.scatter(axis(), &index[0], y)),
        ("segment_sum", [x]) => moved(x.segment_sum(&index[0], sizes()[0])),
        ("repeat_interleave", [x]) => moved(x.repeat_interleave(sizes()[0], integers()[1])),
        ("repeat_interleave_with_counts", [x]) => {
            moved(x.repeat_interleave_with_counts(&index[0], axis()))
        }
        ("index_reduce", [x, y]) => {
            let by = |how| x.index_reduce(axis(), &index[0], y, how);
            let [mean, max, min, product] = REDUCTIONS.map(by);
            moved(mean + max * 2.0 - min * 3.0 + product * 0.5)
        }
        ("cdist", [x, y]) => x.cdist(y).into(),
        ("searchsorted", [x, y]) => x.searchsorted(y, variant == "right").into(),
        ("bincount", []) => index[0].bincount(sizes()[0]).into(),
        ("unique", [x]) => x.unique().0.into(),
        ("one_hot", []) => index[0].one_hot::<T>(sizes()[0]).into(),
        ("eye", []) => Tensor::<T>::eye(3).into(),
        ("arange", []) => Tensor::<T>::arange(5).into(),
        ("arange_step", []) => {
            let of = |n: f64| T::from_f64(n);
            let [start, end, step] = list::<f64>(variant)[..] else { panic!("{variant}") };
            Tensor::arange_step(of(start), of(end), of(step)).into()
        }
        ("meshgrid", [x, y]) => {
            let grid = Tensor::meshgrid(&[x, y]);
            (&grid[0] * &grid[1]).into()
        }
        ("linspace", []) => Tensor::<T>::linspace(-1.0, 2.0, 7).into(),
        ("matmul", [x, y]) => x.matmul(y).into(),
        ("solve", [a, b]) => linalg::solve(&matrix(variant, a), b).unwrap().into(),
        ("inv", [a]) => linalg::inv(&matrix(variant, a)).unwrap().into(),
        ("slogdet", [a]) if variant.contains("sign") => linalg::slogdet(a).unwrap().0.into(),
        ("slogdet", [a]) => linalg::slogdet(&matrix(variant, a)).unwrap().1.into(),
        ("cholesky", [a]) => linalg::cholesky(&matrix(variant, a)).unwrap().into(),
        ("solve_triangular", [a, b]) => {
            let (kind, triangle) = variant.split_once(',').unwrap();
            linalg::solve_triangular(&matrix(kind, a), b, triangle == "upper").unwrap().into()
        }
        ("cholesky_solve", [l, b]) => {
            linalg::cholesky_solve(&matrix(variant, l), b).unwrap().into()
        }
        ("lstsq", [a, b]) => linalg::lstsq(&matrix(variant, a), b).unwrap().into(),
        ("pinv", [a]) => linalg::pinv(&matrix(variant, a), None).unwrap().into(),
        // Of vectors and factors, what does not depend on their signs.
        ("eigh", [a]) => {
            let (w, v) = linalg::eigh(&matrix(variant, a)).unwrap();
            ((&v * w.tanh().unsqueeze(-2)).matmul(&v.transpose()) + w.unsqueeze(-2)).into()
        }
        ("qr", [a]) => {
            let (q, r) = linalg::qr(&matrix(variant, a)).unwrap();
            (q.square().matmul(&r.square())).into()
        }
        ("svd", [a]) => {
            let (u, s, vt) = linalg::svd(&matrix(variant, a)).unwrap();
            ((&u * s.tanh().unsqueeze(-2)).matmul(&vt) + s.sum_axes_keep(-1).unsqueeze(-1)).into()
        }
        ("einsum", _) => Tensor::einsum(variant, &t.iter().collect::<Vec<_>>()).into(),
        ("outer", [x, y]) => x.outer(y).into(),
        ("linear", [x, w]) => x.linear(w, None).into(),
        ("linear", [x, w, b]) => x.linear(w, Some(b)).into(),
        ("conv2d", [x, w, b]) => {
            let options = Conv2dOptions::new();
            let options = match variant {
                "strided" => options.stride([2, 1]).padding([1, 2]),
                "groups" => options.groups(2),
                "dilated" => options.dilation([2, 3]).stride(2),
                _ => options,
            };
            x.conv2d(w, Some(b), options).into()
        }
        ("max_pool2d" | "avg_pool2d", [x]) => {
            let options = match variant.split(':').next().unwrap() {
                "2" => PoolOptions::new(2),
                "3,2" => PoolOptions::new([3, 2]).stride([1, 2]).padding([1, 0]),
                _ => PoolOptions::new(3).stride(2).padding(1),
            };
            if op == "max_pool2d" { x.max_pool2d(options) } else { x.avg_pool2d(options) }.into()
        }
        ("cross_entropy", [x]) => x.cross_entropy(&index[0]).into(),
        ("cross_entropy_with" | "nll_loss_with", [x]) => {
            let mut options = CrossEntropyOptions::new();
            if variant.contains("ignore") {
                options = options.ignore_index(1);
            }
            if variant.contains("weight") {
                let weight = [0.5, 1.0, 2.0, 0.25, 1.5].map(T::from_f64);
                options = options.weight(&Tensor::from(weight[..x.shape()[1]].to_vec()));
            }
            if variant.contains("smooth") {
                options = options.label_smoothing(0.1);
            }
            if variant.contains("sum") {
                options = options.reduction(LossReduction::Sum);
            } else if variant.contains("none") {
                options = options.reduction(LossReduction::None);
            }
            match op {
                "nll_loss_with" => x.nll_loss_with(&index[0], &options),
                _ => x.cross_entropy_with(&index[0], &options),
            }
            .into()
        }
        ("l1_loss", [x, y]) => x.l1_loss(y).into(),
        ("huber_loss", [x, y]) => x.huber_loss(y, number()).into(),
        ("kl_div", [x, y]) => x.kl_div(y).into(),
        ("binary_cross_entropy", [x, y]) => x.binary_cross_entropy(y).into(),
        ("nll_loss", [x]) => x.nll_loss(&index[0]).into(),
        ("mse_loss", [x, y]) => x.mse_loss(y).into(),
        ("smooth_l1_loss", [x, y]) => x.smooth_l1_loss(y).into(),
        ("binary_cross_entropy_with_logits", [x, y]) => {
            x.binary_cross_entropy_with_logits(y).into()
        }
        (_, [x, y]) if op.ends_with("_with") => {
            let reduction = match variant.split(':').next().unwrap() {
                "sum" => LossReduction::Sum,
                "none" => LossReduction::None,
                "batchmean" => LossReduction::BatchMean,
                _ => LossReduction::Mean,
            };
            match op {
                "mse_loss_with" => x.mse_loss_with(y, reduction),
                "l1_loss_with" => x.l1_loss_with(y, reduction),
                "smooth_l1_loss_with" => x.smooth_l1_loss_with(y, reduction),
                "huber_loss_with" => x.huber_loss_with(y, number(), reduction),
                "kl_div_with" => x.kl_div_with(y, reduction),
                "binary_cross_entropy_with" => x.binary_cross_entropy_with(y, reduction),
                "binary_cross_entropy_with_logits_with" => {
                    x.binary_cross_entropy_with_logits_with(y, reduction)
                }
                _ => panic!("say here what {op} is"),
            }
            .into()
        }
        ("dropout", _) => match variant {
            "off" => x().dropout(0.5, false),
            _ => x().dropout(number(), true),
        }
        .into(),
        _ => panic!("{op} {variant} with {} inputs: say here what it is", t.len()),
    }
}
