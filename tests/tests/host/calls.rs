//! Forward and backward without a node of this library's graph.

use autograd_core::host::{Arg, DynOp, Kept, Memory, Origin};
use autograd_core::prelude::*;
use autograd_core::{is_grad_enabled, with_num_threads};

use super::ops::*;

const OPS: [&dyn DynOp; 8] = [
    CusTanh::EXPORT,
    Gate::EXPORT,
    Cubic::EXPORT,
    Scale::EXPORT,
    Total::EXPORT,
    Panics::EXPORT,
    Once::EXPORT,
    Above::EXPORT,
];

fn ramp(shape: &[usize]) -> Tensor<f32> {
    let n: usize = shape.iter().product();
    let numbers: Vec<f32> = (0..n).map(|i| i as f32 / 10.0 - 0.4).collect();
    Tensor::from(numbers).reshape(shape.iter().map(|&n| n as isize).collect::<Vec<_>>())
}

#[test]
fn an_output_is_saved_once() {
    let x = ramp(&[2, 3]);
    let (outputs, kept) = forward(CusTanh::EXPORT, &[tensor(x.clone())]);
    assert_eq!(numbers(&outputs[0]), numbers(&x.tanh().into()));
    let saved = kept.tensors();
    assert_eq!(saved.len(), 1);
    assert_eq!((saved[0].0, numbers(&saved[0].1)), (Origin::Output(0), numbers(&outputs[0])));
    assert!(outputs[0].stop_gradient() && x.stop_gradient());
    let dy = ramp(&[2, 3]);
    let grads = kept.backward(&[Some(dy.clone().into())], &[]).expect("a gradient");
    let (y, dx) = (x.tanh(), grads[0].clone().expect("it is wanted"));
    assert_eq!(numbers(&dx), numbers(&(dy * (1.0 - y.square())).into()));
    // What is kept can be used again.
    assert!(kept.backward(&[None], &[]).expect("no gradient")[0].is_none());
    assert!(kept.backward(&[Some(ramp(&[2, 3]).into())], &[false]).expect("none")[0].is_none());
}

/// Each call has the outputs and gradients that the recorded op has.
#[test]
fn a_call_by_a_host_is_the_recorded_call() {
    for n in [6_usize, 3000] {
        let (x, a) = (ramp(&[n]) * 0.001, ramp(&[n]) * 0.002);
        let rows = Tensor::from(vec![1_i64, 0, 1]);
        let on = x.gt_scalar(0.1);
        let table = x.reshape([2, n as isize / 2]);
        let wide = |t: &Tensor<f32>| t.cast::<f64>();
        let leaf = |t: &Tensor<f32>| {
            let t = t.copy();
            t.set_stop_gradient(false);
            t
        };
        let leaf64 = |t: &Tensor<f32>| {
            let t = wide(t).copy();
            t.set_stop_gradient(false);
            t
        };
        let any = |t: &Tensor<f32>| tensor(t.clone());
        let checked = |op: &dyn DynOp, args: &[Arg], leaves: Vec<AnyTensor>, y: AnyTensor| {
            let (outputs, kept) = forward(op, args);
            assert_eq!(numbers(&outputs[0]), numbers(&y), "{op:?}");
            let seed = match &y {
                AnyTensor::Float64(y) => AnyTensor::from(y.detach() * 0.5),
                AnyTensor::Float32(y) => AnyTensor::from(y.detach() * 0.5),
                other => panic!("{other:?}"),
            };
            autograd_core::backward(&[y], &[Some(seed.clone())], Default::default())
                .expect("the recorded op has a gradient");
            let mut seeds = vec![None; outputs.len()];
            seeds[0] = Some(seed);
            let again =
                kept.clone().skeleton().with(kept.tensors().into_iter().map(|(_, tensor)| tensor));
            for kept in [kept, again.expect("the same tensors")] {
                let found = kept.backward(&seeds, &[]).expect("a gradient");
                for (leaf, found) in leaves.iter().zip(&found) {
                    let expected: AnyTensor = match leaf {
                        AnyTensor::Float32(leaf) => leaf.grad().expect("a gradient").into(),
                        AnyTensor::Float64(leaf) => leaf.grad().expect("a gradient").into(),
                        other => panic!("{other:?}"),
                    };
                    let found = found.as_ref().expect("a gradient");
                    assert_eq!(numbers(found), numbers(&expected), "{op:?} {n}");
                }
            }
        };
        let x1 = leaf(&x);
        let y = CusTanh::apply(&x1);
        checked(CusTanh::EXPORT, &[any(&x)], vec![x1.into()], y.into());
        let x1 = leaf(&table);
        let y = Gate::apply(&x1, &rows, 3.0).expect("a positive number");
        let args = [any(&table), tensor(rows.clone()), Arg::Float(3.0)];
        checked(Gate::EXPORT, &args, vec![x1.into()], y.into());
        let (x1, a1) = (leaf(&x), leaf(&a));
        let y = Cubic::apply(&x1, &a1, &on, 1.0);
        let args = [any(&x), any(&a), tensor(on.clone()), Arg::Omitted];
        checked(Cubic::EXPORT, &args, vec![x1.into(), a1.into()], y.into());
        // A number beside a tensor, in the other float type.
        let (x1, a1) = (leaf64(&x), leaf64(&Tensor::from(0.5)));
        let y = Cubic::apply(&x1, &a1, &on, 2.0);
        let number = Tensor::from(0.5_f64);
        let args = [tensor(wide(&x)), tensor(number), tensor(on.clone()), Arg::Int(2)];
        checked(Cubic::EXPORT, &args, vec![x1.into(), a1.into()], y.into());
        let (x1, a1) = (leaf64(&x), leaf64(&a));
        let y = Scale::apply(&x1, Some(&a1));
        let args = [tensor(wide(&x)), tensor(wide(&a))];
        checked(Scale::EXPORT, &args, vec![x1.into(), a1.into()], y.into());
        let x1 = leaf(&x);
        let y = Scale::apply(&x1, None);
        checked(Scale::EXPORT, &[any(&x), Arg::Absent], vec![x1.into()], y.into());
        let (x1, a1) = (leaf64(&x), leaf64(&a));
        let (y, _) = Total::apply(&[&x1, &a1]);
        let args = [Arg::List(vec![wide(&x).into(), wide(&a).into()])];
        checked(Total::EXPORT, &args, vec![x1.into(), a1.into()], y.into());
    }
}

