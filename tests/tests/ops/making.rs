//! Tensors from ranges, rows and samples, and invalid indices: cases without reference results of NumPy.

use std::panic::{AssertUnwindSafe, catch_unwind};

use autograd_core::{Ellipsis, Generator, IntoIndex, NewAxis, Step, Tensor};

fn words<R>(run: impl FnOnce() -> R) -> String {
    let error = catch_unwind(AssertUnwindSafe(run)).err().expect("a panic");
    error.downcast_ref::<String>().expect("a message").clone()
}

#[test]
fn an_index_that_does_not_fit_is_told_with_its_axis() {
    let x = Tensor::<f64>::zeros([2, 3]);
    let wrong = |index: &dyn Fn(&Tensor<f64>) -> autograd_core::Result<Tensor<f64>>| {
        index(&x).unwrap_err().to_string()
    };
    for (found, expected) in [
        (wrong(&|x| x.try_i((.., 3))), "i: the index of axis 1 is 3, outside an axis of length 3"),
        (wrong(&|x| x.try_i(-3)), "i: the index of axis 0 is -3, outside an axis of length 2"),
        (
            wrong(&|x| x.try_i((NewAxis, .., &Tensor::from([0, 5])))),
            "i: the index of axis 1 is 5, outside an axis of length 3",
        ),
        (
            wrong(&|x| x.try_i((.., 2..4))),
            "i: the index must be a range with a step of 1 or more inside axis 1, which has length 3, found 2..4",
        ),
        (
            wrong(&|x| x.try_i((.., Step(..=3, 2)))),
            "i: the index must be a range with a step of 1 or more inside axis 1, which has length 3, found \
             ..=3 by steps of 2",
        ),
        (
            wrong(&|x| x.try_i(Step(.., 0))),
            "i: the index must be a range with a step of 1 or more inside axis 0, which has length 2, found .. \
             by steps of 0",
        ),
        (
            wrong(&|x| x.try_i((1..3, ..))),
            "i: the index must be a range with a step of 1 or more inside axis 0, which has length 2, found 1..3",
        ),
        (
            wrong(&|x| x.try_i((0, 1, 2))),
            "i: expected 2 axes of the shape [2, 3], or fewer, in the index, found 3",
        ),
        (
            wrong(&|x| x.try_i((Ellipsis, Ellipsis))),
            "i: expected 1 or no ellipsis in the index, found 2",
        ),
        (
            wrong(&|x| x.try_i((.., &Tensor::from([true, false])))),
            "i: the mask of axis 1 and on must be of shape [3], as these axes are, found shape [2]",
        ),
        (
            wrong(&|x| x.try_i((&Tensor::from([0, 1]), &Tensor::from([0, 1, 2])))),
            "i: shapes [2] and [3] cannot be broadcast together",
        ),
        (
            wrong(&|x| x.try_index_put(0, Tensor::zeros([2]), false)),
            "index_put: `elements` must be of a shape that is broadcast to [3], that of the part, found shape [2]",
        ),
        (
            wrong(&|x| x.try_index_put(0, Tensor::zeros([1, 3]), true)),
            "index_put: `elements` must be of a shape that is broadcast to [3], that of the part, found shape [1, 3]",
        ),
    ] {
        assert_eq!(found, expected);
    }
    assert_eq!(
        words(|| x.slice_assign(2, 0.0)),
        "slice_assign: the index of axis 0 is 2, outside an axis of length 2"
    );
}

#[test]
fn an_index_takes_tensors_of_every_type_and_numbers_of_every_width() {
    let x = Tensor::from([[true, false], [false, false]]);
    assert_eq!(x.i((.., 0)).to_vec(), [true, false]);
    assert_eq!(x.i(&Tensor::from([1, 0])).to_vec(), [false, false, true, false]);
    assert_eq!(x.i(&x).to_vec(), [true]);
    let part = |index: (usize, std::ops::Range<isize>)| Tensor::<u8>::ones([2, 3]).i(index);
    assert_eq!(part((1_usize, -3..-1)).to_vec(), [1, 1]);
    assert_eq!(Tensor::<i32>::arange(5).i(1_i64..=3).to_vec(), [1, 2, 3]);
    fn first<I: IntoIndex>(x: &Tensor<f32>, index: I) -> f32 {
        x.i(index).to_vec()[0]
    }
    assert_eq!(first(&Tensor::arange(4), u32::BITS as usize / 16..), 2.0);
    assert_eq!(Tensor::from(2.5).i(NewAxis).shape(), [1]);
}

