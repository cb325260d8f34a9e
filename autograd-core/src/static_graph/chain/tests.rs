use std::sync::Arc;

use super::super::executor::{Feed, Fetch};
use super::super::formula::Formula;
use super::super::frame::Frame;
use super::super::ir::{Phase, Place};
use super::super::kind::Kind;
use super::super::plan::Plan;
use super::super::{Executor, Program, Variable, gradients};
use crate::array::DType;
use crate::graph::{AnyTensor, GradMode, Tensor};
use crate::ops::Unary;
use crate::ops::elementwise::Handle;
use crate::random::{Generator, Rewound};

/// A function of the table, as a user's op would be.
fn formula(program: &Program, op: Unary, x: &Variable) -> Variable {
    let handle: Handle<f64> = op.handle();
    let op = Formula::new(Arc::new(handle));
    let kind = Kind::Formula { name: "theirs", op, outputs: vec![x.form()] };
    let place = Place::Line(std::panic::Location::caller());
    let made = program.graph().push(kind, &[x.id], Phase::Forward, &place).expect("it fits");
    program.variable(made[0])
}

#[test]
fn formulas_are_in_chains_with_their_gradients() {
    let steps = |op: Unary| {
        let program = Program::new();
        let x = program.data("x", [-1, 3], DType::Float64).expect("a new name");
        x.set_stop_gradient(false);
        let y = formula(&program, op, &(&x * 2.0)).exp().expect("floats");
        let dx = gradients(&[&y], &[&x]).expect("a gradient").remove(0).expect("it is wanted");
        let graph = program.graph();
        [Plan::new(&graph, &[y.id], false), Plan::new(&graph, &[dx.id], false)]
            .map(|plan| plan.steps.len())
    };
    // What is read again is in the first cache, and so are the ones that the gradient starts with.
    assert_eq!(steps(Unary::Tanh), [1, 1]);
    assert_eq!(steps(Unary::Sin), [1, 1]);
}

/// The values of a run, and how many of its chains there are; with `plain`, their operators run one
/// by one.
fn run(
    program: &Program,
    fetched: &[&Variable],
    feed: &[(&str, &dyn Feed)],
    plain: bool,
) -> Vec<AnyTensor> {
    let fetched: Vec<usize> = fetched.iter().map(|variable| variable.id).collect();
    let mut plan = Plan::new(&program.graph(), &fetched, false);
    for chain in plan.steps.iter_mut().filter_map(|step| step.chain.as_mut()) {
        assert!(chain.lowered.is_some(), "{}", program);
        if plain {
            chain.lowered = None;
        }
    }
    let mut values = Vec::new();
    // The second run computes in the buffers of the first.
    for _ in 0..2 {
        let mut frame = Frame::new(&plan);
        frame.feed(feed).expect("it fits");
        GradMode::of(false, || frame.run(1)).expect("it runs");
        values = frame.fetch().expect("it is there");
        frame.end();
    }
    values
}

/// Shapes and bits; which of the many NaNs comes, the order of two operands decides.
fn bits(values: &[AnyTensor]) -> Vec<(Vec<usize>, Vec<u64>)> {
    let float = |x: f64| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() };
    let one = |value: &AnyTensor| match value {
        AnyTensor::Float32(x) => x.to_vec().into_iter().map(|x| float(x.into())).collect(),
        AnyTensor::Float64(x) => x.to_vec().into_iter().map(float).collect(),
        AnyTensor::Int32(x) => x.to_vec().into_iter().map(|x| x as u64).collect(),
        AnyTensor::Int64(x) => x.to_vec().into_iter().map(|x| x as u64).collect(),
        AnyTensor::UInt8(x) => x.to_vec().into_iter().map(u64::from).collect(),
        AnyTensor::Bool(x) => x.to_vec().into_iter().map(u64::from).collect(),
    };
    values.iter().map(|value| (value.shape().to_vec(), one(value))).collect()
}

const DTYPES: [DType; 6] =
    [DType::Float32, DType::Float64, DType::Int32, DType::Int64, DType::UInt8, DType::Bool];

/// One of those whose elements are as asked; one is there.
fn pick(
    known: &[Variable],
    draw: &mut impl FnMut(usize) -> usize,
    fits: impl Fn(DType) -> bool,
) -> Variable {
    let found: Vec<&Variable> = known.iter().filter(|x| fits(x.form().dtype)).collect();
    found[draw(found.len())].clone()
}

