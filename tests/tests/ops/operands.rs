//! What every op leaves to its operands: a handle of their own, and a gradient, whatever the data.

use autograd_core::nn::Sequential;
use autograd_core::prelude::*;
use autograd_core::static_graph::{Executor, Program};
use autograd_core::{
    CrossEntropyOptions, DType, Ellipsis, GradOptions, Padding, Step, Tensor, grad_with,
};

use crate::properties::{arguments, differentiable, first_seed};
use crate::random::Draw;
use crate::run::run_alone;

/// Calls `check` with an op, its inputs, which want gradients, and its result, for random arguments.
fn each_op(check: fn(&str, &[Tensor<f64>], &Tensor<f64>)) {
    for op in differentiable() {
        for seed in 0..40 {
            let mut draw = Draw::new(first_seed(&op) + seed);
            let given = arguments(&op, "float64", &mut draw).unwrap();
            let input = |(shape, domain): &(Vec<usize>, _)| draw.tensor::<f64>(shape, *domain, 0);
            let inputs: Vec<Tensor<f64>> = given.inputs.iter().map(input).collect();
            inputs.iter().for_each(|x| x.set_stop_gradient(false));
            let y = run_alone(&op, &given.variant, &inputs, &given.index, |y| y.into());
            let y = y.downcast_ref::<f64>().expect("an op with a gradient");
            check(&format!("{op} {}", given.variant), &inputs, y);
        }
    }
}

#[test]
fn the_result_of_an_op_is_no_operand() {
    each_op(|what, inputs, y| {
        for x in inputs {
            assert!(!x.is_same(y), "{what}: the result is an operand");
            let before = x.to_vec();
            no_grad().run(|| y.fill(77.0)).unwrap();
            assert_eq!(x.to_vec(), before, "{what}: the result has the data of an operand");
        }
    });
}

#[test]
fn every_operand_of_every_op_has_a_gradient() {
    each_op(|what, inputs, y| {
        let refs: Vec<&Tensor<f64>> = inputs.iter().collect();
        let grads = grad_with(&[&y.sum()], &refs, GradOptions::new());
        let grads = grads.unwrap_or_else(|error| panic!("{what}: {error}"));
        for (x, grad) in inputs.iter().zip(grads) {
            assert_eq!(grad.expect("a gradient").shape(), x.shape(), "{what}");
        }
    });
}

type OfOne = fn(&Tensor<f64>) -> Tensor<f64>;

