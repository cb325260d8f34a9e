//! Adding to a program, and to the one that starts it: the whole of a change, or nothing of it.

use std::panic::Location;

use super::dims::{IntoDims, read_dims};
use super::form::Form;
use super::ir::{Graph, Op, OpDef, Operator, Phase, Place, Role, VarId, wrong};
use super::program::{Program, Variable};
use super::table;
use super::table::Init;
use crate::array::DType;
use crate::error::Result;
use crate::ops::trace::Attr;

/// A change of a program on its way.
pub(super) struct Change<'g> {
    pub(super) graph: &'g mut Graph,
    /// What the startup program is to set.
    starts: Vec<Start>,
}

/// A variable that the startup program sets.
struct Start {
    call: &'static str,
    name: String,
    form: Form,
    parameter: bool,
    init: Init,
    place: Place,
}

impl Program {
    /// A parameter, kept by the executor, which the [startup program](Program::startup) sets.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if there is a variable of this name, a length is
    /// free, or the element type is no float.
    #[track_caller]
    pub fn create_parameter(
        &self,
        name: &str,
        shape: impl IntoDims,
        dtype: DType,
        init: Init,
    ) -> Result<Variable> {
        let place = Place::Line(Location::caller());
        let form = Form::new(dtype, read_dims(shape, "create_parameter", &place)?);
        let keep = "create_parameter";
        let id = self.change(|change| change.keep(keep, name, form, true, init, &place))?;
        Ok(self.variable(id))
    }

    /// Changes the program; where `build` or the startup program refuses, both stay as they were.
    pub(super) fn change<R>(&self, build: impl FnOnce(&mut Change<'_>) -> Result<R>) -> Result<R> {
        let startup = self.own_startup();
        let own = startup.is(self);
        self.graph().attempt(|graph| {
            let mut change = Change { graph, starts: Vec::new() };
            let built = build(&mut change)?;
            let starts = change.starts;
            if let Some(start) = starts.first() {
                if own {
                    let why = format!("`{}` needs another program as startup program", start.name);
                    return Err(wrong(start.call, &start.place, why));
                }
                let add = |graph: &mut Graph| starts.iter().try_for_each(|start| start.add(graph));
                startup.graph().attempt(add)?;
            }
            Ok(built)
        })
    }
}

impl Start {
    fn add(&self, startup: &mut Graph) -> Result<()> {
        let Self { call, name, form, parameter, init, place } = self;
        if startup.find(name).is_some() {
            let why = format!("the startup program sets a variable `{name}` already");
            return Err(wrong(call, place, why));
        }
        let role = Role::Kept { parameter: *parameter };
        let start = table::Start { init: *init, form: form.clone() };
        let set = startup.declare(call, name, form.clone(), role, !parameter, place)?;
        startup.push_op(Op {
            kind: Operator::of_user(&table::INIT, start).into(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            writes: vec![set],
            phase: Phase::Forward,
            place: place.clone(),
        })?;
        Ok(())
    }
}

impl Change<'_> {
    /// An operator of one output.
    pub(super) fn add<const N: usize>(
        &mut self,
        def: &'static OpDef,
        attrs: [Attr; N],
        inputs: &[VarId],
        place: &Place,
    ) -> Result<VarId> {
        let op = Operator::new(def, attrs.into());
        Ok(self.graph.push(op, inputs, Phase::Forward, place)?[0])
    }

    /// A variable that the executor keeps, with an operator in the startup program that sets it.
    pub(super) fn keep(
        &mut self,
        call: &'static str,
        name: &str,
        form: Form,
        parameter: bool,
        init: Init,
        place: &Place,
    ) -> Result<VarId> {
        if form.dims.iter().any(Option::is_none) {
            return Err(wrong(call, place, format!("`{name}` has a free axis: {form}")));
        }
        if parameter && !form.dtype.is_float() {
            return Err(wrong(call, place, format!("`{name}` must be of a float type: {form}")));
        }
        let role = Role::Kept { parameter };
        let id = self.graph.declare(call, name, form.clone(), role, !parameter, place)?;
        let (name, place) = (name.to_owned(), place.clone());
        self.starts.push(Start { call, name, form, parameter, init, place });
        Ok(id)
    }
}