/// The host that stores the saved tensors itself gets an output's memory without a copy.
#[test]
fn the_memory_of_an_output_is_not_shared() {
    let (mut outputs, kept) = forward(CusTanh::EXPORT, &[tensor(ramp(&[3000]))]);
    let AnyTensor::Float32(y) = outputs.remove(0) else { panic!("another type") };
    let place = y.view().as_ptr();
    let skeleton = kept.skeleton();
    assert_eq!(Memory::of(y.into()).data().cast_const().cast(), place);
    assert_eq!(skeleton.forms().len(), 1);
}

#[test]
fn a_gradient_that_is_not_needed_is_not_computed() {
    let (x, by) = (Tensor::from([1.0, 2.0]), Tensor::from([3.0, 4.0]));
    let (_, kept) = forward(Scale::EXPORT, &[tensor(x), tensor(by)]);
    let dy = Some(AnyTensor::from(Tensor::from([1.0, 1.0])));
    let grads = kept.backward(std::slice::from_ref(&dy), &[true, false]).expect("gradients");
    assert!(grads[0].is_some() && grads[1].is_none());
    let grads = kept.backward(&[dy], &[false, true]).expect("gradients");
    assert!(grads[0].is_none() && grads[1].is_some());
}

#[test]
fn nothing_is_kept_if_no_gradient_is_wanted() {
    let x = || tensor(ramp(&[4]));
    let (_, kept) = CusTanh::EXPORT.forward(&[x()], &[false]).expect("it fits");
    assert!(kept.tensors().is_empty());
    let args = [x(), Arg::Float(0.0), Arg::Bool(true), Arg::Text("ab".to_owned())];
    let (outputs, kept) = forward(Above::EXPORT, &args);
    assert_eq!((numbers(&outputs[0])[3], outputs[1].dtype().name()), (0.0, "int64"));
    assert!(kept.tensors().is_empty() && is_grad_enabled());
    let grads = kept.backward(&[None, None], &[]).expect("no gradient");
    assert!(grads.iter().all(Option::is_none));
}

