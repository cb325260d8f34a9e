//! Layers as users write them: `forward`, `backward`, contexts and saved tensors.

use autograd_core::Generator;
use autograd_core::prelude::*;
use support::ops::{Add, Double};
use support::{gradient, leaf};

/// Hyperbolic tangent with a hand-written gradient.
#[py_layer]
impl CusTanh {
    type Saved = Tensor<f64>;

    pub(crate) fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        let y = x.tanh();
        ctx.save_for_backward(&y);
        y
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        let y = ctx.saved_tensor();
        dy * (1.0 - y.square())
    }
}

#[py_layer]
impl ScaledTanh {
    type Saved = (Tensor<f64>, Tensor<f64>);
    type Attrs = fn(&Tensor<f64>) -> Tensor<f64>;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        scale: &Tensor<f64>,
        func1: impl Fn(&Tensor<f64>) -> Tensor<f64>,
        #[default(Tensor::square)] func2: fn(&Tensor<f64>) -> Tensor<f64>,
    ) -> (Tensor<f64>, Vec<usize>) {
        let y = func1(x);
        ctx.set_attrs(func2);
        ctx.save_for_backward((&y, scale));
        (&y * scale, y.shape().to_vec())
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (y, scale) = ctx.saved_tensor();
        let func2 = ctx.attrs();
        Grads { x: dy * scale * (1.0 - func2(y)), scale: dy * y }
    }
}

#[test]
fn a_custom_tanh_prints_the_gradient_of_paddle() {
    // On this thread alone.
    Generator::new(0).run(custom_tanh);
}

fn custom_tanh() {
    autograd_core::seed(2023);
    let data = Tensor::<f64>::randn([2, 3]);
    data.set_stop_gradient(false);
    let z = CusTanh::apply(&data);
    z.mean().backward().unwrap();
    let expected = "\
Tensor(shape=[2, 3], dtype=float64, stop_gradient=true,
[[0.16604150, 0.05858341, 0.14051214],
 [0.15677770, 0.01564609, 0.02991660]])";
    assert_eq!(data.grad().unwrap().to_string(), expected);
}

#[test]
fn an_op_with_functions_and_two_inputs_is_called_by_name() {
    let x = Tensor::<f64>::from(vec![0.5, -1.0]);
    let scale = Tensor::<f64>::from(vec![2.0, 3.0]);
    x.set_stop_gradient(false);
    scale.set_stop_gradient(false);
    let (z, shape) = ScaledTanh::with().scale(&scale).x(&x).func1(Tensor::tanh).apply();
    assert_eq!(shape, [2]);
    z.sum().backward().unwrap();
    let y: Vec<f64> = [0.5f64, -1.0].iter().map(|x| x.tanh()).collect();
    let close = |a: &[f64], b: [f64; 2]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
    assert!(close(
        &x.grad().unwrap().to_vec(),
        [2.0 * (1.0 - y[0] * y[0]), 3.0 * (1.0 - y[1] * y[1])]
    ));
    assert!(close(&scale.grad().unwrap().to_vec(), [y[0], y[1]]));
}

fn close(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12)
}

/// Defines an op by its two functions, for the cases below.
macro_rules! op {
    ($(#[$attr:meta])* $name:ident $(<$($generic:tt)*)? { $($body:tt)* }) => {
        #[py_layer(allow(none_gradient, unread_saved))]
        impl $name { $($body)* }
    };
}

#[test]
fn the_same_tensor_twice_and_a_plain_output() {
    op!(Add {
        fn forward(
            _ctx: &mut ForwardContext<Self>,
            x1: &Tensor<f64>,
            x2: &Tensor<f64>,
        ) -> (Tensor<f64>, Vec<usize>) {
            let y = x1 + x2;
            let shape = y.shape().to_vec();
            (y, shape)
        }
        fn backward(
            _ctx: &BackwardContext<Self>,
            dy: &Tensor<f64>,
        ) -> (Tensor<f64>, Tensor<f64>) {
            (dy.clone(), dy.clone())
        }
    });
    let data = leaf(&[1.0; 6]);
    let (z, shape) = Add::apply(&data, &data);
    assert_eq!(shape, [6]);
    z.mean().backward().unwrap();
    assert!(close(&gradient(&data), &[2.0 / 6.0; 6]));
}

op!(FirstOnly {
    fn forward(
        _ctx: &mut ForwardContext<Self>,
        x1: &Tensor<f64>,
        x2: &Tensor<f64>,
    ) -> Tensor<f64> {
        x1 + x2
    }
    fn backward(
        _ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> (Tensor<f64>, Option<Tensor<f64>>) {
        (dy.clone(), None)
    }
});

#[test]
fn none_for_an_input_with_stop_gradient() {
    let x1 = leaf(&[1.0; 6]);
    let x2 = Tensor::<f64>::from(vec![2.0; 6]);
    FirstOnly::apply(&x1, &x2).mean().backward().unwrap();
    assert!(close(&gradient(&x1), &[1.0 / 6.0; 6]));
    assert!(x2.grad().is_none());
}

#[test]
fn no_input_wants_a_gradient() {
    op!(Never {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            x * 2.0
        }
        fn backward(_ctx: &BackwardContext<Self>, _dy: &Tensor<f64>) -> Tensor<f64> {
            panic!("backward must not run")
        }
    });
    let x = Tensor::<f64>::from(vec![1.0, 2.0]);
    let z = Never::apply(&x);
    assert!(z.stop_gradient() && z.is_leaf());
    assert!(x.grad().is_none());
}

op!(MarkFirst {
    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
    ) -> (Tensor<f64>, Tensor<f64>) {
        let a = x + x;
        let b = x * 3.0;
        ctx.mark_non_differentiable(&a);
        (a, b)
    }
    fn backward(
        _ctx: &BackwardContext<Self>,
        da: &Tensor<f64>,
        db: &Tensor<f64>,
    ) -> Tensor<f64> {
        assert_eq!(da.to_vec(), vec![0.0; da.len()]);
        assert_eq!(da.shape(), db.shape());
        db.clone()
    }
});

