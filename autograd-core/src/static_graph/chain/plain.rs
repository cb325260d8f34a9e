//! A chain's operators one by one: where axes that are free turn out to be stretched.

use std::collections::HashMap;

use smallvec::SmallVec;

use super::super::ir::{Form, Graph, VarId};
use super::super::kind::Kind;
use super::super::run::Values;
use super::super::task::Failed;
use super::Chain;
use crate::array::{DType, Shape, Value};
use crate::graph::{AnyTensor, Tensor};

/// The outputs of a chain from its operands: the head's result first, where it has one.
pub(super) fn run(
    chain: &Chain,
    graph: &Graph,
    inputs: &[VarId],
    outputs: &[VarId],
    operands: Values,
) -> Result<Values, Failed> {
    let mut values: HashMap<VarId, AnyTensor> = HashMap::new();
    let result = chain.head.map(|head| graph.ops[head.row.unwrap_or(head.matmul)].outputs[0]);
    let read = &inputs[chain.head.map_or(0, super::Head::reads)..];
    values.extend(result.into_iter().chain(read.iter().copied()).zip(operands));
    for &id in &chain.ops {
        let op = &graph.ops[id];
        let failed = |why: String| Failed::at(id, why);
        let value = |var: &VarId| values.get(var).cloned();
        let done = match &op.kind {
            Kind::Grad { of, wants, seeds, forms, .. } => {
                let forward = &graph.ops[*of];
                let (n, m) = (forward.inputs.len(), forward.outputs.len());
                let mut dys: Vec<Option<AnyTensor>> = vec![None; m];
                for (&slot, var) in seeds.iter().zip(&op.inputs[n + m..]) {
                    dys[slot] = value(var);
                }
                // What a rule does not read it asks the shape of, which is known or that of the result.
                let same = dys.iter().flatten().next().cloned();
                let shape = |var: &VarId| stand_in(&graph.vars[*var].form).or_else(|| same.clone());
                let given = op.inputs[..n].iter().map(|var| value(var).or_else(|| shape(var)));
                let given: Vec<Option<AnyTensor>> = given.collect();
                let results: Vec<Option<AnyTensor>> =
                    op.inputs[n..n + m].iter().map(value).collect();
                forward.kind.pull(&given, &results, &mut dys, (wants, forms)).map_err(failed)?
            }
            kind => {
                let given: Option<Values> = op.inputs.iter().map(value).collect();
                let missing = || failed("an input is missing".to_owned());
                kind.run(given.ok_or_else(missing)?).map_err(failed)?
            }
        };
        values.extend(op.outputs.iter().copied().zip(done));
    }
    let last = chain.ops.last().copied().unwrap_or_default();
    let found = outputs.iter().map(|var| {
        let missing = || Failed::at(last, format!("`{}` has no value", graph.vars[*var].name));
        values.get(var).cloned().ok_or_else(missing)
    });
    found.collect::<Result<SmallVec<_>, _>>()
}

/// Something of a known shape.
fn stand_in(form: &Form) -> Option<AnyTensor> {
    let shape: Option<Shape> = form.dims.iter().copied().collect();
    let shape = shape?;
    match form.dtype {
        DType::Float32 => Some(Tensor::new(Value::scalar(0.0_f32).broadcast_to(&shape)).into()),
        DType::Float64 => Some(Tensor::new(Value::scalar(0.0_f64).broadcast_to(&shape)).into()),
        _ => None,
    }
}
