//! One call of an elementwise op, and its node in the graph.

use std::panic::Location;

use smallvec::SmallVec;

use super::op::Handle;
use super::{Caller, Float, Outputs};
use crate::array::shape::copied;
use crate::array::{Shape, Value};
use crate::error::Result;
use crate::formula::{Formula, Operand, block_of, pass, run_block};
use crate::graph::{
    AnyTensor, At, Edge, Keep, Keeps, Lost, NodeRef, Packing, Pull, Push, Rule, Slot, Slots, State,
    Tensor, Visit, is_grad_enabled,
};

/// The gradients of an op's differentiable operands, as far as they are wanted, from all operands and
/// masks, from those outputs that backward reads, and from the gradients of the outputs, which have
/// the shape of the whole.
pub(in crate::ops) fn gradients_of<T: Float>(
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
        Box::new(Framed { frame: Frame { shape: shape.clone(), targets }, shapes })
    });
    let edges = operands.iter().map(|x| Edge::None(x.absent())).collect();
    let node = ElementwiseNode { op, edges, kept: State::default(), framed };
    let info = node.op.info();
    let kept = info.keeps_reals.iter().map(|&i| Some(operands[i].clone()));
    let mut given: Reals<T> = kept.collect();
    given.extend(info.keeps_outputs.iter().map(|&k| outputs[k].cloned()));
    for &slot in info.gradients.iter() {
        given.push(Some(node.gradient(slot, grads[slot].take(), &shape)));
    }
    let masks: SmallVec<[Tensor<bool>; 2]> =
        info.keeps_masks.iter().map(|&i| masks[i].clone()).collect();
    node.gradients(given, &masks, wanted, (shape, Location::caller()))
}

/// What differs from call to call: the shapes where inputs are stretched or results added up.
/// Elsewhere all shapes are one, and there is no frame.
#[derive(Clone)]
pub(super) struct Frame {
    pub(super) shape: Shape,
    /// Of each result: as it is added up, with axes of 1, and as it is given.
    pub(super) targets: SmallVec<[(Shape, Shape); 1]>,
}

/// Computes the outputs and, where they must be, records them.
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
    let whole = frame.is_none().then(|| reals[0].shape());
    let operands = || reals.iter().map(|x| Some(*x));
    let wanted: SmallVec<[bool; 4]> = SmallVec::from_elem(true, info.outputs);
    let done = whole.and_then(|shape| at_once(op.forward(), operands(), masks, shape, &wanted));
    let mut outputs: Outputs<T> = if let Some(done) = done {
        done.into_iter().flatten().collect()
    } else {
        let read: SmallVec<[_; 4]> = reals.iter().map(|x| x.read()).collect();
        let operands = read.iter().map(|x| Operand::Ref(x)).collect();
        let shape = (reals[0].shape(), frame.as_ref());
        compute(op.forward(), operands, masks, shape, &wanted).into_iter().flatten().collect()
    };
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
    let keeps = op.lasts().then(|| op.keeps(wants));
    let read = |at: usize| keeps.as_ref().is_none_or(|keeps| keeps(at));
    let kept = Kept {
        reals: (info.keeps_reals.iter().enumerate())
            .map(|(at, &i)| read(at).then(|| Keep::input(i as u8, reals[i])))
            .collect(),
        masks: info
            .keeps_masks
            .iter()
            .map(|&i| Keep::input((reals.len() + i) as u8, masks[i]))
            .collect(),
        outputs: (info.keeps_outputs.iter().enumerate())
            .map(|(at, &k)| {
                let read = read(info.keeps_reals.len() + at);
                read.then(|| Output { tensor: outputs[k].alias(), slot: k as u32 })
            })
            .collect(),
    };
    let shapes = match &frame {
        Some(_) => reals.iter().map(|x| x.shape_owned()).collect(),
        None => Vec::new(),
    };
    let node = ElementwiseNode {
        op: op.clone(),
        edges: reals.iter().zip(info.differentiable.iter()).map(edge).collect(),
        kept: State::new(kept),
        framed: frame.map(|frame| Box::new(Framed { frame, shapes })),
    };
    let node = NodeRef::record(node, caller);
    for (k, output) in outputs.iter_mut().enumerate() {
        output.attach(node.clone(), k as u32);
    }
    outputs
}

