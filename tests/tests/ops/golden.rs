//! Forward and gradients against the figures of `golden/ops.txt`, which NumPy and PyTorch computed.

use std::collections::BTreeSet;
use std::path::Path;

use autograd_core::{
    AnyTensor, BackwardOptions, Conv2dOptions, Float, IntoElement, PoolOptions, Tensor, backward,
};

/// A float type, with what it can be cast to.
trait Number:
    Float + IntoElement<f32> + IntoElement<f64> + IntoElement<i64> + IntoElement<bool>
{
}

impl Number for f32 {}
impl Number for f64 {}

/// A shape and its numbers, as they stand in a line.
#[derive(Clone, Debug)]
struct Numbers {
    shape: Vec<usize>,
    data: Vec<f64>,
}

impl Numbers {
    fn read(text: &str) -> Self {
        let (shape, data) = text.split_once('|').unwrap();
        let shape = shape.split_whitespace().map(|n| n.parse().unwrap()).collect();
        let data = data.split_whitespace().map(|x| x.parse().unwrap()).collect();
        Self { shape, data }
    }

    fn of(tensor: &AnyTensor) -> Self {
        let data = match tensor {
            AnyTensor::Float64(x) => x.to_vec(),
            AnyTensor::Float32(x) => x.to_vec().into_iter().map(f64::from).collect(),
            AnyTensor::Int64(x) => x.to_vec().into_iter().map(|n| n as f64).collect(),
            AnyTensor::Bool(x) => x.to_vec().into_iter().map(|b| f64::from(u8::from(b))).collect(),
            other => panic!("no op gives {}", other.dtype()),
        };
        Self { shape: tensor.shape().to_vec(), data }
    }

    fn tensor<T: Float>(&self) -> Tensor<T> {
        let data = self.data.iter().map(|&x| T::from_f64(x)).collect();
        Tensor::from_vec(&self.shape[..], data).unwrap()
    }
}

/// A case of the file.
#[derive(Clone, Debug, Default)]
struct Case {
    op: String,
    variant: String,
    dtype: String,
    inputs: Vec<Numbers>,
    index: Vec<Numbers>,
    /// What is compared: `torch`, `numpy`, `grad`.
    expected: Vec<(String, Numbers)>,
}

fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/ops.txt");
    let mut cases: Vec<Case> = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let (kind, rest) = line.split_once(' ').unwrap();
        if kind == "case" {
            let [op, variant, dtype] = rest.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            let [op, variant, dtype] = [op, variant, dtype].map(str::to_owned);
            cases.push(Case { op, variant, dtype, ..Case::default() });
            continue;
        }
        let numbers = Numbers::read(rest);
        let case = cases.last_mut().unwrap();
        match kind {
            "in" => case.inputs.push(numbers),
            "index" => case.index.push(numbers),
            _ => case.expected.push((kind.to_owned(), numbers)),
        }
    }
    cases
}

/// The numbers of a variant: behind the colon, if there is one.
fn list<N: std::str::FromStr>(variant: &str) -> Vec<N> {
    let numbers = variant.split_once(':').map_or(variant, |(_, numbers)| numbers);
    numbers.split([',', ':']).filter_map(|n| n.parse().ok()).collect()
}

