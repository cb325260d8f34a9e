//! Ops of one number with one result of the same shape: most ops, built-in ones among them.

use super::compute::of_one;
use super::node::record_single;
use super::op::Handle;
use crate::graph::{Lost, Saved, Tensor};
use crate::ops::{Caller, Float, Input, small};

/// Runs and, where it must be, records such an op.
#[inline]
pub(in crate::ops) fn run<T: Float>(
    op: Handle<T>,
    mut x: Input<'_, T>,
    caller: Caller,
) -> Tensor<T> {
    let info = op.info();
    if !x.tensor().is_recorded() {
        let lost = Lost::of(info.name, caller, x.tensor());
        return compute(&op, x).with_lost(lost);
    }
    let mut saved = Saved::Nothing;
    if !info.keeps_reals.is_empty() {
        saved = Saved::input(0, x.tensor());
    }
    let small = x.tensor().is_small();
    let edge = x.edge(!info.keeps_reals.is_empty());
    let mut y = compute(&op, x);
    if !info.keeps_outputs.is_empty() {
        saved = Saved::output(0, &y);
    }
    y.attach_here(record_single(&op, edge, saved, small, caller), 0);
    y
}

fn compute<T: Float>(op: &Handle<T>, x: Input<'_, T>) -> Tensor<T> {
    let x = match small::formula(op.forward(), None, x) {
        Ok(done) => return done,
        Err(x) => x,
    };
    of_one(op.forward(), || Some(op.cheap()?.forward()), x)
}
