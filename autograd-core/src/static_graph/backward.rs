//! Backward: the operators from last to first, each giving the gradients of its inputs from those
//! of its outputs. No derivative is written here: the operator for a gradient runs the eager
//! engine's rule, or the user's backward function.

use std::collections::HashMap;
use std::panic::Location;

use super::ir::{Graph, Op, OpId, Phase, Place, Role, Var, VarId, wrong};
use super::kind::Kind;
use super::variable::Variable;
use crate::error::Result;

/// Appends the gradients of a loss of one element with respect to all parameters that want one,
/// and returns these with their gradients.
///
/// # Errors
///
/// [`Error::Program`](crate::Error::Program) if the loss has more than one element or is no float.
#[track_caller]
pub fn append_backward(loss: &Variable) -> Result<Vec<(Variable, Variable)>> {
    let place = Place::Line(Location::caller());
    let pairs = loss.program.graph().attempt(|graph| parameter_gradients(graph, loss, &place))?;
    let variable = |id| loss.program.variable(id);
    Ok(pairs.into_iter().map(|(parameter, grad)| (variable(parameter), variable(grad))).collect())
}

/// Appends the gradients of targets with respect to inputs, which may be parameters, data or
/// computed; several targets are summed, each starting with ones. `None` for an input that no
/// target depends on, or at which gradients stop.
///
/// The gradients are variables of the program and can be differentiated again.
///
/// ```
/// use autograd_core::DType;
/// use autograd_core::static_graph::{Executor, Program, gradients};
/// use ndarray::arr1;
///
/// let program = Program::new();
/// let x = program.data("x", [2], DType::Float64)?;
/// x.set_stop_gradient(false);
/// let y = (&x * &x).try_mul(&x)?;
/// let dx = gradients(&[&y], &[&x])?.remove(0).unwrap();
/// let d2x = gradients(&[&dx], &[&x])?.remove(0).unwrap();
/// let run = Executor::new().run(&program, &[("x", &arr1(&[1.0, 2.0]))], &[&dx, &d2x])?;
/// assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [3.0, 12.0]);
/// assert_eq!(run[1].downcast_ref::<f64>().unwrap().to_vec(), [6.0, 12.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Program`](crate::Error::Program) if there is no target, a target is no float, or the
/// variables are of different programs.
#[track_caller]
pub fn gradients(targets: &[&Variable], inputs: &[&Variable]) -> Result<Vec<Option<Variable>>> {
    let place = Place::Line(Location::caller());
    gradients_at(targets, inputs, &vec![None; targets.len()], &place)
}

/// [`gradients`] that start with given variables, of their targets' shapes; ones for `None`.
///
/// # Errors
///
/// As [`gradients`]; also for another number of seeds than targets, or one of another form.
#[track_caller]
pub fn gradients_with(
    targets: &[&Variable],
    inputs: &[&Variable],
    seeds: &[Option<&Variable>],
) -> Result<Vec<Option<Variable>>> {
    gradients_at(targets, inputs, seeds, &Place::Line(Location::caller()))
}

fn gradients_at(
    targets: &[&Variable],
    inputs: &[&Variable],
    seeds: &[Option<&Variable>],
    place: &Place,
) -> Result<Vec<Option<Variable>>> {
    let call = "gradients";
    let Some(first) = targets.first() else {
        return Err(wrong(call, place, "there is no target"));
    };
    if targets.len() != seeds.len() {
        let why = format!("{} targets have {} seeds", targets.len(), seeds.len());
        return Err(wrong(call, place, why));
    }
    let program = &first.program;
    let mut from = Vec::new();
    for (target, seed) in targets.iter().zip(seeds) {
        let id = program.own(call, target, place)?;
        let seed = seed.map(|seed| program.own(call, seed, place).map(|id| (id, seed)));
        let seed = match seed.transpose()? {
            Some((id, seed)) if seed.form().agrees(&target.form()) => Some(id),
            Some((_, seed)) => {
                let why = format!(
                    "the seed `{}` is {}, its target `{}` is {}",
                    seed.name(),
                    seed.form(),
                    target.name(),
                    target.form()
                );
                return Err(wrong(call, place, why));
            }
            None => None,
        };
        from.push((id, seed));
    }
    let of: Result<Vec<VarId>> =
        inputs.iter().map(|input| program.own(call, input, place)).collect();
    let of = of?;
    let found = program.graph().attempt(|graph| append(call, graph, &from, &of, place))?;
    Ok(found.into_iter().map(|id| id.map(|id| program.variable(id))).collect())
}

