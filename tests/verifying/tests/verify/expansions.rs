//! What `#[py_layer]` makes of an op that can be verified, written out: `autograd-macros` compares it,
//! here it is compiled as ordinary code and run.
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
use autograd_core::verify_layers;

include!("expansions/verified.rs");

#[test]
fn written_out_it_is_verified() {
    let (x, y) = (Tensor::from([2.0]), Tensor::from([3.0]));
    x.set_stop_gradient(false);
    let _scope = verify_layers();
    assert!(Verified::try_apply(&x, [&x, &y], Some(&y), 2.0).is_ok());
    let error = Verified::try_apply(&x, [&x, &y], Some(&y), 5.0).map(drop).unwrap_err();
    assert!(error.to_string().starts_with("Verified: `x`, element [0]: the slope is"), "{error}");
}
