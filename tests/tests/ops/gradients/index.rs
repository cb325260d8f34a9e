//! Selection by index.

use autograd_core::{IndexReduction, Tensor};

use crate::run::REDUCTIONS;

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
fn writing_over_and_groups() {
    let x = sample(&[3, 4], 0.5, 2.0);
    let index = Tensor::from([[0, 3, 3], [1, 1, 1]]);
    let source = sample(&[2, 3], 0.5, 2.0);
    let put = |t: &[Tensor<f64>]| t[0].square().scatter(1, &index, &t[1].square());
    check("scatter", put, &[x.clone(), source]);
    let rows = Tensor::from([2, 0, 2]);
    check("segment_sum", |t| t[0].square().segment_sum(&rows, 4).square(), &[x.clone()]);
    check("repeat_interleave", |t| t[0].repeat_interleave(3, -1).cumsum(1).square(), &[x.clone()]);
    let source = sample(&[3, 4], 0.6, 2.1);
    let counts = Tensor::from([2, 0, 3]);
    let repeated = |t: &[Tensor<f64>]| t[0].repeat_interleave_with_counts(&counts, 0).square();
    check("repeat_interleave_with_counts", repeated, &[x.clone()]);
    for how in REDUCTIONS {
        let reduced = |t: &[Tensor<f64>]| t[0].index_reduce(0, &rows, &t[1], how).square();
        check("index_reduce", reduced, &[x.clone(), source.clone()]);
    }
    check("cdist", |t| t[0].cdist(&t[1]), &[x, sample(&[2, 4], 2.1, 3.0)]);
}

#[test]
fn ties_and_nan_of_extremes_by_index() {
    let x = Tensor::from([1.0, 5.0, f64::NAN, 0.0]);
    let source = Tensor::from([5.0, 5.0, 7.0, -1.0]);
    let index = Tensor::from([1, 1, 2, 3]);
    [&x, &source].into_iter().for_each(|x| x.set_stop_gradient(false));
    let y = x.index_reduce(0, &index, &source, IndexReduction::Max);
    assert_eq!(format!("{:?}", y.to_vec()), "[1.0, 5.0, NaN, 0.0]");
    (y * Tensor::from([1.0, 3.0, 1.0, 1.0])).sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [1.0, 1.0, 1.0, 1.0]);
    assert_eq!(source.grad().unwrap().to_vec(), [1.0, 1.0, 0.0, 0.0]);
}

#[test]
fn products_by_index_have_gradients_at_zeros() {
    let (x, index) = (Tensor::from([0.0, 2.0, 3.0]), Tensor::from([0, 1, 0, 1, 1]));
    let source = Tensor::from([5.0, 0.0, 7.0, 0.0, 4.0]);
    [&x, &source].into_iter().for_each(|x| x.set_stop_gradient(false));
    let y = x.index_reduce(0, &index, &source, IndexReduction::Prod);
    assert_eq!(y.to_vec(), [0.0, 0.0, 3.0]);
    y.sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [35.0, 0.0, 1.0]);
    assert_eq!(source.grad().unwrap().to_vec(), [0.0; 5]);
    let at_one_zero = Tensor::from([5.0, 0.0, 7.0, 3.0, 4.0]);
    let product = |t: &[Tensor<f64>]| t[0].index_reduce(0, &index, &t[1], IndexReduction::Prod);
    check("index_reduce", product, &[x.detach(), at_one_zero]);
    let none = Tensor::<f64>::zeros([0]);
    let same = x.index_reduce(0, &Tensor::<i64>::zeros([0]), &none, IndexReduction::Prod);
    assert_eq!(same.to_vec(), x.to_vec());
}

#[test]
fn counts_of_repeats_are_checked() {
    let x = Tensor::<f64>::zeros([2, 0]);
    let error = |counts: [i64; 2]| {
        x.try_repeat_interleave_with_counts(&Tensor::from(counts), 0).unwrap_err().to_string()
    };
    let named = "repeat_interleave_with_counts: ";
    let negative = "`counts` must be of numbers from 0, found -1";
    assert_eq!(error([1, -1]), format!("{named}{negative}"));
    assert!(error([i64::MAX, i64::MAX]).starts_with(named));
    let too_long = x.try_repeat_interleave_with_counts(&Tensor::from([1, 1, 1]), 0).unwrap_err();
    let expected = "`counts` must be of shape [2], one count for each slice, found shape [3]";
    assert_eq!(too_long.to_string(), format!("{named}{expected}"));
}

/// Of several for one element the last along the axis counts, whatever the layout.
#[test]
fn the_last_of_equal_indices_is_written() {
    let x = Tensor::<f64>::zeros([2, 3]);
    let source = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    source.set_stop_gradient(false);
    for (axis, index, expected, grad) in [
        (
            1,
            Tensor::from([[0, 0, 2], [1, 1, 1]]),
            [2.0, 0.0, 3.0, 0.0, 6.0, 0.0],
            [0.0, 1.0, 1.0, 0.0, 0.0, 1.0],
        ),
        (
            0,
            Tensor::from([[0, 1, 1], [0, 1, 0]]),
            [4.0, 0.0, 6.0, 0.0, 5.0, 3.0],
            [0.0, 0.0, 1.0, 1.0, 1.0, 1.0],
        ),
    ] {
        let y = x.scatter(axis, &index, &source);
        assert_eq!(y.to_vec(), expected);
        y.sum().backward().unwrap();
        assert_eq!(source.grad().unwrap().to_vec(), grad);
        source.clear_grad();
        let columns = |x: &Tensor<f64>| x.transpose().copy().transpose();
        assert_eq!(columns(&x).scatter(axis, &index, &columns(&source)).to_vec(), expected);
    }
}

#[test]
fn distinct_elements_and_places() {
    let (values, inverse, counts) = Tensor::from([[2.0, f64::NAN], [-0.0, 0.0]]).unique();
    assert_eq!(format!("{:?}", values.to_vec()), "[-0.0, 2.0, NaN]");
    assert_eq!((inverse.shape(), inverse.to_vec()), (&[2, 2][..], vec![1, 2, 0, 0]));
    assert_eq!(counts.to_vec(), [2, 1, 1]);
    let none = Tensor::<f64>::zeros([0]).unique();
    assert_eq!([none.0.len(), none.1.len(), none.2.len()], [0; 3]);
    assert_eq!(Tensor::<i64>::zeros([0]).bincount(2).to_vec(), [0, 0]);
    for wrong in [-1, i64::MAX] {
        let call = || Tensor::<i64>::from([wrong]).bincount(0);
        let words = std::panic::catch_unwind(call).unwrap_err().downcast::<String>().unwrap();
        assert!(words.starts_with("bincount: "), "{words}");
    }
    let sorted = Tensor::from([1.0, 2.0, f64::NAN]);
    let values = Tensor::from([f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
    assert_eq!(sorted.searchsorted(&values, false).to_vec(), [2, 2, 0]);
    assert_eq!(sorted.searchsorted(&values, true).to_vec(), [3, 2, 0]);
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
