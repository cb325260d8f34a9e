//! `shapes(..)`: a call is checked against the line, by generated code and by the table alike.

use autograd_core::prelude::*;
use autograd_core::shapes::{Dims, Shapes};
use autograd_core::{Error, Generator, Padding};
use support::leaf;

/// The shapes of the outputs by the table, which has all lengths.
fn made(line: &Shapes, inputs: &[Vec<Dims>], integers: &[usize]) -> Vec<Tensor<f64>> {
    let outputs = line.infer(inputs, integers).unwrap().into_iter().flatten();
    outputs.map(|dims| Tensor::zeros(dims.into_iter().flatten().collect::<Vec<_>>())).collect()
}

fn one(x: &Tensor<f64>) -> Vec<Dims> {
    vec![x.shape().iter().copied().map(Some).collect()]
}

#[py_layer(no_grad, shapes(x: [b.., n], w: [n, m], bias: [m] -> [b.., m]))]
impl Linear {
    fn forward(
        _: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        w: &Tensor<f64>,
        bias: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        made(Self::SHAPES, &[one(x), one(w), bias.map(one).unwrap_or_default()], &[]).remove(0)
    }
}

#[py_layer(no_grad, shapes(x: [b.., 2 * n], y: [n + k, k], z: [_, 3] -> ([n - 1, b..], [n / 2])))]
impl Computed {
    fn forward(
        _: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        y: &Tensor<f64>,
        z: &Tensor<f64>,
    ) -> (Tensor<f64>, Tensor<f64>) {
        let mut outputs = made(Self::SHAPES, &[one(x), one(y), one(z)], &[]);
        (outputs.remove(0), outputs.remove(0))
    }
}

#[py_layer(no_grad, shapes(x: [a.., n], y: [b.., n], z: [] -> [a.. & b.., n * k]))]
impl Broadcast {
    fn forward(
        _: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        y: &Tensor<f64>,
        z: &Tensor<f64>,
        k: i32,
    ) -> Tensor<f64> {
        let k = usize::try_from(k).unwrap();
        made(Self::SHAPES, &[one(x), one(y), one(z)], &[k]).remove(0)
    }
}

#[py_layer(no_grad, shapes(xs: [[n, d]; c], y: [d] -> [c * n, d + N]))]
impl<const N: usize> Stack<N> {
    fn forward(_: &mut ForwardContext<Self>, xs: &[Tensor<f64>], y: &Tensor<f64>) -> Tensor<f64> {
        let list = xs.iter().flat_map(one).collect();
        made(Self::SHAPES, &[list, one(y)], &[N]).remove(0)
    }
}

#[py_layer(no_grad, shapes(x: [b.., n], mask: [b.., h], other: [h] -> _))]
impl OnlyOptional {
    fn forward(
        _: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        mask: Option<&Tensor<f64>>,
        other: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        let _ = (mask, other);
        x * 1.0
    }
}

#[py_layer(no_grad, shapes(x: [n, k], y: [k + 1, m - k] -> [n]))]
impl Greatest {
    fn forward(
        _: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        y: &Tensor<f64>,
        k: usize,
    ) -> Tensor<f64> {
        let _ = (y, k);
        x.sum_axes(1)
    }
}

#[test]
fn no_length_is_taken_for_an_unknown_one() {
    let (x, y) = (zeros([2, 3]), zeros([4, 1]));
    assert_eq!(Greatest::apply(&x, &y, 3).shape(), [2]);
    for k in [usize::MAX, usize::MAX - 1, usize::MAX - 2, 4] {
        let error = message(Greatest::try_apply(&x, &y, k));
        assert!(error.starts_with("Greatest: ") && error.contains("`k` is"), "{error}");
    }
    let k = usize::MAX - 1;
    let unknown = vec![vec![vec![None, None]], vec![vec![None, Some(2)]]];
    assert!(Greatest::SHAPES.infer(&unknown, &[k]).is_err());
}

/// Random shapes of few axes with short lengths, so that many fit.
struct Random(Generator);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        (self.0.next_u64() % n as u64) as usize
    }

    fn tensor(&mut self) -> Tensor<f64> {
        let rank = self.below(4);
        Tensor::zeros((0..rank).map(|_| self.below(5)).collect::<Vec<_>>())
    }

    fn optional(&mut self) -> Option<Tensor<f64>> {
        (self.below(2) == 0).then(|| self.tensor())
    }
}