#[test]
fn mark_non_differentiable() {
    let x = leaf(&[2.0]);
    let (a, b) = MarkFirst::apply(&x);
    assert!(a.stop_gradient() && !b.stop_gradient());
    b.sum().backward().unwrap();
    assert_eq!(gradient(&x), [1.0]);
}

#[test]
fn missing_gradients_by_type() {
    op!(Zeros {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
            (x * 1.0, x + x)
        }
        fn backward(
            _ctx: &BackwardContext<Self>,
            d1: &Tensor<f64>,
            d2: &Tensor<f64>,
        ) -> Tensor<f64> {
            assert_eq!(d2.to_vec(), [0.0]);
            d1.clone()
        }
    });
    op!(Nones {
        fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
            ctx.set_materialize_grads(false);
            (x * 1.0, x + x)
        }
        fn backward(
            _ctx: &BackwardContext<Self>,
            d1: Option<&Tensor<f64>>,
            d2: Option<&Tensor<f64>>,
        ) -> Option<Tensor<f64>> {
            assert!(d2.is_none());
            d1.cloned()
        }
    });
    let x = leaf(&[1.0]);
    Zeros::apply(&x).0.sum().backward().unwrap();
    Nones::apply(&x).0.sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}

op!(Exp {
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        ctx.mark_not_inplace(x);
        x.clone()
    }
    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy.exp()
    }
});

#[test]
fn an_input_returned_is_a_new_tensor() {
    let x = leaf(&[1.0]);
    for step in 1..=2 {
        let _first = Exp::apply(&x);
        let last = Exp::apply(&x);
        assert!(!last.is_leaf() && x.is_leaf());
        last.sum().backward().unwrap();
        assert!(close(&gradient(&x), &[f64::from(step) * 1f64.exp()]));
    }
}

#[test]
fn tensors_and_plain_values_mixed() {
    op!(Mixed {
        type Saved = (Tensor<f64>, Tensor<f64>);
        type Attrs = fn(&Tensor<f64>) -> Tensor<f64>;
        fn forward(
            ctx: &mut ForwardContext<Self>,
            x1: &Tensor<f64>,
            x2: &Tensor<f64>,
            func1: impl Fn(&Tensor<f64>) -> Tensor<f64>,
            #[default(Tensor::square)] func2: fn(&Tensor<f64>) -> Tensor<f64>,
        ) -> (Tensor<f64>, i32, Tensor<f64>, Option<u8>) {
            let (y1, y2) = (func1(x1), func1(x2));
            ctx.set_attrs(func2);
            ctx.save_for_backward((&y1, &y2));
            (y1, 1, y2, None)
        }
        fn backward(
            ctx: &BackwardContext<Self>,
            d1: &Tensor<f64>,
            d2: &Tensor<f64>,
        ) -> (Tensor<f64>, Tensor<f64>) {
            let (y1, y2) = ctx.saved_tensor();
            let square = ctx.attrs();
            (d1 * (1.0 - square(y1)), d2 * (1.0 - square(y2)))
        }
    });
    let x = leaf(&[0.1, -0.7, 2.0]);
    let (a, one, b, none) = Mixed::apply(&x, &x, Tensor::tanh, Tensor::square);
    assert_eq!((one, none), (1, None));
    (a + b).mean().backward().unwrap();
    let other = leaf(&[0.1, -0.7, 2.0]);
    (other.tanh() + other.tanh()).mean().backward().unwrap();
    assert!(close(&gradient(&x), &gradient(&other)));
}

