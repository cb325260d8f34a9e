//! A program as a function of an array library of Python.

use std::fmt::Write;

use super::program::{Binary, Compare, Function, Program, Step};

/// The library whose functions a text calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a host writes them out")]
pub enum Library {
    /// `jax.numpy` as `jnp`, with `jax`.
    Jax,
    /// `torch`.
    Torch,
    /// `paddle`.
    Paddle,
}

use Library::{Jax, Paddle, Torch};

impl Program {
    /// The function `name` of the arguments `given`, of which `numbers` and `masks` are those that the program reads,
    /// in its order. It returns a tuple.
    #[must_use]
    pub fn python(
        &self,
        name: &str,
        given: &[String],
        [numbers, masks]: [&[String]; 2],
        library: Library,
    ) -> String {
        let mut text = format!("def {name}({}):\n", given.join(", "));
        let n = library.name();
        for (i, step) in self.steps.iter().enumerate() {
            let t = |at: u32| format!("t{at}");
            let value = match *step {
                Step::Real(at) => numbers[at as usize].clone(),
                Step::Mask(at) => masks[at as usize].clone(),
                // As an array: functions of arrays do not take numbers. Its type is that of the numbers.
                Step::Lit(bits) => library.full(numbers, &literal(f64::from_bits(bits))),
                Step::Known(holds) => library.known(numbers, holds),
                Step::Function(function, a) => library.function(function, &t(a)),
                Step::Binary(function, a, b) => library.binary(function, &t(a), &t(b)),
                Step::MulAdd(a, b, c) => format!("t{a} * t{b} + t{c}"),
                Step::Compare(Compare::Less, a, b) => format!("t{a} < t{b}"),
                Step::Compare(Compare::LessOrEqual, a, b) => format!("t{a} <= t{b}"),
                Step::Compare(Compare::Equal, a, b) if library == Paddle => {
                    format!("equal(t{a}, t{b})")
                }
                Step::Compare(Compare::Equal, a, b) => format!("t{a} == t{b}"),
                Step::Not(a) => format!("{n}.logical_not(t{a})"),
                Step::And(a, b) => format!("{n}.logical_and(t{a}, t{b})"),
                Step::Or(a, b) => format!("{n}.logical_or(t{a}, t{b})"),
                Step::Select(mask, a, b) => format!("{n}.where(t{mask}, t{a}, t{b})"),
            };
            let _ = writeln!(text, "    t{i} = {value}");
        }
        let outputs: Vec<String> = self.outputs.iter().map(|output| format!("t{output}")).collect();
        let _ = writeln!(text, "    return ({},)", outputs.join(", "));
        text
    }
}

fn literal(number: f64) -> String {
    match number {
        _ if number.is_nan() => "float('nan')".to_owned(),
        _ if number == f64::INFINITY => "float('inf')".to_owned(),
        _ if number == f64::NEG_INFINITY => "float('-inf')".to_owned(),
        _ => format!("{number:?}"),
    }
}

/// Paddle's `==` holds for numbers that differ by less than 1e-8, its `-` makes 0 of 0, and these functions differ from
/// the kernels at infinities, at zeros, or outside of their domain; it has no `xlogy`.
const PADDLE: &str = "\
def equal(a, b):
    return paddle.logical_and(a <= b, b <= a)

def negative(a):
    return paddle.full([], -0.0, a.dtype) - a

def sqrt(a):
    is_own = paddle.logical_and(a + a <= a, a >= 0.0)
    return paddle.where(is_own, a, paddle.sqrt(a))

def softplus(a):
    return paddle.nn.functional.relu(a) + paddle.log1p(paddle.exp(-paddle.abs(a)))

def erfinv(a):
    inside = paddle.where(paddle.abs(a) <= 1.0, paddle.erfinv(a), paddle.full_like(a, float('nan')))
    return paddle.copysign(inside, a)

def hypot(a, b):
    a, b = paddle.abs(a), paddle.abs(b)
    large, small = paddle.maximum(a, b), paddle.minimum(a, b)
    ratio = small / large
    found = paddle.where(large <= 0.0, large, large * paddle.sqrt(1.0 + ratio * ratio))
    is_infinite = paddle.logical_or(paddle.isinf(a), paddle.isinf(b))
    return paddle.where(is_infinite, paddle.full_like(large, float('inf')), found)

def logaddexp(a, b):
    more = paddle.log1p(paddle.exp(-paddle.abs(a - b)))
    more = paddle.where(equal(a, b), paddle.full_like(more, 0.6931471805599453), more)
    return paddle.maximum(a, b) + more

def xlogy(a, b):
    found = a * paddle.log(b)
    is_zero = paddle.logical_and(paddle.abs(a) <= 0.0, b <= b)
    return paddle.where(is_zero, paddle.zeros_like(found), found)

";

