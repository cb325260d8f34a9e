//! A quadratic program as a layer (B. Amos and J. Z. Kolter, 2017): the minimum of `½ zᵀQz + qᵀz` where
//! `Az = b` and `Gz ≤ h`. An interior point method finds it; `custom_root` differentiates the conditions of
//! Karush, Kuhn and Tucker, which hold at the minimum, so the method itself is not differentiated.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::solvers::custom_root;
use autograd_core::{Result, Tensor, assert_close, gradcheck, jacobian, linalg};

type Matrix = Tensor<f64>;

/// The conditions at a point `[z, lambda, nu]`; they are 0 at the minimum.
fn conditions(point: &Matrix, params: &[Matrix]) -> Result<Matrix> {
    let [big_q, q, a, b, g, h] = params else { unreachable!("six parameters") };
    let parts = point.try_split_with_sizes(&[q.len(), h.len(), b.len()], 0)?;
    let [z, lambda, nu] = &parts[..] else { unreachable!("three parts") };
    let stationary = big_q.matmul(z) + q + g.t().matmul(lambda) + a.t().matmul(nu);
    let complementary = lambda * (g.matmul(z) - h);
    Ok(Tensor::concat(&[stationary, complementary, a.matmul(z) - b], 0))
}

/// A matrix of blocks, by rows.
fn blocks(rows: &[&[&Matrix]]) -> Matrix {
    Tensor::concat(rows.iter().map(|row| Tensor::concat(*row, 1)).collect::<Vec<_>>(), 0)
}

/// The longest step along `dx`, up to 1, that leaves `x` positive.
fn step_length(x: &Matrix, dx: &Matrix) -> f64 {
    let limits = x.to_vec().into_iter().zip(dx.to_vec()).filter(|(_, dx)| *dx < 0.0);
    limits.fold(1.0, |step, (x, dx)| step.min(-0.99 * x / dx))
}

fn interior_point(params: &[Matrix]) -> Result<Matrix> {
    let [big_q, q, a, b, g, h] = params else { unreachable!("six parameters") };
    let (n, m, p) = (q.len(), h.len(), b.len());
    let zeros = |rows: usize, columns: usize| Matrix::zeros([rows, columns]);
    let (mut z, mut nu) = (Matrix::zeros([n]), Matrix::zeros([p]));
    let (mut slack, mut lambda) = (Matrix::ones([m]), Matrix::ones([m]));
    for _ in 0..60 {
        let products = &slack * &lambda;
        let residuals = [
            big_q.matmul(&z) + q + g.t().matmul(&lambda) + a.t().matmul(&nu),
            &products - products.mean() * 0.1,
            g.matmul(&z) + &slack - h,
            a.matmul(&z) - b,
        ];
        if products.max().item() < 1e-14 && residuals.iter().all(|r| r.norm().item() < 1e-13) {
            break;
        }
        let newton = blocks(&[
            &[big_q, &zeros(n, m), &g.t(), &a.t()],
            &[&zeros(m, n), &lambda.diag(0), &slack.diag(0), &zeros(m, p)],
            &[g, &Tensor::eye(m), &zeros(m, m), &zeros(m, p)],
            &[a, &zeros(p, m), &zeros(p, m), &zeros(p, p)],
        ]);
        let change = linalg::solve(&newton, &-Tensor::concat(&residuals, 0))?;
        let parts = change.split_with_sizes(&[n, m, m, p], 0);
        let step = step_length(&slack, &parts[1]).min(step_length(&lambda, &parts[2]));
        z += &parts[0] * step;
        slack += &parts[1] * step;
        lambda += &parts[2] * step;
        nu += &parts[3] * step;
    }
    Ok(Tensor::concat(&[z, lambda, nu], 0))
}

/// The layer: its gradients reach all six parameters.
fn quadratic_program(params: [&Matrix; 6]) -> Result<Matrix> {
    let (n, params) = (params[1].len(), params.map(Tensor::clone));
    let values: Vec<Matrix> = params.iter().map(Tensor::detach).collect();
    let point = custom_root(conditions, |_| interior_point(&values), &params)?;
    Ok(point.narrow(0, 0, n))
}

fn main() -> Result<()> {
    autograd_core::seed(2);
    // The projection onto the simplex, z ≥ 0 with sum 1. Where the last coordinate is at its bound, the
    // derivative is a projection too: it takes the mean of the other two away.
    let project = |point: &Matrix| {
        let (ones, bounds) = (Matrix::ones([1, 3]), (-Matrix::eye(3), Matrix::zeros([3])));
        let params = [&Matrix::eye(3), &-point, &ones, &Matrix::ones([1]), &bounds.0, &bounds.1];
        quadratic_program(params).expect("the program has a solution")
    };
    let point = Tensor::from([0.9, 0.6, -0.4]);
    println!("projection {:.4?}", project(&point).abs().to_vec());
    let slope = jacobian(project, &point)?;
    let expected = Tensor::from([[0.5, -0.5, 0.0], [-0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]);
    assert_close!(slope, expected, rtol = 0.0, atol = 1e-9);
    println!("its derivative is the closed form");

    let [l, g] = [[4, 4], [5, 4]].map(Matrix::randn);
    let (q, a, b, h) =
        (Matrix::randn([4]), Matrix::randn([1, 4]), Matrix::randn([1]), Matrix::ones([5]));
    gradcheck(
        |x| {
            let big_q = x[0].matmul(&x[0].t()) + Matrix::eye(4);
            quadratic_program([&big_q, &x[1], &x[2], &x[3], &x[4], &x[5]])
                .expect("it has a solution")
        },
        &[l, q, a, b, g, h],
    )?;
    println!("gradcheck passes for all six parameters");
    Ok(())
}
