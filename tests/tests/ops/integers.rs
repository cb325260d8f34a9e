//! Sums and products of integers: exact in every op and every mode, or an error.

use std::panic::catch_unwind;

use autograd_core::static_graph::{Executor, Feed, Program, Variable};
use autograd_core::{AnyTensor, DType, Error, Result, Tensor, with_num_threads};

use crate::panics::panic_of;

/// The element types, their ranges, and the words of an error.
trait Integer: autograd_core::Numeric + TryFrom<i128> + Into<i128> {
    const RANGE: [i128; 2];
    const NAME: &'static str;
    const ADVICE: &'static str;
}

macro_rules! integers {
    ($($t:ident $name:literal $advice:literal;)*) => {$(
        impl Integer for $t {
            const RANGE: [i128; 2] = [$t::MIN as i128, $t::MAX as i128];
            const NAME: &'static str = $name;
            const ADVICE: &'static str = $advice;
        }
    )*};
}

integers! {
    u8 "uint8" ".cast::<i64>()";
    i32 "int32" ".cast::<i64>()";
    i64 "int64" ".cast::<f64>()";
}

fn numbers<T: Integer>(numbers: &[i128]) -> Tensor<T> {
    let held = numbers.iter().map(|&n| T::try_from(n).ok().unwrap());
    Tensor::from(held.collect::<Vec<T>>())
}

fn wide<T: Integer>(tensor: &Tensor<T>) -> Vec<i128> {
    tensor.to_vec().into_iter().map(Into::into).collect()
}

/// Checks for the result if all of it is in range, otherwise for an error that names the number.
fn check<T: Integer>(op: &str, found: Result<Tensor<T>>, right: &[i128]) {
    let [low, high] = T::RANGE;
    let beyond = right.iter().find(|n| !(low..=high).contains(n));
    match (found, beyond) {
        (Ok(found), None) => assert_eq!(wide(&found), right, "{op} {}", T::NAME),
        (Err(error), Some(_)) => {
            assert!(matches!(error, Error::Overflow { .. }), "{error}");
            let (error, name, advice) = (error.to_string(), T::NAME, T::ADVICE);
            assert!(error.starts_with(&format!("{op}: a result")), "{error}");
            let range = format!(" is outside of {name}, which holds {low} to {high}; ");
            assert!(error.contains(&range) && error.contains(advice), "{error}");
            // If there are several, the first that was found is named.
            if right.len() == 1 && !error.contains("a result is") {
                assert!(error.contains(&format!("a result of {} is", right[0])), "{error}");
            }
        }
        (found, _) => panic!("{op} {}: {found:?}, right is {right:?}", T::NAME),
    }
}

/// Lists of numbers near the limits of a type, some of whose sums return to its range.
fn lists<T: Integer>() -> Vec<Vec<i128>> {
    let [low, high] = T::RANGE;
    let mut lists = vec![
        vec![],
        vec![high],
        vec![high, 0],
        vec![high, 1],
        vec![1, high],
        vec![high; 40],
        vec![1; 300],
        vec![low, low],
        vec![high, low],
    ];
    if low < 0 {
        lists.extend([
            vec![low, -1],
            vec![high, 1, -1],
            vec![high, high, low, low, 2],
            vec![low, low, high, high],
            [vec![high; 50], vec![-high; 50]].concat(),
            [vec![low; 50], vec![high; 50], vec![1; 50]].concat(),
        ]);
    }
    lists
}

fn each_type(run: fn()) {
    run();
}

