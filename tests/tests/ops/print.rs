//! Tensors as text, against what Paddle prints.

use autograd_core::{Element, Notation, PrintOptions, Tensor};
use support::TANH_GRADIENT;

#[track_caller]
fn check<T: Element>(shape: &[usize], data: &[T], lines: &[&str]) {
    check_by(PrintOptions::new(), shape, data, lines);
}

#[track_caller]
fn check_by<T: Element>(options: PrintOptions, shape: &[usize], data: &[T], lines: &[&str]) {
    assert_eq!(written(options, shape, data).split('\n').collect::<Vec<_>>(), lines);
}

/// The data of a tensor as text, without its header.
fn written<T: Element>(options: PrintOptions, shape: &[usize], data: &[T]) -> String {
    let text = tensor(shape, data).display(options).to_string();
    let (_, text) = text.split_once('\n').unwrap();
    text.strip_suffix(')').unwrap().to_owned()
}

fn tensor<T: Element>(shape: &[usize], data: &[T]) -> Tensor<T> {
    Tensor::from_vec(shape, data.to_vec()).unwrap()
}

fn count(len: i64) -> Vec<i64> {
    (0..len).collect()
}

fn halves(len: u32) -> Vec<f64> {
    (0..len).map(|i| f64::from(i) / 2.0 - 2.0).collect()
}

fn eighths(len: u32) -> Vec<f64> {
    (0..len).map(|i| f64::from(i) / 8.0).collect()
}

fn signed_eighths(len: u32) -> Vec<f64> {
    eighths(len).iter().map(|x| x - 1.0).collect()
}

fn cubes(len: i64) -> Vec<i64> {
    (0..len).map(|i| i.pow(3) * (1 - 2 * ((i + 1) % 2))).collect()
}

fn every(n: usize, len: usize) -> Vec<bool> {
    (0..len).map(|i| i % n == 0).collect()
}

/// The lines of a text in `print.txt`.
#[track_caller]
fn expected(name: &str) -> Vec<&'static str> {
    let mut lines = include_str!("print.txt").lines();
    assert!(lines.any(|line| line.strip_prefix("# ") == Some(name)), "no text of `{name}`");
    let mut text: Vec<_> = lines.take_while(|line| !line.starts_with('#')).collect();
    // A blank line separates two texts.
    if text.last() == Some(&"") {
        text.pop();
    }
    text
}

#[test]
fn the_seed_documents_gradient() {
    assert_eq!(
        tensor(&[2, 3], &TANH_GRADIENT).to_string(),
        "Tensor(shape=[2, 3], dtype=float64, stop_gradient=true,\n\
         [[0.16604150, 0.05858341, 0.14051214],\n \
          [0.15677770, 0.01564609, 0.02991660]])"
    );
}

#[test]
fn the_header_names_shape_dtype_and_stop_gradient() {
    let half = Tensor::from(0.5_f32);
    half.set_stop_gradient(false);
    assert_eq!(
        half.to_string(),
        "Tensor(shape=[], dtype=float32, stop_gradient=false,\n0.50000000)"
    );
    assert_eq!(
        tensor::<bool>(&[2, 0], &[]).to_string(),
        "Tensor(shape=[2, 0], dtype=bool, stop_gradient=true,\n[[],\n []])"
    );
}

#[test]
fn the_precision_of_the_format_string_is_the_number_of_decimals() {
    let data = [0.16604150153159006, 10.0, -2.5];
    let shown = tensor(&[3], &data);
    let last_line = |text: String| text.lines().last().unwrap().to_owned();
    assert_eq!(last_line(format!("{shown:.3}")), "[ 0.166,  10.  , -2.500])");
    assert_eq!(last_line(format!("{shown:.0}")), "[ 0 , 10., -2 ])");
    assert_eq!(
        last_line(format!("{shown:.12}")),
        "[ 0.166041501532,  10.           , -2.500000000000])"
    );
    assert_eq!(last_line(format!("{:.2}", tensor(&[2], &[1_i64, 200]))), "[1  , 200])");
}

