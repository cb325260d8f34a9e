//! Types that cannot compile, whatever names are in scope. The compiler reports each at its own span, and
//! would report it again for an expansion that repeats it.

use syn::{FnArg, Lifetime, PathArguments, ReturnType, Type, TypeParamBound};

use crate::generics::parameter_name;
use crate::model::{Block, Function, PRIMITIVES, bare, contained_types, written_lifetimes};
use crate::tokens::is_one_of;

impl Block {
    /// Whether a function of the op has such a type in its signature.
    pub(crate) fn has_wrong_type(&self) -> bool {
        self.rules().any(|function| {
            let declared = declared(self, function);
            let is_input_wrong =
                |input: &FnArg| matches!(input, FnArg::Typed(param) if is_wrong(&param.ty, &declared));
            function.sig.inputs.iter().any(is_input_wrong) || returns_wrong_type(self, function)
        })
    }
}

pub(crate) fn returns_wrong_type(block: &Block, function: &Function) -> bool {
    let declared = declared(block, function);
    matches!(&function.sig.output, ReturnType::Type(_, ty) if is_wrong(ty, &declared))
}

/// The names of the generic parameters.
pub(crate) fn declared(block: &Block, function: &Function) -> Vec<String> {
    let params = block.generics.params.iter().chain(&function.sig.generics.params);
    params.map(parameter_name).collect()
}

/// Whether the type cannot be that of a value. `declared` has the names of the generic parameters.
pub(crate) fn is_wrong(ty: &Type, declared: &[String]) -> bool {
    is_unsized(ty) || has_error(ty, declared)
}

fn is_unsized(ty: &Type) -> bool {
    match bare(ty) {
        Type::Slice(_) | Type::TraitObject(_) => true,
        Type::Tuple(tuple) => tuple.elems.iter().any(is_unsized),
        Type::Array(array) => is_unsized(&array.elem),
        Type::Path(path) => path.path.is_ident("str"),
        _ => false,
    }
}

/// Types with the smallest and the largest number of arguments.
const ARGUMENTS: [(&str, usize, usize); 7] = [
    ("Vec Box Rc Arc BTreeSet", 1, 2),
    ("Option Cell RefCell Mutex RwLock", 1, 1),
    ("HashMap", 2, 4),
    ("HashSet", 1, 3),
    ("BTreeMap", 2, 3),
    ("Tensor", 0, 1),
    ("String", 0, 0),
];

/// Traits, which are not types without `dyn` or `impl`.
const TRAITS: &str = "Debug Display Fn FnMut FnOnce Iterator ToString Any Send";

fn has_error(ty: &Type, declared: &[String]) -> bool {
    let is_undeclared = |lifetime: &&Lifetime| {
        let name = lifetime.to_string();
        !matches!(&name[..], "'static" | "'_") && !declared.contains(&name)
    };
    let own = match bare(ty) {
        // The bounds may declare lifetimes, so they are not checked further.
        Type::TraitObject(object) => {
            !object.bounds.iter().any(|bound| matches!(bound, TypeParamBound::Trait(_)))
        }
        Type::Path(path) if path.qself.is_none() => {
            let segments = &path.path.segments;
            let Some(last) = segments.last() else { return false };
            let in_std = segments.len() == 1 && !declared.contains(&last.ident.to_string())
                || matches!(&segments[0].ident.to_string()[..], "std" | "core" | "alloc");
            let types = contained_types(ty);
            let counted =
                ARGUMENTS.iter().find(|(names, ..)| in_std && is_one_of(&last.ident, names));
            // A struct has no associated types.
            segments.len() == 2 && segments[0].ident == "Self"
                // `Fn(f64) -> f64`
                || matches!(last.arguments, PathArguments::Parenthesized(_))
                || counted.is_some_and(|(_, least, most)| types.len() < *least || types.len() > *most)
                || !last.arguments.is_empty() && segments.len() == 1 && is_one_of(&last.ident, PRIMITIVES)
                || in_std && is_one_of(&last.ident, TRAITS)
                || is_one_of(&last.ident, "Vec Option Result") && types.into_iter().any(is_unsized)
        }
        _ => false,
    };
    own || written_lifetimes(ty).iter().any(is_undeclared)
        || contained_types(ty).into_iter().any(|ty| has_error(ty, declared))
}
