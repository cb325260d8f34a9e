//! The output of `#[py_layer]`, written out: `autograd-macros` compares it; here it is compiled as
//! ordinary code and run.
#![deny(warnings)]
#![allow(
    clippy::all,
    clippy::pedantic,
    unreachable_pub,
    unused_qualifications,
    unused_imports,
    nonstandard_style,
    dead_code,
    reason = "not told of what a macro makes; written out, it is a user's own"
)]
#![forbid(unsafe_code)]

use autograd_core::prelude::*;
use support::leaf;

include!("expansions/tanh.rs");
include!("expansions/scale.rs");
include!("expansions/repeat.rs");
include!("expansions/norm.rs");

#[test]
fn written_out_they_run() {
    let x = leaf(&[0.5]);
    Tanh::apply(&x).sum().backward().unwrap();
    let slope = 1.0 - 0.5f64.tanh().powi(2);
    assert!((x.grad().unwrap().to_vec()[0] - slope).abs() < 1e-12);

    let (x, w) = (leaf(&[3.0]), leaf(&[4.0]));
    let (y, n) = Scale::with().x(&x).w(&w).at(None).apply().unwrap();
    assert_eq!((y.to_vec(), n), (vec![24.0], 0));
    y.sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [8.0]);
    assert_eq!(w.grad().unwrap().to_vec(), [6.0]);

    let x = leaf(&[3.0]);
    let [y, ..] = Repeat::<f64, 3>::apply(std::slice::from_ref(&x));
    y.sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [1.0]);

    assert_eq!(Norm::apply(&x.detach()).item(), 9.0);
}
