//! Triangular systems, eigenvalues, QR factors, singular values, and what is made of them.

use autograd_core::{Error, GradOptions, Tensor, grad_with, linalg};

use super::{check, sample};

const SQUARE: [&[usize]; 6] = [&[3, 3], &[1, 1], &[2, 2, 2], &[2, 1, 2, 2], &[0, 0], &[0, 2, 2]];
const TALL: [&[usize]; 4] = [&[4, 2], &[2, 3, 1], &[3, 0], &[0, 3, 2]];
const WIDE: [&[usize]; 4] = [&[2, 4], &[2, 1, 3], &[0, 3], &[2, 0, 2]];

/// Matrices whose singular values, and eigenvalues, are far from each other and from 0.
fn apart(shape: &[usize]) -> Tensor<f64> {
    let [.., m, n] = *shape else { panic!("{shape:?}") };
    let at = |i: usize| if i / n == i % n { 2.0 + 3.0 * (i / n) as f64 } else { 0.0 };
    let diagonal = Tensor::from_vec([m, n], (0..m * n).map(at).collect()).unwrap();
    sample(shape, -1.0, 1.0) + diagonal
}

fn symmetric(x: &Tensor<f64>) -> Tensor<f64> {
    (x + x.transpose()) * 0.5
}

fn columns(v: &Tensor<f64>, by: &Tensor<f64>) -> Tensor<f64> {
    v * by.unsqueeze(-2)
}

#[test]
fn triangular_systems() {
    for shape in SQUARE {
        let n = shape[shape.len() - 1];
        for right in [vec![n], vec![n, 2]] {
            let inputs = [apart(shape), sample(&right, -1.0, 1.0)];
            for upper in [false, true] {
                let solved =
                    |t: &[Tensor<f64>]| linalg::solve_triangular(&t[0], &t[1], upper).unwrap();
                check("solve_triangular", solved, &inputs);
                let part = if upper { inputs[0].triu(0) } else { inputs[0].tril(0) };
                let expected = linalg::solve(&part, &inputs[1]).unwrap();
                assert!(solved(&inputs).allclose(&expected, 1e-12, 1e-12), "{shape:?}");
            }
            check("cholesky_solve", |t| linalg::cholesky_solve(&t[0], &t[1]).unwrap(), &inputs);
            let l = inputs[0].tril(0);
            let expected = linalg::solve(&l.matmul(&l.transpose()), &inputs[1]).unwrap();
            let found = linalg::cholesky_solve(&inputs[0], &inputs[1]).unwrap();
            assert!(found.allclose(&expected, 1e-12, 1e-12), "{shape:?}");
        }
    }
    let inputs = [apart(&[2, 2]), sample(&[3, 2, 1], -1.0, 1.0)];
    check("broadcast", |t| linalg::solve_triangular(&t[0], &t[1], false).unwrap(), &inputs);
}

#[test]
fn eigenvalues_and_vectors() {
    for shape in SQUARE {
        let of = |t: &[Tensor<f64>]| linalg::eigh(&symmetric(&t[0])).unwrap();
        check("eigh, values", |t| of(t).0, &[apart(shape)]);
        check("eigh, vectors", |t| of(t).1, &[apart(shape)]);
        let function = |t: &[Tensor<f64>]| {
            let (w, v) = of(t);
            columns(&v, &w.tanh()).matmul(&v.transpose())
        };
        check("eigh, a function of the matrix", function, &[apart(shape)]);
    }
}

#[test]
fn qr_factors() {
    for shape in SQUARE.iter().chain(&TALL).chain(&WIDE) {
        // The last column of a square matrix does not change `q`, but for a sign.
        let both = |t: &[Tensor<f64>]| {
            let (q, r) = linalg::qr(&t[0]).unwrap();
            q.matmul(&r.tanh())
        };
        check("qr, both", both, &[apart(shape)]);
        check("qr, r", |t| linalg::qr(&t[0]).unwrap().1, &[apart(shape)]);
    }
    for shape in TALL {
        check("qr, q", |t| linalg::qr(&t[0]).unwrap().0, &[apart(shape)]);
    }
    check("qr", |t| linalg::qr(&t[0].transpose()).unwrap().1, &[apart(&[2, 4, 3])]);
}

