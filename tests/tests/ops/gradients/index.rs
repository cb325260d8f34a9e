//! Selection by index.

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

#[test]
fn strided_operands_are_picked_from_as_they_are_seen() {
    let x = Tensor::<f64>::arange(24).reshape([4, 6]).transpose();
    let index = Tensor::from([[0, 3, 1], [2, 2, 0]]).transpose();
    let picked = x.narrow(0, 0, 3).gather(1, &index);
    assert_eq!(picked.shape(), [3, 2]);
    assert_eq!(picked.to_vec(), [0.0, 12.0, 19.0, 13.0, 8.0, 2.0]);
    assert_eq!(x.index_select(1, &Tensor::from([3, 3])).at(&[5, 1]), 23.0);
}

#[test]
fn no_index_picks_nothing() {
    let x = Tensor::<f32>::zeros([2, 3]);
    let none = Tensor::<i64>::zeros([0]);
    assert_eq!(x.index_select(1, &none).shape(), [2, 0]);
    assert_eq!(x.index_add(1, &none, &Tensor::zeros([2, 0])).len(), 6);
    assert_eq!(x.gather(0, &Tensor::zeros([0, 3])).shape(), [0, 3]);
    assert_eq!(Tensor::<f32>::zeros([0]).cumsum(0).shape(), [0]);
}
