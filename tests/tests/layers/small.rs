//! Calls with few numbers are recorded inline in their node, others outside. Results and errors must be the
//! same: each call is compared with the same call under an observer, which is recorded outside.

#![allow(unused_parens, reason = "one macro writes a gradient and two")]

use std::cell::Cell;
use std::panic::AssertUnwindSafe;

use autograd_core::prelude::*;
use autograd_core::{
    AnyTensor, BackwardOptions, Error, GradOptions, detect_anomaly, grad, grad_with, gradcheck,
    saved_tensors_hooks,
};
use support::leaf_like;

macro_rules! layers {
    ($($name:ident($($x:ident),+) -> $saved:ty, $forward:expr, $backward:expr;)*) => {$(
        #[py_layer]
        impl $name {
            type Saved = $saved;

            fn forward(
                ctx: &mut ForwardContext<Self>,
                $($x: &Tensor<f64>),+
            ) -> Tensor<f64> {
                let run: fn(&mut ForwardContext<Self>, $(layers!(@ $x)),+) -> Tensor<f64> = $forward;
                run(ctx, $($x),+)
            }

            fn backward(
                ctx: &BackwardContext<Self>,
                dy: &Tensor<f64>,
            ) -> ($(layers!(! $x)),+) {
                let run: fn(&$saved, &Tensor<f64>) -> ($(layers!(! $x)),+) = $backward;
                run(ctx.saved_tensor(), dy)
            }
        }
    )*};
    (@ $x:ident) => { &Tensor<f64> };
    (! $x:ident) => { Tensor<f64> };
}

type T = Tensor<f64>;

layers! {
    Output(x) -> T,
        |ctx, x| { let y = x.tanh(); ctx.save_for_backward(&y); y },
        |y, dy| dy * (1.0 - y.square());
    Input(x) -> T,
        |ctx, x| { ctx.save_for_backward(x); x * x * x },
        |x, dy| dy * x.square() * 3.0;
    OutputAndInput(x) -> (T, T),
        |ctx, x| { let y = x.exp() * x; ctx.save_for_backward((&y, x)); y },
        |(y, x), dy| dy * (x.exp() + y);
    InputTwice(x) -> (T, T),
        |ctx, x| { ctx.save_for_backward((x, x)); x * x },
        |(a, b), dy| dy * (a + b);
    Nothing(x) -> (),
        |ctx, x| { ctx.save_for_backward(()); x * 3.0 },
        |(), dy| dy * 3.0;
    Itself(x) -> T,
        |ctx, x| { ctx.save_for_backward(x); x.clone() },
        |_, dy| dy.clone();
    Product(a, b) -> (T, T),
        |ctx, a, b| { ctx.save_for_backward((a, b)); a * b },
        |(a, b), dy| (dy * b, dy * a);
    Quotient(a, b) -> (T, T),
        |ctx, a, b| { let y = a / b; ctx.save_for_backward((&y, b)); y },
        |(y, b), dy| { let da = dy / b; (da.clone(), -(da * y)) };
    // After forward, these turn out not to be small.
    Sum(x) -> T,
        |ctx, x| { ctx.save_for_backward(x); x.square().sum() },
        |x, dy| dy * x * 2.0;
    Three(a, b) -> (T, T, T),
        |ctx, a, b| { let y = a * b; ctx.save_for_backward((a, b, &y)); y },
        |(a, b, _), dy| (dy * b, dy * a);
    Broadcast(a, b) -> (T, T),
        |ctx, a, b| { ctx.save_for_backward((a, b)); a * b },
        |(a, b), dy| (summed(dy * b, a), summed(dy * a, b));
    LargeBeside(x) -> (T, T),
        |ctx, x| { let all = Tensor::ones([40]); ctx.save_for_backward((x, &all)); x * x },
        |(x, all), dy| dy * x * 2.0 * all.mean();
}

/// The gradient of a tensor that was broadcast over rows.
fn summed(grad: T, of: &T) -> T {
    if grad.shape() == of.shape() { grad } else { grad.sum_axes([0]) }
}

/// Saves tensors of two element types.
#[py_layer]
impl Masked {
    type Saved = (Tensor<f64>, Tensor<bool>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let positive = x.gt_scalar(0.0);
        ctx.save_for_backward((x, &positive));
        x.relu() * x
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let (x, positive) = ctx.saved_tensor();
        dy * x * 2.0 * positive.cast::<f64>()
    }
}