/// Runs a kernel on the values of some tensors: the values themselves where nobody else can see
/// them.
fn consume<T: Float, R>(
    tensors: SmallVec<[Option<Tensor<T>>; 4]>,
    kernel: impl FnOnce(SmallVec<[Operand<'_, T>; 4]>) -> R,
) -> R {
    enum Held<T: Float> {
        Own(Value<T>),
        Shared(Tensor<T>),
        Absent,
    }
    let held = tensors.into_iter().map(|tensor| match tensor.map(Tensor::try_into_value) {
        Some(Ok(value)) => Held::Own(value),
        Some(Err(tensor)) => Held::Shared(tensor),
        None => Held::Absent,
    });
    let mut held: SmallVec<[Held<T>; 4]> = held.collect();
    let mut owned: SmallVec<[Option<Value<T>>; 4]> = SmallVec::new();
    for held in &mut held {
        owned.push(match std::mem::replace(held, Held::Absent) {
            Held::Own(value) => Some(value),
            other => {
                *held = other;
                None
            }
        });
    }
    let read: SmallVec<[_; 4]> = held
        .iter()
        .map(|held| match held {
            Held::Shared(tensor) => Some(tensor.read()),
            _ => None,
        })
        .collect();
    let operands = owned.into_iter().zip(&read).map(|(value, read)| match (value, read) {
        (Some(value), _) => Operand::Own(value),
        (None, Some(read)) => Operand::Ref(read),
        (None, None) => Operand::Absent,
    });
    kernel(operands.collect())
}

/// One pass; results that are not wanted are left out. Without a frame, all shapes are the one
/// beside it.
fn compute<T: Float>(
    formula: &dyn Formula<T>,
    operands: SmallVec<[Operand<'_, T>; 4]>,
    masks: &[&Tensor<bool>],
    (all, frame): (&[usize], Option<&Frame>),
    wanted: &[bool],
) -> SmallVec<[Option<Tensor<T>>; 2]> {
    let masks: SmallVec<[_; 2]> = masks.iter().map(|mask| mask.read()).collect();
    let masks: SmallVec<[&Value<bool>; 2]> = masks.iter().map(|mask| &**mask).collect();
    let target = |k: usize| frame.map_or(all, |frame| &frame.targets[k].0);
    let targets: SmallVec<[Option<Shape>; 2]> =
        wanted.iter().enumerate().map(|(k, wanted)| wanted.then(|| copied(target(k)))).collect();
    let shape = copied(frame.map_or(all, |frame| &frame.shape));
    let values = pass(&shape, operands, &masks, &targets, formula).into_iter().enumerate();
    let result = |(k, value): (usize, Option<Value<T>>)| {
        let value = value?;
        Some(Tensor::new(match frame.map(|frame| &frame.targets[k].1) {
            Some(result) if value.shape() != result.as_slice() => value.reshaped(copied(result)),
            _ => value,
        }))
    };
    values.map(result).collect()
}

/// Row-major operands of one shape, no longer than a block: without a pass. Nothing depends on those that
/// are absent.
fn at_once<'a, T: Float>(
    formula: &dyn Formula<T>,
    operands: impl Iterator<Item = Option<&'a Tensor<T>>>,
    masks: &[&Tensor<bool>],
    shape: &[usize],
    wanted: &[bool],
) -> Option<SmallVec<[Option<Tensor<T>>; 2]>> {
    let len = shape.iter().product();
    if len > block_of(wanted.len()) {
        return None;
    }
    let mut read: SmallVec<[_; 4]> = SmallVec::new();
    for operand in operands {
        read.push(operand.map(Tensor::read));
    }
    let mut reals: SmallVec<[&[T]; 4]> = SmallVec::new();
    for operand in &read {
        reals.push(match operand {
            Some(operand) => operand.in_memory()?,
            None => &[],
        });
    }
    let first = reals.iter().find(|x| !x.is_empty()).copied()?;
    for x in &mut reals {
        if x.is_empty() {
            *x = first;
        }
    }
    let mut conditions: SmallVec<[&[bool]; 2]> = SmallVec::new();
    for mask in masks {
        conditions.push(mask.fixed()?.in_memory()?);
    }
    let lengths = reals.iter().map(|x| x.len()).chain(conditions.iter().map(|m| m.len()));
    let lengths = [len, lengths.fold(first.len(), usize::min)];
    if let [true] = wanted {
        let mut y = Value::written(copied(shape), |_| {});
        run_block(formula, lengths, &reals, &conditions, y.as_padded_mut_slice()?);
        return Some(SmallVec::from_iter([Some(Tensor::new(y))]));
    }
    let stride = block_of(wanted.len());
    Some(T::with_scratch(wanted.len() * stride, |out| {
        run_block(formula, lengths, &reals, &conditions, out);
        let result = |(k, wanted): (usize, &bool)| {
            let data = &out[k * stride..][..len];
            wanted.then(|| Tensor::new(Value::from_slice(copied(shape), data)))
        };
        wanted.iter().enumerate().map(result).collect()
    }))
}

/// What backward gets.
#[derive(Clone)]
struct Kept<T: Float> {
    /// None where backward turned out not to depend on it.
    reals: SmallVec<[Option<Keep<T>>; 2]>,
    masks: SmallVec<[Keep<bool>; 1]>,
    outputs: SmallVec<[Option<Output<T>>; 1]>,
}

impl<T: Float> Kept<T> {
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        self.reals.iter_mut().flatten().try_for_each(|kept| visit(Some(kept)))?;
        self.masks.iter_mut().try_for_each(|kept| visit(Some(kept)))?;
        self.outputs.iter_mut().flatten().try_for_each(|kept| visit(Some(kept)))
    }
}

/// An output's value in a tensor of its own: the output holds the node.
#[derive(Clone)]
struct Output<T: Float> {
    tensor: Tensor<T>,
    slot: u32,
}

impl<T: Float> Output<T> {
    /// The output, with its place in the graph where this backward is recorded.
    fn unpack(self, at: &At<'_>) -> Tensor<T> {
        match at.create_graph {
            true => self.tensor.attached(at.node.clone(), self.slot),
            false => self.tensor,
        }
    }
}

impl<T: Float> Slot for Output<T> {
    fn name(&self) -> String {
        match self.slot {
            0 => "its output".into(),
            n => format!("output {n}"),
        }
    }

    fn take(&mut self) -> AnyTensor {
        T::wrap(std::mem::replace(&mut self.tensor, Tensor::new(Value::scalar(T::ZERO))))
    }

    fn put(&mut self, tensor: AnyTensor) {
        let tensor = T::unwrap(tensor);
        self.tensor = tensor.unwrap_or_else(|| unreachable!("the element type was compared"));
    }

    fn get(&self, at: &At<'_>) -> Result<AnyTensor> {
        Ok(T::wrap(self.clone().unpack(at)))
    }
}

pub(super) struct ElementwiseNode<T: Float> {
    op: Handle<T>,
    /// One for each input that is a number.
    edges: SmallVec<[Edge; 2]>,
    kept: State<Kept<T>>,
    framed: Option<Box<Framed>>,
}

/// The frame of forward, and the shapes of its inputs.
struct Framed {
    frame: Frame,
    shapes: Vec<Shape>,
}

impl<T: Float> Rule for ElementwiseNode<T> {
    fn name(&self) -> &'static str {
        self.op.info().name
    }

    fn edges(&self) -> &[Edge] {
        &self.edges
    }

    fn pull<'g>(&'g self, mut grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let kept = self.kept.take(pull.retain, &pull.at(), &Kept::visit)?;
        let (mut operands, masks) = self.unpack(kept, &pull.at())?;
        // Of the whole pass.
        let shape = match (&self.framed, grads.iter().flatten().next()) {
            (Some(framed), _) => framed.frame.shape.clone(),
            (None, Some(grad)) => copied(grad.shape()),
            (None, None) => unreachable!("a node is visited when a gradient came"),
        };
        for &slot in self.op.info().gradients.iter() {
            let grad = grads.get_mut(slot).and_then(Option::take).and_then(T::unwrap);
            operands.push(Some(self.gradient(slot, grad, &shape)));
        }
        let wanted: SmallVec<[bool; 4]> = self.inputs().map(|(_, edge)| pull.wants(edge)).collect();
        let grads = self.gradients(operands, &masks, &wanted, (shape, pull.node.location));
        for ((_, edge), grad) in self.inputs().zip(grads) {
            if let Some(grad) = grad {
                pull.sink.deliver(edge, T::wrap(grad))?;
            }
        }
        Ok(())
    }

    fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        let kept = self.kept.take(true, &push.at(), &Kept::visit)?;
        let (operands, masks) = self.unpack(kept, &push.at())?;
        Ok(self.pushed(operands, &masks, push))
    }

    fn pack(&mut self, packing: &Packing<'_>) {
        self.kept.pack(packing, &Kept::visit);
    }

    fn saved(&self, at: &At<'_>) -> Result<Vec<Option<AnyTensor>>> {
        self.kept.show(at, &Kept::visit)
    }
}