#[test]
fn list_input() {
    op!(Sum {
        fn forward(_ctx: &mut ForwardContext<Self>, xs: &[Tensor<f64>]) -> Tensor<f64> {
            &xs[0] + &xs[1] * 2.0 + &xs[2] * 3.0
        }
        fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
            assert_eq!(ctx.needs_input_grad().xs, [true, true, true]);
            vec![dy.clone(), dy * 2.0, dy * 3.0]
        }
    });
    let xs = [leaf(&[1.0, 2.0]), leaf(&[3.0, 4.0]), leaf(&[5.0, 6.0])];
    Sum::apply(&xs).sum().backward().unwrap();
    assert_eq!(gradient(&xs[0]), [1.0; 2]);
    assert_eq!(gradient(&xs[1]), [2.0; 2]);
    assert_eq!(gradient(&xs[2]), [3.0; 2]);
}

#[test]
fn none_contributes_nothing_where_nothing_is_needed() {
    // The decision table: `None` for an input that needs a gradient is an error with its name.
    let x = leaf(&[1.0]);
    let error = FirstOnly::apply(&x, &x).sum().backward().unwrap_err();
    assert!(
        matches!(&error, autograd_core::Error::GradientMissing { op: "FirstOnly", parameter, .. }
        if parameter == "x2"),
        "{error}"
    );
    assert!(x.grad().is_none(), "written whole or not at all");
}

#[test]
fn gradient_has_the_dtype_of_its_output() {
    op!(Widen {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f32>) -> Tensor<f64> {
            x.cast()
        }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f32> {
            dy.cast()
        }
    });
    let x = Tensor::<f32>::from(vec![1.5]);
    x.set_stop_gradient(false);
    (Widen::apply(&x) * 3.0).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [3.0]);
}

#[test]
fn list_output_beside_a_tensor() {
    op!(Many {
        fn forward(
            _ctx: &mut ForwardContext<Self>,
            x: &Tensor<f64>,
        ) -> (Vec<Tensor<f64>>, Tensor<f64>) {
            (vec![x * 2.0, x * 3.0], x * 4.0)
        }
        fn backward(
            _ctx: &BackwardContext<Self>,
            list: &[Tensor<f64>],
            last: &Tensor<f64>,
        ) -> Tensor<f64> {
            assert_eq!(list[0].to_vec(), [5.0]);
            assert_eq!(list[1].to_vec(), [7.0]);
            &list[0] * 2.0 + &list[1] * 3.0 + last * 4.0
        }
    });
    let x = leaf(&[1.0]);
    let (list, last) = Many::apply(&x);
    (&list[0] * 5.0 + &list[1] * 7.0 + last).sum().backward().unwrap();
    assert_eq!(gradient(&x), [35.0]);
}

#[test]
fn errors_and_panics_leave_the_mode_as_it_was() {
    op!(Fails {
        fn forward(
            _ctx: &mut ForwardContext<Self>,
            x: &Tensor<f64>,
            panics: bool,
        ) -> Result<Tensor<f64>, String> {
            assert!(!panics, "boom fwd");
            assert!(!autograd_core::is_grad_enabled());
            if x.len() == 1 { Err("boom".to_owned()) } else { Ok(x * 1.0) }
        }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy.clone()
        }
    });
    let x = leaf(&[1.0]);
    assert_eq!(Fails::apply(&x, false).unwrap_err(), "boom");
    assert!(autograd_core::is_grad_enabled());
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = Fails::apply(&x, true);
    }));
    assert_eq!(*caught.unwrap_err().downcast::<&str>().unwrap(), "boom fwd");
    assert!(autograd_core::is_grad_enabled());
}

#[test]
fn an_error_in_backward_names_the_op_and_the_line() {
    op!(Inner {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            x * 1.0
        }
        fn backward(
            _ctx: &BackwardContext<Self>,
            _dy: &Tensor<f64>,
        ) -> Result<Tensor<f64>, String> {
            Err("no gradient today".to_owned())
        }
    });
    op!(Outer {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            x * 1.0
        }
        fn backward(
            _ctx: &BackwardContext<Self>,
            dy: &Tensor<f64>,
        ) -> autograd_core::Result<Tensor<f64>> {
            let x = Tensor::from(dy.to_vec());
            x.set_stop_gradient(false);
            let inner = enable_grad().run(|| Inner::apply(&x).sum());
            inner.backward()?;
            Ok(dy.clone())
        }
    });
    let x = leaf(&[1.0]);
    let line = line!() + 1;
    let y = Outer::apply(&x);
    let error = y.sum().backward().unwrap_err().to_string();
    assert!(error.starts_with("Outer (called at "), "{error}");
    assert!(error.contains(&format!("py_layer.rs:{line}:")), "{error}");
    assert!(error.contains("backward failed: Inner (called at "), "{error}");
    assert!(error.ends_with("backward failed: no gradient today"), "{error}");
    assert!(x.grad().is_none());
}

#[test]
fn the_same_tensor_returned_twice() {
    op!(Twice {
        fn forward(
            _ctx: &mut ForwardContext<Self>,
            x: &Tensor<f64>,
        ) -> (Tensor<f64>, Tensor<f64>) {
            let y = x * 2.0;
            (y.clone(), y)
        }
        fn backward(
            _ctx: &BackwardContext<Self>,
            d1: &Tensor<f64>,
            d2: &Tensor<f64>,
        ) -> Tensor<f64> {
            (d1 + d2) * 2.0
        }
    });
    let x = leaf(&[1.0]);
    let (a, b) = Twice::apply(&x);
    (a * 5.0 + b * 7.0).sum().backward().unwrap();
    assert_eq!(gradient(&x), [24.0]);
}

