//! Outputs that are inputs, and in-place changes. A custom op's output is never a view of its inputs.

use autograd_core::prelude::*;
use autograd_core::{Error, gradcheck, gradgradcheck};
use support::ops::Identity;
use support::{gradient, leaf};

/// `Identity`, with the mark.
#[py_layer]
impl MarkedIdentity {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.mark_not_inplace(x);
        x.clone()
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 3.0
    }
}

#[test]
fn an_input_that_is_returned() {
    let x = leaf(&[2.0]);
    let h = &x * 2.0;
    let z = Identity::apply(&h);
    z.sum().backward().unwrap();
    assert_eq!(gradient(&x), [6.0]);
    assert_eq!(z.to_vec(), h.to_vec());

    let data = leaf(&[1.0, 3.0]);
    Identity::apply(&data.square()).mean().backward().unwrap();
    assert_eq!(gradient(&data), [3.0, 9.0]);
}

#[test]
fn returning_an_input_does_not_change_it() {
    let x = leaf(&[2.0]);
    let b = x.square();
    let c = b.square();
    let _ = Identity::apply(&b);
    c.relu().backward().unwrap();
    assert_eq!(gradient(&x), [32.0]);
}

#[test]
fn the_output_is_used_instead_of_the_input() {
    for (use_it, expected) in
        [((|c| c.square()) as fn(&Tensor<f64>) -> Tensor<f64>, [96.0]), (|c| c + c, [24.0])]
    {
        let x = leaf(&[2.0]);
        let c = Identity::apply(&x.square());
        use_it(&c).sum().backward().unwrap();
        assert_eq!(gradient(&x), expected);
    }
}

#[test]
fn a_leaf_may_be_returned_and_stays_a_leaf() {
    let x = leaf(&[2.0]);
    let y = Identity::apply(&x);
    assert!(x.is_leaf() && !x.stop_gradient() && !y.is_leaf());
    y.backward().unwrap();
    assert_eq!(gradient(&x), [3.0]);
}

#[test]
fn without_a_wanted_gradient_the_output_is_outside_the_graph() {
    let x = Tensor::from(vec![2.0]);
    let y = Identity::apply(&x);
    assert!(y.stop_gradient() && y.is_leaf());
    let w = leaf(&[2.0]);
    let y = no_grad().run(|| Identity::apply(&w));
    assert!(y.stop_gradient() && !w.stop_gradient());
    assert_eq!(y.to_vec(), [2.0]);
    // Changes of the output do not affect the input.
    y.set_stop_gradient(false);
    (&y * 5.0).backward().unwrap();
    assert!(w.grad().is_none());
}

#[test]
fn returned_inputs_of_one_element() {
    for shape in [&[1][..], &[]] {
        let v = Tensor::from_vec(shape, vec![4.0]).unwrap();
        v.set_stop_gradient(false);
        Identity::apply(&v).backward().unwrap();
        assert_eq!(gradient(&v), [3.0]);
        v.clear_grad();
        Identity::apply(&(&v * 1.0)).backward().unwrap();
        assert_eq!(gradient(&v), [3.0]);
    }
}

#[test]
fn mark_not_inplace_leaves_the_input_alone() {
    for through_op in [false, true] {
        let x = leaf(&[2.0]);
        let input = if through_op { &x * 1.0 } else { x.clone() };
        let before = &input * 5.0;
        let y = MarkedIdentity::apply(&input);
        y.sum().backward().unwrap();
        assert_eq!(gradient(&x), [3.0]);
        assert!(y.grad().is_none());
        x.clear_grad();
        let input = if through_op { &x * 1.0 } else { input };
        (&input * 2.0).sum().backward().unwrap();
        assert_eq!(gradient(&x), [2.0]);
        if !through_op {
            before.sum().backward().unwrap();
            assert_eq!(gradient(&x), [7.0]);
        }
    }
}

#[test]
fn mark_not_inplace_beside_another_output() {
    #[py_layer]
    impl WithDouble {
        fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
            ctx.mark_not_inplace(x);
            (x.clone(), x * 2.0)
        }

        fn backward(
            _ctx: &BackwardContext<Self>,
            da: &Tensor<f64>,
            db: &Tensor<f64>,
        ) -> Tensor<f64> {
            da + db * 2.0
        }
    }
    let run = |pick: fn(Tensor<f64>, Tensor<f64>) -> Tensor<f64>| {
        let x = leaf(&[1.0]);
        let (a, b) = WithDouble::apply(&x);
        pick(a, b).sum().backward().unwrap();
        gradient(&x)
    };
    assert_eq!(run(|a, _| a), [1.0]);
    assert_eq!(run(|_, b| b), [2.0]);
    assert_eq!(run(|a, b| a + b), [3.0]);
}

