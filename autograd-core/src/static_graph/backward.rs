//! Backward as users call it.

use std::panic::Location;

use super::ir::{Place, VarId, wrong};
use super::program::Variable;
use super::reverse::{append, parameter_gradients};
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
    let pairs =
        loss.program.graph().attempt(|graph| parameter_gradients(graph, loss.id, &place))?;
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