/// Ops with arguments for which each element stays where it is, for the shape [2, 3].
const IDENTITIES: &[(&str, OfOne)] = &[
    ("i(..)", |x| x.i(..)),
    ("i(Ellipsis)", |x| x.i(Ellipsis)),
    ("i(0..n)", |x| x.i((0..2, 0..))),
    ("i of steps", |x| x.i((.., Step(.., 1)))),
    ("i of all", |x| x.i(&Tensor::from([0, 1]))),
    ("sum of one", |x| [x].into_iter().sum()),
    ("sum of one by value", |x| [x.clone()].into_iter().sum()),
    ("roll", |x| x.roll(2, 0)),
    ("roll by 0", |x| x.roll(0, 1)),
    ("pad", |x| x.pad(&[], Padding::Reflect)),
    ("pad by 0", |x| x.pad(&[[0, 0], [0, 0]], Padding::Constant(1.0))),
    ("squeeze_axes", |x| x.squeeze_axes(&[])),
    ("unsqueeze_axes", |x| x.unsqueeze_axes(&[])),
    ("reshape", |x| x.reshape([2, 3])),
    ("permute", |x| x.permute(&[0, 1])),
    ("swap_axes", |x| x.swap_axes(1, 1)),
    ("broadcast_to", |x| x.broadcast_to([2, -1])),
    ("sum_to", |x| x.sum_to(&[2, 3])),
    ("narrow", |x| x.narrow(1, 0, 3)),
    ("slice_axis", |x| x.slice_axis(0, 0, 2, 1)),
    ("cast", |x| x.cast()),
    ("contiguous", |x| x.contiguous()),
    ("copy", |x| x.copy()),
    ("concat", |x| Tensor::concat(&[x], 0)),
    ("chunk", |x| x.chunk(1, 0).remove(0)),
    ("split", |x| x.split(1, 1).remove(0)),
    ("split_with_sizes", |x| x.split_with_sizes(&[3], 1).remove(0)),
    ("repeat", |x| x.repeat(&[1, 1])),
    ("einsum", |x| Tensor::einsum("ij->ij", &[x])),
    ("einsum without a result", |x| Tensor::einsum("ij", &[x])),
    ("clamp", |x| x.clamp(f64::NEG_INFINITY, f64::INFINITY)),
    ("maximum", |x| x.maximum(f64::NEG_INFINITY)),
    ("where_", |x| Tensor::where_(&Tensor::ones([2, 3]), x, 0.0)),
    ("masked_fill", |x| x.masked_fill(&Tensor::zeros([2, 3]), 7.0)),
    ("slice_assign", |x| x.slice_assign(&Tensor::<bool>::zeros([2, 3]), 7.0)),
    ("index_put", |x| x.index_put(&Tensor::<i64>::zeros([0]), 7.0, false)),
    ("index_put, adding", |x| x.index_put(&Tensor::<i64>::zeros([0]), 7.0, true)),
    ("tril", |x| x.tril(5)),
    ("dropout, not training", |x| x.dropout(0.5, false)),
    ("dropout of nothing", |x| x.dropout(0.0, true)),
    ("leaky_relu", |x| x.leaky_relu(1.0)),
    ("pow", |x| x.pow(1.0)),
    ("add", |x| x + 0.0),
    ("mul", |x| x * 1.0),
    ("no layers", |x| Sequential::new().forward(x)),
];

#[test]
fn an_op_that_changes_nothing_returns_a_tensor_of_its_own() {
    for (op, f) in IDENTITIES {
        let data = [1.0, -2.0, 3.0, 4.0, 5.0, -6.0];
        let x = Tensor::from_vec([2, 3], data.to_vec()).unwrap();
        let mut y = f(&x);
        assert_eq!((y.shape(), y.to_vec()), (&[2, 3][..], data.to_vec()), "{op}");
        y += 1.0;
        assert_eq!(x.to_vec(), data, "{op}: a change of the result reached the operand");

        x.set_stop_gradient(false);
        let y = f(&x);
        let _hook = y.register_hook(|dy| Ok(Some(dy * 10.0))).unwrap();
        (x.sum() * 3.0 + y.sum()).backward().unwrap();
        assert_eq!(x.grad().unwrap().to_vec(), [13.0; 6], "{op}: the result's hook");
        y.set_stop_gradient(true);
        assert!(!x.stop_gradient(), "{op}: the end of gradients reached the operand");
    }
}

#[test]
fn an_op_that_changes_nothing_is_traced_on_free_axes() {
    let identities: [OfOne; 6] = [
        |x| x.i(..),
        |x| x.copy(),
        |x| x.contiguous(),
        |x| x.pad(&[], Padding::Reflect),
        |x| x.squeeze_axes(&[]),
        |x| [x].into_iter().sum(),
    ];
    for f in identities {
        let program = Program::new();
        let x = program.data("x", [-1, -1], DType::Float64).unwrap();
        let y = program.trace(move |x: &Tensor<f64>| f(x)).x(&x).call().unwrap();
        let fed = Tensor::<f64>::randn([5, 7]);
        let run = Executor::new().run(&program, &[("x", &fed)], &[&y]).unwrap();
        assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), fed.to_vec());
    }
}

