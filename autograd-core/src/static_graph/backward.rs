//! Gradients of variables, computed through the operators from last to first. No derivative is here:
//! the operator of a gradient runs the eager engine's rule, or the user's backward function.

use std::collections::HashMap;

use super::ir::{
    Grad, Gradient, Graph, Kind, Op, OpDef, OpId, Operator, Phase, Place, Site, Var, VarId,
};
use super::program::Variable;
use super::table;
use crate::error::Result;
use crate::ops::table::attr::Attr;

/// Appends the gradients of a loss of one element, and returns the parameters that want one, each with its own.
///
/// ```
/// use autograd_core::DType;
/// use autograd_core::static_graph::{Executor, Init, Program, append_backward};
///
/// let program = Program::new();
/// let w = program.create_parameter("w", [2], DType::Float64, Init::Constant(3.0))?;
/// let (parameter, dw) = append_backward(&w.square()?.sum()?)?.remove(0);
/// assert_eq!(parameter.name(), "w");
/// let executor = Executor::new();
/// executor.run(&program.startup(), &[], &[])?;
/// let run = executor.run(&program, &[], &[&dw])?;
/// assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [6.0, 6.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Program`](crate::Error::Program) if the loss has more than one element or is not a float.
#[track_caller]
pub fn append_backward(loss: &Variable) -> Result<Vec<(Variable, Variable)>> {
    let site = Site::here("append_backward");
    let pairs =
        loss.program.graph().attempt(|graph| parameter_gradients(graph, loss.id, &site.place))?;
    let variable = |id| loss.program.variable(id);
    Ok(pairs.into_iter().map(|(parameter, grad)| (variable(parameter), variable(grad))).collect())
}

/// Appends the gradients of targets with respect to inputs, which may be any variables; they can be
/// differentiated again, in the shapes of the inputs. Several targets are summed; each starts with ones.
/// `None` for an input on which no target depends, or at which gradients stop.
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
/// [`Error::Program`](crate::Error::Program) if there is no target, a target is not a float, or the
/// variables are of different programs.
#[track_caller]
pub fn gradients(targets: &[&Variable], inputs: &[&Variable]) -> Result<Vec<Option<Variable>>> {
    gradients_with(targets, inputs, &vec![None; targets.len()])
}

/// [`gradients`] with given initial gradients, of their targets' shapes; `None` for ones.
///
/// ```
/// use autograd_core::DType;
/// use autograd_core::static_graph::{Executor, Program, gradients_with};
/// use ndarray::arr1;
///
/// let program = Program::new();
/// let x = program.data("x", [2], DType::Float64)?;
/// let seed = program.data("seed", [2], DType::Float64)?;
/// x.set_stop_gradient(false);
/// let dx = gradients_with(&[&x.square()?], &[&x], &[Some(&seed)])?.remove(0).unwrap();
/// let (x, seed) = (arr1(&[1.0, 2.0]), arr1(&[1.0, 10.0]));
/// let run = Executor::new().run(&program, &[("x", &x), ("seed", &seed)], &[&dx])?;
/// assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [2.0, 40.0]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
///
/// # Errors
///
/// As [`gradients`]; also if there are not as many seeds as targets, or a seed has another form.
#[track_caller]
pub fn gradients_with(
    targets: &[&Variable],
    inputs: &[&Variable],
    seeds: &[Option<&Variable>],
) -> Result<Vec<Option<Variable>>> {
    let site = Site::here("gradients");
    let Some(first) = targets.first() else {
        return site.refuse("there is no target");
    };
    if targets.len() != seeds.len() {
        return site.refuse(format!("{} targets have {} seeds", targets.len(), seeds.len()));
    }
    let program = &first.program;
    let own = |variable: &Variable| program.own(&site, variable);
    let mut from = Vec::new();
    for (target, seed) in targets.iter().zip(seeds) {
        from.push((own(target)?, seed.map(own).transpose()?));
        if let Some(seed) = seed
            && !seed.form().agrees(&target.form())
        {
            let (seed_name, seed, name, form) =
                (seed.name(), seed.form(), target.name(), target.form());
            return site.refuse(format!(
                "the seed `{seed_name}` is {seed}, its target `{name}` is {form}"
            ));
        }
    }
    let of = program.own_all(&site, inputs.iter().copied())?;
    let found = program.graph().attempt(|graph| append(graph, &from, &of, &site))?;
    Ok(found.into_iter().map(|id| id.map(|id| program.variable(id))).collect())
}

fn fill_like(value: f64) -> Kind {
    Kind::of(&table::FILL_LIKE, [Attr::Number(value)])
}

pub(super) fn zeros_like(graph: &mut Graph, var: VarId, place: &Place) -> Result<VarId> {
    Ok(graph.push(fill_like(0.0), &[var], Phase::Backward, place)?[0])
}

