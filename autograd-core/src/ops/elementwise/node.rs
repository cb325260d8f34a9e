//! One call of an elementwise op, and its node in the graph.

use std::panic::Location;
use std::sync::Arc;

use smallvec::SmallVec;

use super::compute::{CallShapes, Frame, compute, consume, run_formula};
use super::op::{ElementwiseOp, Handle, Outputs, has_one_gradient};
use super::steps::{self, FromGradient};
use crate::array::shape::{broadcast, copied, same};
use crate::array::{Shape, Value};
use crate::error::Result;
use crate::formula::{Formula, Operand, SingleStep};
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
    if !x.tensor().would_record() {
        let lost = Lost::of(info.name, caller, x.tensor());
        return run_formula(op.forward(), None, None, x).with_lost(lost);
    }
    // An output has the shape of the input, so it is as small.
    let (keeps_input, small) = (!info.keeps_reals.is_empty(), x.tensor().is_small());
    let node = NodeRef::with_edges(recorded_as(&op), caller, || Edges::One(x.edge(keeps_input)));
    let input = keeps_input.then(|| x.tensor().clone());
    let y = run_formula(op.forward(), None, None, x);
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
    let node = NodeRef::record(recorded_as(op), edges, state, caller);
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
pub(in crate::ops) fn recorded_as<T: Float>(op: &Handle<T>) -> &'static dyn graph::Op {
    let Handle::Static(op) = *op else { return const { &Recorded::<T>::PARAMETRIC } };
    &**op.found().recorded[T::DTYPE as usize].get_or_init(|| Box::new(Recorded::of(op)))
}

/// What the node of an op with one result holds if its operands' shapes differ.
pub(in crate::ops) fn call_shapes<T: Float>(
    op: &'static str,
    operands: &[&Tensor<T>; 2],
) -> Result<Option<Plain>> {
    let [a, b] = operands.map(Tensor::shape);
    if same(a, b) {
        return Ok(None);
    }
    let shape = broadcast(op, a, b)?;
    let targets = SmallVec::from_elem((shape.clone(), shape.clone()), 1);
    let shapes = operands.map(Tensor::shape_owned).into();
    Ok(Some(Arc::new(CallShapes { frame: Frame { shape, targets }, shapes })))
}

/// An elementwise op in the graph.
pub(crate) struct Recorded<T: 'static> {
    /// A static op, or `None` if each node holds its op beside its frame.
    op: Option<Handle<T>>,
    /// The gradients of the first two inputs that are one op. The others are formulas.
    steps: [Option<FromGradient>; 2],
}

impl<T: Float> Recorded<T> {
    const PARAMETRIC: Self = Self { op: None, steps: [None; 2] };

    fn of(op: &'static dyn ElementwiseOp<T>) -> Self {
        let (handle, info) = (Handle::Static(op), op.info());
        let of_inputs = info.has_one_result() && info.keeps_outputs.is_empty();
        let steps = if of_inputs { handle.single_steps() } else { &[] };
        let kept = info.keeps_reals.len();
        let step = |step: Option<SingleStep>| step.and_then(|step| FromGradient::of(step, kept));
        let steps = match (steps, &info.differentiable[..]) {
            (&[one], [true, ..]) => [step(one), None],
            (&[left, right], [true, true, ..]) => [step(left), step(right)],
            _ => [None; 2],
        };
        Self { op: Some(handle), steps }
    }

    #[inline]
    fn call<'n>(&'n self, node: &'n Node) -> NodeCall<'n, T> {
        match &self.op {
            Some(op) => NodeCall { op, framed: node.attrs() },
            None => {
                let (op, framed): &(Handle<T>, Option<CallShapes>) =
                    node.attrs().unwrap_or_else(|| unreachable!("it was recorded with the op"));
                NodeCall { op, framed: framed.as_ref() }
            }
        }
    }

