//! One call of an elementwise op, and its node in the graph.

use std::panic::Location;
use std::sync::Arc;

use smallvec::SmallVec;

use super::op::{Op, Traceable};
use super::{Caller, Float, Outputs};
use crate::array::shape::copied;
use crate::array::{Shape, Value};
use crate::error::Result;
use crate::formula::{Formula, Operand, pass};
use crate::graph::{
    AnyTensor, At, Edge, Keep, Keeps, NodeRef, Packing, Pull, Rule, Slot, State, Tensor, Visit,
    is_grad_enabled,
};

/// The shape of a pass, and of each result: as it is added up, with axes of 1, and as it is given.
#[derive(Clone)]
pub(super) struct Frame {
    pub(super) shape: Shape,
    pub(super) targets: SmallVec<[(Shape, Shape); 1]>,
}

/// Computes the outputs and, where they must be, records them.
pub(super) fn call<T: Float>(
    op: &Arc<dyn Op<T>>,
    reals: &[&Tensor<T>],
    masks: &[&Tensor<bool>],
    frame: &Frame,
    caller: Caller,
) -> Outputs<T> {
    let info = op.info();
    let recorded = is_grad_enabled()
        && reals
            .iter()
            .zip(info.differentiable.iter())
            .any(|(x, wants)| *wants && !x.stop_gradient());
    let values = {
        let read: SmallVec<[_; 4]> = reals.iter().map(|x| x.read()).collect();
        let operands = read.iter().map(|x| Operand::Ref(x)).collect();
        compute(op.forward(), operands, masks, frame, |_| true)
    };
    let values: SmallVec<[Value<T>; 1]> = values
        .into_iter()
        .zip(&frame.targets)
        .flat_map(|(value, (_, result))| value.map(|value| shaped(value, result)))
        .collect();
    if !recorded {
        return values.into_iter().map(Tensor::new).collect();
    }
    let edge = |(x, wants): (&&Tensor<T>, &bool)| match wants {
        true => x.edge(),
        false => Edge::None(x.detached()),
    };
    let kept = Kept {
        reals: info.keeps_reals.iter().map(|&i| Keep::input(i as u8, reals[i])).collect(),
        masks: info
            .keeps_masks
            .iter()
            .map(|&i| Keep::input((reals.len() + i) as u8, masks[i]))
            .collect(),
        outputs: info
            .keeps_outputs
            .iter()
            .map(|&k| Output { tensor: Tensor::new(values[k].clone()), slot: k as u32 })
            .collect(),
    };
    let node = ElementwiseNode {
        op: Arc::clone(op),
        edges: reals.iter().zip(info.differentiable.iter()).map(edge).collect(),
        kept: State::new(kept),
        shapes: reals.iter().map(|x| x.shape_owned()).collect(),
        frame: frame.clone(),
    };
    let node = NodeRef::record(node, caller);
    let outputs = values.into_iter().enumerate();
    outputs.map(|(k, value)| Tensor::new(value).attached(node.clone(), k as u32)).collect()
}

