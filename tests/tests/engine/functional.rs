//! Derivatives of closures, against closed forms and finite differences.

use autograd_core::{
    Error, GradOptions, Tensor, grad, grad_with, hessian, hvp, jacobian, jvp, no_grad, vjp,
};
use support::leaf;

#[track_caller]
fn close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() <= tolerance * (1.0 + e.abs()), "{found:?} {expected:?}");
    }
}

/// A function with three outputs that mixes its inputs.
fn mix(x: &Tensor<f64>) -> Tensor<f64> {
    let w = Tensor::from_vec([3, 2], vec![0.5, -1.0, 2.0, 0.25, 1.5, -0.75]).unwrap();
    w.matmul(&x.sin()).tanh() + x.select(0, 0) * x.select(0, 1)
}

/// `(f(x + h) - f(x - h)) / 2h` along each axis, as rows of outputs.
fn differences(f: impl Fn(&Tensor<f64>) -> Tensor<f64>, at: &[f64]) -> Vec<f64> {
    const H: f64 = 1e-5;
    let columns: Vec<Vec<f64>> = (0..at.len())
        .map(|i| {
            let moved = |h: f64| {
                let mut at = at.to_vec();
                at[i] += h;
                f(&Tensor::from(at)).to_vec()
            };
            let (after, before) = (moved(H), moved(-H));
            after.iter().zip(before).map(|(a, b)| (a - b) / (2.0 * H)).collect()
        })
        .collect();
    (0..columns[0].len()).flat_map(|row| columns.iter().map(move |c| c[row])).collect()
}

#[test]
fn a_jacobian_is_what_differences_give() {
    let at = [0.3, -0.8];
    let j = jacobian(mix, &Tensor::from(&at[..])).unwrap();
    assert_eq!(j.shape(), [3, 2]);
    close(&j.to_vec(), &differences(mix, &at), 1e-8);
}

#[test]
fn vjp_and_jvp_are_products_with_the_jacobian() {
    let x = Tensor::from([0.3, -0.8]);
    let j = jacobian(mix, &x).unwrap();
    let (u, v) = (Tensor::from([1.0, -2.0, 0.5]), Tensor::from([0.7, 3.0]));
    let (y, pulled) = vjp(|t| mix(&t[0]), std::slice::from_ref(&x), &u).unwrap();
    let (z, pushed) =
        jvp(|t| mix(&t[0]), std::slice::from_ref(&x), std::slice::from_ref(&v)).unwrap();
    assert_eq!((y.to_vec(), z.to_vec()), (mix(&x).to_vec(), mix(&x).to_vec()));
    close(&pulled[0].to_vec(), &u.matmul(&j).to_vec(), 1e-14);
    close(&pushed.to_vec(), &j.matmul(&v).to_vec(), 1e-14);
    assert!(y.stop_gradient() && pulled[0].stop_gradient() && pushed.stop_gradient());
}

#[test]
fn several_inputs() {
    let (a, b) = (Tensor::from([1.0, 2.0]), Tensor::from([3.0, 4.0]));
    let f = |t: &[Tensor<f64>]| &t[0] * &t[1] + &t[0];
    let (_, grads) = vjp(f, &[a.clone(), b.clone()], &Tensor::ones([2])).unwrap();
    assert_eq!(grads[0].to_vec(), [4.0, 5.0]);
    assert_eq!(grads[1].to_vec(), [1.0, 2.0]);
    let tangents = [Tensor::from([1.0, 0.0]), Tensor::from([0.0, 1.0])];
    let (_, slope) = jvp(f, &[a.clone(), b.clone()], &tangents).unwrap();
    assert_eq!(slope.to_vec(), [4.0, 2.0]);
    // Both gradients of a sum are the same tensor.
    let (_, slope) = jvp(|t| &t[0] + &t[1], &[a.clone(), b.clone()], &tangents).unwrap();
    assert_eq!(slope.to_vec(), [1.0, 1.0]);
    // The same tensor twice counts as two inputs.
    let (_, grads) = vjp(|t| &t[0] * &t[1], &[a.clone(), a], &Tensor::ones([2])).unwrap();
    assert_eq!(grads[0].to_vec(), [1.0, 2.0]);
}

#[test]
fn a_hessian_by_formula_and_by_differences() {
    // f = x'Ax has the second derivatives A + A'.
    let a = Tensor::from_vec([2, 2], vec![1.0, 2.0, -3.0, 5.0]).unwrap();
    let quadratic = |x: &Tensor<f64>| (x * a.matmul(x)).sum();
    let x = Tensor::from([0.4, -1.1]);
    let h = hessian(quadratic, &x).unwrap();
    assert_eq!(h.shape(), [2, 2]);
    close(&h.to_vec(), &[2.0, -1.0, -1.0, 10.0], 1e-14);

    let f = |x: &Tensor<f64>| (mix(x).exp()).sum();
    let first = |x: &Tensor<f64>| jacobian(f, x).unwrap();
    let expected = differences(first, &[0.4, -1.1]);
    close(&hessian(f, &x).unwrap().to_vec(), &expected, 1e-8);
    let v = Tensor::from([2.0, -0.5]);
    let product = Tensor::from_vec([2, 2], expected).unwrap().matmul(&v);
    close(&hvp(f, &x, &v).unwrap().to_vec(), &product.to_vec(), 1e-8);
}

