//! Ways of misuse that are detected at run time: each function commits one and returns the error.
//! After an error the tensors are unchanged, and a correct backward over them still works.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use autograd_core::prelude::*;
use autograd_core::static_graph::{Executor, Program};
use autograd_core::{
    BackwardOptions, DType, Error, GradOptions, GradientStatus, Real, Traced, backward,
    detect_anomaly, explain, fuse, grad_with, gradcheck, jvp, saved_tensors_hooks,
};
use ndarray::ArrayViewD;
use support::leaf;
use support::ops::{Add, Identity};

pub(crate) fn text<V>(result: Result<V, Error>) -> String {
    match result {
        Ok(_) => panic!("it was not noticed"),
        Err(error) => error.to_string(),
    }
}

/// The panic message of `apply`, or of another form without `try_`.
pub(crate) fn panicked<V>(f: impl FnOnce() -> V) -> String {
    let Err(caught) = catch_unwind(AssertUnwindSafe(f)) else { panic!("it was not noticed") };
    *caught.downcast::<String>().expect("a panic of this library says why")
}

/// The error of a backward. No leaf got a gradient, and all are still usable.
pub(crate) fn backward_reported(y: &Tensor<f64>, leaves: &[&Tensor<f64>]) -> String {
    let message = text(y.sum().backward());
    usable(leaves);
    message
}

pub(crate) fn usable(leaves: &[&Tensor<f64>]) {
    for x in leaves {
        assert!(x.grad().is_none(), "a gradient was written before the error");
        (*x * 3.0).sum().backward().unwrap();
        assert_eq!(x.grad().unwrap().to_vec(), vec![3.0; x.len()]);
        x.clear_grad();
    }
}

/// The gradient of the sum of `y`, recorded.
fn recorded(y: &Tensor<f64>, x: &Tensor<f64>) -> Result<Tensor<f64>, Error> {
    let grads = grad_with(&[&y.sum()], &[x], GradOptions::new().create_graph(true))?;
    Ok(grads.into_iter().next().flatten().expect("one input, one gradient"))
}

/// A product with its gradients in the wrong order: both have the right type.
#[py_layer]
impl Swapped {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x * w
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        let (x, w) = ctx.saved_tensor();
        let sum_to = |g: Tensor<f64>, of: &Tensor<f64>| if of.ndim() == 0 { g.sum() } else { g };
        (sum_to(dy * x, w), sum_to(dy * w, x))
    }
}

pub(crate) fn swapped_gradients() -> String {
    let (x, w) = (leaf(&[1.0, 2.0]), Tensor::from(3.0));
    w.set_stop_gradient(false);
    backward_reported(&Swapped::apply(&x, &w), &[&x, &w])
}

pub(crate) fn swapped_gradients_of_one_shape() -> String {
    let inputs = [leaf(&[1.0, 2.0]), leaf(&[3.0, 5.0])];
    let message = text(gradcheck(|t| Swapped::apply(&t[0], &t[1]), &inputs));
    usable(&[&inputs[0], &inputs[1]]);
    message
}

#[py_layer]
impl WrongFormula {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x.tanh();
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * (1.0 - ctx.saved_tensor())
    }
}

pub(crate) fn wrong_formula() -> String {
    let x = leaf(&[0.5, -1.0]);
    text(gradcheck(|t| WrongFormula::apply(&t[0]), &[x]))
}

/// Returns the given value as the gradient.
#[py_layer]
impl Returns {
    type Attrs = fn(&Tensor<f64>) -> Option<Tensor<f64>>;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        gradient: fn(&Tensor<f64>) -> Option<Tensor<f64>>,
    ) -> Tensor<f64> {
        ctx.set_attrs(gradient);
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Option<Tensor<f64>> {
        ctx.attrs()(dy)
    }
}

pub(crate) fn gradient_of_a_shape_that_broadcasts() -> String {
    let x = leaf(&[1.0, 2.0]);
    backward_reported(&Returns::apply(&x, |dy| Some(dy.sum())), &[&x])
}

pub(crate) fn gradient_of_another_shape() -> String {
    let x = leaf(&[1.0, 2.0]);
    backward_reported(&Returns::apply(&x, |_| Some(Tensor::zeros([5]))), &[&x])
}

