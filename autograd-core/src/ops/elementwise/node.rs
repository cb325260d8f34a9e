//! One call of an elementwise op, and its node in the graph.

use std::panic::Location;
use std::sync::Arc;

use smallvec::SmallVec;

use super::compute::{Frame, compute, consume, run_formula};
use super::op::{Handle, Outputs, is_single};
use crate::array::shape::copied;
use crate::array::{Shape, Value};
use crate::error::Result;
use crate::formula::{Formula, Operand};
use crate::graph::{
    self, Edge, Edges, Entries, Lost, Node, NodeRef, Plain, Pull, Push, Saved, SavedReader,
    SavedState, Slots, Tensor, is_grad_enabled, only, typed,
};
use crate::ops::{Caller, Float, Input};

/// Runs an op for which [`is_single`] holds, as for most, and records it if needed.
#[inline]
pub(in crate::ops) fn run_single<T: Float>(
    op: Handle<T>,
    mut x: Input<'_, T>,
    caller: Caller,
) -> Tensor<T> {
    let info = op.info();
    if !x.tensor().is_recorded() {
        let lost = Lost::of(info.name, caller, x.tensor());
        return run_formula(op.forward(), None, x).with_lost(lost);
    }
    let (keeps_input, small) = (!info.keeps_reals.is_empty(), x.tensor().is_small());
    let node = NodeRef::with_edges(rule(&op), caller, || Edges::One(x.edge(keeps_input)));
    let input = keeps_input.then(|| x.tensor().clone());
    let y = run_formula(op.forward(), None, x);
    let saved = |y: &Tensor<T>| match input {
        Some(input) => Saved::kept(0, input),
        None if !info.keeps_outputs.is_empty() => Saved::output(0, y),
        None => Saved::Nothing,
    };
    let node = match (&op, small) {
        (Handle::Static(_), true) => node.saving(SavedState::of([saved(&y), Saved::Nothing], true)),
        _ => node.saving(SavedState::new(attrs(&op, None), &mut [saved(&y)])),
    };
    y.attached(node, 0)
}

/// Returns the wanted gradients of an op's differentiable operands, computed from all operands and masks,
/// the outputs that backward reads, and the gradients of the outputs, which have the broadcast shape.
pub(crate) fn gradients_of<T: Float>(
    op: Handle<T>,
    (operands, masks): (&[&Tensor<T>], &[&Tensor<bool>]),
    outputs: &[Option<&Tensor<T>>],
    grads: &mut [Option<Tensor<T>>],
    wanted: &[bool],
) -> SmallVec<[Option<Tensor<T>>; 2]> {
    let Some(shape) = grads.iter().flatten().next().map(Tensor::shape_owned) else {
        return wanted.iter().map(|_| None).collect();
    };
    let shapes = || operands.iter().map(|x| x.shape()).chain(masks.iter().map(|x| x.shape()));
    let framed = shapes().any(|found| found != shape.as_slice()).then(|| {
        let shapes = operands.iter().map(|x| x.shape_owned()).collect();
        let target = (shape.clone(), shape.clone());
        let targets = SmallVec::from_elem(target, op.info().outputs);
        CallShapes { frame: Frame { shape: shape.clone(), targets }, shapes }
    });
    let call = NodeCall { op: &op, framed: framed.as_ref() };
    let info = op.info();
    let kept = info.keeps_reals.iter().map(|&i| Some(operands[i].clone()));
    let mut given: Reals<T> = kept.collect();
    given.extend(info.keeps_outputs.iter().map(|&k| outputs[k].cloned()));
    for &slot in info.gradients.iter() {
        given.push(Some(call.gradient(slot, grads[slot].take(), &shape)));
    }
    let masks: SmallVec<[Tensor<bool>; 2]> =
        info.keeps_masks.iter().map(|&i| masks[i].clone()).collect();
    call.gradients(given, &masks, wanted, (shape, Location::caller()))
}

