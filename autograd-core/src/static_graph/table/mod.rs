//! The table of operators: one entry for each, which inference, runs, gradients, texts, files, traces and
//! plans read. An operator is added by an entry here, and a method of `Variable` where it is public.

/// The entries of a family: one for each of its functions, with what all have in common.
macro_rules! family {
    ($(#[$doc:meta])* $table:ident of $all:expr => $common:expr) => {
        $(#[$doc])*
        pub(in $crate::static_graph) static $table: [OpDef; $all.len()] = {
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

/// The entries that have no family: a static for each, and their list.
macro_rules! entries {
    ($list:ident: $($(#[$doc:meta])* $name:ident = $def:expr;)*) => {
        $(
            $(#[$doc])*
            pub(in $crate::static_graph) static $name: OpDef = $def;
        )*

        pub(super) static $list: &[&OpDef] = &[$(&$name),*];
    };
}

mod elementwise;
mod nn;
mod reduce;
mod shape;
mod state;

use std::collections::HashMap;
use std::sync::OnceLock;

use super::ir::OpDef;

pub(super) use elementwise::*;
pub(super) use nn::*;
pub(super) use reduce::*;
pub(super) use shape::*;
pub use state::Init;
pub(super) use state::*;

/// All operators but those of users' code.
fn all() -> impl Iterator<Item = &'static OpDef> {
    let families: [&'static [OpDef]; 6] =
        [&FUNCTIONS, &BINARY, &SCALAR, &COMPARISONS, &REDUCTIONS, &UPDATES];
    let others = [ELEMENTWISE, ALONG_AXES, SHAPES, NETS, STATE];
    families.into_iter().flatten().chain(others.into_iter().flatten().copied())
}

/// The operator of a family and a name.
pub(super) fn find(family: &str, name: &str) -> Option<&'static OpDef> {
    static KNOWN: OnceLock<HashMap<(&str, &str), &OpDef>> = OnceLock::new();
    let known = KNOWN.get_or_init(|| all().map(|def| ((def.family, def.name), def)).collect());
    known.get(&(family, name)).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::attr::{Type, read, shown, written};
    use super::*;
    use crate::array::DType;
    use crate::graph::Tensor;
    use crate::ops::trace::Attr;

    fn example(kind: Type) -> Attr {
        match kind {
            Type::Number | Type::Plain => Attr::Number(-1.5e-9),
            Type::Numbers => Attr::Numbers(vec![0.1, f64::INFINITY]),
            Type::Flag | Type::Training => Attr::Flag(true),
            Type::Int => Attr::Int(-2),
            Type::Ints => Attr::Ints(vec![0, -1]),
            Type::Dims => Attr::Dims([None, Some(4)].into_iter().collect()),
            Type::Pairs => Attr::Pairs(vec![[1, 2], [3, 4]]),
            Type::Elements => Attr::Type(DType::UInt8),
            Type::Tensor => Attr::Tensor(Tensor::from([0.1_f32, -0.0]).into()),
        }
    }

    #[test]
    fn each_operator_is_entered_once_and_its_attributes_are_read_as_they_were_written() {
        let mut names = HashSet::new();
        for def in all() {
            assert!(names.insert((def.family, def.name)), "{} {}", def.family, def.name);
            assert!(find(def.family, def.name).is_some_and(|found| std::ptr::eq(found, def)));
            for &(name, kind) in def.attrs {
                let attr = example(kind);
                let text = written(&attr);
                let again = read(kind, &mut text.split(';')).expect("it was written");
                assert_eq!(written(&again), text, "{name} of {}", def.name);
                assert_eq!(shown((name, kind), &again), shown((name, kind), &attr));
            }
        }
        assert!(names.len() > 80, "{}", names.len());
    }
}