fn sums<T: Integer>() {
    for list in lists::<T>() {
        let (x, n) = (numbers::<T>(&list), list.len());
        let total: i128 = list.iter().sum();
        check("sum", x.try_sum([], false), &[total]);
        check("sum", x.try_sum([0], true), &[total]);
        let ones = numbers::<T>(&[1, 0, 1]).reshape([3, 1]);
        // Along the first, a middle and the last axis, and along two axes that are not adjacent.
        let rows = &ones * x.reshape([1, n]);
        check("sum", rows.try_sum([1], false), &[total, 0, total]);
        check("sum", rows.transpose().try_sum([0], false), &[total, 0, total]);
        let cube = (rows.reshape([1, 3, n]) * numbers::<T>(&[1, 0]).reshape([2, 1, 1]))
            .permute(&[0, 2, 1]);
        check("sum", cube.try_sum([1], true), &[total, 0, total, 0, 0, 0]);
        check("sum", cube.try_sum([0, 2], false), &list.iter().map(|n| n * 2).collect::<Vec<_>>());
        check(
            "sum",
            cube.contiguous().try_sum([0, 2], false),
            &list.iter().map(|n| n * 2).collect::<Vec<_>>(),
        );
        check("sum", cube.try_sum([0, 1], false), &[total, 0, total]);
        check("sum", cube.try_sum([], false), &[total * 2]);
    }
    // One element, broadcast.
    let [low, high] = T::RANGE;
    for (element, n) in
        [(high, 1), (high, 2), (low, 1), (1, 255), (1, 256), (high, usize::MAX >> 8)]
    {
        let shown = numbers::<T>(&[element]).broadcast_to([n]);
        check("sum", shown.try_sum([], false), &[element * n as i128]);
        let columns = numbers::<T>(&[element]).broadcast_to([n.min(4000), 3]);
        check("sum", columns.try_sum([0], false), &[element * n.min(4000) as i128; 3]);
    }
}

fn products<T: Integer>() {
    let [low, high] = T::RANGE;
    let mut cases = vec![
        (vec![], Some(1)),
        (vec![high, 1], Some(high)),
        (vec![high, 2], Some(high * 2)),
        (vec![high, 2, 0], Some(0)),
        (vec![2; 200], None),
        ([vec![2; 200], vec![0]].concat(), Some(0)),
    ];
    if low < 0 {
        cases.extend([
            (vec![low / -2, 2, -1], Some(low)),
            (vec![low, -1], Some(-low)),
            (vec![-1; 401], Some(-1)),
            (vec![low, low, low, 0, high], Some(0)),
        ]);
    }
    for (list, right) in cases {
        let right = right.unwrap_or(i128::MAX);
        let x = numbers::<T>(&list);
        check("prod", x.try_prod([], false), &[right]);
        let pair = Tensor::concat(&[&x.unsqueeze(0), &Tensor::ones([1, list.len()])], 0);
        check("prod", pair.try_prod([1], false), &[right, 1]);
        check("prod", pair.transpose().contiguous().try_prod([0], true), &[right, 1]);
    }
    for (element, n, right) in
        [(2, 7, 128), (2, 8, 256), (2, usize::MAX >> 8, i128::MAX), (1, usize::MAX >> 8, 1)]
    {
        check("prod", numbers::<T>(&[element]).broadcast_to([n]).try_prod([], false), &[right]);
    }
}

fn running_sums<T: Integer>() {
    for list in lists::<T>() {
        let running: Vec<i128> = list
            .iter()
            .scan(0, |sum, n| {
                *sum += n;
                Some(*sum)
            })
            .collect();
        let x = numbers::<T>(&list);
        check("cumsum", x.try_cumsum(0), &running);
        let column = Tensor::concat(&[&x.unsqueeze(1), &Tensor::zeros([list.len(), 1])], 1);
        let both: Vec<i128> = running.iter().flat_map(|&n| [n, 0]).collect();
        check("cumsum", column.try_cumsum(0), &both);
    }
}

