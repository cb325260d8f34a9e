//! `SHAPES.python()`: the text runs in Python with numbers, with NumPy's integers and with symbols, and says what the
//! table does.
#![allow(unused_variables, dead_code, reason = "only the lines matter")]

use std::fmt::Write;
use std::process::Command;

use autograd_core::prelude::*;
use autograd_core::shapes::{Dims, Shapes};

/// Ops of which only the line matters.
macro_rules! lines {
    ($($name:ident($($line:tt)*) ($($params:tt)*) -> $output:ty;)*) => {$(
        #[py_layer(no_grad, shapes($($line)*))]
        impl $name {
            fn forward(_: &mut ForwardContext<Self>, $($params)*) -> $output {
                unimplemented!("it is not called")
            }
        }
    )*};
}

lines! {
    Linear(x: [b.., n], w: [n, m], bias: [m] -> [b.., m])
        (x: &Tensor<f64>, w: &Tensor<f64>, bias: Option<&Tensor<f64>>) -> Tensor<f64>;
    Heads(x: [b, s, heads * d] -> ([b, heads, s, d], _))
        (x: &Tensor<f64>, heads: usize) -> (Tensor<f64>, Tensor<f64>);
    Broadcast(lambda: [a.., k], y: [b.., k / 2], new: [] -> [a.. & b.., 2 * (k - 1)])
        (lambda: &Tensor<f64>, y: &Tensor<f64>, new: &Tensor<f64>) -> Tensor<f64>;
    Stacked(xs: [[n, d + 1]; c] -> ([c, n, d], [[d]; c]))
        (xs: &[Tensor<f64>]) -> (Tensor<f64>, Vec<Tensor<f64>>);
    Number(x: [3, _] -> []) (x: &Tensor<f64>) -> Tensor<f64>;
}

