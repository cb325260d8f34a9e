//! The table of ops: an entry ([`OpDef`]) for each, beside its kernel and its rule. It is read by
//! eager calls and by a program's inference, runs, gradients, texts, files, traces and plans.

pub(crate) mod attr;
pub(crate) mod form;
pub(crate) mod infer;
pub(crate) mod values;

use std::fmt;

use self::attr::{Param, shown};
use super::Caller;
use crate::graph::AnyTensor;

macro_rules! entries {
    ($list:ident: $($(#[$doc:meta])* $name:ident = $def:expr;)*) => {
        $(
            $(#[$doc])*
            pub(crate) static $name: $crate::ops::table::OpDef = $def;
        )*

        #[cfg(feature = "static-graph")]
        pub(crate) static $list: &[&$crate::ops::table::OpDef] = &[$(&$name),*];
    };
}

/// Defines the entries of a family: one for each of its functions, from a common definition.
macro_rules! family {
    ($(#[$doc:meta])* $table:ident of $all:expr => $common:expr) => {
        $(#[$doc])*
        pub(crate) static $table: [$crate::ops::table::OpDef; $all.len()] = {
            let mut all = [$common; $all.len()];
            let mut at = 0;
            while at < all.len() {
                all[at].index = at;
                all[at].name = $all[at].name();
                at += 1;
            }
            all
        };
    };
}

pub(crate) use self::attr::{Attr, Type, position_on};
pub(crate) use self::form::{Dims, Form, ShapeOf};
pub(crate) use self::infer::{
    arithmetic, broadcast, exactly, float, float_along, float_reduced, position, reduced,
    same_along, same_dtype, same_float,
};
pub(crate) use self::values::{
    Computed, Ran, Values, all, any, computed, float, message, number, one, several,
};
#[cfg(feature = "static-graph")]
pub(crate) use self::{attr::is_same, values::not_numbers};
pub(crate) use {entries, family};

pub(crate) type Inferred = Result<Vec<Form>, String>;

#[derive(Clone, Copy)]
pub(crate) struct OpDef {
    pub(crate) name: &'static str,
    /// Set if operators of several families share a name; files write it before the name.
    pub(crate) family: &'static str,
    pub(crate) index: usize,
    pub(crate) attrs: &'static [Param],
    /// Returns the attributes as shown in a program's text; empty if there are none.
    pub(crate) show: Option<fn(&Operator) -> String>,
    pub(crate) infer: Option<fn(&Operator, &[&Form]) -> Inferred>,
    /// Computes the outputs by eager ops, which are recorded if recording is on.
    pub(crate) run: fn(&Operator, Values, Caller) -> Ran,
    pub(crate) gradient: Gradient,
    pub(crate) effect: Effect,
    pub(crate) lengths: Lengths,
}

/// A function that only programs call. Without them it is not kept, and so not compiled.
pub(crate) const fn for_programs<F: Copy>(function: F) -> Option<F> {
    if cfg!(feature = "static-graph") { Some(function) } else { None }
}

/// Which lengths among its attributes may follow free axes of the input, when an operator is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lengths {
    Fixed,
    /// The lengths of input axes ([`Type::Kept`]), and one that follows from the number of elements.
    OfReshape,
    /// The lengths of the input's axes, aligned at the last axis.
    OfInput,
}

/// What a run of an operator does besides computing its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Nothing,
    /// In training it draws random numbers, which its gradient needs.
    Draws,
    /// In training it updates kept variables.
    Collects,
    /// It is a step of an optimizer. Inputs are parameter, gradient and state; all but the gradient are written.
    Updates,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gradient {
    None,
    /// The eager engine's record of the operator's run.
    Recorded,
    /// The gradient of each input is that of the output.
    OfOutput,
    /// The gradient of the first input is that of the output, the others have none.
    OfFirst,
    /// There is no gradient, and asking for one is an error with this reason.
    Refused(&'static str),
}

impl OpDef {
    /// Creates an entry without attributes, inference and a way to run, as the base of other entries.
    pub(crate) const fn new(name: &'static str) -> Self {
        Self {
            name,
            family: "",
            index: 0,
            attrs: &[],
            show: for_programs(Operator::show_all),
            infer: for_programs(|_, _| Err("its form does not follow from its inputs".to_owned())),
            run: |_, _, _| Err("does not run by itself".into()),
            gradient: Gradient::Recorded,
            effect: Effect::Nothing,
            lengths: Lengths::Fixed,
        }
    }
}

#[derive(Clone)]
pub(crate) struct Operator {
    pub(crate) def: &'static OpDef,
    pub(crate) attrs: Vec<Attr>,
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.def.name, self.attrs)
    }
}

impl Operator {
    pub(crate) fn new(def: &'static OpDef, attrs: Vec<Attr>) -> Self {
        debug_assert_eq!(def.attrs.len(), attrs.len(), "{}", def.name);
        Self { def, attrs }
    }

    fn show_all(&self) -> String {
        let attrs = self.def.attrs.iter().zip(&self.attrs);
        let texts = attrs.map(|(param, attr)| shown(*param, attr)).filter(|text| !text.is_empty());
        texts.collect::<Vec<_>>().join(", ")
    }

    /// Whether the operator has a training flag that is set; a copy for testing clears it.
    pub(crate) fn trains(&self) -> bool {
        let mut attrs = self.def.attrs.iter().zip(&self.attrs);
        attrs.any(|((_, kind), attr)| *kind == Type::Training && matches!(attr, Attr::Flag(true)))
    }

    pub(crate) fn stop_training(&mut self) {
        let attrs = self.def.attrs.iter().zip(&mut self.attrs);
        attrs.filter(|((_, kind), _)| *kind == Type::Training).for_each(|(_, attr)| {
            *attr = Attr::Flag(false);
        });
    }

    pub(crate) fn draws(&self) -> bool {
        let all = matches!(self.attrs.first(), Some(Attr::Number(p)) if *p == 0.0);
        self.def.effect == Effect::Draws && self.trains() && !all
    }
}

/// Defines methods that return attributes by position; the operator's entry determines their types.
macro_rules! attributes {
    ($($method:ident -> $t:ty, $pattern:pat => $value:expr;)*) => {
        impl Operator {
            $(pub(crate) fn $method(&self, at: usize) -> $t {
                match &self.attrs[at] {
                    $pattern => $value,
                    other => unreachable!("attribute {at} of {} is {other:?}", self.def.name),
                }
            })*
        }
    };
}

attributes! {
    number -> f64, Attr::Number(x) => *x;
    flag -> bool, Attr::Flag(flag) => *flag;
    int -> isize, Attr::Int(n) => *n;
    ints -> &[isize], Attr::Ints(all) => all;
    dims -> &Dims, Attr::Dims(dims) => dims;
    pairs -> &[[usize; 2]], Attr::Pairs(pairs) => pairs;
    dtype -> crate::array::DType, Attr::Type(dtype) => *dtype;
    tensor -> &AnyTensor, Attr::Tensor(tensor) => tensor;
}