    fn pull_steps<'g>(&self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let wants = |i: usize| pull.node.edges().get(i).is_some_and(|edge| pull.wants(edge));
        match [0, 1].map(|i| wants(i).then_some(self.steps[i])) {
            [Some(None), _] | [_, Some(None)] => {
                self.call(pull.node).pull_pass(pull.read()?, grads, pull)
            }
            [left, right] => {
                let (saved, dy) = (pull.read()?, typed::<T>(only(grads)));
                let Some(right) = right.flatten() else {
                    let Some(left) = left.flatten() else { return Ok(()) };
                    return left.deliver(0, Input::Own(dy), &saved, pull);
                };
                if let Some(left) = left.flatten() {
                    left.deliver(0, Input::Ref(&dy), &saved, pull)?;
                }
                right.deliver(1, Input::Own(dy), &saved, pull)
            }
        }
    }
}

impl<T: Float> graph::Op for Recorded<T> {
    fn name(&self) -> &'static str {
        self.op.as_ref().map_or("formula", |op| op.info().name)
    }

    fn name_of(&self, node: &Node) -> &'static str {
        self.call(node).op.info().name
    }

    fn pull<'g>(&self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        match self.steps {
            [None, None] => self.call(pull.node).pull_formula(grads, pull),
            _ => self.pull_steps(grads, pull),
        }
    }

    fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        if let Some(tangents) = steps::push::<T>(self.steps, push)? {
            return Ok(Some(tangents));
        }
        let call = self.call(push.node);
        let Some(tangent) = push.tangents.iter().flatten().next() else { return Ok(None) };
        let shape = copied(call.framed.map_or(tangent.shape(), |framed| &framed.frame.shape));
        let (operands, masks) = call.unpack(&mut push.read()?, &shape)?;
        Ok(Some(call.pushed(operands, &masks, &shape, push)))
    }
}

struct NodeCall<'n, T: 'static> {
    op: &'n Handle<T>,
    framed: Option<&'n CallShapes>,
}

type Reals<T> = SmallVec<[Option<Tensor<T>>; 4]>;
type Operands<T> = (Reals<T>, SmallVec<[Tensor<bool>; 2]>);