/// Generated code and the table say the same of each call.
#[test]
fn calls_and_the_table_agree() {
    let mut random = Random(Generator::new(7));
    let mut counts = [[0; 2]; 5];
    let mut agree = |op: usize,
                     called: Result<(), Error>,
                     line: &Shapes,
                     inputs: Vec<Vec<Dims>>,
                     integers: &[usize]| {
        let inferred = line.infer(&inputs, integers);
        match (called, inferred) {
            (Ok(()), Ok(_)) => counts[op][0] += 1,
            (Err(called), Err(inferred)) => {
                assert_eq!(called.to_string(), inferred);
                counts[op][1] += 1;
            }
            (called, inferred) => panic!("{line} of {inputs:?}: {called:?} and {inferred:?}"),
        }
    };
    for _ in 0..40_000 {
        let [x, y, z] = [(); 3].map(|()| random.tensor());
        let (maybe, other) = (random.optional(), random.optional());
        let of = |x: &Option<Tensor<f64>>| x.as_ref().map(one).unwrap_or_default();
        let called = Linear::try_apply(&x, &y, maybe.as_ref()).map(drop);
        agree(0, called, Linear::SHAPES, vec![one(&x), one(&y), of(&maybe)], &[]);
        let called = Computed::try_apply(&x, &y, &z).map(drop);
        agree(1, called, Computed::SHAPES, vec![one(&x), one(&y), one(&z)], &[]);
        let k = random.below(3);
        let called = Broadcast::try_apply(&x, &y, &z, k as i32).map(drop);
        agree(2, called, Broadcast::SHAPES, vec![one(&x), one(&y), one(&z)], &[k]);
        let (list, count) = (vec![x.clone(), x.clone(), z.clone()], 1 + random.below(3));
        let called = Stack::<2>::try_apply(&list[..count], &y).map(drop);
        let shapes = list[..count].iter().flat_map(one).collect();
        agree(3, called, Stack::<2>::SHAPES, vec![shapes, one(&y)], &[2]);
        let called = OnlyOptional::try_apply(&x, maybe.as_ref(), other.as_ref()).map(drop);
        agree(4, called, OnlyOptional::SHAPES, vec![one(&x), of(&maybe), of(&other)], &[]);
    }
    assert!(counts.as_flattened().iter().all(|&n| n > 10), "each op fits and fails: {counts:?}");
}

fn zeros<const R: usize>(shape: [usize; R]) -> Tensor<f64> {
    Tensor::zeros(shape)
}

fn message<O: std::fmt::Debug>(called: Result<O, Error>) -> String {
    called.unwrap_err().to_string()
}

#[test]
fn errors_name_op_parameter_axis_and_lengths() {
    let (x, w) = (zeros([2, 3]), zeros([3, 4]));
    assert_eq!(
        message(Linear::try_apply(&x, &zeros([4, 4]), None)),
        "Linear: axis 0 of `w` is 4, but axis 1 of `x` is 3 (n)"
    );
    assert_eq!(
        message(Linear::try_apply(&x, &w, Some(&zeros([5])))),
        "Linear: axis 0 of `bias` is 5, but axis 1 of `w` is 4 (m)"
    );
    assert_eq!(
        message(Linear::try_apply(&x, &zeros([3]), None)),
        "Linear: `w` has the shape [3], but `shapes(..)` says [n, m]"
    );
    let z = zeros([9, 3]);
    assert_eq!(
        message(Computed::try_apply(&zeros([7]), &zeros([5, 2]), &z)),
        "Computed: axis 0 of `x` is 7, must be a multiple of 2 (2 * n)"
    );
    assert_eq!(
        message(Computed::try_apply(&zeros([6]), &zeros([5, 3]), &z)),
        "Computed: axis 0 of `y` is 5, must be 6 (n + k)"
    );
    assert_eq!(
        message(Computed::try_apply(&zeros([0]), &zeros([3, 3]), &z)),
        "Computed: the output of forward: n - 1 is negative: n is 0"
    );
    assert_eq!(
        message(Computed::try_apply(&zeros([4]), &zeros([5, 3]), &zeros([1, 2]))),
        "Computed: axis 1 of `z` is 2, must be 3"
    );
    assert_eq!(
        message(Broadcast::try_apply(&zeros([2, 3]), &zeros([4, 3]), &zeros([]), 1)),
        "Broadcast: the output of forward: [2] and [4] cannot be broadcast together"
    );
    assert_eq!(
        message(Broadcast::try_apply(&zeros([3]), &zeros([3]), &zeros([]), -1)),
        format!("Broadcast: `k` is a length, and must be from 0 to {}", usize::MAX - 1)
    );
    assert_eq!(
        message(Stack::<0>::try_apply(&[zeros([2, 3]), zeros([2, 4])], &zeros([3]))),
        "Stack: axis 1 of `xs[1]` is 4, but axis 1 of `xs[0]` is 3 (d)"
    );
}