/// The numbers that backward gets.
type Reals<T> = SmallVec<[Option<Tensor<T>>; 4]>;
type Operands<T> = (Reals<T>, SmallVec<[Tensor<bool>; 2]>);

impl<T: Float> ElementwiseNode<T> {
    /// Of an op whose operands all have one shape; it keeps nothing itself.
    pub(super) fn bare(op: &Handle<T>, edges: &[Edge]) -> Self {
        let edges = edges.iter().cloned().collect();
        Self { op: op.clone(), edges, kept: State::default(), framed: None }
    }

    /// The tangents of the outputs from those of the inputs.
    pub(super) fn pushed(
        &self,
        mut operands: Reals<T>,
        masks: &[Tensor<bool>],
        push: &mut Push<'_>,
    ) -> Option<Slots> {
        let op = Handle::Shared(self.op.tangents_op());
        let mut tangents: SmallVec<[Tensor<T>; 4]> = SmallVec::new();
        let slots = self.inputs().map(|(i, _)| push.tangents[i].take().and_then(T::unwrap));
        let slots: SmallVec<[_; 4]> = slots.collect();
        operands.extend(slots);
        let shape = operands.iter().flatten().next().map(|operand| operand.shape_owned());
        let shape = shape?;
        for operand in operands {
            // What is absent does not change, or changes nothing.
            tangents.push(operand.unwrap_or_else(|| self.zeros(&shape)));
        }
        let reals: SmallVec<[&Tensor<T>; 4]> = tangents.iter().collect();
        let masks: SmallVec<[&Tensor<bool>; 2]> = masks.iter().collect();
        let frame = self.framed.as_ref().map(|framed| framed.frame.clone());
        let pushed = call(&op, &reals, &masks, frame, push.node.location);
        Some(pushed.into_iter().map(|tangent| Some(T::wrap(tangent))).collect())
    }