#[test]
fn singular_values_and_vectors() {
    for shape in SQUARE.iter().chain(&TALL).chain(&WIDE) {
        check("svd, u", |t| linalg::svd(&t[0]).unwrap().0, &[apart(shape)]);
        check("svd, s", |t| linalg::svd(&t[0]).unwrap().1, &[apart(shape)]);
        check("svd, vt", |t| linalg::svd(&t[0]).unwrap().2, &[apart(shape)]);
        let all = |t: &[Tensor<f64>]| {
            let (u, s, vt) = linalg::svd(&t[0]).unwrap();
            columns(&u, &s.tanh()).matmul(&vt)
        };
        check("svd, all", all, &[apart(shape)]);
    }
}

#[test]
fn least_squares_and_pseudoinverses() {
    for shape in SQUARE.iter().chain(&TALL) {
        let m = shape[shape.len() - 2];
        for right in [vec![m], vec![m, 2]] {
            let inputs = [apart(shape), sample(&right, -1.0, 1.0)];
            check("lstsq", |t| linalg::lstsq(&t[0], &t[1]).unwrap(), &inputs);
        }
    }
    for shape in SQUARE.iter().chain(&TALL).chain(&WIDE) {
        check("pinv", |t| linalg::pinv(&t[0], None).unwrap(), &[apart(shape)]);
    }
}

/// Matrices of every kind: of any rank, with equal values, tiny, large, and with columns of many sizes.
fn kinds(m: usize, n: usize) -> Vec<Tensor<f64>> {
    let x = sample(&[m, n], -1.0, 1.0);
    let scales = Tensor::from((0..n).map(|j| 10_f64.powi(-4 * j as i32)).collect::<Vec<_>>());
    let row = |x: &Tensor<f64>| x.narrow(0, 0, 1).broadcast_to([m, n]).copy();
    let eye = Tensor::eye(m.max(n)).narrow(0, 0, m).narrow(1, 0, n);
    let integers = (&x * 2.5).round();
    let all = [&x * 1e-200, &x * 1e200, &x * 1e-310, &x * scales, row(&x), eye, integers];
    all.into_iter().chain([Tensor::zeros([m, n]), x]).collect()
}

#[test]
fn factors_of_any_matrix_are_orthonormal_and_give_it_back() {
    let near = |a: &Tensor<f64>, b: &Tensor<f64>| {
        let size = b.abs().max().item().max(f64::MIN_POSITIVE);
        ((a - b) / size).abs().max().item() < 1e-13
    };
    let orthonormal = |q: &Tensor<f64>| near(&q.transpose().matmul(q), &Tensor::eye(q.dim(-1)));
    for (m, n) in (1..7).flat_map(|m| (1..7).map(move |n| (m, n))) {
        for (kind, a) in kinds(m, n).iter().enumerate() {
            let what = format!("kind {kind}, {m} x {n}");
            let (u, s, vt) = linalg::svd(a).unwrap();
            assert!(orthonormal(&u) && orthonormal(&vt.transpose()), "svd of {what}");
            assert!(near(&columns(&u, &s).matmul(&vt), a), "svd of {what}");
            let s = s.to_vec();
            assert!(s.is_sorted_by(|a, b| a >= b) && s.iter().all(|&s| s >= 0.0), "{what}: {s:?}");
            let (q, r) = linalg::qr(a).unwrap();
            assert!(orthonormal(&q) && near(&q.matmul(&r), a), "qr of {what}");
            assert!(r.diagonal(0).to_vec().iter().all(|&x| x >= 0.0), "qr of {what}: {r}");
            assert!(r.tril(-1).to_vec().iter().all(|&x| x == 0.0), "qr of {what}: {r}");
            if m == n {
                let a = symmetric(a);
                let (w, v) = linalg::eigh(&a).unwrap();
                assert!(w.to_vec().is_sorted(), "eigh of {what}: {w}");
                let product = columns(&v, &w).matmul(&v.transpose());
                assert!(orthonormal(&v) && near(&product, &a), "eigh of {what}");
            }
        }
    }
}

