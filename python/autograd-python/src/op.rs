//! An op as Python sees it.

use autograd_core::host::{Arg, DynOp, Form, Kept, Library, Origin, Parameter};
use autograd_core::{AnyTensor, DType};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{raise, running};
use crate::exchange::Exchange;
use crate::exported::Exported;
use crate::import::import;
use crate::plan::Plan;

/// An op of a module. Frameworks call it by the package `autograd_bridge`.
#[pyclass(frozen)]
pub struct Op(pub(crate) &'static dyn DynOp);

/// What a call keeps beside tensors.
#[pyclass(frozen)]
pub struct State(Kept);

/// An argument's or output's position, and a shape: of a tensor in `Plan` or of a saved one.
type SavedForm = (&'static str, usize, &'static str, Vec<usize>);
/// Tensors for Python.
type Tensors<'py> = Vec<Option<Bound<'py, PyAny>>>;
type Called<'py> = (Tensors<'py>, Vec<(&'static str, usize, Option<Bound<'py, PyAny>>)>, State);

pub(crate) fn place(origin: Origin) -> (&'static str, usize) {
    match origin {
        Origin::Input(at) => ("input", at),
        Origin::Output(at) => ("output", at),
        Origin::Intermediate => ("intermediate", 0),
    }
}

fn names(elements: &[DType]) -> Vec<&'static str> {
    elements.iter().map(|dtype| dtype.name()).collect()
}

impl Op {
    fn args(&self, given: &[Bound<'_, PyAny>], exchange: Option<&Exchange>) -> PyResult<Vec<Arg>> {
        let of = self.0.description();
        if of.parameters.len() != given.len() {
            let (expected, found) = (of.parameters.len(), given.len());
            let text = format!("{}: expected {expected} arguments, found {found}", of.name);
            return Err(PyTypeError::new_err(text));
        }
        let each = of.parameters.iter().zip(given);
        each.map(|(parameter, value)| argument(of.name, parameter, value, exchange)).collect()
    }
}

fn argument(
    op: &str,
    parameter: &Parameter,
    value: &Bound<'_, PyAny>,
    exchange: Option<&Exchange>,
) -> PyResult<Arg> {
    let name = parameter.name;
    Ok(match parameter.form {
        Form::One => Arg::One(import(op, name, value, exchange)?),
        Form::Optional if value.is_none() => Arg::Absent,
        Form::Optional => Arg::One(import(op, name, value, exchange)?),
        Form::List => {
            let wrong =
                |_| PyTypeError::new_err(format!("{op}: `{name}` must be a list of tensors"));
            let each = value.try_iter().map_err(wrong)?.enumerate();
            let import = |(i, tensor): (usize, PyResult<Bound<'_, PyAny>>)| {
                import(op, &format!("{name}[{i}]"), &tensor?, exchange)
            };
            Arg::List(each.map(import).collect::<PyResult<_>>()?)
        }
        Form::Plain => plain(op, parameter, value)?,
    })
}

/// `None` stands for the default.
fn plain(op: &str, parameter: &Parameter, value: &Bound<'_, PyAny>) -> PyResult<Arg> {
    if value.is_none() && parameter.default.is_some() {
        return Ok(Arg::Omitted);
    }
    let wrong = |expected: &str| {
        let found = value.repr().map_or_else(|_| "another object".to_owned(), |it| it.to_string());
        let name = parameter.name;
        PyTypeError::new_err(format!("{op}: `{name}` must be {expected}, found {found}"))
    };
    match parameter.rust.trim_start_matches("std::") {
        "f64" | "f32" => value.extract().map(Arg::Float).map_err(|_| wrong("a number")),
        "bool" => value.extract().map(Arg::Bool).map_err(|_| wrong("a bool")),
        "i64" | "i32" | "usize" => value.extract().map(Arg::Int).map_err(|_| wrong("an integer")),
        "String" | "& str" | "&str" => value.extract().map(Arg::Text).map_err(|_| wrong("a text")),
        // An alias of one of these: Rust knows which.
        _ => {
            let is_bool = value.get_type().name().is_ok_and(|name| name == "bool");
            let int = || value.extract().map(Arg::Int);
            let float = || value.extract().map(Arg::Float);
            let text = || value.extract().map(Arg::Text);
            match is_bool {
                true => value.extract().map(Arg::Bool),
                false => int().or_else(|_| float()).or_else(|_| text()),
            }
            .map_err(|_| wrong("a number, a bool or a text"))
        }
    }
}

#[pymethods]
impl Op {
    /// Name, documentation, parameters and outputs.
    fn description<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (of, all) = (self.0.description(), PyDict::new(py));
        all.set_item("name", of.name)?;
        all.set_item("docs", of.docs)?;
        all.set_item("keeps_attrs", of.keeps_attrs)?;
        all.set_item("has_backward", of.has_backward)?;
        all.set_item("is_formula", of.is_formula)?;
        all.set_item("shapes", of.shapes.map(ToString::to_string))?;
        all.set_item("shapes_python", of.shapes.map(|shapes| shapes.python("shapes")))?;
        let parameters = of.parameters.iter().map(|of| {
            let form = match of.form {
                Form::One => "tensor",
                Form::Optional => "optional",
                Form::List => "list",
                Form::Plain => "plain",
            };
            (of.name, form, of.rust, names(of.elements), of.differentiable, of.default)
        });
        all.set_item("parameters", parameters.collect::<Vec<_>>())?;
        let outputs = of.outputs.iter().map(|of| (of.rust, of.is_list, names(of.elements)));
        all.set_item("outputs", outputs.collect::<Vec<_>>())?;
        Ok(all)
    }