pub(super) fn call<T: Float>(
    op: &Handle<T>,
    reals: &[&Tensor<T>],
    masks: &[&Tensor<bool>],
    frame: Option<Frame>,
    caller: Caller,
) -> Outputs<T> {
    let info = op.info();
    let recorded = is_grad_enabled()
        && reals
            .iter()
            .zip(info.differentiable.iter())
            .any(|(x, wants)| *wants && !x.stop_gradient());
    let wanted: SmallVec<[bool; 4]> = SmallVec::from_elem(true, info.outputs);
    let read: SmallVec<[_; 4]> = reals.iter().map(|x| x.read()).collect();
    let mut operands: SmallVec<[_; 4]> = read.iter().map(|x| Operand::Ref(x)).collect();
    let shape = (reals[0].shape(), frame.as_ref());
    let mut outputs: Outputs<T> =
        compute(op.forward(), &mut operands, masks, shape, &wanted).into_iter().flatten().collect();
    if !recorded {
        let lost = |lost: Lost, (x, wants): (&&Tensor<T>, &bool)| match wants {
            true => lost.and(Lost::of(info.name, caller, x)),
            false => lost.and(Lost::without_derivative(info.name, caller, x)),
        };
        let lost = reals.iter().zip(info.differentiable.iter()).fold(Lost::NONE, lost);
        return outputs.into_iter().map(|output| output.with_lost(lost)).collect();
    }
    let edge = |(x, wants): (&&Tensor<T>, &bool)| match wants {
        true => x.edge(),
        false => Edge::None(x.absent()),
    };
    let wants = reals.iter().zip(info.differentiable.iter()).filter(|(_, wants)| **wants);
    let wants = wants.map(|(x, _)| !x.stop_gradient());
    let keeps = op.is_reused().then(|| op.keep_filter(wants));
    let read = |at: usize| keeps.as_ref().is_none_or(|keeps| keeps(at));
    let mut saved = Entries::new();
    for (at, &i) in info.keeps_reals.iter().enumerate() {
        saved.push(if read(at) { Saved::input(i, reals[i]) } else { Saved::Nothing });
    }
    for &i in info.keeps_masks.iter() {
        saved.push(Saved::input(reals.len() + i, masks[i]));
    }
    for (at, &k) in info.keeps_outputs.iter().enumerate() {
        let read = read(info.keeps_reals.len() + at);
        saved.push(if read { Saved::output(k, &outputs[k]) } else { Saved::Nothing });
    }
    let framed = frame
        .map(|frame| CallShapes { frame, shapes: reals.iter().map(|x| x.shape_owned()).collect() });
    let edges = reals.iter().zip(info.differentiable.iter()).map(edge).collect();
    let state = SavedState::new(attrs(op, framed), &mut saved);
    let node = NodeRef::record(rule(op), edges, state, caller);
    for (k, output) in outputs.iter_mut().enumerate() {
        output.attach(node.clone(), k as u32);
    }
    outputs
}

/// What a node holds beside tensors: the frame of its call and, if no static op is behind it, the op.
fn attrs<T: Float>(op: &Handle<T>, framed: Option<CallShapes>) -> Option<Plain> {
    match op {
        Handle::Static(_) => framed.map(|framed| Arc::new(framed) as Plain),
        Handle::Shared(_) => Some(Arc::new((op.clone(), framed))),
    }
}

/// The op of the nodes that record this one.
#[inline]
fn rule<T: Float>(op: &Handle<T>) -> &'static dyn graph::Op {
    let Handle::Static(op) = *op else { return const { &Recorded::<T>(None) } };
    let recorder = T::recorder(&op.found().recorded);
    &**recorder.get_or_init(|| Box::new(Recorded(Some(Handle::Static(op)))))
}

pub(super) struct CallShapes {
    frame: Frame,
    shapes: Vec<Shape>,
}

/// An elementwise op in the graph: a static op, or `None` if each node holds its op beside its frame.
pub(crate) struct Recorded<T: 'static>(Option<Handle<T>>);

impl<T: Float> Recorded<T> {
    #[inline]
    fn call<'n>(&'n self, node: &'n Node) -> NodeCall<'n, T> {
        match &self.0 {
            Some(op) => NodeCall { op, framed: node.attrs() },
            None => {
                let (op, framed): &(Handle<T>, Option<CallShapes>) =
                    node.attrs().unwrap_or_else(|| unreachable!("it was recorded with the op"));
                NodeCall { op, framed: framed.as_ref() }
            }
        }
    }
}

