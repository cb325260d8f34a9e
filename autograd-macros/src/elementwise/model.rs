//! The model of an elementwise block.

use std::ops::Deref;

use proc_macro2::Ident;
use syn::{Attribute, Expr, Type};

use crate::model::{Block, Function, Returned};
use crate::tokens::plain_name;

pub(crate) struct Op {
    pub(crate) block: Block,
    pub(crate) forward: Option<Forward>,
    pub(crate) backward: Option<Backward>,
}

impl Deref for Op {
    type Target = Block;

    fn deref(&self) -> &Block {
        &self.block
    }
}

pub(crate) struct Forward {
    pub(crate) function: Function,
    pub(crate) params: Vec<Param>,
    pub(crate) outputs: Returned,
}

pub(crate) struct Param {
    pub(crate) ident: Ident,
    pub(crate) docs: Vec<Attribute>,
    pub(crate) ty: Type,
    pub(crate) kind: Kind,
    pub(crate) stop_gradient: bool,
    pub(crate) default: Option<Expr>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Real,
    Mask,
    Plain,
    /// Another type, which was reported. The expansion accepts anything for it.
    Wrong,
}

pub(crate) struct Backward {
    pub(crate) function: Function,
    pub(crate) params: Vec<(Ident, Type)>,
    pub(crate) returned: Returned,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormulaValue {
    /// A parameter of forward, by position.
    Input(usize),
    Output(usize),
    Gradient(usize),
}

impl Forward {
    pub(crate) fn of(&self, kind: Kind) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(move |param| param.kind == kind)
    }

    pub(crate) fn differentiable(&self) -> Vec<&Param> {
        self.of(Kind::Real).filter(|param| !param.stop_gradient).collect()
    }

    pub(crate) fn output(&self, k: usize) -> String {
        if self.outputs.parts.len() > 1 { format!("y{k}") } else { "y".to_owned() }
    }

    pub(crate) fn names(&self) -> Vec<(String, FormulaValue)> {
        let inputs = self.params.iter().enumerate();
        let inputs = inputs.map(|(i, param)| (plain_name(&param.ident), FormulaValue::Input(i)));
        let outputs =
            (0..self.outputs.parts.len()).map(|k| (self.output(k), FormulaValue::Output(k)));
        let gradients = (0..self.outputs.parts.len())
            .map(|k| (format!("d{}", self.output(k)), FormulaValue::Gradient(k)));
        inputs.chain(outputs).chain(gradients).collect()
    }

    pub(crate) fn value_named(&self, name: &str) -> Option<FormulaValue> {
        self.names().into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

impl Backward {
    /// The values that its parameters name, without unknown names.
    pub(crate) fn named_values(&self, forward: &Forward) -> Vec<FormulaValue> {
        let names = self.params.iter().map(|(ident, _)| plain_name(ident));
        names.filter_map(|name| forward.value_named(&name)).collect()
    }
}