#[test]
fn an_input_that_forward_changes() {
    // There is no `mark_dirty`: the output is a new tensor, even if the input was changed.
    #[py_layer]
    impl AddInto {
        fn forward(
            _ctx: &mut ForwardContext<Self>,
            #[stop_gradient] a: &Tensor<f64>,
            b: &Tensor<f64>,
        ) -> (Tensor<f64>, Tensor<f64>) {
            a.copy_from(&(a + b)).expect("shapes agree");
            (a.clone(), b + 2.0)
        }

        fn backward(
            _ctx: &BackwardContext<Self>,
            da: &Tensor<f64>,
            db: &Tensor<f64>,
        ) -> Tensor<f64> {
            da + db
        }
    }
    let (x, y) = (Tensor::from(vec![1.0, 2.0]), leaf(&[10.0, 20.0]));
    let (q, _) = AddInto::apply(&x, &y);
    assert!(!q.stop_gradient() && x.stop_gradient());
    assert_eq!((q.to_vec(), x.to_vec()), (vec![11.0, 22.0], vec![11.0, 22.0]));
    q.sum().backward().unwrap();
    assert_eq!(gradient(&y), [1.0, 1.0]);
}

#[test]
fn one_input_returned_as_two_outputs() {
    #[py_layer]
    impl Twice {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
            let y = x * 2.0;
            (y.clone(), y)
        }

        fn backward(
            _ctx: &BackwardContext<Self>,
            da: &Tensor<f64>,
            db: &Tensor<f64>,
        ) -> Tensor<f64> {
            (da + db) * 2.0
        }
    }
    let f = |t: &[Tensor<f64>]| {
        let (a, b) = Twice::apply(&t[0]);
        a.square() + b * 5.0
    };
    gradcheck(f, &[Tensor::from(vec![1.0, 2.0])]).unwrap();
    gradgradcheck(f, &[Tensor::from(vec![1.0, 2.0])]).unwrap();
    // The two are separate tensors.
    let x = leaf(&[1.0]);
    let (mut a, b) = Twice::apply(&x);
    a += 1.0;
    assert_eq!((a.to_vec(), b.to_vec()), (vec![3.0], vec![2.0]));
    b.backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}

#[test]
fn a_change_in_place_where_nothing_was_saved() {
    let x = leaf(&[1.0, 2.0]);
    let mut before = &x * 3.0;
    before *= 2.0;
    before.square().sum().backward().unwrap();
    assert_eq!(gradient(&x), [72.0, 144.0]);

    x.clear_grad();
    let mut b = &x * 3.0;
    let doubled = &b + &b;
    b *= 10.0;
    assert_eq!(b.to_vec(), [30.0, 60.0]);
    doubled.sum().backward().unwrap();
    assert_eq!(gradient(&x), [6.0, 6.0]);
}

#[test]
fn a_leaf_that_wants_a_gradient_is_not_changed_in_place() {
    let mut x = leaf(&[1.0, 2.0]);
    let error = x.try_add_assign(1.0).unwrap_err();
    assert!(matches!(error, Error::Unsupported { op: "add_assign", .. }), "{error}");
    assert!(error.to_string().contains("no_grad"), "{error}");
    assert!(x.set_item(&[0], 5.0).is_err() && x.fill(5.0).is_err());
    assert_eq!(x.to_vec(), [1.0, 2.0]);
    no_grad().run(|| x += 1.0);
    assert_eq!(x.to_vec(), [2.0, 3.0]);
    assert!(x.is_leaf() && !x.stop_gradient());
    x.square().sum().backward().unwrap();
    assert_eq!(gradient(&x), [4.0, 6.0]);
}

#[test]
fn changes_in_place_one_after_the_other() {
    let z = || leaf(&[3.0, 5.0]);
    let (x, w) = (leaf(&[1.0, 2.0]), z());
    let mut y = &x * 1.0;
    y *= &w;
    y *= &w;
    y /= &x;
    y.sum().backward().unwrap();
    let (x2, w2) = (leaf(&[1.0, 2.0]), z());
    (&x2 * &w2 * &w2 / &x2).sum().backward().unwrap();
    assert_eq!((gradient(&x), gradient(&w)), (gradient(&x2), gradient(&w2)));
}