/// Appends the gradients of a loss with respect to all parameters that want one.
pub(super) fn parameter_gradients(
    graph: &mut Graph,
    loss: &Variable,
    place: &Place,
) -> Result<Vec<(VarId, VarId)>> {
    let Var { name, form, .. } = &graph.vars[loss.id];
    if form.dims.iter().any(|dim| *dim != Some(1)) {
        let why = format!("the loss `{name}` must have one element, it is {form}");
        return Err(wrong("append_backward", place, why));
    }
    let is_parameter = |id: &VarId| graph.vars[*id].role == Role::Kept { parameter: true };
    let parameters: Vec<VarId> = (0..graph.vars.len()).filter(is_parameter).collect();
    let found = append("append_backward", graph, &[(loss.id, None)], &parameters, place)?;
    let pairs = parameters.into_iter().zip(found);
    Ok(pairs.filter_map(|(parameter, grad)| Some((parameter, grad?))).collect())
}

/// Appends the gradients of `from` with respect to `of`.
fn append(
    call: &str,
    graph: &mut Graph,
    from: &[(VarId, Option<VarId>)],
    of: &[VarId],
    place: &Place,
) -> Result<Vec<Option<VarId>>> {
    for &(target, _) in from {
        let var = &graph.vars[target];
        if !var.form.dtype.is_float() {
            let why = format!("`{}` is {}, which has no gradient", var.name, var.form.dtype);
            return Err(wrong(call, place, why));
        }
    }
    let found = reverse(graph, from, of, place)?;
    graph.verify()?;
    Ok(found)
}

/// Gradients on their way: for each variable what contributes to its gradient.
type Contributions = HashMap<VarId, Vec<VarId>>;

fn reverse(
    graph: &mut Graph,
    from: &[(VarId, Option<VarId>)],
    of: &[VarId],
    place: &Place,
) -> Result<Vec<Option<VarId>>> {
    let needed = needed(graph, of);
    let mut coming = Contributions::new();
    for &(target, seed) in from {
        if !needed[target] {
            continue;
        }
        let seed = match seed {
            Some(seed) => seed,
            None => named(graph, Kind::FillLike(1.0), &[target], target, place)?,
        };
        coming.entry(target).or_default().push(seed);
    }
    for id in (0..graph.ops.len()).rev() {
        let op = graph.ops[id].clone();
        if !op.outputs.iter().any(|output| coming.contains_key(output)) {
            continue;
        }
        let wants: Vec<usize> = wanted(&op, graph, &needed);
        if wants.is_empty() {
            continue;
        }
        let grads: Vec<Option<VarId>> = op
            .outputs
            .iter()
            .map(|&output| total(graph, &mut coming, output, place))
            .collect::<Result<_>>()?;
        let found = gradient(graph, id, &op, &grads, &wants)?;
        for (&input, grad) in wants.iter().zip(found) {
            coming.entry(op.inputs[input]).or_default().push(grad);
        }
    }
    of.iter().map(|&var| total(graph, &mut coming, var, place)).collect()
}

/// Variables that want a gradient and lie between `of` and what is computed from it.
fn needed(graph: &Graph, of: &[VarId]) -> Vec<bool> {
    let wants = graph.wants_gradient();
    let mut reached = vec![false; graph.vars.len()];
    of.iter().for_each(|&var| reached[var] = true);
    for op in &graph.ops {
        if op.inputs.iter().any(|&input| reached[input] && wants[input]) {
            op.outputs.iter().for_each(|&output| reached[output] = true);
        }
    }
    reached.iter().zip(wants).map(|(&reached, wants)| reached && wants).collect()
}