    /// The inputs that have a gradient: their positions and edges.
    fn inputs(&self) -> impl Iterator<Item = (usize, &Edge)> {
        let all = self.edges.iter().enumerate().zip(self.op.info().differentiable.iter());
        all.filter(|(_, differentiable)| **differentiable).map(|(input, _)| input)
    }

    /// The numbers and masks that backward gets.
    fn unpack(&self, kept: Kept<T>, at: &At<'_>) -> Result<Operands<T>> {
        let (mut operands, mut masks) = (SmallVec::new(), SmallVec::new());
        for keep in kept.reals {
            operands.push(keep.map(|keep| keep.unpack(at)).transpose()?);
        }
        for keep in kept.masks {
            masks.push(keep.unpack(at)?);
        }
        let outputs = kept.outputs.into_iter();
        operands.extend(outputs.map(|output| output.map(|output| output.unpack(at))));
        Ok((operands, masks))
    }

    /// The gradient of an output in the shape in which the pass takes it; zeros where none came.
    fn gradient(&self, slot: usize, grad: Option<Tensor<T>>, shape: &[usize]) -> Tensor<T> {
        let Some(grad) = grad else { return self.zeros(shape) };
        match &self.framed {
            Some(framed) if grad.shape() != framed.frame.targets[slot].0.as_slice() => {
                grad.reshape(copied(&framed.frame.targets[slot].0))
            }
            _ => grad,
        }
    }

    /// Zeros that go with operands of this shape.
    fn zeros(&self, shape: &[usize]) -> Tensor<T> {
        let zero = Value::scalar(T::ZERO);
        Tensor::new(if self.framed.is_some() { zero } else { zero.broadcast_to(shape) })
    }

    /// The gradients of the differentiable inputs, as far as they are wanted.
    pub(super) fn gradients(
        &self,
        operands: Reals<T>,
        masks: &[Tensor<bool>],
        wanted: &[bool],
        (shape, caller): (Shape, &'static Location<'static>),
    ) -> SmallVec<[Option<Tensor<T>>; 2]> {
        let handed = self.op.handed();
        if handed.is_empty() {
            return self.computed(operands, masks, wanted, (shape, caller));
        }
        let grads = &operands[operands.len() - self.op.info().gradients.len()..];
        let mut done: SmallVec<[Option<Tensor<T>>; 2]> = SmallVec::new();
        for ((i, _), (wanted, handed)) in self.inputs().zip(wanted.iter().zip(handed)) {
            let grad = handed.filter(|_| *wanted).and_then(|k| grads[k].as_ref());
            done.push(grad.map(|grad| match &self.framed {
                Some(framed) => {
                    grad.broadcast_to(&framed.frame.shape[..]).sum_to(&framed.shapes[i])
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
        let mut frame = self.framed.as_ref().map(|framed| {
            let shapes = self.inputs().map(|(i, _)| framed.shapes[i].clone());
            let targets = shapes.map(|shape| (shape.clone(), shape)).collect();
            Frame { shape: framed.frame.shape.clone(), targets }
        });
        if let Some(compiled) = self.op.compiled_backward()
            && !is_grad_enabled()
        {
            if frame.is_none() {
                let operands = operands.iter().map(Option::as_ref);
                let done = at_once(compiled, operands, &masks, &shape, wanted);
                if let Some(done) = done {
                    return done;
                }
            }
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