impl<T: Float> NodeCall<'_, T> {
    fn pushed(
        &self,
        operands: Reals<T>,
        masks: &[Tensor<bool>],
        shape: &[usize],
        push: &mut Push<'_>,
    ) -> Slots {
        let tangents = self.inputs().map(|i| push.tangents[i].take().and_then(T::unwrap));
        let tangents: SmallVec<[Option<Tensor<T>>; 4]> = tangents.collect();
        let present: SmallVec<[bool; 4]> = tangents.iter().map(Option::is_some).collect();
        let op = Handle::Shared(self.op.tangents_op(&present));
        // An operand that was not kept has no influence.
        let absent = self.zeros(shape);
        let kept = operands.iter().map(|operand| operand.as_ref().unwrap_or(&absent));
        let reals: SmallVec<[&Tensor<T>; 4]> = kept.chain(tangents.iter().flatten()).collect();
        let masks: SmallVec<[&Tensor<bool>; 2]> = masks.iter().collect();
        let frame = self.framed.map(|framed| framed.frame.clone());
        let pushed = call(&op, &reals, &masks, frame, push.node.location);
        pushed.into_iter().map(|tangent| Some(T::wrap(tangent))).collect()
    }

    /// The only gradient, if it is one of `dy` and at most a tensor and a number, saved in this order, without a
    /// pass over operands of several shapes.
    fn pull_formula<'g>(&self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let (saved, info) = (pull.read()?, self.op.info());
        if !has_one_gradient(info) {
            return self.pull_pass(saved, grads, pull);
        }
        let (x, number) = (saved.peek(0)?, saved.peek_number(1).map(T::from_f64));
        // A tensor that backward does not depend on is not saved.
        let found = usize::from(x.is_some()) + usize::from(number.is_some());
        let is_here = found == info.keeps_reals.len() + info.keeps_outputs.len();
        // Of several shapes, a gradient is summed.
        if pull.create_graph || self.framed.is_some() || !is_here {
            return self.pull_pass(saved, grads, pull);
        }
        let dy = typed(only(grads));
        let program;
        let formula: &dyn Formula<T> = match self.op.compiled_backward() {
            Some(formula) => formula,
            None => {
                program = self.op.backward_op(&[true]);
                program.program()
            }
        };
        let dx = run_formula(formula, x.map(Input::Ref), number, Input::Own(dy));
        pull.sink.deliver(&pull.node.edges()[0], T::wrap(dx))
    }

    fn pull_pass<'g>(
        &self,
        mut saved: SavedReader<'g>,
        mut grads: Slots,
        pull: &mut Pull<'_, 'g>,
    ) -> Result<()> {
        let edges = pull.node.edges();
        // The shape of the whole pass.
        let shape = match (self.framed, grads.iter().flatten().next()) {
            (Some(framed), _) => framed.frame.shape.clone(),
            (None, Some(grad)) => copied(grad.shape()),
            (None, None) => unreachable!("a node is visited when a gradient came"),
        };
        let (mut operands, masks) = self.unpack(&mut saved, &shape)?;
        for &slot in self.op.info().gradients.iter() {
            let grad = grads.get_mut(slot).and_then(Option::take).and_then(T::unwrap);
            operands.push(Some(self.gradient(slot, grad, &shape)));
        }
        let wanted: SmallVec<[bool; 4]> = self.inputs().map(|i| pull.wants(&edges[i])).collect();
        let grads = self.gradients(operands, &masks, &wanted, (shape, pull.node.location));
        for (i, grad) in self.inputs().zip(grads) {
            if let Some(grad) = grad {
                pull.sink.deliver(&edges[i], T::wrap(grad))?;
            }
        }
        Ok(())
    }

    fn inputs(&self) -> impl Iterator<Item = usize> {
        let all = self.op.info().differentiable.iter().enumerate();
        all.filter(|(_, differentiable)| **differentiable).map(|(input, _)| input)
    }

    /// The saved tensors; a saved number becomes a tensor in the shape of the pass.
    fn unpack(&self, saved: &mut SavedReader<'_>, shape: &[usize]) -> Result<Operands<T>> {
        let info = self.op.info();
        let (mut operands, mut masks) = (SmallVec::new(), SmallVec::new());
        for _ in info.keeps_reals.iter() {
            operands.push(match saved.number() {
                Some(number) => Some(self.filled(T::from_f64(number), shape)),
                None => saved.optional()?,
            });
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
        self.filled(T::ZERO, shape)
    }

    fn filled(&self, number: T, shape: &[usize]) -> Tensor<T> {
        let number = Value::scalar(number);
        Tensor::from_value(if self.framed.is_some() { number } else { number.broadcast_to(shape) })
    }

    pub(super) fn gradients(
        &self,
        operands: Reals<T>,
        masks: &[Tensor<bool>],
        wanted: &[bool],
        (shape, caller): (Shape, &'static Location<'static>),
    ) -> SmallVec<[Option<Tensor<T>>; 2]> {
        let steps = self.op.single_steps();
        let kept = operands.len() - self.op.info().gradients.len();
        let mut done: SmallVec<[Option<Tensor<T>>; 2]> = SmallVec::new();
        for (i, (wanted, step)) in self.inputs().zip(wanted.iter().zip(steps)) {
            // Only gradients that are those of an output: the others take one pass together.
            let grad = match step {
                Some(SingleStep::Input(at)) if *wanted && *at >= kept => operands[*at].as_ref(),
                _ => None,
            };
            done.push(grad.map(|grad| match self.framed {
                Some(framed) => {
                    grad.rebroadcast(&framed.frame.shape).unbroadcast(&framed.shapes[i])
                }
                None => grad.clone(),
            }));
        }
        if done.iter().all(Option::is_none) {
            return self.computed(operands, masks, wanted, (shape, caller));
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