#[test]
fn the_same_tensor_for_two_inputs() {
    op!(TwoThree {
        fn forward(
            _ctx: &mut ForwardContext<Self>,
            a: &Tensor<f64>,
            b: &Tensor<f64>,
        ) -> Tensor<f64> {
            a * 2.0 + b * 3.0
        }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
            Grads { a: dy * 2.0, b: dy * 3.0 }
        }
    });
    let x = leaf(&[1.0]);
    TwoThree::apply(&x, &x).sum().backward().unwrap();
    assert_eq!(gradient(&x), [5.0]);
    let x = leaf(&[1.0]);
    let h = &x * 2.0;
    TwoThree::apply(&h, &h).sum().backward().unwrap();
    assert_eq!(gradient(&x), [10.0]);
}

#[test]
fn an_integer_input() {
    op!(Gather {
        type Saved = Tensor<i64>;
        type Attrs = usize;
        fn forward(
            ctx: &mut ForwardContext<Self>,
            x: &Tensor<f64>,
            #[stop_gradient] index: &Tensor<i64>,
        ) -> Tensor<f64> {
            ctx.save_for_backward(index);
            ctx.set_attrs(x.len());
            let data = x.to_vec();
            let picked: Vec<f64> =
                index.to_vec().into_iter().map(|i| data[usize::try_from(i).unwrap()]).collect();
            Tensor::from(picked)
        }
        fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            let mut dx = vec![0.0; *ctx.attrs()];
            for (i, d) in ctx.saved_tensor().to_vec().into_iter().zip(dy.to_vec()) {
                dx[usize::try_from(i).unwrap()] += d;
            }
            Tensor::from(dx)
        }
    });
    let x = leaf(&[1.0, 2.0, 3.0]);
    Gather::apply(&x, &Tensor::from(vec![0_i64, 2, 2])).sum().backward().unwrap();
    assert_eq!(gradient(&x), [1.0, 0.0, 2.0]);
}

#[test]
fn an_integer_output_is_a_plain_value() {
    op!(WithIndex {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<i64>) {
            (x * 2.0, Tensor::from(vec![1_i64]))
        }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy * 2.0
        }
    });
    let x = leaf(&[1.0]);
    let (y, index) = WithIndex::apply(&x);
    assert!(index.stop_gradient());
    y.sum().backward().unwrap();
    assert_eq!(gradient(&x), [2.0]);
}

#[test]
fn scalars_and_empty_tensors() {
    let x = Tensor::<f64>::from(3.0);
    x.set_stop_gradient(false);
    Double::apply(&x).backward().unwrap();
    assert_eq!(x.grad().unwrap().shape(), [0_usize; 0]);
    assert_eq!(x.grad().unwrap().item(), 2.0);
    let x = Tensor::<f64>::zeros([0, 3]);
    x.set_stop_gradient(false);
    Double::apply(&x).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().shape(), [0, 3]);
}

#[test]
fn a_tensor_for_an_input_with_stop_gradient_is_dropped() {
    let a = leaf(&[1.0]);
    let b = Tensor::<f64>::from(vec![1.0]);
    let y = Add::apply(&a, &b);
    b.set_stop_gradient(false);
    y.sum().backward().unwrap();
    assert_eq!(gradient(&a), [1.0]);
    assert!(b.grad().is_none(), "what counts is the flag when the op was applied");
}

#[test]
fn list_elements_have_flags_of_their_own() {
    op!(Short {
        fn forward(
            _ctx: &mut ForwardContext<Self>,
            xs: &[&Tensor<f64>],
            count: usize,
        ) -> Tensor<f64> {
            let _ = count;
            xs[0] + xs[1]
        }
        fn backward(
            ctx: &BackwardContext<Self>,
            dy: &Tensor<f64>,
        ) -> Vec<Option<Tensor<f64>>> {
            let wants = ctx.needs_input_grad().xs;
            wants.into_iter().map(|wants| wants.then(|| dy.clone())).collect()
        }
    });
    op!(TooShort {
        fn forward(_ctx: &mut ForwardContext<Self>, xs: &[&Tensor<f64>]) -> Tensor<f64> {
            xs[0] + xs[1]
        }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Vec<Tensor<f64>> {
            vec![dy.clone()]
        }
    });
    let a = Tensor::<f64>::from(vec![1.0]);
    let b = leaf(&[1.0]);
    Short::apply(&[&a, &b], 2).sum().backward().unwrap();
    assert_eq!(gradient(&b), [1.0]);
    assert!(a.grad().is_none());
    let error = TooShort::apply(&[&a, &b]).sum().backward().unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("backward returned 1 gradient for the list `xs`, which has 2 tensors"),
        "{error}"
    );
}

