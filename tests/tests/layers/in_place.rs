//! In-place changes: which tensors see them, and which the forward of an op must not make.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use autograd_core::nn::{Linear, Module, parameter};
use autograd_core::optim::{Optimizer, Sgd};
use autograd_core::prelude::*;
use autograd_core::{Error, enable_grad};
use support::wanting;

/// Passes its inputs, one of each form, to a closure before it computes.
#[py_layer]
impl Lends {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        option: Option<&Tensor<f64>>,
        list: &[Tensor<f64>],
        #[stop_gradient] free: &Tensor<f64>,
        lend: impl Fn(&[&Tensor<f64>]) -> Result<(), Error>,
    ) -> Result<Tensor<f64>, Error> {
        let list: Vec<_> = list.iter().collect();
        lend(&[&[x], option.as_slice(), &list, &[free]].concat())?;
        Ok(x * 2.0)
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> (Tensor<f64>, Option<Tensor<f64>>, Vec<Tensor<f64>>) {
        let zeros = || dy * 0.0;
        let needs = ctx.needs_input_grad();
        (dy * 2.0, needs.option.then(zeros), needs.list.iter().map(|_| zeros()).collect())
    }
}

/// The same with one input: a small op if that has few elements.
#[py_layer]
impl<T: Float> LendsOne<T> {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<T>,
        lend: impl Fn(&Tensor<T>) -> Result<(), Error>,
    ) -> Result<Tensor<T>, Error> {
        lend(x)?;
        Ok(x * 2.0)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy * 2.0
    }
}

/// 1, 2, .., as a leaf.
fn counted(shape: &[usize]) -> Tensor<f64> {
    let n: usize = shape.iter().product();
    wanting(Tensor::from((0..n).map(|i| i as f64 + 1.0).collect::<Vec<_>>()).reshape(shape))
}