fn added_back<T: Integer>() {
    for list in lists::<T>() {
        let (x, n) = (numbers::<T>(&list), list.len());
        let total: i128 = list.iter().sum();
        let index = Tensor::<i64>::ones([n]);
        let start = numbers::<T>(&[3, 0]);
        check("index_add", start.try_index_add(0, &index, &x), &[3, total]);
        check("scatter_add", start.try_scatter_add(0, &index, &x), &[3, total]);
        let pairs = Tensor::concat(&[&x.unsqueeze(1), &Tensor::zeros([n, 1])], 1);
        let start = numbers::<T>(&[3, 4, 0, 0]).reshape([2, 2]);
        check("index_add", start.try_index_add(0, &index, &pairs), &[3, 4, total, 0]);
        let index = Tensor::<i64>::ones([n, 2]);
        check("scatter_add", start.try_scatter_add(0, &index, &pairs), &[3, 4, total, 0]);
        let index = Tensor::<i64>::ones([n, 1]);
        let source = x.unsqueeze(1);
        check("scatter_add", start.try_scatter_add(0, &index, &source), &[3, 4, total, 0]);
    }
}

fn matrix_products<T: Integer>() {
    for list in lists::<T>() {
        for other in lists::<T>().iter().filter(|other| other.len() == list.len()) {
            // A product beyond `i128` may return to its range: only a checked sum is a reference.
            let parts = || list.iter().zip(other).map(|(a, b)| a * b);
            let right = parts().try_fold(0_i128, i128::checked_add).unwrap_or(i128::MAX);
            let (a, b) = (numbers::<T>(&list), numbers::<T>(other));
            check("matmul", a.try_matmul(&b), &[right]);
            let n = list.len();
            let stack = Tensor::stack(&[&a.reshape([1, n]), &Tensor::zeros([1, n])], 0);
            check("matmul", stack.try_matmul(&b.unsqueeze(1)), &[right, 0]);
            let matrix = Tensor::concat(&[&a.reshape([1, n]), &Tensor::zeros([2, n])], 0);
            check("matmul", matrix.try_matmul(&b), &[right, 0, 0]);
            let columns = Tensor::stack(&[&Tensor::zeros([n]), &b], 1);
            check("matmul", matrix.try_matmul(&columns), &[0, right, 0, 0, 0, 0]);
        }
    }
}

#[test]
fn of_every_type() {
    macro_rules! all {
        ($($run:ident)*) => { $(each_type($run::<u8>); each_type($run::<i32>); each_type($run::<i64>);)* };
    }
    all! { sums products running_sums added_back matrix_products }
}

/// Partial sums overflow `i128`, but the sum does not.
#[test]
fn a_product_whose_parts_leave_128_bits() {
    let (low, high) = (i64::MIN, i64::MAX);
    let a = Tensor::from([low, low, low, low, low]);
    let b = Tensor::from([low, low, high, high, 2]);
    // 2^126 + 2^126 - (2^126 - 2^63) * 2 - 2^64 = 0
    assert_eq!(a.matmul(&b).item(), 0);
    assert!(a.try_matmul(&Tensor::from([low; 5])).is_err());
}

/// Large tensors, on any number of threads.
#[test]
fn large_ones_on_threads() {
    for threads in [1, 3] {
        with_num_threads(threads, || {
            let x = Tensor::<u8>::full([1000, 2000], 255).cast::<i32>();
            assert_eq!(x.sum().item(), 510_000_000);
            assert_eq!(x.sum_axes([0]).to_vec(), [255_000; 2000]);
            assert_eq!(x.sum_axes([1]).to_vec(), [510_000; 1000]);
            assert_eq!(
                (&x * 1000).try_sum([], false).unwrap_err().to_string(),
                "sum: a result of 510000000000 is outside of int32, which holds -2147483648 to \
                 2147483647; call `.cast::<i64>()` first"
            );
            assert!((&x * 100).try_cumsum(1).is_ok() && (&x * 10_000).try_cumsum(1).is_err());
            let x = x.narrow(0, 0, 60);
            let right = 255 * 255 * 2000;
            assert_eq!(x.matmul(&x.transpose()).max().item(), right);
        });
    }
}