/// Positions of the inputs whose gradients are of use.
fn wanted(op: &Op, graph: &Graph, needed: &[bool]) -> Vec<usize> {
    let of_outputs = match &op.kind {
        Kind::FillLike(_)
        | Kind::Init { .. }
        | Kind::Update(_)
        | Kind::Constant(_)
        | Kind::ArgMax { .. }
        | Kind::Compare(_) => return Vec::new(),
        Kind::PyFunc(function) if !function.has_backward() && !function.is_gradient() => {
            return Vec::new();
        }
        // What flows through an output of the forward operator flows on to its inputs there.
        Kind::Grad { of, .. } => {
            let first = graph.ops[*of].inputs.len();
            first..first + graph.ops[*of].outputs.len()
        }
        _ => 0..0,
    };
    let inputs = op.inputs.iter().enumerate();
    inputs
        .filter(|(position, input)| needed[**input] && !of_outputs.contains(position))
        .map(|(position, _)| position)
        .collect()
}

/// The whole gradient of a variable: the sum of what contributes, in the order of its coming.
fn total(
    graph: &mut Graph,
    coming: &mut Contributions,
    var: VarId,
    place: &Place,
) -> Result<Option<VarId>> {
    let Some(parts) = coming.get_mut(&var) else { return Ok(None) };
    if parts.len() > 1 {
        let parts = std::mem::take(parts);
        let sum = named(graph, Kind::Sum, &parts, var, place)?;
        coming.insert(var, vec![sum]);
        return Ok(Some(sum));
    }
    Ok(parts.first().copied())
}

/// An operator whose output is named after the variable that it is a gradient of.
fn named(
    graph: &mut Graph,
    kind: Kind,
    inputs: &[VarId],
    of: VarId,
    place: &Place,
) -> Result<VarId> {
    let (stem, form) = (format!("{}@GRAD", graph.vars[of].name), graph.vars[of].form.clone());
    let output = graph.add_computed(&stem, true, form, place);
    let (inputs, outputs) = (inputs.to_vec(), vec![output]);
    let (writes, place) = (Vec::new(), place.clone());
    graph.push_op(Op { kind, inputs, outputs, writes, phase: Phase::Backward, place })?;
    Ok(output)
}

/// The operator for an operator's gradients.
fn gradient(
    graph: &mut Graph,
    id: OpId,
    op: &Op,
    grads: &[Option<VarId>],
    wants: &[usize],
) -> Result<Vec<VarId>> {
    match &op.kind {
        Kind::PyFunc(function) => return function.gradient(graph, id, grads, wants),
        Kind::Layer(layer) => return layer.gradient(graph, id, grads, wants),
        // Each part of a sum has the sum's gradient.
        Kind::Sum => {
            let whole = grads[0].into_iter();
            return Ok(whole.cycle().take(wants.len()).collect());
        }
        _ => {}
    }
    let mut inputs = op.inputs.clone();
    inputs.extend(&op.outputs);
    inputs.extend(grads.iter().flatten());
    let forms = wants.iter().map(|&input| graph.vars[op.inputs[input]].form.clone()).collect();
    let kind = Kind::Grad {
        of: id,
        name: op.kind.stem().into(),
        wants: wants.to_vec(),
        seeds: (0..grads.len()).filter(|&output| grads[output].is_some()).collect(),
        forms,
    };
    let outputs: Vec<VarId> = wants
        .iter()
        .map(|&input| {
            let var = graph.vars[op.inputs[input]].clone();
            graph.add_computed(&format!("{}@GRAD", var.name), true, var.form, &op.place)
        })
        .collect();
    graph.push_op(Op {
        kind,
        inputs,
        outputs: outputs.clone(),
        writes: Vec::new(),
        phase: Phase::Backward,
        place: op.place.clone(),
    })?;
    Ok(outputs)
}