/// All methods that change a tensor in place, with their names in errors.
type Write = (&'static str, fn(&Tensor<f64>) -> Result<(), Error>);

const WRITES: &[Write] = &[
    ("fill", |x| x.fill(9.0)),
    ("copy_from", |x| x.copy_from(&Tensor::zeros(x.shape().to_vec()))),
    ("set_item", |x| x.clone().set_item(&vec![0; x.ndim()], 9.0)),
    ("add_assign", |x| x.clone().try_add_assign(1.0)),
    ("sub_assign", |x| x.clone().try_sub_assign(Tensor::from(1.0))),
    ("mul_assign", |x| x.clone().try_mul_assign(x)),
    ("div_assign", |x| x.clone().try_div_assign(2.0)),
];

/// Handles of the data of a tensor.
const HANDLES: &[(&str, fn(&Tensor<f64>) -> Tensor<f64>)] =
    &[("itself", Tensor::clone), ("detached", Tensor::detach)];

/// The error of a call, from the engine or from forward.
fn error_of<V>(result: Result<Result<V, Error>, Error>) -> String {
    match result.and_then(|returned| returned) {
        Ok(_) => panic!("it was not refused"),
        Err(error) => error.to_string(),
    }
}

/// Inputs that want a gradient: a leaf, a parameter, the result of an op, and one changed before.
fn inputs(shape: &[usize]) -> Vec<(&'static str, Tensor<f64>)> {
    let changed = counted(shape) * 1.0;
    no_grad().run(|| changed.fill(3.0)).unwrap();
    vec![
        ("leaf", counted(shape)),
        ("parameter", parameter(counted(shape).detach())),
        ("result", counted(shape) * 1.0),
        ("changed", changed),
    ]
}

#[test]
fn forward_does_not_change_an_input_that_wants_a_gradient() {
    for shape in [&[][..], &[2], &[3, 50]] {
        for (kind, x) in inputs(shape) {
            let before = x.to_vec();
            // It is saved: a change would be an error in its backward.
            let saved = x.square().sum();
            for (name, write) in WRITES {
                for (handle, of) in HANDLES {
                    let case = format!("{shape:?} {kind} {name} {handle}");
                    let text = error_of(LendsOne::try_apply(&x, |x| write(&of(x))));
                    let expected =
                        format!("LendsOne: forward must not change `x` in place ({name})");
                    assert!(text.starts_with(&expected), "{case}: {text}");
                    assert!(text.contains("change `x.copy()`, or declare `#[stop_gradient] x`"));
                    // A scope in forward does not help, nor does one around the call.
                    let text =
                        error_of(LendsOne::try_apply(&x, |x| no_grad().run(|| write(&of(x)))));
                    assert!(text.starts_with(&expected), "{case}: {text}");
                    let text =
                        error_of(no_grad().run(|| LendsOne::try_apply(&x, |x| write(&of(x)))));
                    assert!(text.starts_with(&expected), "{case}: {text}");
                    error_of(LendsOne::try_apply(&x, |x| enable_grad().run(|| write(&of(x)))));
                    assert_eq!(x.to_vec(), before, "{case}");
                }
                // A copy may be changed.
                let y = LendsOne::apply(&x, |x| write(&x.copy())).unwrap();
                assert_eq!(y.to_vec(), before.iter().map(|x| x * 2.0).collect::<Vec<_>>());
            }
            saved.backward().unwrap();
            // After the calls no tensor is protected any more.
            no_grad().run(|| x.fill(0.5)).unwrap();
        }
    }
}

#[test]
fn operators_that_panic_say_the_same() {
    let x = counted(&[2]);
    let changes: [fn(Tensor<f64>); 4] =
        [|mut y| y += 1.0, |mut y| y -= 1.0, |mut y| y *= 1.0, |mut y| y /= 1.0];
    for change in changes {
        let call = || {
            LendsOne::apply(&x, |x| {
                change(x.clone());
                Ok(())
            })
        };
        let caught = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
        let text = caught.downcast_ref::<String>().unwrap();
        assert!(text.contains("LendsOne: forward must not change `x` in place"), "{text}");
        assert_eq!(x.to_vec(), [1.0, 2.0]);
        no_grad().run(|| x.copy_from(&x)).unwrap();
    }
}

#[test]
fn every_input_is_named() {
    // More inputs than are stored inline.
    let (x, option) = (counted(&[2]), counted(&[2]));
    let list: Vec<_> = (0..20).map(|_| counted(&[2])).collect();
    let free = counted(&[2]) * 1.0;
    for at in 0..22 {
        let name = ["`x`", "`option`", "`list`"][at.min(2)];
        let call = Lends::try_apply(&x, Some(&option), &list, &free, |all| all[at].fill(0.0));
        let text = error_of(call);
        assert!(text.starts_with(&format!("Lends: forward must not change {name}")), "{text}");
    }
    // An input that is passed twice is named where it is differentiated.
    let text = error_of(Lends::try_apply(&x, None, &[], &x, |all| all[1].fill(0.0)));
    assert!(text.starts_with("Lends: forward must not change `x`"), "{text}");
    // An input of another element type, and several tensors, one of which wants no gradient.
    let small = Tensor::<f32>::from([1.0, 2.0]);
    small.set_stop_gradient(false);
    let text = error_of(LendsOne::try_apply(&small, |x| x.fill(0.0)));
    assert!(text.starts_with("LendsOne: forward must not change `x`"), "{text}");
    let constant = Tensor::from([5.0, 6.0]);
    Lends::apply(&x, Some(&constant), &[], &free, |all| all[1].fill(0.0)).unwrap();
    assert_eq!(constant.to_vec(), [0.0, 0.0]);
}

#[test]
fn an_input_that_wants_no_gradient_or_is_not_differentiated_may_be_changed() {
    let results: [fn() -> Tensor<f64>; 2] = [|| counted(&[2]), || counted(&[2]) * 1.0];
    for free in results {
        for (name, write) in WRITES {
            let (x, free, expected) = (counted(&[2]), free(), Tensor::from([1.0, 2.0]));
            let y = Lends::apply(&x, None, &[], &free, |all| write(all[1])).unwrap();
            write(&expected).unwrap();
            assert_eq!(free.to_vec(), expected.to_vec(), "{name}");
            y.sum().backward().unwrap();
            assert_eq!(x.grad().unwrap().to_vec(), [2.0, 2.0], "{name}");
            let constant = Tensor::from([1.0, 2.0]);
            LendsOne::apply(&constant, write).unwrap();
            assert_eq!(constant.to_vec(), expected.to_vec(), "{name}");
        }
    }
}

#[test]
fn what_belongs_to_a_model_is_protected_too() {
    let x = parameter(Tensor::from([1.0, 2.0]));
    x.square().sum().backward().unwrap();
    let text = error_of(LendsOne::try_apply(&x, |x| {
        Optimizer::new(std::slice::from_ref(x), Sgd::new(0.1)).step()
    }));
    assert!(text.starts_with("LendsOne: forward must not change `x` in place (Sgd)"), "{text}");
    let net = Linear::<f64>::new(2, 3);
    let (state, other) = (net.state_dict(), Linear::<f64>::new(2, 3));
    let before = net.weight.to_vec();
    let text =
        error_of(LendsOne::try_apply(&net.weight, |_| net.load_state_dict(&other.state_dict())));
    assert!(text.contains("must not change `x` in place (load_state_dict)"), "{text}");
    assert_eq!(net.weight.to_vec(), before);
    assert_eq!(state["weight"].downcast_ref::<f64>().unwrap().to_vec(), before);
}

#[test]
fn an_op_in_an_op_protects_its_own_inputs_and_those_around() {
    let (x, w) = (counted(&[2]), counted(&[2]));
    let inner = |y: &Tensor<f64>| LendsOne::apply(y, |_| x.fill(0.0)).map(drop);
    let text = error_of(LendsOne::try_apply(&x, |x| inner(&x.copy())));
    assert!(text.starts_with("LendsOne: forward must not change `x`"), "{text}");
    // The inner op's input is a constant there, and its own.
    LendsOne::apply(&w, |w| LendsOne::apply(&(w * 2.0), |h| h.fill(0.0)).map(drop)).unwrap();
    // After the inner op, the outer op's input is still protected.
    let text = error_of(LendsOne::try_apply(&x, |x| {
        LendsOne::apply(&w, |_| Ok(()))?;
        x.fill(0.0)
    }));
    assert!(text.starts_with("LendsOne: forward must not change `x`"), "{text}");
    assert_eq!((x.to_vec(), w.to_vec()), (vec![1.0, 2.0], vec![1.0, 2.0]));
}

#[test]
fn a_change_by_another_thread_is_found_when_forward_ends() {
    for shape in [&[2][..], &[3, 50]] {
        for (kind, x) in inputs(shape) {
            let elsewhere = |x: &Tensor<f64>| {
                thread::scope(|scope| scope.spawn(|| no_grad().run(|| x.fill(0.0))).join().unwrap())
            };
            let text = error_of(LendsOne::try_apply(&x, elsewhere));
            let expected = "LendsOne: `x` was changed in place by another thread while forward ran";
            assert!(text.starts_with(expected), "{kind}: {text}");
            let free = counted(shape);
            let text =
                error_of(Lends::try_apply(&x, None, std::slice::from_ref(&x), &free, |all| {
                    elsewhere(all[1])
                }));
            assert!(text.starts_with("Lends: `x` was changed"), "{kind}: {text}");
            Lends::apply(&x, None, &[], &free, |all| elsewhere(all[1])).unwrap();
        }
    }
}

#[test]
fn errors_in_place_advise_what_helps() {
    let mut x = counted(&[2]);
    let text = x.try_add_assign(1.0).unwrap_err().to_string();
    assert!(text.ends_with("do it under `no_grad()`, or change a `copy()`"), "{text}");
    let mut h = &x * 1.0;
    let y = h.square();
    h += 1.0;
    let text = y.sum().backward().unwrap_err().to_string();
    assert!(text.ends_with("change a `copy()` of it instead"), "{text}");
    // Following the advice gives no error, and correct gradients.
    let mut copy = x.copy();
    copy += 1.0;
    let h = &x * 1.0;
    let y = h.square();
    let mut copy_of_h = h.copy();
    copy_of_h += 1.0;
    (y + copy + copy_of_h).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [4.0, 6.0]);
    assert_eq!(x.to_vec(), [1.0, 2.0]);
}