/// A second output beside the tensor.
#[py_layer]
impl Counted {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, usize) {
        let y = x.exp();
        ctx.save_for_backward(&y);
        (y, x.len())
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }
}

/// The output, or the saved tensor, has another element type than the input.
#[py_layer]
impl Narrowed {
    type Saved = (Tensor<f64>, Tensor<f32>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f32> {
        let y = x.square().cast::<f32>();
        ctx.save_for_backward((x, &y));
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f32>) -> Tensor<f64> {
        let (x, y) = ctx.saved_tensor();
        (dy * y / y).cast::<f64>() * x * 2.0
    }
}

#[py_layer]
impl NarrowedOutput {
    type Saved = Tensor<f32>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f32> {
        let y = x.exp().cast::<f32>();
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f32>) -> Tensor<f64> {
        (dy * ctx.saved_tensor()).cast::<f64>()
    }
}

thread_local! {
    static NEEDED: Cell<[bool; 2]> = const { Cell::new([false; 2]) };
}

#[py_layer]
impl Mixed {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f32>) -> Tensor<f64> {
        let wide = b.cast::<f64>();
        let y = a * &wide;
        ctx.save_for_backward((&wide, &y));
        y
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> (Option<Tensor<f64>>, Option<Tensor<f32>>) {
        let ((wide, y), needs) = (ctx.saved_tensor(), ctx.needs_input_grad());
        NEEDED.set([needs.a, needs.b]);
        let da = needs.a.then(|| dy * wide);
        (da, needs.b.then(|| (dy * y / wide).cast::<f32>()))
    }
}

/// Saves a tensor that is neither input nor output.
#[py_layer]
impl Between {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let slope = x.exp();
        ctx.save_for_backward(&slope);
        slope + 1.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }
}

#[py_layer(once_differentiable)]
impl Once {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x.exp();
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        assert!(!autograd_core::is_grad_enabled());
        dy * ctx.saved_tensor()
    }
}

/// Returns a gradient of another shape.
#[py_layer(allow(unread_saved))]
impl Misshapen {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x * 2.0
    }

    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy.sum()
    }
}

#[py_layer]
impl Marked {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x * 2.0;
        ctx.mark_non_differentiable(&y);
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }
}

fn matrix(values: [f64; 6]) -> T {
    leaf_like(&Tensor::from(values).reshape([2, 3]))
}

fn leaves() -> [T; 2] {
    [matrix([0.5, -1.25, 2.0, 0.75, -0.3, 1.5]), matrix([1.5, 0.8, -0.7, 2.5, 1.1, -2.0])]
}

/// The values, first and second gradients of a scalar function of the leaves, or the error.
fn outcome(f: &dyn Fn(&[T; 2]) -> Result<T, Error>) -> Result<Vec<Vec<f64>>, String> {
    let x = leaves();
    let run = || {
        let y = f(&x)?;
        let again = GradOptions::new().create_graph(true).allow_unused(true);
        let first = grad_with(&[&y], &[&x[0], &x[1]], again)?;
        let mut outcome = vec![y.to_vec()];
        let grads = || first.iter().flatten();
        outcome.extend(grads().map(|grad| grad.to_vec()));
        let total = grads().fold(Tensor::from(0.0), |total, grad| total + (grad * grad).sum());
        if !total.stop_gradient() {
            total.backward()?;
        }
        outcome.extend(x.iter().filter_map(|x| x.grad()).map(|grad| grad.to_vec()));
        Ok::<_, Error>(outcome)
    };
    run().map_err(|error| error.to_string())
}

/// The results without and with an observer, which must be equal.
fn both(f: impl Fn(&[T; 2]) -> Result<T, Error>) -> Result<Vec<Vec<f64>>, String> {
    let alone = outcome(&f);
    let _scope = detect_anomaly();
    assert_eq!(alone, outcome(&f));
    alone
}

/// Whether the error says that an op's saved tensor was changed in place.
fn is_changed(outcome: &Result<Vec<Vec<f64>>, String>, op: &str, name: &str) -> bool {
    matches!(outcome, Err(outcome) if outcome.starts_with(op) && outcome.contains(name) && outcome.contains("changed"))
}