/// The op of a case, in our words.
fn run<T: Number>(case: &Case, t: &[Tensor<T>], index: &[Tensor<i64>]) -> AnyTensor {
    let (op, variant) = (case.op.as_str(), case.variant.as_str());
    let integers = || list::<isize>(variant);
    let axis = || integers()[0];
    let sizes = || list::<usize>(variant);
    let number = || list::<f64>(variant)[0];
    let x = || &t[0];
    let moved = |y: Tensor<T>| y.square().into();
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
        ("relu", [x]) => x.relu().into(),
        ("gelu", [x]) => x.gelu().into(),
        ("leaky_relu", [x]) => x.leaky_relu(number()).into(),
        ("elu", [x]) => x.elu(number()).into(),
        ("clamp", [x]) => x.clamp(list(variant)[0], list(variant)[1]).into(),
        ("pow", [x]) => x.pow(number()).into(),
        ("maximum", [x]) => x.maximum(number()).into(),
        ("minimum", [x]) => x.minimum(number()).into(),
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
        ("not", [x]) => x.cast::<bool>().not().into(),
        ("sum", [x]) => x.sum().into(),
        ("mean", [x]) => x.mean().into(),
        ("prod", [x]) => x.prod().into(),
        ("max", [x]) => x.max().into(),
        ("min", [x]) => x.min().into(),
        ("sum_axes", [x]) => x.sum_axes(&integers()).into(),
        ("mean_axes", [x]) => x.mean_axes(&integers()).into(),
        ("prod_axes", [x]) => x.prod_axes(&integers()).into(),
        ("max_axes", [x]) => x.max_axes(&integers()).into(),
        ("min_axes", [x]) => x.min_axes(&integers()).into(),
        ("sum_axes_keep", [x]) => x.sum_axes_keep(&integers()).into(),
        ("mean_axes_keep", [x]) => x.mean_axes_keep(&integers()).into(),
        ("prod_axes_keep", [x]) => x.prod_axes_keep(&integers()).into(),
        ("max_axes_keep", [x]) => x.max_axes_keep(&integers()).into(),
        ("min_axes_keep", [x]) => x.min_axes_keep(&integers()).into(),
        ("logsumexp", [x]) => x.logsumexp(&integers()).into(),
        ("softmax", [x]) => x.softmax(axis()).into(),
        ("log_softmax", [x]) => x.log_softmax(axis()).into(),
        ("cumsum", [x]) => x.cumsum(axis()).into(),
        ("var_axes", [x]) => x.var_axes(&[axis()], sizes()[sizes().len() - 1]).into(),
        ("std_axes", [x]) => x.std_axes(&[axis()], sizes()[sizes().len() - 1]).into(),
        ("argmax", [x]) => x.argmax(axis()).into(),
        ("argmin", [x]) => x.argmin(axis()).into(),
        ("norm", [x]) => x.norm().into(),
        ("normalize", [x]) => x.normalize(&[-1], number()).into(),
        ("reshape", [x]) => moved(x.reshape(sizes())),
        ("flatten", [x]) => moved(x.flatten()),
        ("transpose", [x]) => moved(x.transpose()),
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
        ("broadcast_to", [x]) => moved(x.broadcast_to(sizes())),
        ("tril", [x]) => moved(x.tril(axis())),
        ("triu", [x]) => moved(x.triu(axis())),
        ("index_select", [x]) => moved(x.index_select(axis(), &index[0])),
        ("index_add", [x, y]) => moved(x.index_add(axis(), &index[0], y)),
        ("gather", [x]) => moved(x.gather(axis(), &index[0])),
        ("scatter_add", [x, y]) => moved(x.scatter_add(axis(), &index[0], y)),
        ("one_hot", []) => index[0].one_hot::<T>(sizes()[0]).into(),
        ("eye", []) => Tensor::<T>::eye(3).into(),
        ("arange", []) => Tensor::<T>::arange(5).into(),
        ("linspace", []) => Tensor::<T>::linspace(-1.0, 2.0, 7).into(),
        ("matmul", [x, y]) => x.matmul(y).into(),
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
        ("nll_loss", [x]) => x.nll_loss(&index[0]).into(),
        ("mse_loss", [x, y]) => x.mse_loss(y).into(),
        ("smooth_l1_loss", [x, y]) => x.smooth_l1_loss(y).into(),
        ("binary_cross_entropy_with_logits", [x, y]) => {
            x.binary_cross_entropy_with_logits(y).into()
        }
        ("dropout", _) => match variant {
            "off" => x().dropout(0.5, false),
            _ => x().dropout(number(), true),
        }
        .into(),
        _ => panic!("{op} {variant} with {} inputs: say here what it is", t.len()),
    }
}

/// What was found: first the value, then the gradients.
fn found<T: Number>(case: &Case) -> (Numbers, Vec<Numbers>) {
    let inputs: Vec<Tensor<T>> = case.inputs.iter().map(Numbers::tensor).collect();
    let index: Vec<_> = case.index.iter().map(|i| i.tensor::<f64>().cast::<i64>()).collect();
    let wanted = case.expected.iter().filter(|(kind, _)| kind == "grad").count();
    if wanted > 0 {
        inputs.iter().for_each(|x| x.set_stop_gradient(false));
    }
    let y = run(case, &inputs, &index);
    let value = Numbers::of(&y);
    if wanted == 0 {
        return (value, Vec::new());
    }
    let weights = (0..value.data.len()).map(|i| [1.0, -0.5, 2.0][i % 3]).collect();
    let weights = Tensor::<f64>::from_vec(y.shape(), weights).unwrap();
    let seed = match &y {
        AnyTensor::Float32(_) => weights.cast::<f32>().into(),
        _ => weights.into(),
    };
    backward(&[y], &[Some(seed)], BackwardOptions::new()).unwrap();
    let zeros = |x: &Tensor<T>| Tensor::zeros(x.shape());
    let grads = inputs.iter().map(|x| Numbers::of(&x.grad().unwrap_or_else(|| zeros(x)).into()));
    (value, grads.collect())
}

