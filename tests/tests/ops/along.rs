//! Ops along axes against ndarray, on shapes for every case of their loops, with one thread and with more.

use autograd_core::{Tensor, with_num_threads, with_threads_awake};
use ndarray::{Array, Array3, ArrayD, Axis, IxDyn};

/// One element, rows, groups of rows, slices; more than a thread takes at once.
const SHAPES: [[usize; 3]; 14] = [
    [0, 3, 2],
    [1, 1, 1],
    [1, 5, 1],
    [3, 5, 1],
    [8, 4, 1],
    [17, 3, 1],
    [2, 3, 4],
    [1, 4, 7],
    [5, 1, 2],
    [40, 1000, 1],
    [1, 50_000, 1],
    [3, 40, 300],
    [1, 2, 20_000],
    [7, 100, 500],
];

/// Small integers: every sum is exact.
fn numbers(shape: [usize; 3]) -> Array3<f64> {
    let number = |i: usize| (i * 31 % 101) as f64 - 40.0;
    Array::from_iter((0..shape.iter().product()).map(number)).into_shape_with_order(shape).unwrap()
}

#[track_caller]
fn assert_same<D: ndarray::Dimension>(run: impl Fn() -> Tensor<f64>, right: Array<f64, D>) {
    for threads in [1, 3] {
        let found = with_num_threads(threads, || with_threads_awake(&run));
        assert!(found.to_ndarray() == right.view().into_dyn(), "{:?}", right.shape());
    }
}

#[test]
fn elements_are_picked_and_added_back() {
    for shape @ [outer, n, inner] in SHAPES {
        for m in [1, n, n + 3] {
            let array = numbers(shape);
            let x = Tensor::from(array.clone());
            let list: Vec<usize> = (0..m).map(|i| i * 7919 % n).collect();
            let places = Array::from_shape_fn((outer, m, inner), |(o, j, k)| {
                ((o * m + j) * inner + k) * 7919 % n
            });
            let [index, indices] = [
                Tensor::from(list.iter().map(|&i| i as i64).collect::<Vec<_>>()),
                Tensor::from(places.mapv(|i| i as i64).into_dyn()),
            ];
            let source = numbers([outer, m, inner]);
            let (mut added, mut scattered) = (array.clone(), array.clone());
            for ((o, j, k), &from) in source.indexed_iter() {
                added[[o, list[j], k]] += from;
                scattered[[o, places[[o, j, k]], k]] += from;
            }
            let source = Tensor::from(source);
            assert_same(|| x.index_select(1, &index), array.select(Axis(1), &list));
            assert_same(|| x.index_add(1, &index, &source), added);
            let gathered = Array::from_shape_fn(places.raw_dim(), |(o, j, k)| {
                array[[o, places[[o, j, k]], k]]
            });
            assert_same(|| x.gather(1, &indices), gathered);
            assert_same(|| x.scatter_add(1, &indices, &source), scattered);
        }
    }
}

#[test]
fn elements_are_reversed_and_summed_up() {
    for shape in SHAPES {
        let (mut array, x) = (numbers(shape), Tensor::from(numbers(shape)));
        array.invert_axis(Axis(1));
        assert_same(|| x.flip(1), array.clone());
        let mut sums = numbers(shape);
        sums.accumulate_axis_inplace(Axis(1), |&before, sum| *sum += before);
        assert_same(|| x.cumsum(1), sums);
        // The gradient sums from the end.
        array.accumulate_axis_inplace(Axis(1), |&before, sum| *sum += before);
        array.invert_axis(Axis(1));
        let gradient = || {
            let leaf = Tensor::<f64>::zeros(shape);
            leaf.set_stop_gradient(false);
            leaf.cumsum(1).backward_with(&x).unwrap();
            leaf.grad().unwrap()
        };
        assert_same(gradient, array);
    }
}

#[test]
fn the_best_is_found_where_it_is_first() {
    for shape in SHAPES {
        for nan in [usize::MAX, 97, 5] {
            let mut array = numbers(shape).mapv(|x| match x as i64 + 40 {
                0 => f64::NEG_INFINITY,
                1 => -0.0,
                place => (place / 7) as f64 - 7.0,
            });
            array.iter_mut().skip(nan - 1).step_by(nan).for_each(|x| *x = f64::NAN);
            let better = |x: f64, best: f64| !best.is_nan() && (x > best || x.is_nan());
            let best = array.map_axis(Axis(1), |row| {
                (0..row.len()).fold(0, |best, k| if better(row[k], row[best]) { k } else { best })
                    as f64
            });
            let x = Tensor::from(array);
            assert_same(|| x.argmax(1).cast(), best);
        }
    }
}