#[test]
fn rows_become_a_tensor_or_say_which_one_differs() {
    let x = Tensor::from([[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]]]);
    assert_eq!((x.shape(), x.to_vec()[11]), (&[3, 2, 2][..], 12));
    assert_eq!(Tensor::from([[[[1.0]], [[2.0]]]]).shape(), [1, 2, 1, 1]);
    let rows = vec![vec![1.0, 2.0], vec![3.0, 4.0]];
    assert_eq!(Tensor::from(rows.clone()).i((1, 0)).item(), 3.0);
    assert_eq!(Tensor::from(vec![rows.clone(), rows]).shape(), [2, 2, 2]);
    assert_eq!(Tensor::from(vec![[1_u8, 2, 3]]).shape(), [1, 3]);
    assert_eq!(Tensor::<f32>::from(Vec::<Vec<f32>>::new()).shape(), [0]);
    assert_eq!(
        words(|| Tensor::from(vec![vec![1.0, 2.0], vec![3.0]])),
        "from: `rows[1]` must be of shape [2], as the first is, found shape [1]"
    );
}

#[test]
fn sums_of_iterators() {
    let parts = [Tensor::from([1.0, 2.0]), Tensor::from(10.0)];
    assert_eq!(parts.iter().sum::<Tensor<f64>>().to_vec(), [11.0, 12.0]);
    assert_eq!(parts.into_iter().sum::<Tensor<f64>>().to_vec(), [11.0, 12.0]);
    assert_eq!([0_i64; 0].map(Tensor::from).iter().sum::<Tensor<i64>>().to_vec(), [0]);
}

#[test]
fn a_generator_makes_tensors_and_goes_on_behind_them() {
    let draw = || Tensor::<f64>::rand([3]).to_vec();
    let mut one = Generator::new(7);
    let mut other = one.clone();
    let first = one.run(draw);
    let inner = one.run(|| (Generator::new(7).run(draw), draw()));
    assert_eq!(inner.0, first);
    assert_eq!(other.run(|| [draw(), draw()]), [first.clone(), inner.1]);
    let failed = catch_unwind(AssertUnwindSafe(|| {
        one.run(|| {
            draw();
            panic!("on purpose")
        })
    }));
    assert!(failed.is_err());
    other.run(draw);
    assert_eq!(one.run(draw), other.run(draw));
    // The code around draws from its own generator.
    let mut around = Generator::new(7);
    assert_eq!(around.run(|| (one.run(draw), draw())).1, first);
}

#[test]
fn samples_have_the_shares_that_were_asked_for() {
    let mut generator = Generator::new(3);
    let p = Tensor::<f32>::full([2000], 0.25);
    let ones = generator.run(|| p.bernoulli()).sum().item();
    assert!((ones - 500.0).abs() < 90.0, "{ones}");
    let weights = Tensor::from([[1.0, 0.0, 3.0], [f64::MAX, f64::MAX, 0.0]]);
    let drawn = generator.run(|| weights.multinomial(4000, true));
    for (row, [share, absent, other]) in [(0, [1000.0, 1.0, 2.0]), (1, [2000.0, 2.0, 1.0])] {
        let row = drawn.i(row);
        let count = |class: i64| row.eq_scalar(class).cast::<f64>().sum().item();
        assert!((count(0) - share).abs() < 130.0, "{}", count(0));
        assert_eq!(count(absent as i64), 0.0);
        assert_eq!(count(other as i64), 4000.0 - count(0));
    }
    let drawn = generator.run(|| Tensor::from([0.5, 0.0, 2.0, 1.0]).multinomial(3, false));
    let mut drawn = drawn.to_vec();
    drawn.sort_unstable();
    assert_eq!(drawn, [0, 2, 3]);
    assert_eq!(Tensor::<f32>::zeros([0, 3]).multinomial(2, true).shape(), [0, 2]);
}

#[test]
fn samples_of_what_is_no_distribution() {
    assert_eq!(
        words(|| Tensor::from([0.5, 1.5]).bernoulli()),
        "bernoulli: the tensor must be of probabilities, 0 to 1, found 1.5"
    );
    let nan = f64::NAN;
    for (found, expected) in [
        (
            words(|| Tensor::<f64>::uniform([2], 1.0, 0.5)),
            "uniform: `low` must be at most `high`, 0.5, at a finite distance, found 1",
        ),
        (
            words(|| Tensor::<f32>::uniform([2], 1.0, nan)),
            "uniform: `low` must be at most `high`, NaN, at a finite distance, found 1",
        ),
        (
            words(|| Tensor::<f64>::normal([2], 0.0, -1.0)),
            "normal: `std` must be 0 or more, and finite, found -1",
        ),
        (
            words(|| Tensor::<f32>::normal([2], 0.0, nan)),
            "normal: `std` must be 0 or more, and finite, found NaN",
        ),
    ] {
        assert_eq!(found, expected);
    }
    for (weights, count, expected) in [
        (vec![1.0, -1.0], 1, "of finite weights of 0 or more, found -1"),
        (vec![1.0, f64::NAN], 1, "of finite weights of 0 or more, found NaN"),
        (vec![0.0, 0.0], 1, "of 1 or more weights above 0 in each row, found 0"),
        (vec![1.0, 0.0], 2, "of 2 or more weights above 0 in each row, found 1"),
        (vec![], 1, "of one weight or more in each row, found none"),
    ] {
        let error = Tensor::from(weights).try_multinomial(count, false).unwrap_err();
        assert_eq!(error.to_string(), format!("multinomial: the tensor must be {expected}"));
    }
}