#[test]
fn other_flags_of_the_format_string_change_nothing() {
    let data = [1_i32, -2];
    let shown = tensor(&[2], &data);
    assert_eq!(format!("{shown:#>+40}"), shown.to_string());
}

#[test]
fn an_empty_tensor_of_many_rows_is_shown_by_its_edges() {
    check::<i32>(&[1 << 40, 0], &[], &["[[],", " [],", " [],", " ...,", " [],", " [],", " []]"]);
}

#[test]
fn documented_examples() {
    check(&[2], &[1.0_f64, 2.0], &["[1., 2.]"]);
    check(&[2], &[1.0_f64, -2.5], &["[ 1.        , -2.50000000]"]);
    check(&[3], &[100.5_f64, 2.25, -3.125], &["[100.50000000,  2.25000000 , -3.12500000 ]"]);
    check(&[3], &[1e-10_f64, 1.0, 100000.0], &["[0.00000000, 1.        , 100000.   ]"]);
    check(&[3], &[f64::NAN, f64::INFINITY, -1.0], &["[ nan, inf., -1. ]"]);
    check(&[2, 2], &[1_i64, -20, 300, 4], &["[[ 1 , -20],", " [300,  4 ]]"]);
}

#[test]
fn a_row_of_floats_is_as_wide_as_its_longest() {
    check(&[3], &[0.5_f64, 10.0, 200.25], &["[0.50000000  , 10.         , 200.25000000]"]);
    check(&[3], &[-0.5_f64, 10.0, -200.0], &["[-0.50000000,  10.       , -200.      ]"]);
}

#[test]
fn single_precision_shows_the_value_it_holds() {
    check(
        &[4],
        &[0.1_f32, 0.33333334, 1e7, 1e10],
        &["[0.10000000  , 0.33333334  , 10000000.   , 10000000000.]"],
    );
    check(
        &[2],
        &[-0.1_f32, 3.4028235e38],
        &[
            "[-0.10000000                             ,",
            " 340282346638528859811704183484516925440.]",
        ],
    );
    check(&[2], &[1e-45_f32, 0.2], &["[0.00000000, 0.20000000]"]);
}

#[test]
fn decimals_round_half_to_even() {
    check(
        &[3],
        &[0.001953125_f64, 0.005859375, 0.009765625],
        &["[0.00195312, 0.00585938, 0.00976562]"],
    );
    check(
        &[4],
        &[5e-9_f64, 1.5e-8, 0.999999995, 0.9999999951],
        &["[0.00000001, 0.00000001, 1.00000000, 1.00000000]"],
    );
    check(&[1], &[1234567.123456785_f64], &["[1234567.12345678]"]);
}

#[test]
fn special_floats() {
    check(&[2], &[f64::INFINITY, f64::NEG_INFINITY], &["[ inf., -inf.]"]);
    check(&[2], &[f64::NAN, 0.5], &["[nan       , 0.50000000]"]);
    check(&[3], &[f64::NAN, f64::NEG_INFINITY, -0.5], &["[ nan       , -inf.      , -0.50000000]"]);
    check(&[2], &[0.0_f64, -0.0], &["[0. , -0.]"]);
    check(&[2], &[-0.0_f64, -1.5], &["[ -0.       , -1.50000000]"]);
    check(&[2], &[-1e-10_f64, 1.0], &["[-0.00000000,  1.        ]"]);
    check(&[2], &[1e22_f64, -1.5], &["[10000000000000000000000., -1.50000000             ]"]);
    check(&[2], &[f32::INFINITY, 1.0], &["[inf., 1.  ]"]);
}

