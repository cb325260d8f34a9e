//! Factors of single matrices, in f64.

use nalgebra::linalg::SymmetricEigen;
use nalgebra::{DMatrix, DVectorView};

/// Householder's factors; no element on the diagonal of R is negative.
pub(super) fn orthogonal(mut a: DMatrix<f64>) -> [DMatrix<f64>; 2] {
    // Squares of elements overflow or underflow.
    let unit = scale(&a);
    a /= unit;
    let factors = a.qr();
    let (mut q, mut r) = (factors.q(), factors.r());
    for i in 0..r.nrows() {
        if r[(i, i)] < 0.0 {
            q.column_mut(i).neg_mut();
            r.row_mut(i).neg_mut();
        }
    }
    [q, r * unit]
}

/// A power of two near the largest magnitude.
fn scale(a: &DMatrix<f64>) -> f64 {
    let largest = a.amax();
    if largest == 0.0 { 1.0 } else { largest.log2().floor().min(1023.0).exp2() }
}

/// The sign of the largest component; of components that differ by rounding, of the first.
fn sign(x: DVectorView<'_, f64>) -> f64 {
    let largest = x.amax() * (1.0 - 1e-9);
    x.iter().find(|x| x.abs() >= largest).map_or(1.0, |x| x.signum())
}

pub(super) fn eigen(a: DMatrix<f64>) -> Option<[DMatrix<f64>; 2]> {
    const MAX_STEPS: usize = 10_000;
    let n = a.nrows();
    let symmetric = DMatrix::from_fn(n, n, |i, j| a[(i.max(j), i.min(j))]);
    let found = SymmetricEigen::try_new(symmetric, f64::EPSILON, n * MAX_STEPS)?;
    let w = found.eigenvalues;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| w[i].total_cmp(&w[j]));
    let mut v = found.eigenvectors.select_columns(&order);
    for mut column in v.column_iter_mut() {
        column *= sign(column.as_view());
    }
    Some([DMatrix::from_fn(n, 1, |i, _| w[order[i]]), v])
}

/// The factors of a reduced SVD by one-sided Jacobi rotations: nalgebra's are wrong for some matrices of
/// lower rank. The rotations make the columns orthogonal; a QR factorization normalizes them, also those
/// that are zero.
pub(super) fn singular(mut a: DMatrix<f64>) -> [DMatrix<f64>; 3] {
    const MAX_SWEEPS: usize = 60;
    let (m, n) = a.shape();
    let is_wide = m < n;
    if is_wide {
        a = a.transpose();
    }
    let unit = scale(&a);
    a /= unit;
    let k = m.min(n);
    let mut v = DMatrix::identity(k, k);
    for _ in 0..MAX_SWEEPS {
        let pairs = (0..k).flat_map(|i| (i + 1..k).map(move |j| (i, j)));
        let rotated = pairs.filter(|&(i, j)| rotate(&mut a, &mut v, i, j)).count();
        if rotated == 0 {
            break;
        }
    }
    let lengths: Vec<f64> = a.column_iter().map(|column| column.norm()).collect();
    let mut order: Vec<usize> = (0..k).collect();
    order.sort_by(|&i, &j| lengths[j].total_cmp(&lengths[i]));
    let [mut u, _] = orthogonal(a.select_columns(&order));
    let mut v = v.select_columns(&order);
    if is_wide {
        std::mem::swap(&mut u, &mut v);
    }
    for (mut u, mut v) in u.column_iter_mut().zip(v.column_iter_mut()) {
        let sign = sign(u.as_view());
        u *= sign;
        v *= sign;
    }
    [u, DMatrix::from_fn(k, 1, |i, _| lengths[order[i]] * unit), v.transpose()]
}

/// Rotates two columns so that they are orthogonal; `false` if they are.
fn rotate(a: &mut DMatrix<f64>, v: &mut DMatrix<f64>, i: usize, j: usize) -> bool {
    let (x, y) = (a.column(i), a.column(j));
    let product = x.dot(&y);
    if product.abs() <= f64::EPSILON * a.nrows() as f64 * x.norm() * y.norm() {
        return false;
    }
    let slope = (y.norm_squared() - x.norm_squared()) / (2.0 * product);
    let tangent = slope.signum() / (slope.abs() + slope.hypot(1.0));
    let cosine = 1.0 / tangent.hypot(1.0);
    for matrix in [a, v] {
        for row in 0..matrix.nrows() {
            let (p, q) = (matrix[(row, i)], matrix[(row, j)]);
            matrix[(row, i)] = cosine * (p - tangent * q);
            matrix[(row, j)] = cosine * (tangent * p + q);
        }
    }
    true
}

/// The pseudoinverse, and a mark: NaN if a singular value was left out, else 0.
pub(super) fn pseudo(a: DMatrix<f64>, rcond: f64) -> [DMatrix<f64>; 2] {
    let [mut u, s, vt] = singular(a);
    let least = rcond * s[0];
    let mut mark = 0.0;
    for (mut column, &s) in u.column_iter_mut().zip(s.iter()) {
        if s <= least {
            mark = f64::NAN;
            column.fill(0.0);
        } else {
            column /= s;
        }
    }
    [vt.tr_mul(&u.transpose()), DMatrix::from_element(1, 1, mark)]
}