pub(crate) fn none_where_a_gradient_is_needed() -> String {
    let x = leaf(&[1.0, 2.0]);
    backward_reported(&Returns::apply(&x, |_| None), &[&x])
}

pub(crate) fn panic_in_backward() -> String {
    let x = leaf(&[1.0, 2.0]);
    let y = Returns::apply(&x, |dy| panic!("a slope of {dy}"));
    let Err(caught) = catch_unwind(AssertUnwindSafe(|| y.sum().backward())) else {
        panic!("it was not noticed")
    };
    usable(&[&x]);
    *caught.downcast::<String>().expect("the user's own words")
}

#[py_layer]
impl Fails {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, _dy: &Tensor<f64>) -> Result<Tensor<f64>, String> {
        Err("no slope today".to_owned())
    }
}

pub(crate) fn error_in_backward() -> String {
    let x = leaf(&[1.0, 2.0]);
    backward_reported(&Fails::apply(&x), &[&x])
}

pub(crate) fn gradient_that_is_not_finite() -> String {
    let x = leaf(&[1.0, 0.0]);
    let scope = detect_anomaly();
    let y = Returns::apply(&x, |dy| Some(dy / 0.0));
    let message = text(y.sum().backward());
    drop(scope);
    usable(&[&x]);
    message
}

#[py_layer]
impl Joined {
    fn forward(_ctx: &mut ForwardContext<Self>, xs: &[&Tensor<f64>]) -> Tensor<f64> {
        xs[0] + xs[1]
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
        vec![dy.clone()]
    }
}

pub(crate) fn list_of_gradients_too_short() -> String {
    let (a, b) = (leaf(&[1.0]), leaf(&[2.0]));
    backward_reported(&Joined::apply(&[&a, &b]), &[&a, &b])
}

#[py_layer]
impl SavesSometimes {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, save: bool) -> Tensor<f64> {
        if save {
            ctx.save_for_backward(x);
        }
        x.square()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor() * 2.0
    }
}

pub(crate) fn not_saved_on_one_path() -> String {
    let x = leaf(&[1.0]);
    let message = panicked(|| SavesSometimes::apply(&x, false));
    usable(&[&x]);
    message
}

pub(crate) fn saved_input_changed_in_place() -> String {
    let x = leaf(&[1.0, 2.0]);
    let h = &x * 1.0;
    let y = SavesSometimes::apply(&h, true);
    no_grad().run(|| h.fill(10.0)).unwrap();
    backward_reported(&y, &[&x])
}

#[py_layer]
impl SavesOutput {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x.exp();
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }
}

pub(crate) fn saved_output_changed_in_place() -> String {
    let x = leaf(&[1.0, 2.0]);
    let y = SavesOutput::apply(&x);
    no_grad().run(|| y.fill(0.0)).unwrap();
    backward_reported(&y, &[&x])
}

/// Its attribute is counted; an op that kept itself alive would keep the attribute too.
#[py_layer(allow(unread_saved))]
impl Counted {
    type Saved = Tensor<f64>;
    type Attrs = Arc<()>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, count: &Arc<()>) -> Tensor<f64> {
        let y = x.exp();
        ctx.save_for_backward(&y);
        ctx.set_attrs(Arc::clone(count));
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        assert_eq!(Arc::strong_count(ctx.attrs()), 2);
        dy * 2.0
    }
}

pub(crate) fn saved_output_and_no_backward() {
    let (count, x) = (Arc::new(()), leaf(&[1.0]));
    for _ in 0..10 {
        drop(Counted::apply(&x, &count));
    }
    assert_eq!(Arc::strong_count(&count), 1);
}

#[py_layer]
impl SavesIntermediate {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let e = x.exp();
        ctx.save_for_backward(&e);
        &e + 1.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * ctx.saved_tensor()
    }
}

pub(crate) fn second_order_over_a_saved_intermediate() -> String {
    let x = leaf(&[1.0, 2.0]);
    let message = text(recorded(&SavesIntermediate::apply(&x), &x));
    usable(&[&x]);
    message
}

#[py_layer]
impl ReadsNumbers {
    type Saved = Tensor<f64>;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward(x);
        x.square()
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let slopes = ctx.saved_tensor().to_vec().iter().map(|x| 2.0 * x).collect::<Vec<_>>();
        dy * Tensor::from(slopes)
    }
}