#[test]
fn errors_name_op_and_parameter_and_no_line_of_rust() {
    let x = || tensor(ramp(&[2, 2]));
    let doubles = || tensor(Tensor::from([[1.0_f64, 2.0]]));
    let rows = || tensor(Tensor::from(vec![1_i64]));
    let call = |op: &dyn DynOp, args: &[Arg]| refusal(op.forward(args, &[]));
    let kept = |op: &dyn DynOp, args: &[Arg]| forward(op, args).1;
    let backward = |kept: Kept, grads: Given<'_>| refusal(kept.backward(grads, &[]));
    let table = [
        (call(CusTanh::EXPORT, &[]), "CusTanh: expected 1 argument, found 0"),
        (
            call(CusTanh::EXPORT, &[doubles()]),
            "CusTanh: `x` must have element type float32, found float64",
        ),
        (
            call(CusTanh::EXPORT, &[Arg::Float(1.0)]),
            "CusTanh: `x` must be a tensor of float32, found the number 1.0",
        ),
        (
            call(Gate::EXPORT, &[x(), rows(), Arg::Text("a".into())]),
            "Gate: `by` must be a number, found the text \"a\"",
        ),
        (
            call(Gate::EXPORT, &[x(), rows(), Arg::Float(-1.0)]),
            "Gate: forward failed: `by` must be positive, found -1",
        ),
        (
            call(Gate::EXPORT, &[tensor(ramp(&[2])), rows(), Arg::Omitted]),
            "Gate: `x` has the shape [2], but `shapes(..)` says [n, m]",
        ),
        (
            call(Scale::EXPORT, &[rows(), Arg::Absent]),
            "Scale: `x` must be a tensor of float32 or float64, found a tensor of int64 with shape [1]",
        ),
        (
            call(Scale::EXPORT, &[doubles(), x()]),
            "Scale: `by` must have element type float64, found float32",
        ),
        (
            call(Cubic::EXPORT, &[x(), x(), x(), Arg::Omitted]),
            "Cubic: `on` must have element type bool, found float32",
        ),
        (
            call(Total::EXPORT, &[Arg::List(vec![ramp(&[1]).into()])]),
            "Total: `xs[0]` must have element type float64, found float32",
        ),
        (
            call(Above::EXPORT, &[x(), Arg::Float(0.0), Arg::Int(1), Arg::Text(String::new())]),
            "Above: `strict` must be a bool, found the integer 1",
        ),
        (
            call(Panics::EXPORT, &[tensor(-ramp(&[9]))]),
            "Panics: forward panicked: a negative number",
        ),
        (
            backward(kept(Panics::EXPORT, &[tensor(ramp(&[2]) + 1.0)]), &[Some(ramp(&[2]).into())]),
            "Panics: backward panicked: too few elements",
        ),
        (
            backward(kept(CusTanh::EXPORT, &[x()]), &[]),
            "CusTanh: expected 1 gradient, one for each output, found 0",
        ),
        (
            backward(kept(CusTanh::EXPORT, &[x()]), &[Some(ramp(&[2]).into())]),
            "CusTanh: the gradient of an output must be of float32 with shape [2, 2], found \
             float32 with shape [2]",
        ),
        (
            refusal(kept(CusTanh::EXPORT, &[x()]).with([ramp(&[2]).into()])),
            "CusTanh: a saved tensor must be of float32 with shape [2, 2], found float32 with \
             shape [2]",
        ),
    ];
    for (found, expected) in table {
        assert_eq!(found, expected);
    }
}

#[test]
fn after_a_panic_everything_is_usable() {
    let x = -ramp(&[9]);
    assert!(Panics::EXPORT.forward(&[tensor(x.clone())], &[]).is_err());
    assert!(is_grad_enabled() && x.stop_gradient());
    assert!(Panics::EXPORT.forward(&[tensor(x.square())], &[]).is_ok());
}

/// Backward runs on another thread than forward.
#[test]
fn what_is_kept_goes_to_other_threads() {
    let (outputs, kept) = forward(CusTanh::EXPORT, &[tensor(ramp(&[3000]))]);
    let dy = outputs[0].clone();
    let run = move || kept.backward(&[Some(dy)], &[]).expect("a gradient").remove(0);
    let found = std::thread::spawn(move || with_num_threads(1, run)).join().expect("no panic");
    assert_eq!(found.expect("a gradient").shape(), [3000]);
}

#[test]
fn an_input_of_the_caller_is_not_changed() {
    let x = ramp(&[3000]);
    let before = x.to_vec();
    for op in OPS.iter().filter(|op| op.description().parameters.len() == 1) {
        let _ = op.forward(&[tensor(x.clone())], &[]);
    }
    assert!(x.to_vec() == before && x.stop_gradient() && x.grad().is_none());
}