/// Methods that panic report the caller's line.
#[test]
fn the_line_of_the_call() {
    let x = || Tensor::from([200_u8, 100]);
    let calls: [(&str, fn(&Tensor<u8>)); 10] = [
        ("sum", |x| drop(x.sum())),
        ("sum", |x| drop(x.sum_axes([0]))),
        ("sum", |x| drop(x.sum_axes_keep([0]))),
        ("prod", |x| drop(x.prod())),
        ("prod", |x| drop(x.prod_axes([0]))),
        ("cumsum", |x| drop(x.cumsum(0))),
        ("matmul", |x| drop(x.matmul(x))),
        ("index_add", |x| drop(x.index_add(0, &Tensor::from([0]), &Tensor::from([100])))),
        ("scatter_add", |x| drop(x.scatter_add(0, &Tensor::from([0]), &Tensor::from([100])))),
        ("arange", |_| drop(Tensor::<u8>::arange(257))),
    ];
    for (op, call) in calls {
        let (panic, place) = panic_of(move || call(&x()));
        let message = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(message.starts_with(&format!("{op}: ")) && message.contains("uint8"), "{message}");
        assert!(place.contains("integers.rs:"), "{op}: {place}");
    }
}

/// Without a result there is no error.
#[test]
fn results_without_elements() {
    for x in [Tensor::<u8>::ones([1, 1]).broadcast_to([0, 300]), Tensor::zeros([0, 300])] {
        assert_eq!(x.sum_axes([1]).shape(), [0]);
        assert_eq!(x.prod_axes_keep([1]).shape(), [0, 1]);
        assert_eq!(x.sum_axes([0]).to_vec(), [0; 300]);
        assert_eq!((x.sum().item(), x.prod().item()), (0, 1));
        assert_eq!(x.cumsum(1).shape(), [0, 300]);
        assert_eq!(x.transpose().matmul(&x).to_vec(), [0; 300 * 300]);
        assert_eq!(x.matmul(&x.transpose()).shape(), [0, 0]);
    }
}

#[test]
fn ranges_end_where_their_type_does() {
    assert_eq!(Tensor::<u8>::arange(256).to_vec().last(), Some(&255));
    assert_eq!(Tensor::<u8>::arange(0).len(), 0);
    assert_eq!(Tensor::<f32>::arange(300).to_vec().last(), Some(&299.0));
    let panic = catch_unwind(|| Tensor::<u8>::arange(300)).unwrap_err();
    assert_eq!(
        panic.downcast_ref::<String>().map(String::as_str),
        Some("arange: `n` must be at most 256, as uint8 holds 0 to 255, found 300")
    );
}