    /// The outputs; for each saved tensor `input` or `output` with its position, or an intermediate; and the rest.
    #[pyo3(signature = (given, needs, exchange=None))]
    fn forward<'py>(
        &self,
        py: Python<'py>,
        given: Vec<Bound<'py, PyAny>>,
        needs: Vec<bool>,
        exchange: Option<&Exchange>,
    ) -> PyResult<Called<'py>> {
        let (op, args) = (self.0, self.args(&given, exchange)?);
        let run = || {
            let (outputs, kept) = running(|| op.forward(&args, &needs))?;
            drop(args);
            let saved = kept.tensors().into_iter().map(|(origin, tensor)| {
                let (kind, at) = place(origin);
                (kind, at, (origin == Origin::Intermediate).then_some(tensor))
            });
            let (saved, kept): (Vec<_>, Kept) = (saved.collect(), kept.skeleton());
            // Nothing else holds the memory now, so that it is passed on without a copy.
            let export = |(kind, at, tensor): (_, _, Option<AnyTensor>)| {
                (kind, at, tensor.map(Exported::of))
            };
            let saved: Vec<_> = saved.into_iter().map(export).collect();
            Ok((exported(outputs.into_iter().map(Some)), saved, kept))
        };
        let (outputs, saved, kept) = py.detach(run).map_err(raise)?;
        let saved = saved.into_iter().map(|(kind, at, tensor)| {
            let tensor = tensor.map(|tensor| tensor.handed(py, exchange)).transpose()?;
            Ok((kind, at, tensor))
        });
        let saved = saved.collect::<PyResult<_>>()?;
        Ok((handed(py, outputs, exchange)?, saved, State(kept)))
    }

    /// The gradients of the tensors among the arguments, from those of the outputs.
    #[pyo3(signature = (state, saved, grads, needs, exchange=None))]
    fn backward<'py>(
        &self,
        py: Python<'py>,
        state: &State,
        saved: Vec<Bound<'py, PyAny>>,
        grads: Vec<Option<Bound<'py, PyAny>>>,
        needs: Vec<bool>,
        exchange: Option<&Exchange>,
    ) -> PyResult<Tensors<'py>> {
        let (saved, grads) = (self.saved(&saved, exchange)?, self.gradients(&grads, exchange)?);
        let run = || {
            let kept = state.0.with(saved)?;
            let found = running(|| kept.backward(&grads, &needs))?;
            drop((kept, grads));
            Ok(exported(found))
        };
        let found = py.detach(run).map_err(raise)?;
        handed(py, found, exchange)
    }

    /// The gradients of `backward`: of the saved tensors, and of the outputs' gradients.
    #[pyo3(signature = (state, saved, grads, needs, along, exchange=None))]
    #[allow(clippy::too_many_arguments, reason = "as the package calls it")]
    fn second<'py>(
        &self,
        py: Python<'py>,
        state: &State,
        saved: Vec<Bound<'py, PyAny>>,
        grads: Vec<Option<Bound<'py, PyAny>>>,
        needs: Vec<bool>,
        along: Vec<Option<Bound<'py, PyAny>>>,
        exchange: Option<&Exchange>,
    ) -> PyResult<(Tensors<'py>, Tensors<'py>)> {
        let (saved, grads) = (self.saved(&saved, exchange)?, self.gradients(&grads, exchange)?);
        let along = self.gradients(&along, exchange)?;
        let run = || {
            let kept = state.0.with(saved)?;
            let found = running(|| kept.second(&grads, &needs, &along))?;
            drop((kept, grads, along));
            Ok((exported(found.saved), exported(found.grads)))
        };
        let (saved, grads) = py.detach(run).map_err(raise)?;
        Ok((handed(py, saved, exchange)?, handed(py, grads, exchange)?))
    }

    /// The formula as text for `jax`, `torch` or `paddle`: the text, what `backward` reads, the outputs whose gradients
    /// it takes, and the inputs whose gradients it returns. `None` for an op that is no formula.
    fn formula(&self, plain: Vec<Bound<'_, PyAny>>, library: &str) -> PyResult<Option<Formula>> {
        let of = self.0.description();
        let library = match library {
            "jax" => Library::Jax,
            "torch" => Library::Torch,
            "paddle" => Library::Paddle,
            other => return Err(PyValueError::new_err(format!("there is no text for {other}"))),
        };
        let parameters = of.parameters.iter().filter(|of| of.form == Form::Plain).zip(&plain);
        let args = parameters.map(|(parameter, value)| self::plain(of.name, parameter, value));
        let args: Vec<Arg> = args.collect::<PyResult<_>>()?;
        let text = running(|| self.0.formula(&args, library)).map_err(raise)?;
        Ok(text.map(|text| {
            let reads = text.reads.into_iter().map(place).collect();
            (text.python, reads, text.grads, text.differentiable)
        }))
    }
}