#[test]
fn what_is_computed_is_the_same() {
    macro_rules! of_one {
        ($($layer:ident)*) => {$({
            let outcome = both(|[x, _]| Ok($layer::try_apply(&$layer::try_apply(x)?)?.sum()));
            let outcome = outcome.expect(stringify!($layer));
            assert!(outcome.len() >= 2, "{}: {outcome:?}", stringify!($layer));
        })*};
    }
    of_one! { Output Input OutputAndInput InputTwice Nothing Itself Sum Masked }
    macro_rules! of_two {
        ($($layer:ident)*) => {$({
            let twice = |a: &T, b: &T| $layer::try_apply(&$layer::try_apply(a, b)?, b);
            let outcome = both(|[a, b]| Ok(twice(a, b)?.sum())).expect(stringify!($layer));
            assert_eq!(outcome.len(), 5, "{outcome:?}");
            // The same tensor twice, and a tensor that wants no gradient.
            both(|[a, _]| Ok($layer::try_apply(a, a)?.sum())).unwrap();
            both(|[a, b]| Ok($layer::try_apply(a, &b.detach())?.sum())).unwrap();
            both(|[a, b]| Ok($layer::try_apply(&a.detach(), b)?.sum())).unwrap();
        })*};
    }
    of_two! { Product Quotient Three Broadcast }
    let row = |b: &T| b.sum_axes([0]);
    both(|[a, b]| Ok(Broadcast::try_apply(a, &row(b))?.sum())).unwrap();
    both(|[a, b]| Ok(Broadcast::try_apply(&row(a), b)?.sum())).unwrap();
}

#[test]
fn outputs_beside_the_tensor_and_other_elements_change_nothing() {
    both(|[x, _]| {
        let (y, count) = Counted::try_apply(&Counted::try_apply(x)?.0)?;
        assert_eq!(count, 6);
        Ok(y.sum())
    })
    .unwrap();
    both(|[x, _]| Ok(Narrowed::try_apply(&(x + 3.0))?.cast::<f64>().sum())).unwrap();
    both(|[x, _]| Ok(NarrowedOutput::try_apply(x)?.cast::<f64>().sum())).unwrap();
    let [x, _] = leaves();
    NarrowedOutput::apply(&x).sum().backward().unwrap();
    let expected = x.exp().cast::<f32>().cast::<f64>().to_vec();
    assert_eq!(x.grad().unwrap().to_vec(), expected);
}

#[test]
fn backward_is_reported_which_gradients_are_asked_for() {
    let grads = |asked: [bool; 2], stopped: bool| {
        let [a, _] = leaves();
        let b = Tensor::from([0.5_f32, 1.5, -2.0, 1.0, 3.0, -0.25]).reshape([2, 3]);
        b.set_stop_gradient(stopped);
        let y = Mixed::apply(&a, &b).sum();
        let outcome = match asked {
            [true, true] => {
                y.backward().unwrap();
                [a.grad(), b.grad().map(|grad| grad.cast())]
                    .map(|grad| grad.map(|grad| grad.to_vec()))
            }
            [false, _] => {
                let grads = grad(&[&y], &[&b]).unwrap();
                [None, Some(grads[0].cast::<f64>().to_vec())]
            }
            _ => [Some(grad(&[&y], &[&a]).unwrap()[0].to_vec()), None],
        };
        let values = [b.cast::<f64>().to_vec(), a.cast::<f32>().cast::<f64>().to_vec()];
        for (asked, (outcome, expected)) in NEEDED.get().into_iter().zip(outcome.iter().zip(values))
        {
            assert_eq!(outcome.is_some(), asked);
            assert!(
                outcome.as_ref().is_none_or(|outcome| *outcome == expected),
                "{outcome:?}, not {expected:?}"
            );
        }
        NEEDED.get()
    };
    let each = || [[true, false], [false, true], [true, true]].map(|asked| grads(asked, false));
    let alone = each();
    assert_eq!(alone, [[true, false], [false, true], [true, true]]);
    assert_eq!(grads([true, true], true), [true, false]);
    let _scope = detect_anomaly();
    assert_eq!(alone, each());
}

#[test]
fn a_call_without_gradients_is_not_recorded() {
    let [a, b] = leaves().map(|x| x.detach());
    for y in [Product::apply(&a, &b), Output::apply(&a), Sum::apply(&b)] {
        assert!(y.stop_gradient() && y.is_leaf());
    }
    // One of the two is enough.
    a.set_stop_gradient(false);
    for y in [Product::apply(&a, &b), Product::apply(&b, &a)] {
        assert!(!y.stop_gradient() && !y.is_leaf());
    }
    let y = no_grad().run(|| Product::apply(&a, &b));
    assert!(y.stop_gradient() && y.is_leaf());
}