pub(crate) fn second_order_through_numbers() -> String {
    let x = leaf(&[1.0, 2.0]);
    let message = text(recorded(&ReadsNumbers::apply(&x), &x));
    usable(&[&x]);
    // The first order needs no graph.
    ReadsNumbers::apply(&x).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [2.0, 4.0]);
    message
}

#[py_layer(once_differentiable)]
impl Once {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

pub(crate) fn second_order_of_an_op_that_has_none() -> String {
    let x = leaf(&[1.0, 2.0]);
    let first = recorded(&Once::apply(&x), &x).unwrap();
    let message = text(recorded(&first, &x));
    usable(&[&x]);
    message
}

/// Marks tensors that are not outputs, or not inputs.
#[py_layer]
impl Marks {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, output: bool) -> Tensor<f64> {
        let (other, y) = (x * 3.0, x * 2.0);
        if output {
            ctx.mark_non_differentiable(&other);
        } else {
            ctx.mark_not_inplace(&other);
        }
        y
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

pub(crate) fn mark_on_what_is_no_output() -> String {
    let x = leaf(&[1.0]);
    let message = panicked(|| Marks::apply(&x, true));
    usable(&[&x]);
    message
}

pub(crate) fn mark_on_what_is_no_input() -> String {
    let x = leaf(&[1.0]);
    let message = panicked(|| Marks::apply(&x, false));
    usable(&[&x]);
    message
}

#[py_layer]
impl TakesAnything {
    fn forward<V: std::fmt::Debug>(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        value: V,
    ) -> Tensor<f64> {
        x * format!("{value:?}").len() as f64
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

pub(crate) fn tensor_through_a_type_parameter() -> String {
    let (x, w) = (leaf(&[1.0]), leaf(&[2.0]));
    let message = panicked(|| TakesAnything::apply(&x, Some(vec![&w])));
    usable(&[&x, &w]);
    message
}

#[py_layer(no_grad)]
impl NoGradient {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x.round()
    }
}

pub(crate) fn input_that_wants_a_gradient_for_an_op_without() -> String {
    let x = leaf(&[1.5]);
    let message = panicked(|| NoGradient::apply(&x));
    usable(&[&x]);
    message
}

pub(crate) fn buffer_of_another_length() -> String {
    text(Tensor::from_vec([2, 3], vec![0.0_f64; 5]))
}

/// `a`, `b` and `c` have different gradients.
#[py_layer]
impl Ordered {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        a: &Tensor<f64>,
        b: &Tensor<f64>,
        c: &Tensor<f64>,
    ) -> Tensor<f64> {
        a + b + c
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> (Tensor<f64>, Tensor<f64>, Tensor<f64>) {
        (dy * 1.0, dy * 20.0, dy * 300.0)
    }
}

pub(crate) fn arguments_by_name_in_another_order() {
    let [a, b, c] = [leaf(&[1.0]), leaf(&[1.0]), leaf(&[1.0])];
    Ordered::with().c(&c).b(&b).a(&a).apply().backward().unwrap();
    assert_eq!([a, b, c].map(|x| x.grad().unwrap().item()), [1.0, 20.0, 300.0]);
}

pub(crate) fn second_backward() -> String {
    let x = leaf(&[1.0, 2.0]);
    let y = SavesOutput::apply(&x).sum();
    y.backward().unwrap();
    let first = x.grad().unwrap().to_vec();
    let message = text(y.backward());
    assert_eq!(x.grad().unwrap().to_vec(), first);
    message
}

pub(crate) fn no_seed_for_several_elements() -> String {
    let x = leaf(&[1.0, 2.0]);
    let message = text(SavesOutput::apply(&x).backward());
    usable(&[&x]);
    message
}

pub(crate) fn seed_of_another_shape() -> String {
    let x = leaf(&[1.0, 2.0]);
    let message = text(SavesOutput::apply(&x).backward_with(&Tensor::from(1.0)));
    usable(&[&x]);
    message
}

pub(crate) fn seeds_of_another_count() -> String {
    let x = leaf(&[1.0]);
    let (y, z) = (SavesOutput::apply(&x), Once::apply(&x));
    let seed = Some(Tensor::from([1.0]).into());
    let message = text(backward(&[y.into(), z.into()], &[seed], BackwardOptions::new()));
    usable(&[&x]);
    message
}

pub(crate) fn hook_that_returns_another_shape() -> String {
    let x = leaf(&[1.0, 2.0]);
    let y = SavesOutput::apply(&x);
    let _ = y.register_hook(|_| Ok(Some(Tensor::zeros([5])))).unwrap();
    backward_reported(&y, &[&x])
}

pub(crate) fn unpack_hook_that_returns_another_shape() -> String {
    let x = leaf(&[1.0, 2.0]);
    let scope =
        saved_tensors_hooks(|saved| Ok(saved.clone()), |_| Ok(Tensor::<f64>::zeros([3]).into()));
    let y = scope.run(|| SavesOutput::apply(&x));
    backward_reported(&y, &[&x])
}

pub(crate) fn leaf_changed_in_place() -> String {
    let mut x = leaf(&[1.0, 2.0]);
    let message = text(x.try_add_assign(1.0));
    assert_eq!(x.to_vec(), [1.0, 2.0]);
    usable(&[&x]);
    message
}

/// Writes to a tensor that it was given; a clone of that is not a copy.
#[py_layer]
impl WritesItsInput {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let mut y = x.clone();
        y += 7.0;
        y * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

pub(crate) fn input_written_that_another_op_saved() -> String {
    let x = leaf(&[1.0, 2.0]);
    let h = &x * 1.0;
    let saved = SavesSometimes::apply(&h, true);
    let message = panicked(|| WritesItsInput::apply(&h));
    assert_eq!(h.to_vec(), [1.0, 2.0]);
    saved.sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [2.0, 4.0]);
    x.clear_grad();
    usable(&[&x]);
    message
}

/// Writes to the gradient that it gets.
#[py_layer]
impl WritesItsGradient {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 1.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let given = dy * 1.0;
        dy.fill(100.0).expect("not a leaf that wants a gradient");
        given
    }
}

pub(crate) fn gradient_written_by_backward() {
    let (a, b) = (leaf(&[1.0]), leaf(&[1.0]));
    let sum = WritesItsGradient::apply(&a) + SavesSometimes::apply(&b, true);
    let seed = Tensor::from([1.0]);
    sum.backward_with(&seed).unwrap();
    assert_eq!([a.grad().unwrap().item(), b.grad().unwrap().item()], [1.0, 2.0]);
    assert_eq!(seed.item(), 1.0);
}

pub(crate) fn one_tensor_for_two_gradients() {
    let (a, b) = (leaf(&[1.0]), leaf(&[1.0]));
    Add::apply(&a, &b).backward().unwrap();
    (&a * 5.0).backward().unwrap();
    assert_eq!([a.grad().unwrap().item(), b.grad().unwrap().item()], [6.0, 1.0]);
}

pub(crate) fn input_returned_as_it_is() {
    let x = leaf(&[1.0]);
    let y = Identity::apply(&x);
    assert!(x.is_leaf() && !y.is_leaf());
    y.backward().unwrap();
    assert_eq!(x.grad().unwrap().item(), 3.0);
}

pub(crate) fn gradient_for_an_input_that_wants_none() {
    let (a, b) = (leaf(&[1.0]), Tensor::from([1.0]));
    Add::apply(&a, &b).backward().unwrap();
    assert_eq!(a.grad().unwrap().item(), 1.0);
    assert!(b.grad().is_none());
}

pub(crate) fn a_hundred_thousand_ops_in_a_chain() {
    let x = leaf(&[1.0]);
    let y = (0..100_000).fold(x.clone(), |y, _| Identity::apply(&y) * (1.0 / 3.0));
    y.backward().unwrap();
    assert!(x.grad().is_some());
    let never_run = (0..100_000).fold(x.clone(), |y, _| SavesOutput::apply(&y) * 0.1);
    drop(never_run);
}

#[py_layer]
impl WrongTangent {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }

    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        dx.sum()
    }
}

