//! How an operator runs, and its record: places in a separate graph, which the eager engine walks.

use std::panic::Location;

use smallvec::SmallVec;

use super::eager::want_gradient;
use super::ir::{Grad, Kind};
use super::plan::{Plan, Step};
use crate::array::{DType, Shape};
use crate::engine::{BackwardOptions, described, grad_along};
use crate::error::{Error, Result};
use crate::graph::{
    AnyTensor, Edge, Edges, Element, GradMode, NodeRef, Op, Pull, Slots, State, Tensor, for_any,
};
use crate::ops::table::{Computed, Values};

#[derive(Clone)]
pub(super) struct Record {
    inputs: Places,
    outputs: Places,
}

type Places = SmallVec<[Place; 2]>;

/// The edge of a value in the graph, and its form; the graph keeps the data that the gradient reads.
#[derive(Clone)]
struct Place {
    edge: Edge,
    dtype: DType,
    shape: Shape,
}

impl Step {
    /// Computes the results. `record` is at first that of the operator whose gradient this step computes.
    pub(super) fn run(
        &self,
        plan: &Plan,
        mut given: Values,
        record: &mut Option<Box<Record>>,
    ) -> Computed<Values> {
        let op = &plan.graph.ops[self.op];
        let mut inputs = Places::new();
        if self.recorded {
            for (value, &(var, _)) in given.iter_mut().zip(&self.reads) {
                value.unshare();
                match op.kind {
                    _ if !plan.wants[var] => {}
                    // A leaf, which user code cannot change in place.
                    Kind::Eager(_) => want_gradient(value),
                    _ => for_any!(value, x => attach(x)),
                }
                inputs.push(Place::of(value));
            }
        }
        let mut computed = match &op.kind {
            Kind::Grad(grad) => {
                let before = *record.take().ok_or("its operator left no record")?;
                let options = BackwardOptions::new().retain_graph(self.retain);
                let grads = before.pull(grad, given, options.create_graph(self.recorded))?;
                if self.recorded {
                    // Gradients do not flow to the forward operator's outputs: see `backward::wanted`.
                    let before = before.inputs.into_iter().chain(before.outputs);
                    inputs = before.chain(inputs).collect();
                }
                grads
            }
            kind => GradMode::of(self.recorded, || kind.run(given))?,
        };
        if !self.recorded {
            return Ok(computed);
        }
        let mut outputs = Places::new();
        // Kept variables that are written have no gradient.
        computed.iter().take(op.outputs.len()).for_each(|value| outputs.push(Place::of(value)));
        *record = Some(Box::new(Record { inputs, outputs }));
        for value in &mut computed {
            // The same value, detached from the graph.
            for_any!(value, x => if !x.try_in_place(|_| true) { *x = x.alias() });
        }
        Ok(computed)
    }
}

impl Record {
    fn pull(&self, grad: &Grad, given: Values, options: BackwardOptions) -> Computed<Values> {
        let edges = |places: &Places, at: &[usize]| -> SmallVec<[Edge; 2]> {
            at.iter().map(|&at| places[at].edge.clone()).collect()
        };
        for (seed, &output) in given.iter().zip(&grad.seeds) {
            let Place { edge, shape, .. } = &self.outputs[output];
            if seed.shape() != &shape[..] {
                let (expected, found) = (shape.to_vec(), seed.shape().to_vec());
                let output = described(edge);
                let error = Error::SeedShape { op: "grad", output, expected, found };
                return Err(error.to_string());
            }
        }
        let (from, to) = (edges(&self.outputs, &grad.seeds), edges(&self.inputs, &grad.wants));
        let found = grad_along(&from, given, &to, options).map_err(|error| error.to_string())?;
        let inputs = grad.wants.iter().map(|&at| &self.inputs[at]);
        Ok(found
            .into_iter()
            .zip(inputs)
            .map(|(grad, input)| grad.unwrap_or_else(|| input.zeros()))
            .collect())
    }
}

impl Place {
    fn of(value: &AnyTensor) -> Self {
        for_any!(value, x => Self { edge: x.edge(), dtype: x.dtype(), shape: x.shape_owned() })
    }

    fn zeros(&self) -> AnyTensor {
        match self.dtype {
            DType::Float32 => Tensor::<f32>::zeros(&self.shape[..]).into(),
            _ => Tensor::<f64>::zeros(&self.shape[..]).into(),
        }
    }
}

/// The op of the nodes of inputs; gradients end here.
struct Input;

impl Op for Input {
    fn name(&self) -> &'static str {
        "input"
    }

    fn pull<'g>(&self, _: Slots, _: &mut Pull<'_, 'g>) -> Result<()> {
        Ok(())
    }
}

fn attach<T: Element>(value: &mut Tensor<T>) {
    let node = NodeRef::record(&Input, Edges::from_iter([]), State::NOTHING, Location::caller());
    value.attach(node, 0);
}