#[test]
fn gradients_are_the_derivative() {
    let x = leaves();
    gradcheck(|t| Output::apply(&t[0]), &x[..1]).unwrap();
    gradcheck(|t| OutputAndInput::apply(&t[0]), &x[..1]).unwrap();
    gradcheck(|t| Quotient::apply(&t[0], &t[1]), &x).unwrap();
}

#[test]
fn a_call_is_visited_before_what_its_second_input_comes_from() {
    let through = |t: &[T]| {
        let deep = Output::apply(&Output::apply(&Output::apply(&t[1])));
        // By reference: an op that gives its buffer to the sum is visited at once, whatever its level.
        let (product, cube) = (Product::apply(&t[0], &deep), Input::apply(&deep));
        &product + &cube
    };
    let x = leaves();
    gradcheck(through, &x).unwrap();
    // The graph is not retained, so a second visit would be an error.
    through(&x).sum().backward().unwrap();
}

#[test]
fn what_is_reported_is_the_same() {
    let second = both(|[x, _]| Ok(Between::try_apply(x)?.sum())).unwrap_err();
    assert!(second.starts_with("Between (called at ") && second.contains("saved tensor 0"));
    let second = both(|[x, _]| Ok(LargeBeside::try_apply(x)?.sum())).unwrap_err();
    assert!(second.starts_with("LargeBeside (called at ") && second.contains("saved tensor 1"));
    let once = both(|[x, _]| Ok(Once::try_apply(x)?.sum())).unwrap_err();
    assert!(once.contains("once_differentiable"), "{once}");
    let shape = both(|[x, _]| Ok(Misshapen::try_apply(x)?.sum())).unwrap_err();
    assert!(shape.contains("`x`") && shape.contains("[2, 3]"), "{shape}");
    assert!(both(|[x, _]| Ok(Marked::try_apply(x)?.sum() + x.sum())).is_ok());

    // Changed in place between forward and backward: an input, with its name; the output; one of two inputs.
    let change = |x: &T| no_grad().run(|| x.copy_from(&(x * 0.5)));
    let changed = both(|[x, _]| {
        let y = Input::try_apply(x)?;
        change(x)?;
        Ok(y.sum())
    });
    assert!(is_changed(&changed, "Input", "`x`"), "{changed:?}");
    let changed = both(|[a, b]| {
        let y = Product::try_apply(a, b)?;
        change(b)?;
        Ok(y.sum())
    });
    assert!(is_changed(&changed, "Product", "`b`"), "{changed:?}");
    for saves_output in [Output::try_apply, OutputAndInput::try_apply] {
        let changed = both(|[x, _]| {
            let y = saves_output(x)?;
            let sum = y.sum();
            change(&y)?;
            Ok(sum)
        });
        assert!(is_changed(&changed, "Output", "saved tensor 0"), "{changed:?}");
    }
}

#[test]
fn an_output_that_was_changed_is_reported_in_a_first_order_too() {
    let [x, _] = leaves();
    let y = Output::apply(&x);
    let sum = y.sum();
    no_grad().run(|| y.copy_from(&(&y * 0.5))).unwrap();
    let outcome = sum.backward().map(|()| Vec::new()).map_err(|error| error.to_string());
    assert!(is_changed(&outcome, "Output", "saved tensor 0"), "{outcome:?}");
    assert!(x.grad().is_none());
}