#[test]
fn backward_is_believed() {
    op!(Sine {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            x * 3.0
        }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy.sin()
        }
    });
    let x = leaf(&[1.0, 2.0]);
    Sine::apply(&x).mean().backward().unwrap();
    assert!(close(&gradient(&x), &[0.479425538604203; 2]));
}

#[test]
fn layers_inside_layers() {
    op!(Nested {
        type Saved = Tensor<f64>;
        fn forward(
            ctx: &mut ForwardContext<Self>,
            x1: &Tensor<f64>,
            x2: &Tensor<f64>,
        ) -> Tensor<f64> {
            let y = CusTanh::apply(x1);
            ctx.save_for_backward(&y);
            &y + x2
        }
        fn backward(
            ctx: &BackwardContext<Self>,
            dy: &Tensor<f64>,
        ) -> (Tensor<f64>, Tensor<f64>) {
            (Double::apply(dy) * 1.5, dy - ctx.saved_tensor().square())
        }
    });
    let (x1, x2) = (leaf(&[0.5, -1.0]), leaf(&[2.0, 3.0]));
    let z = Nested::apply(&x1, &x2);
    assert!(z.to_vec().iter().zip([2.46211716, 2.23840584]).all(|(a, b)| (a - b).abs() < 1e-8));
    z.mean().backward().unwrap();
    assert!(close(&gradient(&x1), &[1.5, 1.5]));
    assert!(close(&gradient(&x2), &[0.2864477329659274, -0.08002565838597386]));
}

#[test]
fn inside_no_grad_nothing_is_recorded() {
    let x = leaf(&[1.0]);
    let y = no_grad().run(|| Double::apply(&x));
    assert!(y.stop_gradient() && y.is_leaf() && !x.stop_gradient());
    let same = no_grad().run(|| Exp::apply(&x));
    assert!(same.stop_gradient() && !x.stop_gradient(), "a tensor of its own");
}

#[test]
fn the_outputs_belong_to_the_layer() {
    op!(InnerGraph {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            enable_grad().run(|| x * x)
        }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy * 1000.0
        }
    });
    let x = leaf(&[3.0]);
    let y = InnerGraph::apply(&x);
    assert!(!y.stop_gradient());
    y.sum().backward().unwrap();
    assert_eq!(gradient(&x), [1000.0]);
}

#[test]
fn nothing_saved() {
    op!(Nothing {
        type Saved = ();
        fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            ctx.save_for_backward(());
            x * 1.0
        }
        fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            let () = ctx.saved_tensor();
            dy.clone()
        }
    });
    let x = leaf(&[1.0]);
    Nothing::apply(&x).sum().backward().unwrap();
    assert_eq!(gradient(&x), [1.0]);
}

#[test]
fn options_among_what_is_saved() {
    op!(Options {
        type Saved = (Option<Tensor<f64>>, Option<Tensor<f64>>, Option<Tensor<f64>>);
        fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            ctx.save_for_backward((None, Some(x), None));
            x * x
        }
        fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            let (None, Some(x), None) = ctx.saved_tensor() else { panic!("as it was saved") };
            x * 2.0 * dy
        }
    });
    let x = leaf(&[4.0]);
    Options::apply(&x).sum().backward().unwrap();
    assert_eq!(gradient(&x), [8.0]);
}

#[test]
fn attributes() {
    op!(Power {
        type Saved = Tensor<f64>;
        type Attrs = (i32, &'static str);
        fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, n: i32) -> Tensor<f64> {
            ctx.save_for_backward(x);
            ctx.set_attrs((n, "n"));
            x.pow(f64::from(n))
        }
        fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            let &(n, name) = ctx.attrs();
            assert_eq!(name, "n");
            dy * ctx.saved_tensor().pow(f64::from(n - 1)) * f64::from(n)
        }
    });
    let x = leaf(&[1.0]);
    Power::apply(&x, 3).sum().backward().unwrap();
    assert_eq!(gradient(&x), [3.0]);
}

#[test]
fn zeros_of_the_outputs_own_shape_and_dtype() {
    op!(Shapes {
        fn forward(
            ctx: &mut ForwardContext<Self>,
            x: &Tensor<f64>,
        ) -> (Tensor<f32>, Tensor<f64>) {
            let a = Tensor::<f32>::ones([6]);
            ctx.mark_non_differentiable(&a);
            (a, x * 1.0)
        }
        fn backward(
            _ctx: &BackwardContext<Self>,
            da: &Tensor<f32>,
            db: &Tensor<f64>,
        ) -> Tensor<f64> {
            assert_eq!((da.shape(), da.to_vec()), (&[6][..], vec![0.0_f32; 6]));
            db.clone()
        }
    });
    let x = leaf(&[1.0; 4]);
    Shapes::apply(&x).1.sum().backward().unwrap();
    assert_eq!(gradient(&x), [1.0; 4]);
}