/// Two numbers that should be one.
struct Seen {
    found: f64,
    expected: f64,
    /// The numbers of the inputs at the same place, where they have the output's shape.
    at: Vec<f64>,
    /// The rounding of the element type.
    epsilon: f64,
}

impl Seen {
    fn at_nan(&self) -> bool {
        self.at.iter().any(|x| x.is_nan())
    }

    fn sign_of_zero(&self) -> bool {
        self.found == 0.0 && self.expected == 0.0
    }

    /// Apart by so many roundings of a number of this size.
    fn within(&self, roundings: f64, size: f64) -> bool {
        (self.found - self.expected).abs() <= roundings * self.epsilon * size
    }

    /// Both are the same, or apart by a few roundings.
    fn agree(&self, kind: &str) -> bool {
        let (found, expected) = (self.found, self.expected);
        if found.is_nan() || expected.is_nan() {
            return found.is_nan() && expected.is_nan();
        }
        if self.sign_of_zero() {
            return kind == "grad" || found.is_sign_negative() == expected.is_sign_negative();
        }
        // The least denormal numbers of f64 and f32.
        let least = if self.epsilon < 1e-10 { 2.0 * 5e-324 } else { 2.0 * 1.5e-45 };
        found == expected || self.within(8.0, expected.abs()) || (found - expected).abs() <= least
    }
}

/// Ops, what is compared, where, and why.
type Difference = (&'static [&'static str], &'static str, fn(&Seen) -> bool, &'static str);

/// Where we differ on purpose. Each must be met.
const DIFFERENCES: &[Difference] = &[
    // Signs of zero, which compare equal.
    (&["signum"], "torch numpy", Seen::sign_of_zero, "a zero keeps its sign"),
    (&["relu"], "numpy", Seen::sign_of_zero, "a zero keeps its sign, as in PyTorch"),
    (&["elu"], "torch", Seen::sign_of_zero, "the negative part is added to a positive zero"),
    (&["min_axes"], "torch", Seen::sign_of_zero, "of two zeros either is the least"),
    (&["cumsum"], "torch", Seen::sign_of_zero, "a sum starts from its first number, as in NumPy"),
    (&["normalize"], "torch", Seen::sign_of_zero, "a zero keeps its sign"),
    (
        &["pow"],
        "torch numpy",
        |s| s.at == [0.0] && s.sign_of_zero(),
        "IEEE: pow(-0, 0.5) is 0, which their square root is not",
    ),
    // NaN.
    (&["signum"], "torch", Seen::at_nan, "NaN stays NaN, as in NumPy"),
    (&["abs"], "grad", Seen::at_nan, "NaN stays NaN"),
    (&["step"], "numpy", Seen::at_nan, "NaN is not above 0, as in PyTorch"),
    (&["relu"], "grad", Seen::at_nan, "NaN is not above 0"),
    (
        &["maximum", "minimum"],
        "grad",
        Seen::at_nan,
        "NaN is neither greater, less nor equal: no operand gets the gradient",
    ),
    // Infinity.
    (
        &["pow"],
        "torch numpy grad",
        |s| s.at == [f64::NEG_INFINITY],
        "IEEE: pow(-inf, 0.5) is inf, which their square root is not",
    ),
    (
        &["var_axes"],
        "grad",
        |s| s.found.is_nan() && s.expected == f64::NEG_INFINITY,
        "the mean is infinite, and its slope times infinity is added",
    ),
    (
        &["cross_entropy"],
        "grad",
        |s| s.expected.is_nan() && s.found.is_finite(),
        "beside an infinite logit a probability is 0, not NaN",
    ),
    (
        &["gelu"],
        "torch",
        |s| s.at == [f64::INFINITY] && s.found == f64::INFINITY,
        "PyTorch's f32 gives NaN",
    ),
    // Ends and ties.
    (&["clamp"], "grad", |s| s.at == [-0.5] || s.at == [1.5], "the ends lie within"),
    (
        &["maximum", "minimum"],
        "grad",
        |s| s.at == [0.5],
        "of a tensor and an equal scalar the tensor gets the gradient",
    ),
];