#[test]
fn steps_that_lead_nowhere() {
    for (run, found) in [
        (words(|| Tensor::<i64>::arange_step(0, 3, 0)), "0 from 0 to 3"),
        (words(|| Tensor::<i64>::arange_step(0, 3, -1)), "-1 from 0 to 3"),
        (words(|| Tensor::<u8>::arange_step(3, 0, 1)), "1 from 3 to 0"),
        (words(|| Tensor::<f64>::arange_step(0.0, 3.0, -1.0)), "-1 from 0 to 3"),
        (words(|| Tensor::<f64>::arange_step(0.0, f64::INFINITY, 1.0)), "1 from 0 to inf"),
        (words(|| Tensor::<f32>::arange_step(0.0, f32::NAN, 1.0)), "1 from 0 to NaN"),
        (words(|| Tensor::<f64>::arange_step(0.0, 1.0, f64::INFINITY)), "inf from 0 to 1"),
    ] {
        let expected = "arange_step: `step` must be a finite step other than 0 that leads from `start` to `end`";
        assert_eq!(run, format!("{expected}, found {found}"));
    }
}

#[test]
fn numbers_that_are_not_finite_make_no_tensor() {
    let wrong = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let makers: [(&str, fn(f64, f64, f64) -> Tensor<f32>); 4] = [
        ("arange_step", |a, b, c| Tensor::arange_step(a as f32, b as f32, c as f32)),
        ("linspace", |a, b, _| Tensor::linspace(a, b, 3)),
        ("uniform", |a, b, _| Tensor::uniform([3], a, b)),
        ("normal", |a, b, _| Tensor::normal([3], a, b)),
    ];
    for (name, make) in makers {
        assert!(make(0.0, 2.0, 1.0).to_vec().iter().all(|x| x.is_finite()), "{name}");
        for x in wrong {
            for numbers in [[x, 2.0, 1.0], [0.0, x, 1.0], [x, x, 1.0], [0.0, 2.0, x]] {
                if numbers[2] != 1.0 && name != "arange_step" {
                    continue;
                }
                let message = words(|| make(numbers[0], numbers[1], numbers[2]));
                assert!(message.starts_with(name), "{name} of {numbers:?}: {message}");
            }
        }
    }
    for name in ["linspace", "uniform"] {
        let make: fn() -> Tensor<f64> = match name {
            "linspace" => || Tensor::linspace(-f64::MAX, f64::MAX, 3),
            _ => || Tensor::uniform([3], -f64::MAX, f64::MAX),
        };
        assert!(words(make).starts_with(name));
    }
}

#[test]
fn weights_of_every_size_are_drawn_without_replacement() {
    let mut generator = Generator::new(5);
    let tiny = f64::MIN_POSITIVE / 4.0;
    let drawn =
        generator.run(|| Tensor::from([1e308, 1e-308, 0.0, tiny]).try_multinomial(3, false));
    let mut drawn = drawn.unwrap().to_vec();
    drawn.sort_unstable();
    assert_eq!(drawn, [0, 1, 3]);
    let two = generator.run(|| Tensor::from([1e38_f32, 1e-45]).multinomial(2, false));
    assert_eq!(two.to_vec(), [0, 1]);
    // The second draw of each row is between the small weights, by their shares.
    let rows = Tensor::from([1e308, 1e-308, 3e-308]).broadcast_to([4000, 3]);
    let second = generator.run(|| rows.multinomial(2, false)).i((.., 1));
    let count = second.eq_scalar(2).cast::<f64>().sum().item();
    assert!((count - 3000.0).abs() < 130.0, "{count}");
}

#[test]
fn an_empty_axis_has_as_many_parts_as_were_asked_for() {
    let parts = Tensor::<f64>::zeros([2, 0]).chunk(3, 1);
    assert_eq!(parts.iter().map(Tensor::shape).collect::<Vec<_>>(), [[2, 0]; 3]);
}

#[test]
fn an_error_has_the_name_that_was_called() {
    let (x, mask) = (Tensor::from([1, 2]), Tensor::from([true, false, true]));
    for (found, expected) in [
        (words(|| Tensor::where_(&mask, &x, 0)), "where_: "),
        (
            words(|| Tensor::from([i32::MAX]).index_put(0, 1, true)),
            "index_put: a result of 2147483648",
        ),
    ] {
        assert!(found.starts_with(expected), "{found}");
    }
}