impl Library {
    /// The functions that a text calls beside those of the library.
    #[must_use]
    pub fn helpers(self) -> &'static str {
        if self == Paddle { PADDLE } else { "" }
    }

    fn name(self) -> &'static str {
        match self {
            Jax => "jnp",
            Torch => "torch",
            Paddle => "paddle",
        }
    }

    fn full(self, numbers: &[String], value: &str) -> String {
        let Some(like) = numbers.first() else { return value.to_owned() };
        match self {
            Jax => format!("jnp.asarray({value}, {like}.dtype)"),
            Torch => format!("torch.full((), {value}, dtype={like}.dtype, device={like}.device)"),
            Paddle => format!("paddle.full([], {value}, {like}.dtype)"),
        }
    }

    fn known(self, numbers: &[String], holds: bool) -> String {
        let value = if holds { "True" } else { "False" };
        let device = numbers.first().map(|like| format!(", device={like}.device"));
        match self {
            Jax => format!("jnp.asarray({value})"),
            Torch => format!("torch.full((), {value}{})", device.unwrap_or_default()),
            Paddle => format!("paddle.full([], {value}, 'bool')"),
        }
    }

    fn binary(self, function: Binary, a: &str, b: &str) -> String {
        let n = self.name();
        let name = match function {
            Binary::Add => return format!("{a} + {b}"),
            Binary::Sub => return format!("{a} - {b}"),
            Binary::Mul => return format!("{a} * {b}"),
            Binary::Div => return format!("{a} / {b}"),
            Binary::Xlogy if self == Jax => return format!("jax.scipy.special.xlogy({a}, {b})"),
            Binary::Xlogy if self == Paddle => return format!("xlogy({a}, {b})"),
            Binary::Xlogy => "xlogy",
            Binary::Min => "minimum",
            Binary::Max => "maximum",
            Binary::Pow if self == Jax => "power",
            Binary::Pow => "pow",
            Binary::Hypot if self == Paddle => return format!("hypot({a}, {b})"),
            Binary::Hypot => "hypot",
            Binary::Atan2 if self == Jax => "arctan2",
            Binary::Atan2 => "atan2",
            Binary::LogAddExp if self == Paddle => return format!("logaddexp({a}, {b})"),
            Binary::LogAddExp => "logaddexp",
            // A remainder of 0 has the sign of `b`.
            Binary::Remainder => {
                return format!("{n}.copysign({n}.remainder({a}, {b}), {b})");
            }
            Binary::Copysign => "copysign",
        };
        format!("{n}.{name}({a}, {b})")
    }

    fn function(self, function: Function, a: &str) -> String {
        let n = self.name();
        let [jax, other] = match function {
            Function::Neg if self == Paddle => return format!("negative({a})"),
            Function::Sqrt if self == Paddle => return format!("sqrt({a})"),
            Function::Softplus if self == Paddle => return format!("softplus({a})"),
            Function::Erfinv if self == Paddle => return format!("erfinv({a})"),
            Function::Neg => return format!("-{a}"),
            Function::Recip => return format!("1.0 / {a}"),
            // The libraries' own are linear beyond a threshold, or overflow.
            Function::Softplus => {
                return format!("{n}.clip({a}, 0.0) + {n}.log1p({n}.exp(-{n}.abs({a})))");
            }
            // A sign of NaN is 0 in PyTorch, and 0 that of -0 in PyTorch and Paddle.
            Function::Signum => {
                return format!("{n}.where({n}.abs({a}) > 0.0, {n}.sign({a}), {a})");
            }
            Function::Sigmoid => ["jax.nn.sigmoid", "sigmoid"],
            Function::Erf => ["jax.scipy.special.erf", "erf"],
            Function::Erfinv => ["jax.scipy.special.erfinv", "erfinv"],
            // NaN at 0 in JAX.
            Function::Digamma if self == Jax => {
                let of = format!("jax.scipy.special.digamma({a})");
                return format!("jnp.where({a} == 0.0, -1.0 / {a}, {of})");
            }
            Function::Digamma => ["", "digamma"],
            Function::Lgamma => ["jax.scipy.special.gammaln", "lgamma"],
            Function::Rsqrt => ["jax.lax.rsqrt", "rsqrt"],
            Function::Asin => ["jnp.arcsin", "asin"],
            Function::Acos => ["jnp.arccos", "acos"],
            Function::Atan => ["jnp.arctan", "atan"],
            Function::Exp => ["", "exp"],
            Function::ExpM1 => ["", "expm1"],
            Function::Ln => ["", "log"],
            Function::Ln1p => ["", "log1p"],
            Function::Log2 => ["", "log2"],
            Function::Log10 => ["", "log10"],
            Function::Tanh => ["", "tanh"],
            Function::Sin => ["", "sin"],
            Function::Cos => ["", "cos"],
            Function::Tan => ["", "tan"],
            Function::Sinh => ["", "sinh"],
            Function::Cosh => ["", "cosh"],
            Function::Sqrt => ["", "sqrt"],
            Function::Abs => ["", "abs"],
            Function::Floor => ["", "floor"],
            Function::Ceil => ["", "ceil"],
            Function::Round => ["", "round"],
            Function::Trunc => ["", "trunc"],
        };
        match self {
            Paddle if other == "sigmoid" => format!("paddle.nn.functional.sigmoid({a})"),
            Jax if !jax.is_empty() => format!("{jax}({a})"),
            _ => format!("{n}.{other}({a})"),
        }
    }
}