#[test]
fn an_output_that_forward_changes_after_it_saved_it_is_reported() {
    #[py_layer]
    impl Doubled {
        type Saved = Tensor<f64>;

        fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, late: bool) -> Tensor<f64> {
            let y = x.exp();
            if late {
                ctx.save_for_backward(&y);
            }
            y.copy_from(&(&y * 2.0)).unwrap();
            if !late {
                ctx.save_for_backward(&y);
            }
            y
        }

        fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy * ctx.saved_tensor()
        }
    }

    let large = |x: &T| x.reshape([6, 1]).broadcast_to([6, 40]);
    for wide in [false, true] {
        let run = |x: &T, late| {
            let x = if wide { large(x) } else { x.clone() };
            Ok(Doubled::try_apply(&x, late)?.sum())
        };
        let changed = both(|[x, _]| run(x, true));
        assert!(is_changed(&changed, "Doubled", "saved tensor 0"), "{changed:?}");
        let [x, _] = leaves();
        let sum = {
            let _hooks = saved_tensors_hooks(|x| Ok(x.clone()), |x: &AnyTensor| Ok(x.clone()));
            run(&x, true).unwrap()
        };
        let outcome = sum.backward().map(|()| Vec::new()).map_err(|error| error.to_string());
        assert!(is_changed(&outcome, "Doubled", "saved tensor 0"), "hooks: {outcome:?}");
        let [x, _] = leaves();
        let outcome = both(|[x, _]| run(x, false)).unwrap();
        let times = if wide { 80.0 } else { 2.0 };
        let expected: Vec<_> = x.to_vec().into_iter().map(|x| times * x.exp()).collect();
        assert!(
            outcome[1].iter().zip(&expected).all(|(outcome, x)| (outcome - x).abs() < 1e-9),
            "{outcome:?}"
        );
    }
}

#[test]
fn inputs_that_were_changed_before_the_call_are_kept_as_they_are_then() {
    let change = |x: &T| no_grad().run(|| x.copy_from(&(x * 0.5)));
    for first in [false, true] {
        for second in [false, true] {
            let run = |[a, b]: &[T; 2], after: bool| {
                if first {
                    change(a)?;
                }
                if second {
                    change(b)?;
                    change(b)?;
                }
                let y = Product::try_apply(a, b)?;
                if after {
                    change(a)?;
                }
                Ok(y.sum())
            };
            assert!(both(|x| run(x, false)).is_ok());
            let changed = both(|x| run(x, true));
            assert!(is_changed(&changed, "Product", "`a`"), "{changed:?}");
        }
    }
}

#[test]
fn a_graph_is_used_once_or_retained() {
    let freed = |options: BackwardOptions| {
        let [x, _] = leaves();
        let y = Output::apply(&x);
        let sum = y.sum();
        sum.backward_options(options).unwrap();
        let outcome = sum.backward().map_err(|error| error.to_string());
        (outcome, x.grad().unwrap().to_vec())
    };
    for retain in [false, true] {
        let options = || BackwardOptions::new().retain_graph(retain);
        let alone = freed(options());
        let _scope = detect_anomaly();
        assert_eq!(alone, freed(options()));
        assert_eq!(alone.0.is_ok(), retain);
    }
}

#[test]
fn a_second_order_after_a_first_one_in_the_same_node() {
    let [x, _] = leaves();
    let y = Output::apply(&x);
    let retain = || GradOptions::new().retain_graph(true);
    let plain = grad_with(&[&y.sum()], &[&x], retain()).unwrap();
    let recorded = retain().create_graph(true);
    let kept = grad_with(&[&y.sum()], &[&x], recorded).unwrap();
    let (plain, kept) = (plain[0].as_ref().unwrap(), kept[0].as_ref().unwrap());
    assert_eq!(plain.to_vec(), kept.to_vec());
    assert!(plain.stop_gradient() && !kept.stop_gradient());
}

#[test]
fn a_panic_or_an_error_in_forward_leaves_nothing_behind() {
    #[py_layer(allow(unread_saved))]
    impl Fails {
        type Saved = Tensor<f64>;

        fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Result<Tensor<f64>, String> {
            ctx.save_for_backward(x);
            match x.to_vec()[0] {
                first if first < 0.0 => panic!("a panic of forward"),
                first if first > 1.0 => Err("an error of forward".to_owned()),
                _ => Ok(x.clone()),
            }
        }

        fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy.clone()
        }
    }

    let [x, _] = leaves();
    for (scale, wants) in [(-1.0, true), (4.0, true), (1.0, true), (-1.0, false), (4.0, false)] {
        let scaled = &x * scale;
        let scaled = if wants { scaled } else { scaled.detach() };
        let called = std::panic::catch_unwind(AssertUnwindSafe(|| Fails::try_apply(&scaled)));
        match (scale, called) {
            (-1.0, called) => assert!(called.is_err()),
            (4.0, called) => {
                assert_eq!(called.unwrap().unwrap().unwrap_err(), "an error of forward")
            }
            (_, called) => called.unwrap().unwrap().unwrap().sum().backward().unwrap(),
        }
        assert!(autograd_core::is_grad_enabled());
    }
    assert_eq!(x.grad().unwrap().to_vec(), [1.0; 6]);
}