impl<T: Float> graph::Op for Recorded<T> {
    fn name(&self) -> &'static str {
        self.0.as_ref().map_or("formula", |op| op.info().name)
    }

    fn name_of(&self, node: &Node) -> &'static str {
        self.call(node).op.info().name
    }

    fn pull<'g>(&self, mut grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let (call, edges) = (self.call(pull.node), pull.node.edges());
        let saved = pull.read()?;
        // The common case: the saved tensor is in the node itself, and no graph is built.
        if call.framed.is_none()
            && saved.is_here()
            && !pull.create_graph
            && is_single(call.op.info())
        {
            let (info, x) = (call.op.info(), saved.peek(0, pull.at())?);
            // A tensor that backward does not depend on is not saved.
            if x.is_some() || info.keeps_reals.is_empty() && info.keeps_outputs.is_empty() {
                let dx = gradient(call.op, typed(only(grads)), x.map(Input::Ref));
                return pull.sink.deliver(&edges[0], T::wrap(dx));
            }
        }
        let (mut operands, masks) =
            call.unpack(&mut SavedReader { entries: saved, at: Some(pull.at()) })?;
        // The shape of the whole pass.
        let shape = match (call.framed, grads.iter().flatten().next()) {
            (Some(framed), _) => framed.frame.shape.clone(),
            (None, Some(grad)) => copied(grad.shape()),
            (None, None) => unreachable!("a node is visited when a gradient came"),
        };
        for &slot in call.op.info().gradients.iter() {
            let grad = grads.get_mut(slot).and_then(Option::take).and_then(T::unwrap);
            operands.push(Some(call.gradient(slot, grad, &shape)));
        }
        let wanted: SmallVec<[bool; 4]> = call.inputs().map(|i| pull.wants(&edges[i])).collect();
        let grads = call.gradients(operands, &masks, &wanted, (shape, pull.node.location));
        for (i, grad) in call.inputs().zip(grads) {
            if let Some(grad) = grad {
                pull.sink.deliver(&edges[i], T::wrap(grad))?;
            }
        }
        Ok(())
    }

    fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        let call = self.call(push.node);
        let (operands, masks) = call.unpack(&mut push.at().saved_reader(true)?)?;
        Ok(call.pushed(operands, &masks, push))
    }
}

struct NodeCall<'n, T: 'static> {
    op: &'n Handle<T>,
    framed: Option<&'n CallShapes>,
}

type Reals<T> = SmallVec<[Option<Tensor<T>>; 4]>;
type Operands<T> = (Reals<T>, SmallVec<[Tensor<bool>; 2]>);