#[test]
fn a_marked_output_stays_out() {
    let x = leaf(&[1.0]);
    let (a, b) = MarkFirst::apply(&x);
    let a = a + 1.0;
    assert!(a.stop_gradient());
    FirstOnly::apply(&b, &a).sum().backward().unwrap();
    assert_eq!(gradient(&x), [1.0]);
}

#[test]
fn an_output_of_integers_may_be_marked_and_nothing_else_of_that_kind() {
    op!(Places {
        fn forward(
            ctx: &mut ForwardContext<Self>,
            x: &Tensor<f64>,
            mark: usize,
        ) -> (Tensor<f64>, Tensor<i64>, Vec<Tensor<bool>>, usize) {
            let (place, masks) = (x.argmax(0), vec![x.gt_scalar(0.0), x.gt_scalar(1.0)]);
            match mark {
                0 => ctx.mark_non_differentiable((&place, &masks[1])),
                1 => ctx.mark_non_differentiable((&place, &Tensor::<i64>::zeros([2]))),
                _ => {}
            }
            (x * 2.0, place, masks, mark)
        }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy * 2.0
        }
    });
    let x = leaf(&[1.0, 5.0]);
    let (y, place, ..) = Places::apply(&x, 0);
    y.sum().backward().unwrap();
    assert_eq!((place.item(), gradient(&x)), (1, vec![2.0; 2]));
    for x in [x.clone(), x.detach()] {
        assert_eq!(
            Places::try_apply(&x, 1).unwrap_err().to_string(),
            "Places: `mark_non_differentiable`: tensor 1 is not an output of the op; mark outputs \
             only"
        );
    }
}

#[test]
fn marking_what_is_not_an_output() {
    op!(Wrong {
        fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, mark: usize) -> Tensor<f64> {
            let other = x * 3.0;
            let y = (x * 2.0).abs();
            match mark {
                0 => ctx.mark_non_differentiable(&other),
                1 => ctx.mark_not_inplace(&y),
                _ => {
                    for _ in 0..2 {
                        ctx.mark_non_differentiable(&y);
                    }
                }
            }
            y
        }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy * 2.0
        }
    });
    let x = leaf(&[1.0]);
    let text_of = |mark| Wrong::try_apply(&x, mark).unwrap_err().to_string();
    assert_eq!(
        text_of(0),
        "Wrong: `mark_non_differentiable`: tensor 0 is not an output of the op; mark outputs only"
    );
    assert_eq!(
        text_of(1),
        "Wrong: `mark_not_inplace`: tensor 0 is not an input of the op; mark inputs only"
    );
    assert_eq!(
        text_of(2),
        "Wrong: `mark_non_differentiable`: called twice in one forward; call it once with everything"
    );
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = Wrong::apply(&x, 0);
    }));
    assert_eq!(*caught.unwrap_err().downcast::<String>().unwrap(), text_of(0));
}

#[test]
fn saving_the_second_output_keeps_its_place() {
    op!(Second {
        type Saved = Tensor<f64>;
        fn forward(
            ctx: &mut ForwardContext<Self>,
            x: &Tensor<f64>,
        ) -> (Tensor<f64>, Tensor<f64>) {
            let (a, b) = (x * 2.0, x * x);
            ctx.save_for_backward(&b);
            (a, b)
        }
        fn backward(
            ctx: &BackwardContext<Self>,
            da: &Tensor<f64>,
            _db: &Tensor<f64>,
        ) -> Tensor<f64> {
            da * ctx.saved_tensor()
        }
    });
    let x = leaf(&[3.0]);
    let (a, _) = Second::apply(&x);
    a.sum().backward().unwrap();
    assert_eq!(gradient(&x), [9.0]);
}

#[test]
fn nothing_saved_where_something_is_declared() {
    op!(Maybe {
        type Saved = Tensor<f64>;
        fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, save: bool) -> Tensor<f64> {
            if save {
                ctx.save_for_backward(x);
            }
            x * 2.0
        }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy * 2.0
        }
    });
    let x = leaf(&[1.0]);
    assert!(Maybe::try_apply(&x, true).is_ok());
    assert_eq!(
        Maybe::try_apply(&x, false).unwrap_err().to_string(),
        "Maybe: `save_for_backward`: `type Saved` is declared, but forward returned without this call"
    );
    assert!(Maybe::try_apply(&x.detach(), false).is_ok(), "nothing is needed where none is wanted");
}

#[test]
fn a_gradient_of_another_shape() {
    op!(BadShape {
        fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            x * 1.0
        }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy.sum()
        }
    });
    let x = leaf(&[1.0, 2.0]);
    let error = BadShape::apply(&x).sum().backward().unwrap_err().to_string();
    assert!(
        error.ends_with("backward returned a gradient of shape [] for `x`, which has shape [2]"),
        "{error}"
    );
}