/// A random operator of each element of variables that are there, of any element types.
fn random(
    program: &Program,
    known: &[Variable],
    draw: &mut impl FnMut(usize) -> usize,
) -> Variable {
    let x = pick(known, draw, DType::is_float);
    let y = &pick(known, draw, |dtype| dtype == x.form().dtype);
    let any = pick(known, draw, |_| true);
    let same = pick(known, draw, |dtype| dtype == any.form().dtype);
    let made = match draw(30) {
        0 => x.tanh(),
        1 => x.sin(),
        2 => (&x * 3e6).cos(),
        3 => x.sigmoid(),
        4 => x.try_add(y),
        5 => x.try_sub(y),
        6 => x.try_mul(y),
        7 => x.try_div(y),
        8 => x.maximum(y),
        9 => x.minimum(0.25),
        10 => Ok(2.0 / &x),
        11 => Ok(1.0 - &x),
        12 => x.abs().and_then(|x| x.pow(1.5)),
        13 => x.abs().and_then(|x| x.pow(y)),
        14 => Ok(&x * 0.5),
        15 if x.form().dtype == DType::Float64 => Ok(formula(program, Unary::Gelu, &x)),
        15 => x.gelu(),
        16 => any.greater(&same),
        17 => any.less_equal(&same),
        18 => any.not_equal(&same),
        19 => x.less(y),
        20..23 => {
            // What is compared is the chooser most of the time.
            let mask = match known.iter().any(|x| x.form().dtype == DType::Bool) {
                true => pick(known, draw, |dtype| dtype == DType::Bool),
                false => x.greater(y).expect("floats"),
            };
            mask.where_else(&x, y)
        }
        23 => any.cast(DTYPES[draw(6)]),
        24 => x.cast(DTYPES[draw(2)]),
        25 => {
            any.equal(&same).and_then(|mask| mask.cast(x.form().dtype)).and_then(|m| m.try_mul(&x))
        }
        26 => x.dropout(0.4),
        _ => {
            let whole = |dtype: DType| !dtype.is_float() && dtype != DType::Bool;
            match known.iter().any(|x| whole(x.form().dtype)) {
                true => {
                    let x = pick(known, draw, whole);
                    let y = pick(known, draw, |dtype| dtype == x.form().dtype);
                    match draw(6) {
                        0 => x.try_add(&y),
                        1 => x.try_mul(&y),
                        2 => x.maximum(&y),
                        3 => Ok(7.0 - &x),
                        4 => Ok(&x / 3.0),
                        _ => x.try_sub(&y),
                    }
                }
                false => (&x * 20.0).cast(DTYPES[2 + draw(3)]),
            }
        }
    };
    made.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn chains_have_the_figures_of_their_operators_one_by_one() {
    let mut generator = Generator::new(5);
    let mut draw = |below: usize| {
        let mut number = [0_i64];
        generator.fill_randint(&mut number, 0, below as i64);
        number[0] as usize
    };
    let wave = |shape: &[usize], by: f64| {
        let n: usize = shape.iter().product();
        let x = Tensor::from((0..n).map(|i| (i as f64 * by).sin() * 2.0).collect::<Vec<_>>());
        x.reshape(shape)
    };
    let (mut chains, mut smaller) = (0, 0);
    for round in 0..160 {
        let program = Program::new();
        let data = |name: &str, shape: &[i64]| {
            let x = program.data(name, shape, DType::Float64).expect("a new name");
            x.set_stop_gradient(false);
            x
        };
        // In every other round all lengths are known.
        let known_rows = round % 2 == 1;
        let rows = if known_rows { 5 } else { -1 };
        let inputs = [
            data("a", &[rows, 7]),
            data("b", &[rows, 7]),
            data("row", &[7]),
            data("column", &[rows, 1]),
        ];
        let mut known = inputs.to_vec();
        if round % 4 < 2 {
            // All have the form of the whole, or may be stretched to it.
            known[2] = &inputs[0] * &inputs[2];
            known[3] = inputs[1].try_add(&inputs[3]).expect("they fit");
        }
        known.push(inputs[0].cast(DType::Float32).expect("a number"));
        for _ in 0..6 + draw(10) {
            let made = random(&program, &known, &mut draw);
            known.push(made);
        }
        // All of it counts.
        let mut last = inputs[0].clone();
        for x in &known[4..] {
            last = x.cast(DType::Float64).and_then(|x| x.try_add(&last)).expect("they fit");
        }
        let of: Vec<&Variable> = inputs.iter().collect();
        let found = gradients(&[&last], &of).expect("they exist");
        let mut fetched = vec![&last, &known[draw(known.len())]];
        fetched.extend(found.iter().flatten());
        let plan = Plan::new(&program.graph(), &[last.id], false);
        chains += plan.steps.iter().filter(|step| step.chain.is_some()).count();
        let ids: Vec<usize> = fetched.iter().map(|variable| variable.id).collect();
        let plan = Plan::new(&program.graph(), &ids, false);
        let outs = plan.steps.iter().flat_map(|step| step.chain.iter().flat_map(|c| &c.outs));
        smaller += outs.filter(|out| matches!(out.sum, Some(super::Sum::InPass(_)))).count();
        let mut lengths = vec![(5, 5, 5), (700, 700, 700), (1, 5, 5), (5, 1, 1)];
        lengths.extend([(0, 0, 1), (5, 5, 1)]);
        // Of more chunks than one, and of more sums than stand beside each other.
        if round % 16 == 0 {
            lengths.extend([(4000, 4000, 4000), (5000, 1, 5000)]);
        }
        for &(a, b, column) in if known_rows { &lengths[..1] } else { &lengths[..] } {
            let (a, b) = (wave(&[a, 7], 0.3), wave(&[7, b], 0.7).transpose());
            let (row, column) = (wave(&[7], 0.9), wave(&[column, 1], 1.1));
            let feed: [(&str, &dyn Feed); 4] =
                [("a", &a), ("b", &b), ("row", &row), ("column", &column)];
            let used: Vec<_> =
                feed.into_iter().filter(|(name, _)| plan_reads(&program, &fetched, name)).collect();
            let [one, other] = [false, true].map(|plain| {
                let _same = Rewound::to(&Generator::new(round));
                bits(&run(&program, &fetched, &used, plain))
            });
            assert_eq!(one, other, "round {round}\n{program}");
        }
    }
    assert!(chains > 100 && smaller > 20, "{chains} {smaller}");
}

fn plan_reads(program: &Program, fetched: &[&Variable], name: &str) -> bool {
    let fetched: Vec<usize> = fetched.iter().map(|variable| variable.id).collect();
    let plan = Plan::new(&program.graph(), &fetched, false);
    plan.feeds.iter().any(|&id| plan.graph.vars[id].name == name)
}

#[test]
fn a_product_with_a_row_is_the_head_of_a_chain_whose_row_is_read_again() {
    let program = Program::new();
    let data = |name: &str, shape: &[i64]| {
        let x = program.data(name, shape, DType::Float32).expect("a new name");
        x.set_stop_gradient(false);
        x
    };
    let (x, w, b) = (data("x", &[-1, 40]), data("w", &[40, 30]), data("b", &[30]));
    let sum = x.matmul(&w).and_then(|product| product.try_add(&b)).expect("they fit");
    let y = sum.gelu().and_then(|y| y.try_mul(&b)).expect("they fit");
    let of = gradients(&[&y], &[&x, &w, &b]).expect("they exist");
    let mut fetched = vec![&y];
    fetched.extend(of.iter().flatten());
    let asked: Vec<&dyn Fetch> = fetched.iter().map(|variable| *variable as &dyn Fetch).collect();
    let lines = Executor::new().steps(&program, &asked).expect("they are there");
    assert!(lines[0].contains("= matmul + add + gelu + mul"), "{lines:?}");
    assert!(lines.len() <= 4, "{lines:?}");
    for rows in [1, 3, 300] {
        let wave = |shape: &[usize]| {
            let n: usize = shape.iter().product();
            Tensor::from((0..n).map(|i| (i as f32 * 0.37).sin()).collect::<Vec<_>>()).reshape(shape)
        };
        let fed = [wave(&[rows, 40]), wave(&[40, 30]), wave(&[30])];
        let feed: [(&str, &dyn Feed); 3] = [("x", &fed[0]), ("w", &fed[1]), ("b", &fed[2])];
        let [one, other] = [false, true].map(|plain| bits(&run(&program, &fetched, &feed, plain)));
        assert_eq!(one, other, "{rows}");
    }
}