#[test]
fn sums_and_extremes_along_any_axes() {
    let long = [[1, 3, 100_003], [3, 50_000, 5], [1, 300, 3000], [1, 1, 327_757]];
    for shape in SHAPES.into_iter().chain(long) {
        let array = numbers(shape);
        for x in [Tensor::from(array.clone()), Tensor::from(7.0).broadcast_to(shape)] {
            for axes in [&[0][..], &[1], &[2], &[0, 1], &[1, 2], &[0, 2], &[0, 1, 2]] {
                let along: Vec<isize> = axes.iter().map(|&axis| axis as isize).collect();
                let mut sums = x.to_ndarray();
                for &axis in axes.iter().rev() {
                    sums = sums.sum_axis(Axis(axis));
                }
                assert_same(|| x.sum_axes(&along[..]), sums);
                if !x.is_empty() {
                    let most = |a: f64, b: &f64| a.max(*b);
                    let mut greatest = x.to_ndarray();
                    for &axis in axes.iter().rev() {
                        greatest = greatest.fold_axis(Axis(axis), -99.0, |a, b| most(*a, b));
                    }
                    assert_same(|| x.max_axes(&along[..]), greatest);
                }
            }
        }
    }
}

#[test]
fn sums_are_accurate_and_the_same_on_any_number_of_threads() {
    for shape in [[1, 3, 100_003], [7, 100, 500], [3, 50_000, 5], [1, 300, 3000], [1, 1, 327_757]] {
        let len = shape.iter().product();
        let sines: Vec<f32> = (0..len).map(|i| (i as f32 * 0.37).sin()).collect();
        let x = Tensor::from_vec(shape, sines).unwrap();
        for axes in [&[0][..], &[1], &[2], &[0, 1], &[1, 2], &[0, 2], &[0, 1, 2]] {
            let sums = || x.sum_axes(axes).to_vec();
            let one = with_num_threads(1, sums);
            assert_eq!(with_num_threads(3, sums), one);
            assert_eq!(with_num_threads(3, || with_threads_awake(sums)), one);
            for (found, exact) in one.into_iter().zip(x.cast::<f64>().sum_axes(axes).to_vec()) {
                let tolerance = 1e-6 * (exact.abs() + (len as f64).sqrt());
                assert!((f64::from(found) - exact).abs() < tolerance, "{found} {exact}");
            }
        }
    }
}

/// Copies of strided data: whole tiles, parts of tiles, and data that is not tiled.
#[test]
fn axes_in_any_order() {
    let shapes: [&[usize]; 10] = [
        &[300, 20],
        &[256, 128],
        &[40, 512],
        &[3, 270, 17],
        &[260, 3, 35],
        &[2, 40, 3, 128],
        // One position of the first axis has more elements than a thread takes at once.
        &[300, 64, 16],
        &[2, 300, 64],
        &[700],
        &[5, 7, 3],
    ];
    fn check<T: autograd_core::Element>(shape: &[usize], number: impl Fn(usize) -> T) {
        let elements = (0..shape.iter().product()).map(number).collect();
        let array = ArrayD::from_shape_vec(IxDyn(shape), elements).unwrap();
        let x = Tensor::from(array.clone());
        for (first, last) in (0..shape.len()).flat_map(|i| (0..shape.len()).map(move |k| (i, k))) {
            let mut order: Vec<usize> = (0..shape.len()).collect();
            order.swap(0, first);
            order.swap(shape.len() - 1, last);
            let axes: Vec<isize> = order.iter().map(|&axis| axis as isize).collect();
            for (step, left) in [(1, 0), (1, 3), (2, 1)] {
                let n = shape[order[0]];
                let end = n - left.min(n - 1);
                let mut right = array.view().permuted_axes(&order[..]);
                right.slice_axis_inplace(Axis(0), ndarray::Slice::new(0, Some(end as isize), step));
                let moved = x.permute(&axes).slice_axis(0, 0, end, step as usize);
                for threads in [1, 3] {
                    let found = with_num_threads(threads, || moved.contiguous().to_ndarray());
                    assert!(found == right, "{shape:?} {order:?} {step}");
                }
            }
        }
    }
    for shape in shapes {
        check(shape, |i| i as f32);
        check(shape, |i| i as f64);
        check(shape, |i| i as i64);
        check(shape, |i| i as u8);
        check(shape, |i| i % 3 == 0);
    }
}