#[test]
fn integers_are_shown_plainly() {
    check(&[3], &[1_i32, 20, 300], &["[1  , 20 , 300]"]);
    check(&[4], &[-1_i32, 100, -20, 3], &["[-1 , 100, -20,  3 ]"]);
    check(&[2], &[100_i64, -1], &["[100, -1 ]"]);
    check(
        &[2],
        &[-9223372036854775808_i64, 9223372036854775807],
        &["[-9223372036854775808,  9223372036854775807]"],
    );
    check(&[3], &[0_u8, 7, 255], &["[0  , 7  , 255]"]);
    check(&[2, 2], &[1_i32, 2, 3, -4], &["[[ 1,  2],", " [ 3, -4]]"]);
}

#[test]
fn bools_are_shown_as_in_python() {
    check(&[2], &[true, false], &["[True , False]"]);
    check(&[2, 2], &[true, true, false, true], &["[[True , True ],", " [False, True ]]"]);
    check(&[1], &[true], &["[True]"]);
}

#[test]
fn a_scalar_stands_bare() {
    check(&[], &[2.5_f64], &["2.50000000"]);
    check(&[], &[-3.0_f64], &["-3."]);
    check(&[], &[0.1_f32], &["0.10000000"]);
    check(&[], &[7_i64], &["7"]);
    check(&[], &[-7_i32], &["-7"]);
    check(&[], &[true], &["True"]);
    check(&[], &[f64::NAN], &["nan"]);
}

#[test]
fn empty_tensors_show_their_brackets() {
    check(&[0], &[0.0_f64; 0], &["[]"]);
    check(&[2, 0], &[0.0_f64; 0], &["[[],", " []]"]);
    check(&[0, 2], &[0.0_f64; 0], &["[]"]);
    check(&[3, 0, 3], &[0.0_f64; 0], &["[[],", "", " [],", "", " []]"]);
    check(&[2, 2, 0], &[0_i32; 0], &["[[[],", "  []],", "", " [[],", "  []]]"]);
    check(&[1, 1, 1, 0], &[0.0_f64; 0], &["[[[[]]]]"]);
}

/// Tests of tensors whose text is in `print.txt`, under the source text of their row.
macro_rules! expected {
    ($($test:ident { $($shape:tt of $data:expr;)* })*) => {$(
        #[test]
        fn $test() {
            $(
                let name = stringify!($shape of $data);
                let text = written(PrintOptions::new(), &$shape, &$data);
                assert_eq!(text.split('\n').collect::<Vec<_>>(), expected(name));
            )*
        }
    )*};
}

expected! {
    matrices_are_set_apart_by_blank_lines {
        [2, 2, 3] of halves(12);
        [3, 2, 2] of count(12);
        [2, 2, 2, 2] of count(16);
        [2, 1, 2, 1, 2] of halves(8);
    }
    long_rows_wrap_at_80_columns {
        [100] of count(100);
        [20] of cubes(20);
        [20] of eighths(20);
        [20] of signed_eighths(20);
        [2, 11] of eighths(22);
        [2, 2, 9] of eighths(36);
        [25] of every(3, 25);
    }
    items_wider_than_a_line_have_one_each {
        [2] of [1e90_f64, -1.5];
        [2, 2] of [1e77_f64, 2.0, 3.0, 4.0];
    }
    large_tensors_are_shown_by_their_edges {
        [1001] of count(1001);
        [1001] of eighths(1001);
        [40, 30] of signed_eighths(1200);
        [1001, 1] of count(1001);
        [1, 1001] of count(1001);
        [2, 3, 200] of count(1200);
        [7, 200] of count(1400);
        [6, 200] of count(1200);
        [7, 7, 7, 3] of count(1029);
        [1000, 2] of every(2, 2000);
    }
}

#[test]
fn what_is_left_out_has_no_width() {
    check(
        &[1101],
        &[vec![1_i64; 500], vec![-1_000_000_000_000], vec![1; 600]].concat(),
        &["[1, 1, 1, ..., 1, 1, 1]"],
    );
}

