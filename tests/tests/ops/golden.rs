//! Values and gradients against those in `golden/ops.txt`, from NumPy and PyTorch, in `golden/moves.txt`,
//! from NumPy, and in `golden/axes.txt`.

use std::collections::BTreeSet;
use std::path::Path;

use autograd_core::{AnyTensor, BackwardOptions, Float, Graph, Tensor, backward};

use crate::run::{Number, places_are_of_callers, run};

/// A shape and its numbers, as in a line of the file.
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
    /// The results to compare: `torch`, `numpy`, `grad`.
    expected: Vec<(String, Numbers)>,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let read = |file| std::fs::read_to_string(folder.join(file)).unwrap();
    let mut cases: Vec<Case> = Vec::new();
    for line in ["ops.txt", "moves.txt", "axes.txt"].map(read).concat().lines() {
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

/// The results: first the value, then the gradients.
fn found<T: Number>(case: &Case) -> (Numbers, Vec<Numbers>) {
    let inputs: Vec<Tensor<T>> = case.inputs.iter().map(Numbers::tensor).collect();
    let index: Vec<_> = case.index.iter().map(|i| i.tensor::<f64>().cast::<i64>()).collect();
    let wanted = case.expected.iter().filter(|(kind, _)| kind == "grad").count();
    if wanted > 0 {
        inputs.iter().for_each(|x| x.set_stop_gradient(false));
    }
    let y = run(&case.op, &case.variant, &inputs, &index);
    let value = Numbers::of(&y);
    if wanted == 0 {
        return (value, Vec::new());
    }
    places_are_of_callers(&case.op, &Graph::of(std::slice::from_ref(&y)).to_dot());
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

/// Two numbers that should be equal.
struct Seen {
    found: f64,
    expected: f64,
    /// The inputs' numbers at the same position, if they have the output's shape.
    at: Vec<f64>,
    /// The relative rounding error of the element type.
    epsilon: f64,
}

impl Seen {
    fn at_nan(&self) -> bool {
        self.at.iter().any(|x| x.is_nan())
    }

    fn sign_of_zero(&self) -> bool {
        self.found == 0.0 && self.expected == 0.0
    }

    /// Whether they differ by at most so many roundings of a number of this size.
    fn within(&self, roundings: f64, size: f64) -> bool {
        (self.found - self.expected).abs() <= roundings * self.epsilon * size
    }

    /// Whether they are equal, or differ by a few roundings.
    fn agree(&self, kind: &str) -> bool {
        let (found, expected) = (self.found, self.expected);
        if found.is_nan() || expected.is_nan() {
            return found.is_nan() && expected.is_nan();
        }
        if self.sign_of_zero() {
            return kind == "grad" || found.is_sign_negative() == expected.is_sign_negative();
        }
        // The smallest subnormal numbers of f64 and f32.
        let least = if self.epsilon < 1e-10 { 2.0 * 5e-324 } else { 2.0 * 1.5e-45 };
        found == expected || self.within(8.0, expected.abs()) || (found - expected).abs() <= least
    }
}

/// Ops, the result that is compared, the condition, and the reason.
type Difference = (&'static [&'static str], &'static str, fn(&Seen) -> bool, &'static str);

/// Intended differences. Each must occur.
const DIFFERENCES: &[Difference] = &[
    // Signs of zero, which compare equal.
    (&["signum"], "torch numpy", Seen::sign_of_zero, "a zero keeps its sign"),
    (&["relu"], "numpy", Seen::sign_of_zero, "a zero keeps its sign, as in PyTorch"),
    (&["elu"], "torch", Seen::sign_of_zero, "the negative part is added to a positive zero"),
    (&["min_axes"], "torch", Seen::sign_of_zero, "of two zeros either is the least"),
    (&["cumsum"], "torch", Seen::sign_of_zero, "a sum starts from its first number, as in NumPy"),
    (
        &["pow"],
        "torch numpy",
        |s| s.at == [0.0] && s.sign_of_zero(),
        "IEEE: pow(-0, 0.5) is 0, which their square root is not",
    ),
    (&["remainder"], "torch", Seen::sign_of_zero, "a zero has the divisor's sign, as in NumPy"),
    // The origin, and equal infinities.
    (&["hypot"], "grad", |s| s.expected.is_nan() && s.found == 0.0, "the slope at 0, as of `abs`"),
    (&["xlogy"], "grad", |s| s.expected.is_nan() && s.found == 0.0, "0 times any logarithm is 0"),
    (
        &["logaddexp"],
        "grad",
        |s| s.expected.is_nan() && s.found.is_finite(),
        "equal infinities share the gradient",
    ),
    (
        &["remainder"],
        "grad",
        |s| s.found.is_nan() && (s.at[1] == 0.0 || s.at[1].is_infinite()),
        "the quotient by 0 or infinity is no integer",
    ),
    (
        &["atan2"],
        "grad",
        |s| s.epsilon > 1e-10 && (s.expected == 0.0 || s.expected.is_nan()),
        "the squares of 1e20 overflow f32 in theirs",
    ),
    (
        &["remainder"],
        "torch",
        |s| s.expected.is_nan() && s.found.abs() < s.at[1].abs(),
        "the quotient overflows f32 in theirs",
    ),
    (
        &["copysign"],
        "grad",
        |s| s.expected.is_nan() && s.at[0].is_infinite(),
        "an infinity has a sign",
    ),
    (
        &["asin", "acos"],
        "grad",
        |s| s.at[0].abs() > 0.99 && (s.found / s.expected - 1.0).abs() < 64.0 * s.epsilon,
        "theirs takes a rounded square from 1",
    ),
    // The gamma function.
    (
        &["digamma", "lgamma"],
        "torch numpy grad",
        |s| s.within(16.0, 1.0),
        "lost digits near a root",
    ),
    (
        &["erfinv"],
        "grad",
        |s| s.within(16.0, s.expected.abs()),
        "the exponential of the result's square multiplies its rounding",
    ),
    (
        &["digamma"],
        "grad",
        |s| (s.found - s.expected).abs() <= 1e-9 * s.found.abs(),
        "nine digits in theirs",
    ),
    (
        &["digamma"],
        "grad",
        |s| s.at[0] < 0.0 && (s.found.is_infinite() || s.within(1e3, s.found.abs())),
        "the sine of a rounded multiple of π in theirs, even at poles",
    ),
    // NaN.
    (&["signum"], "torch", Seen::at_nan, "NaN stays NaN, as in NumPy"),
    (&["abs"], "grad", Seen::at_nan, "NaN stays NaN"),
    (&["step"], "numpy", Seen::at_nan, "NaN is not above 0, as in PyTorch"),
    (
        &["maximum", "minimum"],
        "grad",
        Seen::at_nan,
        "a NaN is what was selected, and alone has the gradient",
    ),
    // Infinity.
    (
        &["pow"],
        "torch numpy grad",
        |s| s.at == [f64::NEG_INFINITY],
        "IEEE: pow(-inf, 0.5) is inf, which their square root is not",
    ),
    (
        &["gelu"],
        "torch",
        |s| s.at == [f64::INFINITY] && s.found == f64::INFINITY,
        "PyTorch's f32 gives NaN",
    ),
    (
        &["silu", "gelu"],
        "torch grad",
        |s| s.expected.is_nan() && s.at[0].is_infinite() && s.found.is_finite(),
        "the limit, where theirs is 0 times infinity",
    ),
    (
        &["logsumexp"],
        "grad",
        |s| s.expected.is_nan() && s.at[0].is_infinite() && s.found.is_finite(),
        "the limit, where theirs is infinity less infinity",
    ),
    (
        &["binary_cross_entropy_with_logits"],
        "torch",
        |s| s.expected.is_nan() && s.found.is_finite(),
        "a certain answer that is right costs nothing",
    ),
    (
        &["normalize"],
        "torch",
        |s| s.expected == 0.0 && s.at == [f64::from(1e30_f32)] || s.at == [-f64::from(1e30_f32)],
        "the squares of 1e30 overflow f32 in theirs",
    ),
    (
        &["kl_div"],
        "torch",
        |s| s.expected.is_nan() && s.found.is_finite(),
        "a probability of 0 counts nothing, also beside a logarithm of 0",
    ),
    // Bounds and ties.
    (&["clamp"], "grad", |s| s.at == [-0.5] || s.at == [1.5], "the ends lie within"),
    (
        &["maximum", "minimum"],
        "grad",
        |s| s.at == [0.5],
        "of a tensor and an equal scalar the tensor gets the gradient",
    ),
    (&["clamp"], "grad", |s| s.at[0].is_nan(), "a NaN is what was selected"),
    (
        &["max", "min", "max_axes", "min_axes", "max_axes_keep", "min_axes_keep"],
        "grad",
        |s| s.expected.is_nan(),
        "a NaN is what was selected, as in PyTorch's `max` of all; its `amax` gives each element NaN",
    ),
    (&["dropout"], "torch", |s| s.expected == 0.0, "what is dropped is 0, not -0"),
];

/// Larger rounding errors; their size may depend on the CPU.
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
    (
        &["logsumexp"],
        "grad",
        |s| s.at[0].abs() > 900.0 && (s.found / s.expected - 1.0).abs() < 400.0 * s.epsilon,
        "theirs takes a rounded logarithm from a large number",
    ),
    (&["normalize", "cdist"], "grad", |s| s.within(8.0, 1.0), "numbers near 1 that cancel"),
    (
        &["solve", "inv", "slogdet", "cholesky"],
        "torch numpy grad",
        |s| s.within(64.0, 1.0),
        "sums in another order",
    ),
    (
        &["solve_triangular", "cholesky_solve", "eigh", "qr", "svd", "lstsq", "pinv"],
        "torch numpy grad",
        |s| s.within(256.0, 1.0),
        "sums in another order",
    ),
    (
        &[
            "cumprod",
            "kl_div",
            "kl_div_with",
            "binary_cross_entropy",
            "binary_cross_entropy_with",
            "std_axes_keep",
        ],
        "grad",
        |s| s.within(2.0, 1.0),
        "sums of numbers that cancel",
    ),
    (
        &["binary_cross_entropy"],
        "grad",
        |s| s.expected.abs() > 1e11 && (s.found / s.expected - 1.0).abs() < 1e-8,
        "their least divisor, 1e-12, is rounded to f32",
    ),
    (
        &["var_axes", "std_axes"],
        "grad",
        |s| s.at == [f64::from(1e-30_f32)] || s.at == [1e-30],
        "the mean of numbers a million times greater than itself",
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
        let epsilon = if double { f64::PRECISION } else { f32::PRECISION };
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

/// Ops without reference results, and the reason.
const WITHOUT: &[(&str, &str)] = &[
    (
        "zeros ones full zeros_like ones_like full_like from_vec fill copy_from",
        "gives back what it was given",
    ),
    ("to_vec to_ndarray view item at", "gives out what is there"),
    ("log", "is `ln`: compared with it in `numbers`"),
    ("nll_loss_with", "compared with `cross_entropy_with` in `gradients/losses`"),
    ("rand randn uniform normal randint randperm", "random: compared with Paddle's in `draws`"),
    ("rand_like randn_like bernoulli multinomial", "random: made of these, and tested in `making`"),
];

#[test]
fn every_op_has_figures() {
    let ops = crate::names::ops();
    let mut missing = ops.clone();
    for case in cases() {
        assert!(ops.contains(&case.op), "{} is no op", case.op);
        missing.remove(&case.op);
    }
    for op in WITHOUT.iter().flat_map(|(ops, _)| ops.split(' ')) {
        assert!(missing.remove(op), "`{op}` has figures, or is no op");
    }
    assert!(missing.is_empty(), "add cases to golden/ops.py, moves.py or axes.py: {missing:?}");
}