#[test]
fn an_op_without_a_gradient() {
    #[py_layer(no_grad)]
    impl Sign {
        fn forward(
            _ctx: &mut ForwardContext<Self>,
            x: &Tensor<f64>,
            #[stop_gradient] w: &Tensor<f64>,
        ) -> Tensor<f64> {
            x * w
        }
    }
    let (x, w) = (leaf(&[1.0]), leaf(&[2.0]));
    assert_eq!(Sign::apply(&x.detach(), &w).to_vec(), [2.0]);
    assert_eq!(no_grad().run(|| Sign::apply(&x, &w)).to_vec(), [2.0]);
    let error = Sign::try_apply(&x, &w).unwrap_err().to_string();
    assert!(error.starts_with("Sign: the input `x` wants a gradient"), "{error}");
}

/// The gradient of a sum, recorded.
fn recorded(y: &Tensor<f64>, x: &Tensor<f64>) -> autograd_core::Result<Tensor<f64>> {
    let options = autograd_core::GradOptions::new().create_graph(true);
    let grads = autograd_core::grad_with(&[&y.sum()], &[x], options)?;
    Ok(grads.into_iter().next().flatten().expect("one input, one gradient"))
}

#[test]
fn a_saved_input_differentiates_three_times() {
    op!(Cube {
        type Saved = Tensor<f64>;
        fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            ctx.save_for_backward(x);
            x * x * x
        }
        fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy * 3.0 * ctx.saved_tensor().square()
        }
    });
    let x = leaf(&[2.0]);
    let first = recorded(&Cube::apply(&x), &x).unwrap();
    let second = recorded(&first, &x).unwrap();
    let third = recorded(&second, &x).unwrap();
    let all = [first, second, third].map(|d| d.to_vec()[0]);
    assert_eq!(all, [12.0, 12.0, 6.0]);
}

#[test]
fn a_saved_output_differentiates_twice() {
    let x = leaf(&[0.5]);
    let first = recorded(&CusTanh::apply(&x), &x).unwrap();
    let second = recorded(&first, &x).unwrap();
    assert!(close(&second.to_vec(), &[-0.7268619813835873]));
}

#[test]
fn a_saved_intermediate_is_refused_at_second_order() {
    let (x, scale) = (leaf(&[0.5]), leaf(&[2.0]));
    let (y, _) = ScaledTanh::apply(&x, &scale, Tensor::tanh, Tensor::square);
    let error = recorded(&y, &x).unwrap_err();
    assert!(
        error.to_string().contains("saved tensor 0 is neither an input nor an output of the op"),
        "{error}"
    );
}

#[test]
fn once_differentiable() {
    #[py_layer(once_differentiable)]
    impl Once {
        type Saved = Tensor<f64>;
        fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            let half = x.square() * 0.5;
            ctx.save_for_backward(&half);
            &half * 2.0
        }
        fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            assert!(!autograd_core::is_grad_enabled());
            (ctx.saved_tensor() * 2.0).sqrt() * 2.0 * dy
        }
    }
    let x = leaf(&[3.0]);
    let first = recorded(&Once::apply(&x), &x).unwrap();
    assert_eq!(first.to_vec(), [6.0]);
    let error = recorded(&first, &x).unwrap_err().to_string();
    assert!(error.starts_with("Once: its backward is `once_differentiable`"), "{error}");
    // In a sum with other gradients too: the sum is recorded, and so causes the error.
    for y in [Once::apply(&x) + x.square(), Once::apply(&x) + Once::apply(&x)] {
        let first = recorded(&y, &x).unwrap();
        assert_eq!(first.to_vec(), [12.0]);
        let error = recorded(&first, &x).unwrap_err().to_string();
        assert!(error.starts_with("Once: its backward is `once_differentiable`"), "{error}");
    }
    let w = leaf(&[5.0]);
    let first = recorded(&(Once::apply(&x) * &w + w.square()), &w).unwrap();
    assert_eq!(recorded(&first, &x).unwrap().to_vec(), [6.0]);
}

#[test]
fn a_layer_in_anothers_backward_is_differentiable() {
    op!(Square {
        type Saved = Tensor<f64>;
        fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            ctx.save_for_backward(x);
            x * x
        }
        fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy * Double::apply(ctx.saved_tensor())
        }
    });
    let x = leaf(&[3.0]);
    let first = recorded(&Square::apply(&x), &x).unwrap();
    let second = recorded(&first, &x).unwrap();
    assert_eq!((first.to_vec(), second.to_vec()), (vec![6.0], vec![2.0]));
}

#[test]
fn a_node_visited_twice_and_a_freed_one() {
    let x = leaf(&[0.5]);
    let y = CusTanh::apply(&x).sum();
    let retain = autograd_core::BackwardOptions::new().retain_graph(true);
    y.backward_options(retain).unwrap();
    let once = gradient(&x);
    y.backward().unwrap();
    assert!(close(&gradient(&x), &[2.0 * once[0]]));
    assert!(matches!(y.backward(), Err(autograd_core::Error::GraphFreed { .. })));
}

