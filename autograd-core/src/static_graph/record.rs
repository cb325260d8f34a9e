//! How an operator runs, and what it leaves for its gradient: places in a graph of its own, which the eager
//! engine walks.

use std::panic::Location;

use smallvec::SmallVec;

use super::eager::want_gradient;
use super::ir::{Grad, Kind};
use super::plan::{Plan, Step};
use super::values::{Computed, Values};
use crate::array::Value;
use crate::engine::{BackwardOptions, grad_any};
use crate::error::Result;
use crate::graph::{
    AnyTensor, Edges, Element, GradMode, NodeRef, Op, Pull, Slots, State, Tensor, for_any,
};

/// The inputs and outputs of an operator that ran, by their places in the graph: without their data, of
/// which the graph has what the gradient reads.
#[derive(Clone, Debug)]
pub(super) struct Record {
    inputs: Places,
    outputs: Places,
}

type Places = SmallVec<[AnyTensor; 2]>;

impl Step {
    /// Computes the outputs, and then what is written. `record` is that of the operator whose gradient this
    /// is; then it is what this one leaves.
    pub(super) fn run(
        &self,
        plan: &Plan,
        given: Values,
        record: &mut Option<Box<Record>>,
    ) -> Computed<Values> {
        let kind = &plan.graph.ops[self.op].kind;
        // The places of what is given, and itself, as inputs of a graph of its own.
        let as_inputs = |given: Values| -> (Places, Values) {
            let wants = self.reads.iter().map(|&(var, _)| plan.wants[var]);
            let input = |(value, wants): (AnyTensor, bool)| match kind {
                // A leaf, which the user's code cannot change in place.
                Kind::Eager(_) if wants => {
                    let leaf = value.alias();
                    want_gradient(&leaf);
                    (leaf.clone(), leaf)
                }
                _ => input(&value, wants),
            };
            given.into_iter().zip(wants).map(input).unzip()
        };
        let Kind::Grad(grad) = kind else {
            if !self.recorded {
                return kind.run(given);
            }
            let (inputs, given) = as_inputs(given);
            let computed = GradMode::of(true, || kind.run(given))?;
            // What it writes has no gradient.
            let outputs = &plan.graph.ops[self.op].outputs;
            let outputs = computed.iter().take(outputs.len()).map(place).collect();
            *record = Some(Box::new(Record { inputs, outputs }));
            return Ok(computed.iter().map(AnyTensor::alias).collect());
        };
        let before = *record.take().ok_or("its operator left no record")?;
        let options = BackwardOptions::new().retain_graph(self.retain);
        if !self.recorded {
            return before.pull(grad, given, options);
        }
        let (seeds, given) = as_inputs(given);
        let grads = before.pull(grad, given, options.create_graph(true))?;
        // Gradients do not flow to the forward operator's outputs: see `backward::wanted`.
        let inputs = before.inputs.into_iter().chain(before.outputs).chain(seeds).collect();
        let outputs = grads.iter().map(place).collect();
        *record = Some(Box::new(Record { inputs, outputs }));
        Ok(grads.iter().map(AnyTensor::alias).collect())
    }
}

impl Record {
    /// The gradients of the inputs that are asked for, by the engine, from those of outputs.
    fn pull(&self, grad: &Grad, given: Values, options: BackwardOptions) -> Computed<Values> {
        let pick = |from: &Places, at: &[usize]| -> Vec<AnyTensor> {
            at.iter().map(|&at| from[at].clone()).collect()
        };
        let inputs = pick(&self.inputs, &grad.wants);
        let given: Vec<Option<AnyTensor>> = given.into_iter().map(Some).collect();
        let found = grad_any(&pick(&self.outputs, &grad.seeds), &inputs, &given, options);
        let found = found.map_err(|error| error.to_string())?;
        fn zeros<T: Element>(like: &Tensor<T>) -> AnyTensor {
            Tensor::<T>::zeros_like(like).into()
        }
        let grads = found.into_iter().zip(&inputs);
        Ok(grads
            .map(|(grad, input)| grad.unwrap_or_else(|| for_any!(input, x => zeros(x))))
            .collect())
    }
}

/// The op of the nodes that inputs come from: gradients end here.
struct Input;

impl Op for Input {
    fn name(&self) -> &'static str {
        "input"
    }

    fn pull<'g>(&self, _: Slots, _: &mut Pull<'_, 'g>) -> Result<()> {
        Ok(())
    }
}

/// A value as an input of a graph of its own: its place there, and the input itself.
fn input(value: &AnyTensor, wants: bool) -> (AnyTensor, AnyTensor) {
    fn of<T: Element>(value: &Tensor<T>, wants: bool) -> (AnyTensor, AnyTensor) {
        let mut input = value.alias();
        if wants {
            let node =
                NodeRef::record(&Input, Edges::from_iter([]), State::NOTHING, Location::caller());
            input.attach(node, 0);
        }
        let input = T::wrap(input);
        (place(&input), input)
    }
    for_any!(value, x => of(x, wants))
}

/// The same place in the graph, of the same shape, without the data.
fn place(value: &AnyTensor) -> AnyTensor {
    fn of<T: Element>(value: &Tensor<T>) -> AnyTensor {
        // Of the value, only the shape is read.
        let mut place = Tensor::new(Value::of_inline(value.shape_owned(), T::INLINE));
        if let Some((node, slot)) = value.producer() {
            place.attach(node.clone(), *slot);
        }
        T::wrap(place)
    }
    for_any!(value, x => of(x))
}