/// Runs a kernel on the values of some tensors: the values themselves where nobody else can see
/// them.
fn consume<T: Float, R>(
    tensors: SmallVec<[Tensor<T>; 4]>,
    kernel: impl FnOnce(SmallVec<[Operand<'_, T>; 4]>) -> R,
) -> R {
    let mut owned: SmallVec<[Option<Value<T>>; 4]> = SmallVec::new();
    let mut shared: SmallVec<[Option<Tensor<T>>; 4]> = SmallVec::new();
    for tensor in tensors {
        let value = tensor.try_into_value();
        let (value, tensor) = match value {
            Ok(value) => (Some(value), None),
            Err(tensor) => (None, Some(tensor)),
        };
        owned.push(value);
        shared.push(tensor);
    }
    let read: SmallVec<[_; 4]> = shared.iter().map(|x| x.as_ref().map(Tensor::read)).collect();
    let operands = owned.into_iter().zip(&read).flat_map(|(value, read)| match value {
        Some(value) => Some(Operand::Own(value)),
        None => read.as_deref().map(Operand::Ref),
    });
    kernel(operands.collect())
}

/// One pass; results that are not wanted are left out.
fn compute<T: Float>(
    formula: &dyn Formula<T>,
    operands: SmallVec<[Operand<'_, T>; 4]>,
    masks: &[&Tensor<bool>],
    frame: &Frame,
    wanted: impl Fn(usize) -> bool,
) -> SmallVec<[Option<Value<T>>; 1]> {
    let masks: SmallVec<[_; 2]> = masks.iter().map(|mask| mask.read()).collect();
    let masks: SmallVec<[&Value<bool>; 2]> = masks.iter().map(|mask| &**mask).collect();
    let targets: SmallVec<[Option<Shape>; 2]> = frame
        .targets
        .iter()
        .enumerate()
        .map(|(k, (target, _))| wanted(k).then(|| copied(target)))
        .collect();
    pass(&frame.shape, operands, &masks, &targets, formula)
}

fn shaped<T: Float>(value: Value<T>, shape: &Shape) -> Value<T> {
    if value.shape() == shape.as_slice() { value } else { value.reshaped(copied(shape)) }
}

/// What backward gets.
#[derive(Clone)]
struct Kept<T: Float> {
    reals: SmallVec<[Keep<T>; 2]>,
    masks: SmallVec<[Keep<bool>; 1]>,
    outputs: SmallVec<[Output<T>; 1]>,
}

impl<T: Float> Kept<T> {
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        self.reals.iter_mut().try_for_each(|kept| visit(Some(kept)))?;
        self.masks.iter_mut().try_for_each(|kept| visit(Some(kept)))?;
        self.outputs.iter_mut().try_for_each(|kept| visit(Some(kept)))
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
            true => self.tensor.attached(NodeRef::new(Arc::clone(at.node)), self.slot),
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

struct ElementwiseNode<T: Float> {
    op: Arc<dyn Op<T>>,
    /// One for each input that is a number.
    edges: SmallVec<[Edge; 2]>,
    kept: State<Kept<T>>,
    shapes: SmallVec<[Shape; 2]>,
    frame: Frame,
}

impl<T: Float> Rule for ElementwiseNode<T> {
    fn name(&self) -> &'static str {
        self.op.info().name
    }

    fn edges(&self) -> &[Edge] {
        &self.edges
    }

    fn pull(&self, pull: &mut Pull<'_>) -> Result<()> {
        let kept = self.kept.take(pull, Kept::visit)?;
        let at = pull.at();
        let mut operands: SmallVec<[Tensor<T>; 4]> = SmallVec::new();
        for keep in kept.reals {
            operands.push(keep.unpack(&at)?);
        }
        let mut masks: SmallVec<[Tensor<bool>; 2]> = SmallVec::new();
        for keep in kept.masks {
            masks.push(keep.unpack(&at)?);
        }
        let info = self.op.info();
        operands.extend(kept.outputs.into_iter().map(|output| output.unpack(&at)));
        for &slot in info.gradients.iter() {
            let grad = pull.grads.get_mut(slot).and_then(Option::take).and_then(T::unwrap);
            let grad = grad.unwrap_or_else(|| Tensor::new(Value::scalar(T::ZERO)));
            let (target, result) = &self.frame.targets[slot];
            operands.push(match target == result || grad.shape() != result.as_slice() {
                true => grad,
                false => grad.reshape(copied(target)),
            });
        }
        let wanted: SmallVec<[bool; 4]> = self
            .edges
            .iter()
            .zip(info.differentiable.iter())
            .filter(|(_, differentiable)| **differentiable)
            .map(|(edge, _)| pull.sink.wants(edge))
            .collect();
        let grads = self.gradients(operands, &masks, &wanted, pull.node.location);
        let edges = self.edges.iter().zip(info.differentiable.iter());
        let edges = edges.filter(|(_, differentiable)| **differentiable).map(|(edge, _)| edge);
        for (edge, grad) in edges.zip(grads) {
            if let Some(grad) = grad {
                pull.sink.deliver(edge, T::wrap(grad))?;
            }
        }
        Ok(())
    }

    fn pack(&mut self, packing: &Packing<'_>) {
        self.kept.pack(packing, Kept::visit);
    }

    fn saved(&self, at: &At<'_>) -> Result<Vec<Option<AnyTensor>>> {
        self.kept.show(at, Kept::visit)
    }
}

impl<T: Float> ElementwiseNode<T> {
    /// The gradients of the differentiable inputs, as far as they are wanted.
    fn gradients(
        &self,
        operands: SmallVec<[Tensor<T>; 4]>,
        masks: &[Tensor<bool>],
        wanted: &[bool],
        caller: &'static Location<'static>,
    ) -> SmallVec<[Option<Tensor<T>>; 2]> {
        let masks: SmallVec<[&Tensor<bool>; 2]> = masks.iter().collect();
        let differentiable = self.op.info().differentiable.iter();
        let shapes = self.shapes.iter().zip(differentiable).filter(|(_, wants)| **wants);
        let targets = shapes.map(|(shape, _)| (shape.clone(), shape.clone()));
        let mut frame = Frame { shape: self.frame.shape.clone(), targets: targets.collect() };
        let compiled = self.op.compiled_backward().filter(|_| !is_grad_enabled());
        if let Some(compiled) = compiled {
            return consume(operands, |operands| {
                let grads = compute(compiled, operands, &masks, &frame, |k| wanted[k]);
                grads.into_iter().map(|grad| grad.map(Tensor::new)).collect()
            });
        }
        let program = self.op.backward(wanted).with_outputs(wanted);
        let mut which = wanted.iter();
        frame.targets.retain(|_| which.next().copied().unwrap_or(false));
        let reals: SmallVec<[&Tensor<T>; 4]> = operands.iter().collect();
        let counts = [reals.len(), masks.len(), frame.targets.len()];
        let name = self.op.info().name;
        let op: Arc<dyn Op<T>> = Arc::new(Traceable::new(name, program, counts));
        let mut grads = call(&op, &reals, &masks, &frame, caller).into_iter();
        wanted.iter().map(|wanted| if *wanted { grads.next() } else { None }).collect()
    }
}
