//! Ops with kernels over rows: along the last axis, along another one, and with recorded gradients, the numbers
//! are the same but for rounding.

use autograd_core::{Float, GradOptions, Tensor, grad_with};

type Op<T> = fn(&Tensor<T>, isize) -> Tensor<T>;

fn numbers<T: Float>(shape: [usize; 2], factor: usize) -> Tensor<T> {
    let number = |i: usize| T::from_f64(((i * factor) % 1009) as f64 / 252.0 - 2.0);
    Tensor::from_vec(shape, (0..shape[0] * shape[1]).map(number).collect()).unwrap()
}

fn assert_close<T: Float>(what: &str, found: &Tensor<T>, right: &Tensor<T>, tolerance: f64) {
    assert_eq!(found.shape(), right.shape(), "{what}");
    for (i, (a, b)) in found.to_vec().into_iter().zip(right.to_vec()).enumerate() {
        let (a, b) = (a.into_f64(), b.into_f64());
        assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{what}: {i} is {a}, not {b}");
    }
}

fn check<T: Float>(tolerance: f64) {
    let ops: [(&str, Op<T>); 3] = [
        ("normalize", |x, axis| x.normalize([axis], 1e-3)),
        ("softmax", |x, axis| x.softmax(axis)),
        ("log_softmax", |x, axis| x.log_softmax(axis)),
    ];
    for n in [1, 2, 7, 31, 33, 100, 4097, 16_384, 16_385] {
        let (x, dy) = (numbers::<T>([3, n], 7919), numbers::<T>([3, n], 389));
        x.set_stop_gradient(false);
        for (name, op) in ops {
            let what = format!("{name} of {n}");
            let run = |y: &Tensor<T>, create_graph: bool| {
                let options = GradOptions::new().seeds(vec![Some(dy.clone())]);
                let options = options.create_graph(create_graph).retain_graph(true);
                grad_with(&[y], &[&x], options).unwrap().remove(0).unwrap()
            };
            let y = op(&x, -1);
            let turned = op(&x.transpose(), 0).transpose();
            assert_close(&what, &y, &turned, tolerance);
            let dx = run(&y, false);
            assert_close(&format!("{what}, recorded"), &dx, &run(&y, true), tolerance);
            assert_close(&format!("{what}, other axis"), &dx, &run(&turned, false), tolerance);
        }
    }
}

#[test]
fn rows_columns_and_recorded_gradients_agree() {
    check::<f64>(1e-12);
    check::<f32>(2e-5);
}