type Formula = (String, Vec<(&'static str, usize)>, Vec<usize>, Vec<usize>);

impl Op {
    fn saved(
        &self,
        saved: &[Bound<'_, PyAny>],
        exchange: Option<&Exchange>,
    ) -> PyResult<Vec<AnyTensor>> {
        let name = self.0.description().name;
        saved.iter().map(|tensor| import(name, "a saved tensor", tensor, exchange)).collect()
    }

    fn gradients(
        &self,
        grads: &[Option<Bound<'_, PyAny>>],
        exchange: Option<&Exchange>,
    ) -> PyResult<Vec<Option<AnyTensor>>> {
        let name = self.0.description().name;
        let import = |grad: &Bound<'_, PyAny>| import(name, "a gradient", grad, exchange);
        grads.iter().map(|grad| grad.as_ref().map(import).transpose()).collect()
    }
}

fn exported(all: impl IntoIterator<Item = Option<AnyTensor>>) -> Vec<Option<Exported>> {
    all.into_iter().map(|tensor| tensor.map(Exported::of)).collect()
}

fn handed<'py>(
    py: Python<'py>,
    all: Vec<Option<Exported>>,
    exchange: Option<&Exchange>,
) -> PyResult<Tensors<'py>> {
    let each = all.into_iter();
    each.map(|tensor| tensor.map(|tensor| tensor.handed(py, exchange)).transpose()).collect()
}

/// The outputs and the saved tensors of a call, found by a run on zeros: element types and shapes, and origins; and
/// whether the op has drawn random numbers.
#[pyfunction]
pub fn abstract_of(
    plan: &str,
) -> PyResult<(Vec<(&'static str, Vec<usize>)>, Vec<SavedForm>, bool)> {
    let plan = Plan::parse(plan).map_err(PyValueError::new_err)?;
    let random = || autograd_core::Tensor::<i64>::from(&autograd_core::rng_state()).to_vec();
    let before = random();
    let (outputs, kept) = plan.run_on_zeros().map_err(raise)?;
    let draws = random() != before;
    let outputs = outputs.iter().map(|of| (of.dtype().name(), of.shape().to_vec())).collect();
    let saved = kept.forms().into_iter().map(|(origin, dtype, shape)| {
        let (kind, at) = place(origin);
        (kind, at, dtype.name(), shape)
    });
    Ok((outputs, saved.collect(), draws))
}