/// Elements of one type, and a different element.
fn check_sharing<T: Element>(numbers: [T; 6], other: T) {
    type Of<T> = fn(&Tensor<T>) -> Tensor<T>;
    let shares: [(&str, Of<T>); 2] = [("clone", Tensor::clone), ("detach", Tensor::detach)];
    let own: [(&str, Of<T>); 11] = [
        ("copy", Tensor::copy),
        ("reshape", |x| x.reshape([6])),
        ("reshape to the same", |x| x.reshape([2, 3])),
        ("flatten", Tensor::flatten),
        ("transpose", Tensor::transpose),
        ("permute nothing", |x| x.permute(&[0, 1])),
        ("unsqueeze", |x| x.unsqueeze(0)),
        ("narrow", |x| x.narrow(0, 0, 2)),
        ("select", |x| x.select(0, 0)),
        ("split", |x| x.split(1, 0).remove(0)),
        ("concat", |x| Tensor::concat(&[x], 0)),
    ];
    // Inline, on the heap, and with data that is shared already.
    for (repeats, changed) in [(1, false), (30, false), (1, true), (30, true)] {
        let make = || {
            let row = Tensor::from(numbers.to_vec()).reshape([1, 2, 3]);
            let x = Tensor::concat(vec![&row; repeats], 0).reshape([2, 3 * repeats]);
            if changed {
                x.copy_from(&x.copy()).unwrap();
            }
            x
        };
        for (seen, (name, of)) in
            shares.iter().map(|f| (true, f)).chain(own.iter().map(|f| (false, f)))
        {
            if repeats > 1 && name.starts_with("reshape") {
                continue;
            }
            let case = format!("{} {name} {repeats} {changed}", T::DTYPE);
            let (x, y) = (make(), of(&make()));
            let (x_before, y_before) = (x.to_vec(), y.to_vec());
            let of_x = of(&x);
            assert_eq!(of_x.to_vec(), y_before, "{case}");
            of_x.fill(other).unwrap();
            assert_eq!(x.to_vec() != x_before, seen, "{case}: a change of the result");
            let x = make();
            let of_x = of(&x);
            x.fill(other).unwrap();
            assert_eq!(of_x.to_vec() != y_before, seen, "{case}: a change of the original");
        }
    }
}