#[test]
fn detached_data_is_shared() {
    let x = leaf(&[1.0, 2.0]);
    let b = x.square();
    let mut detached = b.detach();
    detached.set_item(&[0], 7.0).unwrap();
    assert_eq!(b.to_vec(), [7.0, 4.0]);
    let later = b.detach();
    assert_eq!(later.to_vec(), [7.0, 4.0]);
    later.fill(1.0).unwrap();
    assert_eq!((b.to_vec(), detached.to_vec()), (vec![1.0; 2], vec![1.0; 2]));

    // The count of changes is shared too: a change of the saved `b` is detected.
    let c = b.square();
    later.fill(9.0).unwrap();
    let error = c.sum().backward().unwrap_err();
    let Error::SavedTensorChanged { op, saved, found, .. } = &error else { panic!("{error}") };
    assert_eq!((*op, *saved, *found), ("square", 2, 3));
    assert!(x.grad().is_none());
}

#[py_layer]
impl Both {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        mark: bool,
    ) -> (Tensor<f64>, Tensor<f64>) {
        let (y, z) = (x.tanh(), x * 1.0);
        ctx.save_for_backward((&y, &z));
        if mark {
            ctx.mark_non_differentiable(&z);
        }
        (y, z)
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
        dz: Option<&Tensor<f64>>,
    ) -> Tensor<f64> {
        let (y, z) = ctx.saved_tensor();
        let dx = dy * (1.0 - y.square());
        dz.map_or(dx.clone(), |dz| &dx + dz + z * 0.0)
    }
}

#[test]
fn an_output_that_its_op_saved_is_noticed_to_have_changed() {
    let x = leaf(&[0.5, 1.0]);
    let assert_changed = |y: &Tensor<f64>, saved: &str, found: u32| {
        let error = y.sum().backward().unwrap_err();
        let Error::SavedTensorChanged { op, parameter, saved: 0, found: f, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!((*op, parameter.as_str(), *f), ("Both", saved, found));
        assert!(x.grad().is_none());
    };
    // Through the output, through shared data, and by a recorded in-place op.
    let (y, _) = Both::apply(&x, false);
    no_grad().run(|| y.fill(0.0)).unwrap();
    assert_changed(&y, "saved tensor 0", 1);
    let (y, z) = Both::apply(&x, false);
    let detached = z.detach();
    detached.fill(0.0).unwrap();
    detached.fill(1.0).unwrap();
    assert_changed(&y, "saved tensor 1", 2);
    let (mut y, _) = Both::apply(&x, false);
    y *= 2.0;
    assert_changed(&y, "saved tensor 0", 1);
    // An output without a gradient.
    let (y, z) = Both::apply(&x, true);
    z.fill(3.0).unwrap();
    assert_changed(&y, "saved tensor 1", 1);
    // A change of a tensor that was not saved, or of a copy, does not matter to the op.
    let (y, z) = Both::apply(&x, true);
    let mut copy = &y * 1.0;
    copy += 1.0;
    drop(z);
    y.sum().backward().unwrap();
    assert!(x.grad().is_some());
}

#[test]
fn a_change_under_no_grad_is_noticed() {
    let (mut x, y) = (leaf(&[1.0, 2.0]), leaf(&[3.0, 4.0]));
    let z = (&x * &y).sum();
    no_grad().run(|| x *= 2.0);
    let error = z.backward().unwrap_err();
    assert!(matches!(error, Error::SavedTensorChanged { op: "mul", .. }), "{error}");
    assert!(x.grad().is_none() && y.grad().is_none());
}

#[test]
fn a_kept_gradient_belongs_to_the_version_it_was_asked_for() {
    let x = leaf(&[1.0]);
    let mut a = &x * 1.0;
    a.retain_grads().unwrap();
    let old = a.clone();
    a *= 2.0;
    a *= 3.0;
    a.sum().backward().unwrap();
    // As in Paddle: that of the old version. The new one is another handle, which keeps its own
    // gradient only on request.
    assert_eq!(gradient(&old), [6.0]);
    assert_eq!(gradient(&x), [6.0]);
}

#[test]
fn no_gradient_for_what_was_written_over() {
    let x = leaf(&[1.0, 2.0]);
    let mut h = &x * 1.0;
    h.set_item(&[0], 5.0).unwrap();
    (&h * &h).sum().backward().unwrap();
    assert_eq!(gradient(&x), [0.0, 4.0]);
}

#[test]
fn an_operand_in_place_brings_its_graph() {
    let (mut a, b) = (Tensor::from(vec![1.0, 2.0]), leaf(&[3.0, 4.0]));
    a += &b;
    assert!(!a.stop_gradient() && !a.is_leaf());
    a.sum().backward().unwrap();
    assert_eq!(gradient(&b), [1.0, 1.0]);
}