// Paddle measures only the edges here too, and its columns are misaligned.
#[test]
fn what_is_shown_in_the_middle_has_width() {
    check(
        &[10],
        &[1_i64, 2, 3, -40, 50, 6, 7, 8, 9, 10],
        &["[ 1 ,  2 ,  3 , -40,  50,  6 ,  7 ,  8 ,  9 ,  10]"],
    );
    check(
        &[7],
        &[1.0_f64, 1.0, 1.0, 0.25, 1.0, 1.0, 1.0],
        &[
            "[1.        , 1.        , 1.        , 0.25000000, 1.        , 1.        ,",
            " 1.        ]",
        ],
    );
}

#[test]
fn scientific_form_has_python_s_exponents() {
    let options = PrintOptions::new().notation(Notation::Scientific);
    // As Paddle with `sci_mode=True`.
    let numbers = [1e-10_f64, 1.0, -1e5, 0.0, 1e100, 1e-300];
    check_by(
        options,
        &[6],
        &numbers,
        &[
            "[ 1.00000000e-10,  1.00000000e+00, -1.00000000e+05,  0.00000000e+00,",
            " 1.00000000e+100, 1.00000000e-300]",
        ],
    );
    check_by(options.precision(0), &[2], &[1.5_f32, 2.5e-7], &["[2e+00, 2e-07]"]);
    check_by(options, &[3], &[f64::NAN, f64::INFINITY, -f64::INFINITY], &["[ nan,  inf, -inf]"]);
    check_by(options, &[2], &[10_i64, 2], &["[10, 2 ]"]);
    check_by(options, &[2], &[true, false], &["[True , False]"]);
}

#[test]
fn exponents_are_written_by_numpy_s_rule() {
    let auto = PrintOptions::new().notation(Notation::Auto).precision(2);
    let scientific = |data: &[f64]| written(auto, &[data.len()], data).contains('e');
    for numbers in [&[1e-10_f64, 1.0][..], &[9.9e-5], &[1e8], &[1.0, 1001.0], &[f64::NAN, 1e-5]] {
        assert!(scientific(numbers), "{numbers:?}");
    }
    for numbers in
        [&[1e-4_f64, 1e-2][..], &[9.9e7], &[1.0, 1000.0], &[0.0], &[], &[f64::INFINITY, 1.0]]
    {
        assert!(!scientific(numbers), "{numbers:?}");
    }
    check_by(auto, &[2], &[1e-10_f64, 0.0], &["[1.00e-10, 0.00e+00]"]);
    check_by(auto, &[2], &[1_i64, 1_000_000_000], &["[1         , 1000000000]"]);
    // Elements that are not shown do not count.
    let mut long = vec![1.0_f64; 2000];
    long[1000] = 1e-10;
    check_by(auto, &[2000], &long, &["[1., 1., 1., ..., 1., 1., 1.]"]);
}

#[test]
fn threshold_edges_and_lines_are_chosen() {
    let options = PrintOptions::new().threshold(5).edge_items(1);
    check_by(options, &[5], &count(5), &["[0, 1, 2, 3, 4]"]);
    check_by(options, &[2, 3], &count(6), &["[[0, ..., 2],", " [3, ..., 5]]"]);
    check_by(options.edge_items(0), &[6], &count(6), &["[...]"]);
    check_by(options.threshold(usize::MAX), &[7], &count(7), &["[0, 1, 2, 3, 4, 5, 6]"]);
    check_by(options.edge_items(usize::MAX), &[6], &count(6), &["[0, 1, 2, 3, 4, 5]"]);
    let narrow = PrintOptions::new().line_width(9);
    check_by(narrow, &[7], &count(7), &["[0, 1, 2,", " 3, 4, 5,", " 6]"]);
    check_by(narrow.line_width(0), &[2], &count(2), &["[0,", " 1]"]);
}
