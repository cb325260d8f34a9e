// `scalar_op!` in a table, with formulas from the call
#![deny(warnings)]
use autograd_core::prelude::*;
use autograd_core::scalar_op;

macro_rules! table {
    ($($name:ident: $value:expr, $gradient:expr;)*) => { $(scalar_op!($name: y = $value, dx = $gradient);)* };
}

table! { Double: x * 2.0, dy * 2.0; Exp: x.exp(), dy * y; }

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = (Double::apply(&x), Exp::apply(&x));
}