/// The messages of an operator of a program, of a traced closure, and of an eager one.
#[test]
fn in_programs() {
    fn words(build: impl Fn(&Variable) -> Result<Variable>, dtype: DType) -> String {
        let program = Program::new();
        let x = program.data("x", [-1], dtype).unwrap();
        let y = match build(&x) {
            Ok(y) => y,
            Err(error) => return error.to_string(),
        };
        let fed = [200_i64, 100, 50];
        let fed: AnyTensor = match dtype {
            DType::UInt8 => Tensor::<u8>::from(fed.map(|n| n as u8)).into(),
            DType::Int32 => Tensor::<i32>::from(fed.map(|n| n as i32 * 10_000_000)).into(),
            _ => Tensor::<i64>::from(fed.map(|n| n << 55)).into(),
        };
        let found = match &fed {
            AnyTensor::UInt8(fed) => Executor::new().run(&program, &[("x", fed)], &[&y]),
            AnyTensor::Int32(fed) => Executor::new().run(&program, &[("x", fed)], &[&y]),
            AnyTensor::Int64(fed) => Executor::new().run(&program, &[("x", fed)], &[&y]),
            _ => unreachable!(),
        };
        found.map(|found| format!("{:?}", found[0])).unwrap_or_else(|error| error.to_string())
    }
    type Build = fn(&Variable) -> Result<Variable>;
    let builds: [(&str, Build); 3] =
        [("sum", |x| x.sum()), ("prod", |x| x.prod()), ("matmul", |x| x.matmul(x))];
    for dtype in [DType::UInt8, DType::Int32, DType::Int64] {
        for (op, build) in builds {
            let words = words(build, dtype);
            assert!(words.starts_with(&format!("{op} (built at tests")), "{words}");
            assert!(words.contains(&format!(" is outside of {dtype}")), "{words}");
        }
        let words = words(|x| x.mean(), dtype);
        assert!(words.contains(&format!("takes float32 or float64, found {dtype}")), "{words}");
        assert!(words.contains("cast(DType::Float64)"), "{words}");
    }
    macro_rules! closures {
        ($t:ty, $dtype:ident: $($op:literal $closure:expr;)*) => {$(
            // Programs have no running sums, so these are only eager there.
            for traced in [false, true].into_iter().take(if $op == "cumsum" { 1 } else { 2 }) {
                let words = words(
                    |x| match traced {
                        true => x.program().trace($closure).x(x).call(),
                        false => x.program().eager($closure).x(x).call(),
                    },
                    DType::$dtype,
                );
                let name = DType::$dtype.name();
                assert!(words.contains($op), "{words}");
                assert!(words.contains(&format!(" is outside of {name}")), "{words}");
            }
        )*};
    }
    closures! { u8, UInt8:
        "sum" |x: &Tensor<u8>| x.sum();
        "prod" |x: &Tensor<u8>| x.prod();
        "cumsum" |x: &Tensor<u8>| x.cumsum(0);
        "matmul" |x: &Tensor<u8>| x.matmul(x);
    }
    closures! { i32, Int32:
        "sum" |x: &Tensor<i32>| x.sum_axes([0]);
        "cumsum" |x: &Tensor<i32>| x.cumsum(0);
    }
    closures! { i64, Int64:
        "sum" |x: &Tensor<i64>| x.sum_axes_keep([0]);
        "matmul" |x: &Tensor<i64>| x.matmul(x);
    }
}

#[test]
fn an_integer_divided_by_zero_is_an_error_that_says_where() {
    let a = Tensor::from([[7, 8], [9, i32::MIN]]);
    let b = Tensor::from([[2, -1], [0, -1]]);
    let error = a.try_div(&b).unwrap_err().to_string();
    assert_eq!(error, "div: `other` must be nonzero for integers, found 0 at [1, 0]");
    let error = a.try_div(0).unwrap_err().to_string();
    assert_eq!(error, "div: `other` must be nonzero for integers, found 0");
    let mut c = a.clone();
    assert!(c.try_div_assign(&b).is_err());
    assert!(c.try_div_assign(0).is_err());
    assert_eq!(c.to_vec(), [7, 8, 9, i32::MIN]);
    let ways: [fn(&Tensor<i32>, &Tensor<i32>) -> Tensor<i32>; 3] =
        [|a, b| a / b, |_, b| 7 / b, |a, _| a / 0];
    for way in ways {
        let panic = catch_unwind(|| way(&a, &b)).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(text.starts_with("div: `other` must be nonzero"), "{text}");
    }
    // With a broadcast row, with other integers, and with a quotient that overflows.
    let row = Tensor::from([1_u8, 0]);
    let error = Tensor::<u8>::ones([3, 2]).try_div(&row).unwrap_err().to_string();
    assert!(error.ends_with("found 0 at [1]"), "{error}");
    assert_eq!((&a / -1).to_vec(), [-7, -8, -9, i32::MIN]);
    assert!(a.try_div(Tensor::<i32>::zeros([0, 2, 2])).unwrap().is_empty());
    // Also in a program whose divisor is fed.
    let program = Program::new();
    let (x, y) = (program.data("x", [2], DType::Int32), program.data("y", [2], DType::Int32));
    let z = x.unwrap().try_div(y.unwrap()).unwrap();
    let feed: [(&str, &dyn Feed); 2] = [("x", &Tensor::from([1, 2])), ("y", &Tensor::from([1, 0]))];
    let error = Executor::new().run(&program, &feed, &[&z]).unwrap_err().to_string();
    assert!(error.contains("must be nonzero for integers, found 0 at [1]"), "{error}");
}