impl<T: Float> NodeCall<'_, T> {
    pub(super) fn pushed(
        &self,
        mut operands: Reals<T>,
        masks: &[Tensor<bool>],
        push: &mut Push<'_>,
    ) -> Option<Slots> {
        let op = Handle::Shared(self.op.tangents_op());
        let mut tangents: SmallVec<[Tensor<T>; 4]> = SmallVec::new();
        let slots = self.inputs().map(|i| push.tangents[i].take().and_then(T::unwrap));
        let slots: SmallVec<[_; 4]> = slots.collect();
        operands.extend(slots);
        let shape = operands.iter().flatten().next().map(|operand| operand.shape_owned());
        let shape = shape?;
        for operand in operands {
            // An absent tangent is zero; an operand that was not kept has no influence.
            tangents.push(operand.unwrap_or_else(|| self.zeros(&shape)));
        }
        let reals: SmallVec<[&Tensor<T>; 4]> = tangents.iter().collect();
        let masks: SmallVec<[&Tensor<bool>; 2]> = masks.iter().collect();
        let frame = self.framed.map(|framed| framed.frame.clone());
        let pushed = call(&op, &reals, &masks, frame, push.node.location);
        Some(pushed.into_iter().map(|tangent| Some(T::wrap(tangent))).collect())
    }

    fn inputs(&self) -> impl Iterator<Item = usize> {
        let all = self.op.info().differentiable.iter().enumerate();
        all.filter(|(_, differentiable)| **differentiable).map(|(input, _)| input)
    }

    fn unpack(&self, saved: &mut SavedReader<'_>) -> Result<Operands<T>> {
        let info = self.op.info();
        let (mut operands, mut masks) = (SmallVec::new(), SmallVec::new());
        for _ in info.keeps_reals.iter() {
            operands.push(saved.optional()?);
        }
        for _ in info.keeps_masks.iter() {
            masks.extend(saved.optional()?);
        }
        for _ in info.keeps_outputs.iter() {
            operands.push(saved.optional()?);
        }
        Ok((operands, masks))
    }

    /// Returns the gradient of an output in the shape of the pass; zeros if there is none.
    fn gradient(&self, slot: usize, grad: Option<Tensor<T>>, shape: &[usize]) -> Tensor<T> {
        let Some(grad) = grad else { return self.zeros(shape) };
        match self.framed {
            Some(framed) if grad.shape() != framed.frame.targets[slot].0.as_slice() => {
                grad.reshape(copied(&framed.frame.targets[slot].0))
            }
            _ => grad,
        }
    }

    fn zeros(&self, shape: &[usize]) -> Tensor<T> {
        let zero = Value::scalar(T::ZERO);
        Tensor::new(if self.framed.is_some() { zero } else { zero.broadcast_to(shape) })
    }

    pub(super) fn gradients(
        &self,
        operands: Reals<T>,
        masks: &[Tensor<bool>],
        wanted: &[bool],
        (shape, caller): (Shape, &'static Location<'static>),
    ) -> SmallVec<[Option<Tensor<T>>; 2]> {
        let forwarded = self.op.forwarded_gradients();
        if forwarded.is_empty() {
            return self.computed(operands, masks, wanted, (shape, caller));
        }
        let grads = &operands[operands.len() - self.op.info().gradients.len()..];
        let mut done: SmallVec<[Option<Tensor<T>>; 2]> = SmallVec::new();
        for (i, (wanted, forwarded)) in self.inputs().zip(wanted.iter().zip(forwarded)) {
            let grad = forwarded.filter(|_| *wanted).and_then(|k| grads[k].as_ref());
            done.push(grad.map(|grad| match self.framed {
                Some(framed) => {
                    grad.broadcast_to(&framed.frame.shape[..]).unbroadcast(&framed.shapes[i])
                }
                None => grad.clone(),
            }));
        }
        let left = wanted.iter().zip(&done).map(|(wanted, done)| *wanted && done.is_none());
        let left: SmallVec<[bool; 4]> = left.collect();
        if left.contains(&true) {
            let computed = self.computed(operands, masks, &left, (shape, caller));
            for (done, computed) in done.iter_mut().zip(computed) {
                *done = done.take().or(computed);
            }
        }
        done
    }

    fn computed(
        &self,
        operands: Reals<T>,
        masks: &[Tensor<bool>],
        wanted: &[bool],
        (shape, caller): (Shape, &'static Location<'static>),
    ) -> SmallVec<[Option<Tensor<T>>; 2]> {
        let masks: SmallVec<[&Tensor<bool>; 2]> = masks.iter().collect();
        let mut frame = self.framed.map(|framed| {
            let shapes = self.inputs().map(|i| framed.shapes[i].clone());
            let targets = shapes.map(|shape| (shape.clone(), shape)).collect();
            Frame { shape: framed.frame.shape.clone(), targets }
        });
        if let Some(compiled) = self.op.compiled_backward()
            && !is_grad_enabled()
        {
            let shape = (&shape[..], frame.as_ref());
            return consume(operands, |operands| {
                compute(compiled, operands, &masks, shape, wanted)
            });
        }
        let mut which = wanted.iter();
        if let Some(frame) = &mut frame {
            frame.targets.retain(|_| which.next().copied().unwrap_or(false));
        }
        let absent = self.zeros(&shape);
        let reals: SmallVec<[&Tensor<T>; 4]> =
            operands.iter().map(|operand| operand.as_ref().unwrap_or(&absent)).collect();
        let op = Handle::Shared(self.op.backward_op(wanted));
        let mut grads = call(&op, &reals, &masks, frame, caller).into_iter();
        wanted.iter().map(|wanted| if *wanted { grads.next() } else { None }).collect()
    }
}

/// Returns `dx`, computed from `dy` and the saved tensor, if backward reads one.
pub(crate) fn gradient<T: Float>(
    op: &Handle<T>,
    dy: Tensor<T>,
    saved: Option<Input<'_, T>>,
) -> Tensor<T> {
    if !op.forwarded_gradients().is_empty() {
        return dy;
    }
    if !is_grad_enabled() {
        return fused(op, dy, saved);
    }
    let backward = Handle::Shared(op.backward_op(&[true]));
    let caller = Location::caller();
    let dx = match &saved {
        Some(saved) => call(&backward, &[saved.tensor(), &dy], &[], None, caller),
        None => call(&backward, &[&dy], &[], None, caller),
    };
    dx.into_iter().next().unwrap_or_else(|| unreachable!("backward has one result"))
}

/// Computes `dx` in one pass, without a record.
fn fused<T: Float>(op: &Handle<T>, dy: Tensor<T>, saved: Option<Input<'_, T>>) -> Tensor<T> {
    let program;
    let formula: &dyn Formula<T> = match op.compiled_backward() {
        Some(formula) => formula,
        None => {
            program = op.backward_op(&[true]);
            program.program()
        }
    };
    run_formula(formula, saved, Input::Own(dy))
}
