//! Ops of one number with one result of the same shape: most ops, built-in ones among them.

use super::node::{call, record};
use super::op::{Handle, Info, Reduction};
use super::{Caller, Float, Tensor};
use crate::array::Value;
use crate::array::elementwise::Arg;
use crate::array::shape::copied;
use crate::formula::{Formula, Operand, pass, run_onto, run_over};
use crate::graph::{Edges, Entries, Lost, Saved, is_grad_enabled};
use crate::ops::{Input, small};

/// Whether an op is one of this kind.
pub(in crate::ops) fn is_single(info: &Info) -> bool {
    let one = info.differentiable[..] == [true] && info.masks.is_empty() && info.outputs == 1;
    let kept = info.keeps_reals.len() + info.keeps_outputs.len() < 2;
    one && kept && matches!(info.reduction, Reduction::None) && info.gradients[..] == [0]
}

/// Runs and, where it must be, records such an op.
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
    let edges = Edges::One(x.edge(!info.keeps_reals.is_empty()));
    let mut y = compute(&op, x);
    if !info.keeps_outputs.is_empty() {
        saved = Saved::output(0, &y);
    }
    y.attach(record(&op, None, edges, Entries::from_iter([saved]), caller), 0);
    y
}

/// Deferred, or in a temporary's own memory, or in one pass.
fn compute<T: Float>(op: &Handle<T>, x: Input<'_, T>) -> Tensor<T> {
    let x = match small::formula(op.forward(), None, x) {
        Ok(done) => return done,
        Err(x) => x,
    };
    let x = match x.try_defer(|| Some(op.cheap()?.forward())) {
        Ok(done) => return done,
        Err(x) => x,
    };
    let len = x.tensor().len();
    match x.try_in_place(|x| run_over(op.forward(), len, None, x)) {
        Ok(done) => done,
        Err(x) => Tensor::new(x.consume(|x| passed(op.forward(), None, x))),
    }
}

/// In one pass over operands of one shape, in any layout; `before` stands before the other one.
fn passed<T: Float>(
    formula: &dyn Formula<T>,
    mut before: Option<Arg<'_, T>>,
    x: Arg<'_, T>,
) -> Value<T> {
    let shape = copied(x.get().shape());
    let over = match &mut before {
        Some(Arg::Own(value)) => !value.is_deferred() && value.as_mut_slice().is_some(),
        _ => false,
    };
    // Most lie row-major.
    let slice = before.as_ref().map(|before| before.get().in_memory());
    if let (Some(x), None | Some(Some(_)), false) = (x.get().in_memory(), slice, over) {
        return Value::written(shape, |out| run_onto(formula, slice.flatten(), x, out));
    }
    if let (Some(element), None) = (x.get().uniform(), &before) {
        let mut result = Value::scalar(element);
        if let Some(data) = result.as_mut_slice() {
            run_over(formula, 1, None, data);
        }
        return result.broadcast_to(&shape);
    }
    let operands = before.into_iter().chain([x]).map(Operand::from).collect();
    let results = pass(&shape, operands, &[], &[Some(copied(&shape))], formula);
    let result = results.into_iter().next().flatten();
    result.unwrap_or_else(|| unreachable!("the only result is wanted"))
}

/// `dx` from `dy` and what backward reads besides.
pub(in crate::ops) fn gradient<T: Float>(
    op: &Handle<T>,
    dy: Tensor<T>,
    saved: Option<Input<'_, T>>,
) -> Tensor<T> {
    if !op.handed().is_empty() {
        return dy;
    }
    if !is_grad_enabled() {
        return fused(op, dy, saved);
    }
    let backward = Handle::Shared(op.backward_op(&[true]));
    let caller = std::panic::Location::caller();
    let dx = match &saved {
        Some(saved) => call(&backward, &[saved.tensor(), &dy], &[], None, caller),
        None => call(&backward, &[&dy], &[], None, caller),
    };
    dx.into_iter().next().unwrap_or_else(|| unreachable!("backward has one result"))
}

/// In one pass: in the gradient's own buffer where nobody else holds it, else in that of what was
/// saved.
fn fused<T: Float>(op: &Handle<T>, dy: Tensor<T>, mut saved: Option<Input<'_, T>>) -> Tensor<T> {
    if let Some(from) = saved.take_if(|saved| saved.can_defer()) {
        let step = || op.cheap()?.backward(dy.read().uniform()?);
        match from.try_defer(step) {
            Ok(dx) => return dx,
            Err(from) => saved = Some(from),
        }
    }
    let program;
    let formula: &dyn Formula<T> = match op.compiled_backward() {
        Some(formula) => formula,
        None => {
            program = op.backward_op(&[true]);
            program.program()
        }
    };
    let before = saved.as_ref().map(Input::tensor);
    let mut dy = match small::formula(formula, before, Input::Own(dy)) {
        Ok(done) => return done,
        Err(dy) => dy,
    };
    let len = dy.tensor().len();
    {
        let read = saved.as_ref().map(|saved| saved.tensor().read());
        let before = read.as_ref().map(|saved| saved.in_memory());
        // Where it has no slice, it lies in another order, or nowhere yet.
        if let None | Some(Some(_)) = before {
            match dy.try_in_place(|dy| run_over(formula, len, before.flatten(), dy)) {
                Ok(done) => return done,
                Err(other) => dy = other,
            }
        }
    }
    let value = match saved {
        Some(saved) => saved.consume(|saved| dy.consume(|dy| passed(formula, Some(saved), dy))),
        None => dy.consume(|dy| passed(formula, None, dy)),
    };
    Tensor::new(value)
}
