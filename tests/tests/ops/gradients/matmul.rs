//! Matrix products.

use autograd_core::Tensor;

use super::{check, sample};

const SHAPES: &[(&[usize], &[usize])] = &[
    (&[3], &[3]),
    (&[2, 3], &[3]),
    (&[3], &[3, 4]),
    (&[2, 3], &[3, 4]),
    (&[1, 1], &[1, 1]),
    (&[5, 2, 3], &[3, 4]),
    (&[2, 3], &[5, 3, 4]),
    (&[5, 2, 3], &[5, 3, 4]),
    (&[5, 2, 3], &[1, 3, 4]),
    (&[2, 1, 2, 3], &[4, 3, 2]),
    (&[3], &[5, 3, 4]),
    (&[3], &[2, 2, 3, 4]),
    (&[5, 2, 3], &[3]),
    (&[2, 2, 2, 3], &[3]),
    (&[0, 3], &[3, 2]),
    (&[2, 0], &[0, 3]),
    (&[2, 3], &[3, 0]),
    (&[0], &[0]),
    (&[0], &[0, 2]),
    (&[0, 2, 3], &[3, 4]),
    (&[0, 2, 3], &[3]),
    (&[3], &[0, 3, 2]),
];

#[test]
fn every_pair_of_shapes() {
    for &(left, right) in SHAPES {
        let inputs = [sample(left, -1.0, 1.0), sample(right, -1.0, 1.0)];
        check("matmul", |t| t[0].matmul(&t[1]), &inputs);
    }
}

#[test]
fn operands_in_other_layouts() {
    let (a, b) = (sample(&[3, 4], -1.0, 1.0), sample(&[5, 4], -1.0, 1.0));
    check("a bᵀ", |t| t[0].matmul(&t[1].transpose()), &[a.clone(), b.clone()]);
    check("a bᵀ", |t| t[0].matmul(&t[1]), &[a.clone(), b.transpose()]);
    check("aᵀ a", |t| t[0].transpose().matmul(&t[0]), &[a.clone()]);
    let broadcast = sample(&[1, 4], -1.0, 1.0).broadcast_to([3, 4]);
    check("broadcast", |t| t[0].matmul(&t[1].transpose()), &[broadcast.clone(), b.clone()]);
    check("broadcast", |t| t[1].matmul(&t[0].transpose()), &[broadcast, b]);
    let sliced = sample(&[9, 8], -1.0, 1.0).slice_axis(0, 0, 9, 3).slice_axis(1, 1, 8, 2);
    check("sliced", |t| t[0].matmul(&t[0].transpose()).sum(), &[sliced]);
    let stack = sample(&[3, 4, 2], -1.0, 1.0).permute(&[2, 0, 1]);
    check("permuted stack", |t| t[0].transpose().matmul(&t[0]), &[stack]);
    let diagonal = Tensor::<f64>::eye(4);
    check("identity", |t| t[0].matmul(&diagonal).square(), &[a]);
}

#[test]
fn outer_products() {
    let inputs = [sample(&[3], -1.0, 1.0), sample(&[4], -1.0, 1.0)];
    check("outer", |t| t[0].outer(&t[1]), &inputs);
}

#[test]
fn vectors_of_any_length() {
    for n in [1, 2, 7, 8, 31, 64, 65, 1000, 100_003] {
        let inputs = [sample(&[n], -1.0, 1.0), sample(&[n], 0.5, 2.0)];
        let [a, b] = &inputs;
        inputs.iter().for_each(|x| x.set_stop_gradient(false));
        let y = a.matmul(b);
        let right: f64 = a.to_vec().iter().zip(b.to_vec()).map(|(a, b)| a * b).sum();
        assert!((y.item() - right).abs() < 1e-9, "{n}");
        (y * 3.0).backward().unwrap();
        for (x, other) in [(a, b), (b, a)] {
            let dx = x.grad().unwrap().to_vec();
            assert!(dx.iter().zip(other.to_vec()).all(|(dx, x)| *dx == 3.0 * x), "{n}");
        }
        // Strided columns of matrices.
        let wide =
            |x: &Tensor<f64>| Tensor::stack(&[x, x, x], 1).detach().narrow(1, 1, 1).squeeze(1);
        assert!((wide(a).matmul(&wide(b)).item() - right).abs() < 1e-9, "{n}");
    }
}