#[test]
fn shapes_are_outputs_then_inputs() {
    let x = Tensor::<f64>::ones([2, 3]);
    let shape = |f: fn(&Tensor<f64>) -> Tensor<f64>| jacobian(f, &x).unwrap().shape().to_vec();
    assert_eq!(shape(|x| x.sum()), [2, 3]);
    assert_eq!(shape(|x| x.sum_axes([0])), [3, 2, 3]);
    assert_eq!(shape(|x| x.transpose()), [3, 2, 2, 3]);
    assert_eq!(shape(|x| x.narrow(0, 0, 0)), [0, 3, 2, 3]);
    assert_eq!(hessian(|x| x.square().sum(), &x).unwrap().shape(), [2, 3, 2, 3]);
    assert_eq!(jacobian(|x| x.exp(), &Tensor::from(0.0)).unwrap().shape(), [0_usize; 0]);
    let empty = Tensor::<f64>::zeros([0]);
    assert_eq!(jacobian(|x| x * 2.0, &empty).unwrap().shape(), [0, 0]);
}

#[test]
fn single_precision() {
    let x = Tensor::<f32>::from([1.0, 2.0]);
    let h = hessian(|x| (x.square() * x).sum(), &x).unwrap();
    assert_eq!(h.to_vec(), [6.0_f32, 0.0, 0.0, 12.0]);
    let (_, slope) = jvp(|t| t[0].square(), &[x], &[Tensor::<f32>::from([1.0, 1.0])]).unwrap();
    assert_eq!(slope.to_vec(), [2.0_f32, 4.0]);
}

#[test]
fn what_a_closure_does_not_use_has_slope_zero() {
    let (x, v) = (Tensor::from([1.0, 2.0]), Tensor::from([1.0, 1.0]));
    let constant = |_: &Tensor<f64>| Tensor::from(5.0);
    assert_eq!(jacobian(constant, &x).unwrap().to_vec(), [0.0, 0.0]);
    assert_eq!(hvp(constant, &x, &v).unwrap().to_vec(), [0.0, 0.0]);
    assert_eq!(hessian(|x| x.sum(), &x).unwrap().to_vec(), [0.0; 4]);
    let inputs = [x.clone(), v.clone()];
    let (_, grads) = vjp(|t| t[0].sum(), &inputs, &Tensor::from(1.0)).unwrap();
    assert_eq!(grads[1].to_vec(), [0.0, 0.0]);
    let (_, slope) = jvp(|t| t[0].step(), &[x], &[v]).unwrap();
    assert_eq!(slope.to_vec(), [0.0, 0.0]);
    let (y, none) = vjp(|_| Tensor::from(1.0), &[], &Tensor::from(1.0)).unwrap();
    assert!(y.item() == 1.0 && none.is_empty());
}

#[test]
fn gradients_of_tensors_are_left_alone() {
    let (x, w) = (leaf(&[1.0, 2.0]), leaf(&[3.0, 4.0]));
    let _ = x.register_hook(|_| panic!("a hook of a leaf")).unwrap();
    for recording in [true, false] {
        let run = || hessian(|x| (x * x * &w).sum(), &x).unwrap().to_vec();
        let found = if recording { run() } else { no_grad().run(run) };
        assert_eq!(found, [6.0, 0.0, 0.0, 8.0]);
    }
    assert!(x.grad().is_none() && w.grad().is_none());
    assert!(!x.stop_gradient());
}

#[test]
fn results_are_differentiable_by_what_wants_it() {
    let (x, w) = (leaf(&[2.0]), leaf(&[3.0]));
    // d(w x³)/dx = 3 w x²; by w: 3 x², by x: 6 w x.
    let (_, slopes) =
        vjp(|t| &w * &t[0] * &t[0] * &t[0], std::slice::from_ref(&x), &Tensor::ones([1])).unwrap();
    let grads = grad(&[&slopes[0]], &[&x, &w]).unwrap();
    assert_eq!((grads[0].item(), grads[1].item()), (36.0, 12.0));
    // If nothing is recorded, the results are not recorded either.
    let slope = no_grad().run(|| jacobian(|x| x * &w, &x)).unwrap();
    assert!(slope.stop_gradient());
    // Nested calls.
    let nested = jacobian(|x| jacobian(|x| x * x * x, x).unwrap(), &Tensor::from([2.0])).unwrap();
    assert_eq!(nested.to_vec(), [12.0]);
    let both = hessian(|x| hvp(|x| (x.square() * x.square()).sum(), x, x).unwrap().sum(), &x);
    // (x⁴)'' x = 12 x³, and twice more: 72 x.
    assert_eq!(both.unwrap().to_vec(), [144.0]);
    // jvp along a tangent that wants a gradient.
    let t = leaf(&[5.0]);
    let (_, slope) =
        jvp(|i| i[0].square(), &[Tensor::from([3.0])], std::slice::from_ref(&t)).unwrap();
    let options = GradOptions::new();
    let by_t = grad_with(&[&slope], &[&t], options).unwrap().remove(0).unwrap();
    assert_eq!((slope.item(), by_t.item()), (30.0, 6.0));
}

#[test]
fn what_does_not_fit() {
    let x = Tensor::from([1.0, 2.0]);
    let v = Tensor::from([1.0]);
    let error = hvp(|x| x.sum(), &x, &v).unwrap_err().to_string();
    assert_eq!(error, "hvp: `v` must be of its input's shape [2], found shape [1]");
    let error = hessian(|x| x * 2.0, &x).unwrap_err();
    assert!(matches!(error, Error::Shape { op: "hessian", .. }), "{error}");
    let error = vjp(|t| t[0].sum(), std::slice::from_ref(&x), &x).unwrap_err();
    assert!(matches!(error, Error::SeedShape { .. }), "{error}");
    let error = jvp(|t| t[0].sum(), std::slice::from_ref(&x), &[]).unwrap_err();
    assert_eq!(error.to_string(), "jvp: expected 1 tangent, one for each input, found 0");
    let error = jvp(|t| t[0].sum(), &[x], &[v]).unwrap_err().to_string();
    assert!(error.starts_with("jvp: `tangents[0]`"), "{error}");
}