/// Where rounding makes more of a difference; how much may depend on the CPU.
const ROUNDINGS: &[Difference] = &[
    (
        &["tanh", "sigmoid", "log_softmax"],
        "grad",
        |s| s.within(1.0, 2.0),
        "1 less a number near 1: the rounding of 1 is left",
    ),
    (
        &["log10"],
        "grad",
        |s| s.expected == 0.0 && s.found < 1e-38,
        "theirs divides by what has overflowed",
    ),
    (
        &["sigmoid", "silu", "softplus", "gelu"],
        "torch grad",
        |s| s.expected == 0.0 && s.found.abs() < 1e-20,
        "theirs has underflowed",
    ),
    (&["gelu"], "torch grad", |s| s.within(4.0, 4.0), "1 less a number near 1, times x"),
    (&["normalize"], "grad", |s| s.within(8.0, 1.0), "numbers near 1 that cancel"),
    (
        &["var_axes", "std_axes"],
        "grad",
        |s| s.at == [1e-30_f32.into()] || s.at == [1e-30],
        "the mean of numbers a million times greater than itself",
    ),
    (
        &["std_axes"],
        "torch grad",
        |s| s.epsilon > 1e-10 && (s.found == f64::INFINITY || s.found == 0.0),
        "the squares of 1e30 overflow f32; PyTorch computes in f64",
    ),
];

#[test]
fn values_and_gradients_are_those_of_numpy_and_pytorch() {
    let mut met = BTreeSet::new();
    let mut wrong = Vec::new();
    let cases = cases();
    assert!(cases.len() >= 600, "{}", cases.len());
    for case in &cases {
        let double = case.dtype == "float64";
        let epsilon = if double { f64::EPSILON } else { f64::from(f32::EPSILON) };
        let (value, grads) = if double { found::<f64>(case) } else { found::<f32>(case) };
        let mut grads = grads.into_iter();
        for (kind, expected) in &case.expected {
            let found = if kind == "grad" { grads.next().unwrap() } else { value.clone() };
            let name = format!("{} {} {} {kind}", case.op, case.variant, case.dtype);
            assert_eq!(found.shape, expected.shape, "{name}");
            for (i, (&f, &e)) in found.data.iter().zip(&expected.data).enumerate() {
                let alike = case.inputs.iter().filter(|x| x.shape == found.shape);
                let at = alike.map(|x| x.data[i]).collect();
                let seen = Seen { found: f, expected: e, at, epsilon };
                if seen.agree(kind) {
                    continue;
                }
                let mut differences = DIFFERENCES.iter().chain(ROUNDINGS);
                let known = differences.position(|(ops, kinds, when, _)| {
                    ops.contains(&&case.op[..]) && kinds.contains(&kind[..]) && when(&seen)
                });
                match known {
                    Some(known) => met.extend([known]),
                    None => wrong
                        .push(format!("{name}, element {i} at {:?}: {f:e}, not {e:e}", seen.at)),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} numbers are others:\n{}", wrong.len(), wrong.join("\n"));
    for (i, (ops, kinds, _, why)) in DIFFERENCES.iter().enumerate() {
        assert!(met.contains(&i), "no longer a difference: {ops:?}, {kinds}: {why}");
    }
}

/// What has no figures to be compared with, and why.
const WITHOUT: &[(&str, &str)] = &[
    (
        "zeros ones full zeros_like ones_like from_vec fill copy_from",
        "gives back what it was given",
    ),
    ("to_vec to_ndarray view item at", "gives out what is there"),
    ("rand randn uniform normal randint randperm", "random: compared with Paddle's in `cases`"),
];

#[test]
fn every_op_has_figures() {
    let ops = crate::public::ops();
    let mut missing = ops.clone();
    for case in cases() {
        assert!(ops.contains(&case.op), "{} is no op", case.op);
        missing.remove(&case.op);
    }
    for op in WITHOUT.iter().flat_map(|(ops, _)| ops.split(' ')) {
        assert!(missing.remove(op), "`{op}` has figures, or is no op");
    }
    assert!(missing.is_empty(), "add cases to golden/ops.py: {missing:?}");
}
