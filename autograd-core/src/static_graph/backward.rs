//! Backward as users call it.

use super::ir::Site;
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
    let site = Site::here("append_backward");
    let pairs =
        loss.program.graph().attempt(|graph| parameter_gradients(graph, loss.id, &site.place))?;
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
    gradients_with(targets, inputs, &vec![None; targets.len()])
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
    let site = Site::here("gradients");
    let refused = |why: String| Err(site.wrong(why));
    let Some(first) = targets.first() else {
        return refused("there is no target".to_owned());
    };
    if targets.len() != seeds.len() {
        return refused(format!("{} targets have {} seeds", targets.len(), seeds.len()));
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
            return refused(format!(
                "the seed `{seed_name}` is {seed}, its target `{name}` is {form}"
            ));
        }
    }
    let of = program.own_all(&site, inputs.iter().copied())?;
    let found = program.graph().attempt(|graph| append(graph, &from, &of, &site))?;
    Ok(found.into_iter().map(|id| id.map(|id| program.variable(id))).collect())
}
