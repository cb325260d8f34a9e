//! Picking by index.

use autograd_core::Tensor;

use super::{check, check_layouts, sample};

#[test]
fn gathering_and_adding_back() {
    let x = sample(&[3, 4], 0.5, 2.0);
    let index = Tensor::from([[0, 3, 3], [1, 1, 1]]);
    for x in [x.clone(), sample(&[4, 3], 0.5, 2.0).transpose()] {
        check("gather", |t| t[0].gather(1, &index).square(), &[x.clone()]);
        check("gather", |t| t[0].square().gather(-2, &Tensor::from([[2, 0, 2, 2]])), &[x.clone()]);
        let source = sample(&[2, 3], 0.5, 2.0);
        let add = |t: &[Tensor<f64>]| t[0].scatter_add(1, &index, &t[1]).square();
        check("scatter_add", add, &[x.clone(), source.clone()]);
        check("scatter_add", add, &[x, sample(&[3, 2], 0.5, 2.0).transpose()]);
    }
    let none = Tensor::<i64>::zeros([0, 4]);
    check("gather of nothing", |t| t[0].gather(0, &none).square(), &[x]);
}

#[test]
fn selecting_slices() {
    for index in [Tensor::from([2, 0, 2, 1]), Tensor::zeros([0])] {
        for axis in [0, 1, -1] {
            let x = sample(&[3, 4, 3], 0.5, 2.0);
            check("index_select", |t| t[0].index_select(axis, &index).square(), &[x.clone()]);
            let permuted = x.permute(&[2, 1, 0]);
            check(
                "index_select",
                |t| t[0].index_select(axis, &index).square(),
                &[permuted.clone()],
            );
            let mut shape = x.shape().to_vec();
            shape[axis.rem_euclid(3) as usize] = index.len();
            let source = sample(&shape, 0.5, 2.0);
            let add = |t: &[Tensor<f64>]| t[0].index_add(axis, &index, &t[1]).square();
            check("index_add", add, &[permuted, source]);
        }
    }
}

#[test]
fn running_sums() {
    let f = |x: &Tensor<f64>| if x.ndim() == 0 { x.clone() } else { x.cumsum(-1).square() };
    check_layouts("cumsum", f, 0.5, 1.5);
    check("cumsum", |t| t[0].cumsum(1).exp(), &[sample(&[2, 3, 2], -1.0, 1.0)]);
    check("cumsum", |t| t[0].cumsum(0).exp(), &[sample(&[2, 3, 2], -1.0, 1.0)]);
}