/// An op, the shapes of its inputs, and its integers.
type Case = (&'static Shapes, Vec<Option<Vec<Vec<usize>>>>, Vec<usize>);

fn cases() -> Vec<Case> {
    let one = |shape: &[usize]| Some(vec![shape.to_vec()]);
    let case = |line, inputs: &[Option<Vec<Vec<usize>>>], integers: &[usize]| -> Case {
        (line, inputs.to_vec(), integers.to_vec())
    };
    let list = |shapes: &[&[usize]]| Some(shapes.iter().map(|shape| shape.to_vec()).collect());
    vec![
        case(Linear::SHAPES, &[one(&[3]), one(&[3, 4]), None], &[]),
        case(Linear::SHAPES, &[one(&[2, 5, 3]), one(&[3, 4]), one(&[4])], &[]),
        case(Linear::SHAPES, &[one(&[2, 5, 3]), one(&[3, 4]), one(&[5])], &[]),
        case(Linear::SHAPES, &[one(&[2, 3]), one(&[4, 4]), None], &[]),
        case(Linear::SHAPES, &[one(&[]), one(&[4, 4]), None], &[]),
        case(Heads::SHAPES, &[one(&[2, 3, 8])], &[4]),
        case(Heads::SHAPES, &[one(&[2, 3, 8])], &[3]),
        case(Broadcast::SHAPES, &[one(&[2, 1, 6]), one(&[5, 3]), one(&[])], &[]),
        case(Broadcast::SHAPES, &[one(&[2, 6]), one(&[5, 3]), one(&[])], &[]),
        case(Broadcast::SHAPES, &[one(&[6]), one(&[4]), one(&[])], &[]),
        case(Stacked::SHAPES, &[list(&[&[2, 4], &[2, 4], &[2, 4]])], &[]),
        case(Stacked::SHAPES, &[list(&[&[2, 4], &[2, 5]])], &[]),
        case(Number::SHAPES, &[one(&[3, 7])], &[]),
        case(Number::SHAPES, &[one(&[4, 7])], &[]),
    ]
}

const HEAD: &str = "
class Symbol:
    'A length that is known to nobody: it has no value as an integer.'
    def __init__(self, n): self.n = n
    def of(self, other): return other.n if isinstance(other, Symbol) else other
    def __add__(self, other): return Symbol(self.n + self.of(other))
    def __sub__(self, other): return Symbol(self.n - self.of(other))
    def __mul__(self, other): return Symbol(self.n * self.of(other))
    def __floordiv__(self, other): return Symbol(self.n // self.of(other))
    __radd__ = __add__
    __rmul__ = __mul__
    def __rsub__(self, other): return Symbol(other - self.n)
    def __rfloordiv__(self, other): return Symbol(other // self.n)
    def __eq__(self, other): return self.n == self.of(other)
    def __hash__(self): raise TypeError('a symbol has no hash')

class Fake:
    def __init__(self, shape, of): self.shape = tuple(of(n) for n in shape)

kinds = [int, Symbol]
try:
    import numpy
    kinds.append(numpy.int64)
except ImportError:
    print('without NumPy')

def given(value, of):
    if value is None or isinstance(value, int): return value
    if isinstance(value, tuple): return Fake(value, of)
    return [Fake(shape, of) for shape in value]

def check(function, arguments, expected):
    for of in kinds:
        try:
            found = function(tuple, *[given(value, of) for value in arguments])
        except ValueError as error:
            assert expected is ValueError, (function.__name__, of, str(error))
            continue
        found = found if isinstance(found, tuple) and len(expected) > 1 else (found,)
        assert len(found) == len(expected), (function.__name__, found, expected)
        for a, b in zip(found, expected):
            assert a == b, (function.__name__, of, found, expected)
";

fn tuple(shape: &[usize]) -> String {
    let lengths: String = shape.iter().map(|n| format!("{n},")).collect();
    format!("({lengths})")
}

/// The table's answer in Python, if the inputs fit.
fn expected((line, inputs, integers): &Case) -> String {
    let dims = |shape: &Vec<usize>| -> Dims { shape.iter().copied().map(Some).collect() };
    let shapes: Vec<Vec<Dims>> =
        inputs.iter().map(|input| input.iter().flatten().map(dims).collect()).collect();
    let Ok(outputs) = line.infer(&shapes, integers) else { return "ValueError".to_owned() };
    let mut text = String::from("[");
    for (output, shape) in outputs.iter().zip(line.outputs) {
        let whole = output.as_ref().map(|dims| dims.iter().copied().flatten().collect::<Vec<_>>());
        let one = whole.map_or_else(|| "None".to_owned(), |dims| tuple(&dims));
        let is_list = shape.form == autograd_core::shapes::Form::List;
        let one = if is_list { format!("[{one}] * {}", shapes[0].len()) } else { one };
        let _ = write!(text, "{one}, ");
    }
    text + "]"
}

#[test]
fn the_text_says_in_python_what_the_table_says() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return;
    }
    let mut script = HEAD.to_owned();
    let mut fits = 0;
    for (position, case) in cases().iter().enumerate() {
        let (line, inputs, integers) = case;
        let name = format!("{}_{position}", line.op.to_lowercase());
        script += &line.python(&name);
        let given = inputs.iter().zip(line.inputs).map(|(input, (_, shape))| match input {
            None => "None".to_owned(),
            Some(list) if shape.form == autograd_core::shapes::Form::List => {
                format!("[{}]", list.iter().map(|shape| tuple(shape) + ",").collect::<String>())
            }
            Some(list) => tuple(&list[0]),
        });
        let given =
            given.chain(integers.iter().map(usize::to_string)).collect::<Vec<_>>().join(", ");
        let expected = expected(case);
        fits += usize::from(expected != "ValueError");
        let _ = writeln!(script, "check({name}, [{given}], {expected})");
    }
    assert!(fits > 5 && fits < cases().len() - 5, "{fits}");
    let run = Command::new("python3").args(["-c", &script]).output().unwrap();
    assert!(run.status.success(), "{}\n{script}", String::from_utf8_lossy(&run.stderr));
}
