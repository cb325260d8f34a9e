//! Values of these ops against plain loops; the package `tests` checks their gradients.

use crate::Tensor;
use crate::array::simd::{levels, with_level};

fn ramp(shape: &[usize]) -> Tensor<f64> {
    let n: usize = shape.iter().product();
    let data = (0..n).map(|i| ((i * 37 + 11) % 23) as f64 / 8.0 - 1.2).collect();
    Tensor::from_vec(shape, data).unwrap()
}

#[track_caller]
fn assert_close(found: &Tensor<f64>, expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (i, (a, b)) in found.to_vec().iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "element {i}: {a}, expected {b}");
    }
}

#[test]
fn short_and_long_rows_are_those_of_plain_loops() {
    // Rows with and without whole vectors, in one block and in several.
    let shapes = [
        [1, 1],
        [300, 1],
        [257, 2],
        [100, 10],
        [2, 10],
        [3, 10],
        [7, 10],
        [8, 10],
        [17, 5],
        [9, 31],
        [9, 32],
        [70, 33],
    ];
    for (level, [rows, n]) in levels().flat_map(|level| shapes.map(|shape| (level, shape))) {
        with_level(level, || rows_are_those_of_plain_loops(rows, n));
    }
}

fn rows_are_those_of_plain_loops(rows: usize, n: usize) {
    let x = ramp(&[rows, n]);
    x.set_stop_gradient(false);
    let place = |i: usize| i * 7 % n;
    let targets = Tensor::from((0..rows).map(|i| place(i) as i64).collect::<Vec<_>>());
    let data = x.to_vec();
    let logs = data.chunks(n).map(|row| row.iter().map(|x| x.exp()).sum::<f64>().ln());
    let far: Vec<f64> =
        data.chunks(n).zip(logs).flat_map(|(row, log)| row.iter().map(move |x| x - log)).collect();
    let shares: Vec<f64> = far.iter().map(|x| x.exp()).collect();
    assert_close(&x.log_softmax(1), &far);
    assert_close(&x.softmax(1), &shares);
    let loss = x.cross_entropy(&targets);
    let sum: f64 = (0..rows).map(|i| far[i * n + place(i)]).sum();
    assert_close(&loss, &[-sum / rows as f64]);
    loss.backward().unwrap();
    let slope = |at: usize| shares[at] - f64::from(at % n == place(at / n));
    let slopes: Vec<f64> = (0..rows * n).map(|at| slope(at) / rows as f64).collect();
    assert_close(&x.grad().unwrap(), &slopes);

    let weights = ramp(&[rows, n]).flip(0).flip(1);
    let w = weights.to_vec();
    let of_row = |at: usize| at / n * n..(at / n + 1) * n;
    let gradient = |y: Tensor<f64>| {
        x.clear_grad();
        (y * &weights).sum().backward().unwrap();
        x.grad().unwrap()
    };
    let dot = |at: usize| of_row(at).map(|i| shares[i] * w[i]).sum::<f64>();
    let of_shares: Vec<f64> = (0..rows * n).map(|i| shares[i] * (w[i] - dot(i))).collect();
    assert_close(&gradient(x.softmax(1)), &of_shares);
    let total = |at: usize| w[of_row(at)].iter().sum::<f64>();
    let of_logs: Vec<f64> = (0..rows * n).map(|i| w[i] - shares[i] * total(i)).collect();
    assert_close(&gradient(x.log_softmax(1)), &of_logs);
}

#[test]
fn a_row_alone_is_the_same_as_among_others() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let special = [[nan, 0.0, 1.0], [inf, 0.0, 1.0], [-inf, -inf, -inf], [-inf, 0.5, 800.0]];
    let rows: Vec<f64> =
        (0..20).flat_map(|i| special.get(i % 7).copied().unwrap_or([1.0; 3])).collect();
    for level in levels() {
        with_level(level, || {
            let x = Tensor::from_vec([20, 3], rows.clone()).unwrap();
            for op in [Tensor::softmax, Tensor::log_softmax] as [fn(&Tensor<f64>, isize) -> _; 2] {
                let all: Vec<f64> = op(&x, 1).to_vec();
                let alone = (0..20).flat_map(|i| op(&x.narrow(0, i, 1), 1).to_vec());
                for (i, (found, expected)) in all.into_iter().zip(alone).enumerate() {
                    let same = found == expected || found.is_nan() && expected.is_nan();
                    assert!(same, "{level:?} {i}: {found}, alone {expected}");
                }
            }
            let targets = Tensor::zeros([20]);
            assert!(x.cross_entropy(&targets).item().is_nan());
            let plain = x.narrow(0, 4, 3);
            let plain = Tensor::concat(&[&plain, &plain], 0);
            assert_close(&plain.cross_entropy(&Tensor::zeros([6])), &[3_f64.ln()]);
        });
    }
}
