//! Linear systems, inverses, determinants and Cholesky factors.

use autograd_core::{Error, GradOptions, Tensor, grad_with, linalg};

use super::{check, sample};

/// A matrix far from singular.
fn regular(shape: &[usize]) -> Tensor<f64> {
    sample(shape, -1.0, 1.0) + Tensor::eye(shape[shape.len() - 1]) * 3.0
}

#[test]
fn every_op_on_matrices_and_stacks() {
    for shape in [&[3, 3][..], &[1, 1], &[2, 2, 2], &[2, 1, 2, 2], &[0, 0], &[0, 2, 2]] {
        let n = shape[shape.len() - 1];
        check("inv", |t| linalg::inv(&t[0]).unwrap(), &[regular(shape)]);
        check("slogdet", |t| linalg::slogdet(&t[0]).unwrap().1, &[regular(shape)]);
        let definite = |x: &Tensor<f64>| x.matmul(&x.transpose()) + Tensor::eye(n);
        check("cholesky", |t| linalg::cholesky(&definite(&t[0])).unwrap(), &[regular(shape)]);
        // Elements above the diagonal are not read, and the gradient is that of a symmetric matrix.
        let symmetric = |x: &Tensor<f64>| (x + x.transpose()) * 0.5 + Tensor::eye(n) * 2.0;
        check("cholesky", |t| linalg::cholesky(&symmetric(&t[0])).unwrap(), &[regular(shape)]);
        let column = [&vec![1; shape.len() - 2][..], &[n, 1]].concat();
        for right in [vec![n], vec![n, 2], column] {
            let inputs = [regular(shape), sample(&right, -1.0, 1.0)];
            check("solve", |t| linalg::solve(&t[0], &t[1]).unwrap(), &inputs);
        }
    }
    let inputs = [regular(&[2, 2]), sample(&[3, 2, 1], -1.0, 1.0)];
    check("solve", |t| linalg::solve(&t[0], &t[1]).unwrap(), &inputs);
}

#[test]
fn matrices_in_other_layouts() {
    let transposed = |t: &[Tensor<f64>]| linalg::inv(&t[0].transpose()).unwrap();
    check("inv", transposed, &[regular(&[2, 3, 3])]);
    check("inv", |t| linalg::inv(&t[0]).unwrap(), &[regular(&[3, 3]).transpose()]);
    let turned = [regular(&[4, 4]).transpose(), sample(&[2, 4], -1.0, 1.0).transpose()];
    check("solve", |t| linalg::solve(&t[0], &t[1]).unwrap(), &turned);
    let half = Tensor::from([[4.0_f32, 1.0], [1.0, 3.0]]);
    let product = linalg::inv(&half).unwrap().matmul(&half);
    assert!(product.allclose(&Tensor::eye(2), 0.0, 1e-6), "{product}");
}

#[test]
fn what_has_no_result_is_an_error() {
    let singular = Tensor::from([[1.0, 2.0], [2.0, 4.0]]);
    let error = linalg::inv(&singular).unwrap_err();
    assert!(matches!(error, Error::Value { op: "inv", parameter: "a", .. }));
    assert_eq!(
        error.to_string(),
        "inv: `a` must be a matrix, or a stack of matrices, with an inverse, found a singular one"
    );
    let stack = Tensor::stack(&[&Tensor::eye(2), &singular], 0);
    assert_eq!(
        linalg::solve(&stack, &Tensor::ones([2])).unwrap_err().to_string(),
        "solve: `a` must be a matrix, or a stack of matrices, with an inverse, found a singular one \
         (matrix 1 of the stack)"
    );
    assert_eq!(
        linalg::cholesky(&Tensor::from([[1.0, 2.0], [2.0, 1.0]])).unwrap_err().to_string(),
        "cholesky: `a` must be a matrix, or a stack of matrices, positive definite, found one that is not"
    );
    let wide = Tensor::<f64>::zeros([2, 3]);
    assert_eq!(
        linalg::slogdet(&wide).unwrap_err().to_string(),
        "slogdet: `a` must be a square matrix [n, n], or a stack of them, found shape [2, 3]"
    );
    assert!(matches!(linalg::inv(&Tensor::from(1.0)), Err(Error::Shape { op: "inv", .. })));
    assert_eq!(
        linalg::solve(&Tensor::eye(2), &wide.transpose()).unwrap_err().to_string(),
        "solve: `b` must be of shape [2] or [.., 2, k], as `a` has 2 rows, found shape [3, 2]"
    );
    let many = [Tensor::<f64>::zeros([2, 3, 3]), Tensor::zeros([4, 3, 1])];
    assert!(matches!(linalg::solve(&many[0], &many[1]), Err(Error::Broadcast { op: "solve", .. })));

    let (sign, log) = linalg::slogdet(&singular).unwrap();
    assert_eq!((sign.item(), log.item()), (0.0, f64::NEG_INFINITY));
    singular.set_stop_gradient(false);
    let (sign, log) = linalg::slogdet(&singular).unwrap();
    assert!(sign.stop_gradient());
    let error = grad_with(&[&log], &[&singular], GradOptions::new()).unwrap_err().to_string();
    assert!(error.contains("slogdet") && error.contains("a singular one"), "{error}");
}