#[test]
fn what_selects_nothing_has_a_gradient_of_zeros() {
    type OfTwo = fn(&Tensor<f64>, &Tensor<f64>) -> Tensor<f64>;
    let none = || Tensor::<i64>::zeros([0]);
    let off = || Tensor::<bool>::zeros([2, 3]);
    let ignored = CrossEntropyOptions::new().ignore_index(0);
    let cases: &[(&str, [&[usize]; 2], OfTwo)] = &[
        ("slice_assign", [&[2, 3], &[]], |x, v| x.slice_assign(&Tensor::<bool>::zeros([2, 3]), v)),
        ("a whole slice_assign", [&[2, 3], &[3]], |x, v| x.slice_assign(.., v)),
        ("index_put", [&[2, 3], &[3]], |x, v| x.index_put(&Tensor::<i64>::zeros([0]), v, false)),
        ("index_put, adding", [&[2, 3], &[]], |x, v| {
            x.index_put(&Tensor::<i64>::zeros([0]), v, true)
        }),
        ("index_put of nothing", [&[0], &[1]], |x, v| x.index_put(.., v, false)),
        ("pad", [&[0, 3], &[2]], |x, v| x.pad(&[[1, 2], [1, 0]], Padding::Constant(1.0)) + v.sum()),
        ("concat", [&[0, 3], &[2, 3]], |x, v| Tensor::concat(&[x, v], 0)),
        ("stack", [&[0], &[0]], |x, v| Tensor::stack(&[x, v], 0)),
        ("where_", [&[2], &[2]], |x, v| Tensor::where_(&Tensor::zeros([2]), x, v)),
        ("where_, the other", [&[2], &[2]], |x, v| Tensor::where_(&Tensor::ones([2]), x, v)),
        ("matmul", [&[2, 0], &[0, 3]], |x, v| x.matmul(v)),
        ("einsum", [&[2, 0], &[0, 3]], |x, v| Tensor::einsum("ij,jk->ik", &[x, v])),
        ("maximum", [&[2], &[2]], |x, v| x.maximum(v + 100.0)),
        ("sum", [&[0], &[]], |x, v| x.sum() * 0.0 + v * 0.0),
    ];
    for (op, shapes, f) in cases {
        let [x, v] = shapes.map(Tensor::<f64>::ones);
        [&x, &v].into_iter().for_each(|x| x.set_stop_gradient(false));
        let y = f(&x, &v);
        let grads = grad_with(&[&y.sum()], &[&x, &v], GradOptions::new().create_graph(true));
        let grads = grads.unwrap_or_else(|error| panic!("{op}: {error}"));
        for (input, grad) in [&x, &v].into_iter().zip(grads) {
            assert_eq!(grad.expect("a gradient").shape(), input.shape(), "{op}");
        }
    }
    let of_one: [(&str, Box<dyn Fn(&Tensor<f64>) -> Tensor<f64>>); 10] = [
        ("masked_select", Box::new(move |x| x.masked_select(&off()))),
        ("masked_fill", Box::new(move |x| x.masked_fill(&Tensor::ones([2, 3]), 7.0))),
        ("i", Box::new(move |x| x.i(&none()))),
        ("an empty range", Box::new(|x| x.i(1..1))),
        ("topk", Box::new(|x| x.topk(0, 1).0)),
        ("repeat", Box::new(|x| x.repeat(&[0, 1]))),
        ("dropout", Box::new(|x| x.dropout(1.0, true))),
        ("tril", Box::new(|x| x.tril(-9))),
        ("slice_assign of all", Box::new(|x| x.slice_assign(.., 0.0))),
        (
            "nll_loss",
            Box::new(move |x| {
                let options = ignored.clone().reduction(autograd_core::LossReduction::Sum);
                x.nll_loss_with(&Tensor::from([0, 0]), &options)
            }),
        ),
    ];
    for (op, f) in of_one {
        let x = Tensor::<f64>::ones([2, 3]);
        x.set_stop_gradient(false);
        let grads = grad_with(&[&f(&x).sum()], &[&x], GradOptions::new());
        let dx = grads.unwrap_or_else(|error| panic!("{op}: {error}")).remove(0).unwrap();
        assert_eq!(dx.to_vec(), [0.0; 6], "{op}");
    }
}