/// Returns outputs of the given shapes, whatever the line says.
#[py_layer(no_grad, shapes(x: [b.., n] -> ([n, b..], [[n]; k])))]
impl Returns {
    fn forward(
        _: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        first: &[usize],
        rest: &[usize],
        k: usize,
    ) -> Result<(Tensor<f64>, Vec<Tensor<f64>>), String> {
        let _ = (x, k);
        let rest = rest.iter().map(|n| Tensor::zeros([*n])).collect();
        if first.is_empty() { Err("no shape".to_owned()) } else { Ok((Tensor::zeros(first), rest)) }
    }
}

#[py_layer(shapes(x: [n] -> [n]))]
impl Grown {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>, by: usize) -> Tensor<f64> {
        x.pad(&[[0, by]], Padding::Constant(0.0))
    }

    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 1.0
    }
}

#[test]
fn outputs_are_checked() {
    let x = zeros([1, 3]);
    let called = |first: &[usize], rest: &[usize]| Returns::try_apply(&x, first, rest, 2);
    assert!(called(&[3, 1], &[3, 3]).unwrap().is_ok());
    assert_eq!(called(&[], &[]).unwrap().unwrap_err(), "no shape");
    let error = |first: &[usize], rest: &[usize]| message(called(first, rest));
    assert_eq!(
        error(&[1, 3], &[3, 3]),
        "Returns: output 0 of forward is [1, 3], but `shapes(..)` says [n, b..] = [3, 1]"
    );
    assert_eq!(
        error(&[3, 1], &[3, 2]),
        "Returns: output 1 of forward is [2], but `shapes(..)` says [n] = [3]"
    );
    assert_eq!(
        error(&[3, 1], &[3]),
        "Returns: output 1 of forward has 1 tensors, but `shapes(..)` says [[n]; k]: 2"
    );
}

#[test]
fn after_an_error_the_input_is_usable() {
    let x = leaf(&[1.0, 2.0]);
    assert_eq!(Grown::apply(&x, 0).to_vec(), [1.0, 2.0]);
    let error = message(Grown::try_apply(&x, 1));
    assert_eq!(error, "Grown: the output of forward is [3], but `shapes(..)` says [n] = [2]");
    (Grown::apply(&x, 0) * 2.0).sum().backward().unwrap();
    assert_eq!(support::gradient(&x), [2.0; 2]);
}

/// A wrong gradient is reported with the names of its axes.
#[py_layer(shapes(x: [n, k] -> [k]))]
impl Sums {
    fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x.sum_axes([0])
    }

    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let same = |dy: &Tensor<f64>| dy * 1.0;
        same(dy)
    }
}

#[test]
fn a_wrong_gradient_is_reported_with_the_names() {
    let x = support::wanting(zeros([2, 3]));
    let error = Sums::apply(&x).sum().backward().unwrap_err().to_string();
    assert!(error.contains("which has shape [2, 3] = [n, k]"), "{error}");
}

#[test]
#[should_panic(expected = "Linear: axis 0 of `w` is 4, but axis 1 of `x` is 3 (n)")]
fn apply_panics_with_the_error() {
    Linear::apply(&zeros([2, 3]), &zeros([4, 4]), None);
}