#[test]
fn signs_are_those_of_the_largest_components() {
    let a = Tensor::from([[2.0, -1.0], [-1.0, 2.0]]);
    let half = 0.5_f64.sqrt();
    let expected = Tensor::from([[half, half], [half, -half]]);
    assert!(linalg::eigh(&a).unwrap().1.allclose(&expected, 1e-12, 0.0));
    let (u, _, _) = linalg::svd(&a).unwrap();
    assert!(u.allclose(&Tensor::from([[half, half], [-half, half]]), 1e-12, 0.0), "{u}");
    let half = Tensor::from([[3.0_f32, 1.0], [1.0, 2.0]]);
    let (w, v) = linalg::eigh(&half).unwrap();
    assert!((&v * w.unsqueeze(0)).matmul(&v.t()).allclose(&half, 0.0, 1e-6));
}

/// The gradient of the sum of the outputs with these numbers, each weighted.
fn gradient(a: &Tensor<f64>, f: impl Fn(&Tensor<f64>) -> Tensor<f64>) -> Tensor<f64> {
    let a = a.copy();
    a.set_stop_gradient(false);
    let y = f(&a);
    let y = (&y * sample(y.shape(), 0.5, 1.0)).sum();
    grad_with(&[&y], &[&a], GradOptions::new()).unwrap()[0].clone().unwrap()
}

/// The factors of `c a` with orthonormal columns are those of `a`, so their gradients are `1 / c` times as large.
#[test]
fn gradients_of_tiny_and_large_matrices_are_those_of_others_scaled() {
    let vectors: [fn(&Tensor<f64>) -> Tensor<f64>; 3] = [
        |a| linalg::svd(a).unwrap().0,
        |a| linalg::svd(a).unwrap().2,
        |a| linalg::qr(a).unwrap().0,
    ];
    let eigenvectors = |a: &Tensor<f64>| linalg::eigh(&symmetric(a)).unwrap().1;
    for scale in [-600, -400, 400, 600].map(|exponent| 2_f64.powi(exponent)) {
        let check = |a: &Tensor<f64>, f: &dyn Fn(&Tensor<f64>) -> Tensor<f64>, what: &str| {
            let (expected, found) = (gradient(a, f), gradient(&(a * scale), f) * scale);
            let message = format!("{what} of {:?} by {scale:e}: {found} {expected}", a.shape());
            assert!(found.allclose(&expected, 1e-9, 1e-9), "{message}");
        };
        for shape in [[3, 3], [4, 2], [2, 4]] {
            let all = vectors.iter().zip(["u", "vt", "q"]);
            all.for_each(|(f, what)| check(&apart(&shape), f, what));
        }
        check(&apart(&[3, 3]), &eigenvectors, "v");
    }
}

#[test]
fn where_there_is_no_derivative_the_gradient_is_nan() {
    // Equal but for rounding.
    let turn = linalg::qr(&sample(&[3, 3], -1.0, 1.0)).unwrap().0;
    let equal = symmetric(&columns(&turn, &Tensor::from([2.0, 2.0, 5.0])).matmul(&turn.t()));
    let deficient = Tensor::from([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]);
    let none = |x: &Tensor<f64>| x.to_vec().iter().all(|x| x.is_nan());
    assert!(none(&gradient(&equal, |a| linalg::eigh(a).unwrap().1)));
    for a in [&equal, &deficient, &deficient.t(), &deficient.narrow(0, 0, 2)] {
        assert!(none(&gradient(a, |a| linalg::svd(a).unwrap().0)), "{a}");
        assert!(none(&gradient(a, |a| linalg::svd(a).unwrap().2)), "{a}");
    }
    assert!(none(&gradient(&deficient, |a| linalg::qr(a).unwrap().0)));
    assert!(none(&gradient(&deficient, |a| linalg::qr(a).unwrap().1)));
    for a in [&deficient, &deficient.t()] {
        assert!(none(&gradient(a, |a| linalg::pinv(a, None).unwrap())), "{a}");
    }
    let kept = Tensor::from([[1.0, 0.0], [0.0, 1e-3]]);
    assert!(none(&gradient(&kept, |a| linalg::pinv(a, Some(1e-2)).unwrap())));
    assert!(!none(&gradient(&kept, |a| linalg::pinv(a, None).unwrap())));

    // A stack has NaN for that matrix alone; values alone have a gradient.
    let stack = Tensor::stack(&[&equal, &apart(&[3, 3])], 0);
    let grad = gradient(&stack, |a| linalg::eigh(&symmetric(a)).unwrap().1);
    assert!(none(&grad.select(0, 0)) && grad.select(0, 1).to_vec().iter().all(|x| x.is_finite()));
    let sum = |a: &Tensor<f64>| linalg::eigh(a).unwrap().0.sum();
    let trace = gradient(&equal, sum);
    let scale = trace.at(&[0, 0]);
    assert!((trace / scale).allclose(&Tensor::eye(3), 0.0, 1e-12));
    let norm = gradient(&equal, |a| linalg::svd(a).unwrap().1.square().sum());
    assert!((norm / scale).allclose(&(&equal * 2.0), 0.0, 1e-12));
}