pub(crate) fn tangent_of_another_shape() -> String {
    let x = leaf(&[1.0, 2.0]);
    let message =
        text(jvp(|t| WrongTangent::apply(&t[0]), std::slice::from_ref(&x), &[Tensor::ones([2])]));
    usable(&[&x]);
    message
}

#[allow(unnameable_test_items, reason = "the test that the macro adds would fail, as it should")]
pub(crate) fn wrong_slope_of_a_formula() -> String {
    #[py_layer(elementwise)]
    impl WrongSlope {
        fn forward<L: Lane>(x: Real<L>) -> Real<L> {
            x * x
        }

        fn backward<L: Lane>(x: Real<L>, dy: Real<L>) -> Real<L> {
            dy * x
        }
    }
    let x = leaf(&[1.0, 2.0]);
    let message = text(WrongSlope::try_apply(&x));
    usable(&[&x]);
    message
}

pub(crate) fn shapes_in_a_formula_that_do_not_fit() -> String {
    let (x, w) = (leaf(&[1.0, 2.0]), leaf(&[1.0, 2.0, 3.0]));
    let message = panicked(|| fuse([&x, &w], |[x, w]: [Real<Traced>; 2]| x * w));
    usable(&[&x, &w]);
    message
}

/// The error of a run whose function is declared to return `[2]` but returns the result of `func`.
fn run_reported(func: fn(ArrayViewD<'_, f64>) -> ndarray::ArrayD<f64>) -> String {
    let program = Program::new();
    let x = program.data("x", [2], DType::Float64).unwrap();
    let out = program.current_block().create_var("out", DType::Float64, [2]).unwrap();
    let y = program.py_func(func).x(&x).out(&out).call().unwrap();
    let feed = ndarray::arr1(&[1.0, 2.0]);
    text(Executor::new().run(&program, &[("x", &feed)], &[&y]))
}

pub(crate) fn py_func_of_another_shape() -> String {
    run_reported(|_| ndarray::arr1(&[1.0, 2.0, 3.0]).into_dyn())
}

pub(crate) fn py_func_that_panics() -> String {
    run_reported(|x| panic!("no value for {} numbers", x.len()))
}

pub(crate) fn py_func_whose_backward_lacks_a_needed_gradient() -> String {
    let program = Program::new();
    let x = program.data("x", [2], DType::Float64).unwrap();
    x.set_stop_gradient(false);
    let out = program.current_block().create_var("out", DType::Float64, [2]).unwrap();
    let y = program
        .py_func(|x: ArrayViewD<f64>| x.to_owned())
        .x(&x)
        .out(&out)
        .backward_func(|_x: ArrayViewD<f64>, _y: ArrayViewD<f64>, _dy: Option<ArrayViewD<f64>>| {
            None::<ndarray::ArrayD<f64>>
        })
        .call()
        .unwrap();
    let loss = program.mean(&y).unwrap();
    let grads = autograd_core::static_graph::gradients(&[&loss], &[&x]).unwrap();
    let feed = ndarray::arr1(&[1.0, 2.0]);
    let grad = grads[0].as_ref().expect("x leads to the loss");
    text(Executor::new().run(&program, &[("x", &feed)], &[grad]))
}

/// A closure may hold a tensor that no signature shows.
#[py_layer]
impl Calls {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        f: impl Fn(&Tensor<f64>) -> Tensor<f64>,
    ) -> Tensor<f64> {
        f(x)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

pub(crate) fn tensor_held_by_a_closure() -> String {
    let (x, w) = (leaf(&[1.0]), leaf(&[2.0]));
    let message = panicked(|| Calls::apply(&x, |x| x * &w));
    usable(&[&x, &w]);
    message
}

/// So may a user's struct.
struct Weights {
    w: Tensor<f64>,
}

#[py_layer]
impl Scales {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, weights: &Weights) -> Tensor<f64> {
        x * &weights.w
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

pub(crate) fn tensor_held_by_a_struct() -> String {
    let (x, weights) = (leaf(&[1.0]), Weights { w: leaf(&[2.0]) });
    let message = panicked(|| Scales::apply(&x, &weights));
    usable(&[&x, &weights.w]);
    message
}

pub(crate) fn tensor_held_by_a_closure_unasked() -> String {
    let (x, w) = (leaf(&[1.0]), leaf(&[2.0]));
    let hides = |x: &Tensor<f64>, w: &Tensor<f64>| Calls::apply(x, |x| no_grad().run(|| x * w));
    let y = hides(&x, &w);
    assert_eq!(explain(&y, &w).status(), GradientStatus::NotReachable);
    text(gradcheck(|t| hides(&t[0], &t[1]), &[x, w]))
}