#[test]
fn saving_an_output_does_not_leak() {
    use std::sync::Arc;

    struct Counted(Arc<()>);
    #[py_layer(allow(unread_saved))]
    impl Kept {
        type Saved = Tensor<f64>;
        type Attrs = Counted;
        fn forward(
            ctx: &mut ForwardContext<Self>,
            x: &Tensor<f64>,
            count: &Arc<()>,
        ) -> Tensor<f64> {
            let y = x * 2.0;
            ctx.save_for_backward(&y);
            ctx.set_attrs(Counted(Arc::clone(count)));
            y
        }
        fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            assert_eq!(Arc::strong_count(&ctx.attrs().0), 2);
            dy * 2.0
        }
    }
    let count = Arc::new(());
    let x = leaf(&[1.0]);
    // Backward never runs, but the node is dropped with the output.
    drop(Kept::apply(&x, &count));
    assert_eq!(Arc::strong_count(&count), 1);
    let y = Kept::apply(&x, &count);
    let first = recorded(&y, &x).unwrap();
    drop((y, first));
    assert_eq!(Arc::strong_count(&count), 1);
}

#[test]
fn a_saved_tensor_changed_in_place() {
    op!(Sq {
        type Saved = Tensor<f64>;
        fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            ctx.save_for_backward(x);
            x * x
        }
        fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy * ctx.saved_tensor() * 2.0
        }
    });
    let x = leaf(&[1.0, 2.0]);
    let h = &x * 1.0;
    let y = Sq::apply(&h);
    no_grad().run(|| h.copy_from(&Tensor::from(vec![11.0, 12.0]))).unwrap();
    let error = y.sum().backward().unwrap_err().to_string();
    assert!(error.starts_with("Sq (called at "), "{error}");
    assert!(error.contains("`x` was changed in place after it was saved"), "{error}");
}

#[test]
fn a_tensor_through_a_type_parameter() {
    op!(Show {
        fn forward<V: std::fmt::Debug>(
            _ctx: &mut ForwardContext<Self>,
            x: &Tensor<f64>,
            value: V,
        ) -> Tensor<f64> {
            let _ = format!("{value:?}");
            x * 1.0
        }
        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy.clone()
        }
    });
    let x = leaf(&[1.0]);
    assert!(Show::try_apply(&x, "text").is_ok());
    assert!(Show::try_apply(&x, Some(Tensor::<i64>::from(1))).is_ok());
    let error = Show::try_apply(&x, Some(vec![&x])).unwrap_err().to_string();
    assert!(error.starts_with("Show: the plain parameter `value` was given a tensor"), "{error}");
}

/// Inside a type parameter's type, and behind `impl Trait`, too.
#[test]
fn tensors_in_plain_parameters_of_a_generic_op() {
    #[py_layer]
    impl Sink {
        fn forward<T>(
            _ctx: &mut ForwardContext<Self>,
            x: &Tensor<f64>,
            all: Vec<T>,
            pair: (f64, Option<&T>),
            shown: &impl std::fmt::Debug,
            function: impl Fn(&Tensor<f64>) -> f64,
        ) -> Tensor<f64> {
            let _ = (all, pair, shown, function);
            x * 2.0
        }

        fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy * 2.0
        }
    }
    let x = Tensor::<f64>::from(1.0);
    let item = |tensor: &Tensor<f64>| tensor.item();
    assert_eq!(Sink::apply(&x, vec![1], (1.0, Some(&2)), &"text", item).item(), 2.0);
    let text_of = |result: autograd_core::Result<Tensor<f64>>| result.unwrap_err().to_string();
    let error = text_of(Sink::try_apply(&x, vec![x.clone()], (1.0, None), &"text", item));
    assert!(error.starts_with("Sink: the plain parameter `all` was given a tensor"), "{error}");
    let error = text_of(Sink::try_apply(&x, Vec::new(), (1.0, Some(&x)), &"text", item));
    assert!(error.starts_with("Sink: the plain parameter `all` was given a tensor"), "{error}");
    let error = text_of(Sink::try_apply(&x, vec![1], (1.0, None), &x, item));
    assert!(error.starts_with("Sink: the plain parameter `shown` was given a tensor"), "{error}");
}

#[py_layer]
impl Broadcast {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x * w
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        Grads { x: (dy * w).sum().reshape([1]), w: dy * x }
    }
}

/// The record of a call reuses the memory of an earlier one.
#[test]
fn a_call_knows_nothing_of_the_shapes_of_the_one_before() {
    for n in [3, 1, 1, 4, 2, 1] {
        let [x, w] = [(vec![2.0], 1), (vec![3.0; n], n)].map(|(data, n)| {
            let leaf = Tensor::from(data).reshape([n]);
            leaf.set_stop_gradient(false);
            leaf
        });
        Broadcast::apply(&x, &w).sum().backward().unwrap();
        assert_eq!(x.grad().unwrap().to_vec(), [3.0 * n as f64]);
        assert_eq!(w.grad().unwrap().to_vec(), vec![2.0; n]);
    }
}