pub(super) fn parameter_gradients(
    graph: &mut Graph,
    loss: VarId,
    place: &Place,
) -> Result<Vec<(VarId, VarId)>> {
    let site = Site { call: "append_backward", place: place.clone() };
    let Var { name, form, .. } = &graph.vars[loss];
    if form.dims.iter().any(|dim| *dim != Some(1)) {
        return site.refuse(format!("the loss `{name}` must have one element, it is {form}"));
    }
    let is_parameter = |id: &VarId| graph.vars[*id].is_parameter();
    let parameters: Vec<VarId> = (0..graph.vars.len()).filter(is_parameter).collect();
    let found = append(graph, &[(loss, None)], &parameters, &site)?;
    let pairs = parameters.into_iter().zip(found);
    Ok(pairs.filter_map(|(parameter, grad)| Some((parameter, grad?))).collect())
}

type Contributions = HashMap<VarId, Vec<VarId>>;

pub(super) fn append(
    graph: &mut Graph,
    from: &[(VarId, Option<VarId>)],
    of: &[VarId],
    site: &Site<'_>,
) -> Result<Vec<Option<VarId>>> {
    for &(target, _) in from {
        let var = &graph.vars[target];
        if !var.form.dtype.is_float() {
            return site
                .refuse(format!("`{}` is {}, which has no gradient", var.name, var.form.dtype));
        }
    }
    let wants = graph.wants_gradient();
    let mut needed = vec![false; graph.vars.len()];
    of.iter().for_each(|&var| needed[var] = wants[var]);
    let needed = graph.spread(needed, |var| wants[var]);
    let mut pending = Contributions::new();
    for &(target, seed) in from {
        if !needed[target] {
            continue;
        }
        let seed = match seed {
            Some(seed) => seed,
            None => graph.push_gradients(fill_like(1.0), &[target], &[target], &site.place)?[0],
        };
        pending.entry(target).or_default().push(seed);
    }
    for id in (0..graph.ops.len()).rev() {
        let op = graph.ops[id].clone();
        if !op.outputs.iter().any(|output| pending.contains_key(output)) {
            continue;
        }
        let wants: Vec<usize> = wanted(&op, graph, &needed);
        if wants.is_empty() {
            continue;
        }
        let grads: Vec<Option<VarId>> = op
            .outputs
            .iter()
            .map(|&output| total(graph, &mut pending, output, &site.place))
            .collect::<Result<_>>()?;
        let found = gradient(graph, id, &op, &grads, &wants)?;
        for (&input, grad) in wants.iter().zip(found) {
            pending.entry(op.inputs[input]).or_default().push(grad);
        }
    }
    of.iter().map(|&var| total(graph, &mut pending, var, &site.place)).collect()
}

fn wanted(op: &Op, graph: &Graph, needed: &[bool]) -> Vec<usize> {
    let without = match &op.kind {
        Kind::Op(of) if of.def.gradient == Gradient::None => return Vec::new(),
        Kind::Op(of) if of.def.gradient == Gradient::OfFirst => 1..op.inputs.len(),
        Kind::PyFunc(func) if func.backward.is_empty() && !func.is_gradient => {
            return Vec::new();
        }
        Kind::Init(..) => return Vec::new(),
        // A gradient with respect to an output of the forward operator flows on from there.
        Kind::Grad(grad) => {
            let first = graph.ops[grad.of].inputs.len();
            first..first + graph.ops[grad.of].outputs.len()
        }
        _ => 0..0,
    };
    let is_wanted = |at: &usize| needed[op.inputs[*at]] && !without.contains(at);
    (0..op.inputs.len()).filter(is_wanted).collect()
}

/// The complete gradient of a variable: the sum of its contributions, in the order of their arrival.
fn total(
    graph: &mut Graph,
    pending: &mut Contributions,
    var: VarId,
    place: &Place,
) -> Result<Option<VarId>> {
    let Some(parts) = pending.get_mut(&var) else { return Ok(None) };
    if parts.len() > 1 {
        let parts = std::mem::take(parts);
        let sum = graph.push_gradients(Kind::of(&table::ADD_N, []), &parts, &[var], place)?[0];
        pending.insert(var, vec![sum]);
        return Ok(Some(sum));
    }
    Ok(parts.first().copied())
}

fn gradient(
    graph: &mut Graph,
    id: OpId,
    op: &Op,
    grads: &[Option<VarId>],
    wants: &[usize],
) -> Result<Vec<VarId>> {
    match (&op.kind, grads) {
        (Kind::Op(Operator { def: OpDef { gradient: Gradient::Refused(why), .. }, .. }), _) => {
            return Err(op.wrong(*why));
        }
        (Kind::Op(of), &[Some(grad)])
            if matches!(of.def.gradient, Gradient::OfOutput | Gradient::OfFirst) =>
        {
            return Ok(vec![grad; wants.len()]);
        }
        (Kind::PyFunc(func), _) => return func.add_gradients(graph, op, grads, wants),
        (Kind::CustomOp(custom), _) => return custom.add_gradients(graph, op, grads, wants),
        _ => {}
    }
    let of: Vec<VarId> = wants.iter().map(|&input| op.inputs[input]).collect();
    let kind = Kind::Grad(Grad {
        of: id,
        name: op.kind.name().into(),
        wants: wants.to_vec(),
        seeds: (0..grads.len()).filter(|&output| grads[output].is_some()).collect(),
    });
    let inputs = op.inputs.iter().chain(&op.outputs).chain(grads.iter().flatten());
    let inputs: Vec<VarId> = inputs.copied().collect();
    graph.push_gradients(kind, &inputs, &of, &op.place)
}