#[test]
fn clones_and_detached_tensors_share_data_and_nothing_else_does() {
    check_sharing([1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], 9.0);
    check_sharing([1.0_f64, 2.0, 3.0, 4.0, 5.0, 6.0], 9.0);
    check_sharing([1_i32, 2, 3, 4, 5, 6], 9);
    check_sharing([1_i64, 2, 3, 4, 5, 6], 9);
    check_sharing([1_u8, 2, 3, 4, 5, 6], 9);
    check_sharing([true, false, true, false, false, false], true);
    let own: [(&str, fn(&Tensor<f64>) -> Tensor<f64>); 3] = [
        ("cast", |x| x.cast()),
        ("broadcast_to", |x| x.broadcast_to(x.shape().to_vec())),
        ("sum_axes of none", |x| x.sum_axes([])),
    ];
    for (name, of) in own {
        let x = counted(&[2]).detach();
        of(&x).fill(9.0).unwrap();
        assert_eq!(x.to_vec(), [1.0, 2.0], "{name}");
    }
}

#[test]
fn a_copy_has_a_place_in_the_graph_and_a_gradient_of_its_own() {
    let x = counted(&[2]);
    let y = x.copy();
    assert_eq!(y.graph_node().unwrap().name(), "copy");
    y.retain_grads().unwrap();
    (&y * 3.0).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [3.0, 3.0]);
    assert_eq!(y.grad().unwrap().to_vec(), [3.0, 3.0]);
    let constant = Tensor::from([1, 2]);
    assert!(constant.copy().stop_gradient() && no_grad().run(|| x.copy()).stop_gradient());
    let any = AnyTensor::from(x.clone());
    let copy = any.copy().downcast::<f64>().unwrap();
    assert!(!copy.stop_gradient());
    no_grad().run(|| x.fill(0.0)).unwrap();
    assert_eq!(copy.to_vec(), [1.0, 2.0]);
}