#[test]
fn what_has_no_factors_is_an_error() {
    let text = |result: Result<Tensor<f64>, Error>| result.unwrap_err().to_string();
    let (flat, wide) = (Tensor::<f64>::zeros([3]), Tensor::<f64>::zeros([2, 3]));
    assert_eq!(
        text(linalg::eigh(&wide).map(|all| all.0)),
        "eigh: `a` must be a square matrix [n, n], or a stack of them, found shape [2, 3]"
    );
    assert_eq!(
        text(linalg::cholesky_solve(&wide, &flat)),
        "cholesky_solve: `l` must be a square matrix [n, n], or a stack of them, found shape [2, 3]"
    );
    assert_eq!(
        text(linalg::svd(&flat).map(|all| all.0)),
        "svd: `a` must be a matrix [m, n], or a stack of them, found shape [3]"
    );
    assert_eq!(
        text(linalg::lstsq(&wide, &flat)),
        "lstsq: `a` must be a matrix [m, n] with m >= n, or a stack of them, found shape [2, 3]"
    );
    assert_eq!(
        text(linalg::lstsq(&wide.t(), &Tensor::zeros([2]))),
        "lstsq: `b` must be of shape [3] or [.., 3, k], as `a` has 3 rows, found shape [2]"
    );
    assert_eq!(
        text(linalg::lstsq(&Tensor::ones([3, 2]), &flat)),
        "lstsq: `a` must be a matrix, or a stack of matrices, of full column rank, found one of lower rank"
    );
    let singular = Tensor::from([[1.0, 2.0], [0.0, 0.0]]);
    assert_eq!(
        text(linalg::cholesky_solve(&singular, &Tensor::ones([2]))),
        "cholesky_solve: `l` must be a matrix, or a stack of matrices, with an inverse, found a singular one"
    );
    assert!(matches!(
        linalg::solve_triangular(&singular, &Tensor::ones([2]), true),
        Err(Error::Value { op: "solve_triangular", parameter: "a", .. })
    ));
    assert_eq!(text(linalg::pinv(&wide, Some(-1.0))), "pinv: `rcond` must be at least 0, found -1");
    for bad in [f64::NAN, f64::INFINITY] {
        let stack = Tensor::stack(&[&Tensor::eye(2), &Tensor::full([2, 2], bad)], 0);
        let all = [
            ("eigh", linalg::eigh(&stack).map(|all| all.0)),
            ("qr", linalg::qr(&stack).map(|all| all.0)),
            ("svd", linalg::svd(&stack).map(|all| all.0)),
            ("pinv", linalg::pinv(&stack, None)),
            ("lstsq", linalg::lstsq(&stack, &Tensor::ones([2]))),
        ];
        for (op, result) in all {
            let expected = "`a` must be a matrix, or a stack of matrices, of finite numbers, found one with \
                            NaN or infinity (matrix 1 of the stack)";
            assert_eq!(text(result), format!("{op}: {expected}"));
        }
    }
}
