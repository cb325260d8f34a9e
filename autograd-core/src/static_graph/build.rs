//! Adding to a program, and to the one that starts it: the whole of a change, or nothing of it.

use super::ir::{Form, Graph, Op, Phase, Place, Role, Var, VarId, wrong};
use super::kind::{Init, Kind};
use super::program::Program;
use crate::error::Result;

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
        let set = startup.declare(call, name, form.clone(), role, !parameter, place)?;
        startup.push_op(Op {
            kind: Kind::Init { init: *init, form: form.clone() },
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
    pub(super) fn add(&mut self, kind: Kind, inputs: &[VarId], place: &Place) -> Result<VarId> {
        Ok(self.graph.push(kind, inputs, Phase::Forward, place)?[0])
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

impl Graph {
    /// Adds a variable under a name that must be free.
    pub(super) fn declare(
        &mut self,
        call: &str,
        name: &str,
        form: Form,
        role: Role,
        stop_gradient: bool,
        place: &Place,
    ) -> Result<VarId> {
        if name.is_empty() {
            return Err(wrong(call, place, "a variable needs a name"));
        }
        if let Some(before) = self.find(name).map(|id| &self.vars[id]) {
            let why = format!(
                "a variable `{name}` ({}) was created at {} already",
                before.form, before.place
            );
            return Err(wrong(call, place, why));
        }
        Ok(self.add_var(Var {
            name: name.to_owned(),
            form,
            role,
            stop_gradient,
            producer: None,
            writer: None,
            place: place.clone(),
        }))
    }
}
