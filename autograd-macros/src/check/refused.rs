//! Types that cannot compile, whatever names are in scope. The compiler reports each at its own span, and
//! would report it again for an expansion that repeats it.

use syn::{FnArg, GenericArgument, PathArguments, ReturnType, Type, TypeParamBound};

use crate::model::{Block, Function, PRIMITIVES, bare, contained_types};
use crate::tokens::is_one_of;

impl Block {
    /// Whether a function of the op has such a type in its signature.
    pub(crate) fn has_wrong_type(&self) -> bool {
        self.rules().any(|function| {
            let lifetimes = lifetimes(self, function);
            let is_input_wrong =
                |input: &FnArg| matches!(input, FnArg::Typed(param) if is_wrong(&param.ty, &lifetimes));
            function.sig.inputs.iter().any(is_input_wrong) || returns_wrong_type(self, function)
        })
    }
}

pub(crate) fn returns_wrong_type(block: &Block, function: &Function) -> bool {
    let lifetimes = lifetimes(block, function);
    matches!(&function.sig.output, ReturnType::Type(_, ty) if is_wrong(ty, &lifetimes))
}

pub(crate) fn lifetimes(block: &Block, function: &Function) -> Vec<String> {
    let lifetimes = block.generics.lifetimes().chain(function.sig.generics.lifetimes());
    lifetimes.map(|of| of.lifetime.ident.to_string()).collect()
}

/// Whether the type cannot be that of a value. `lifetimes` has the declared lifetimes.
pub(crate) fn is_wrong(ty: &Type, lifetimes: &[String]) -> bool {
    is_unsized(ty) || has_error(ty, lifetimes)
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

fn has_error(ty: &Type, lifetimes: &[String]) -> bool {
    let undeclared = |name: &syn::Ident| {
        let name = name.to_string();
        !matches!(&name[..], "static" | "_") && !lifetimes.contains(&name)
    };
    let own = match bare(ty) {
        Type::Reference(reference) => {
            reference.lifetime.as_ref().is_some_and(|of| undeclared(&of.ident))
        }
        // The bounds may declare lifetimes, so they are not checked further.
        Type::TraitObject(object) => {
            !object.bounds.iter().any(|bound| matches!(bound, TypeParamBound::Trait(_)))
        }
        Type::Path(path) if path.qself.is_none() => {
            let segments = &path.path.segments;
            // A struct has no associated types.
            if segments.len() == 2 && segments[0].ident == "Self" {
                return true;
            }
            let Some(last) = segments.last() else { return false };
            let name = last.ident.to_string();
            let in_std = segments.len() == 1
                || matches!(&segments[0].ident.to_string()[..], "std" | "core" | "alloc");
            let given = match &last.arguments {
                // `Fn(f64) -> f64`
                PathArguments::Parenthesized(_) => return true,
                PathArguments::None => None,
                PathArguments::AngleBracketed(arguments) => Some(&arguments.args),
            };
            let mut given = given.into_iter().flatten().peekable();
            let any = given.peek().is_some();
            let absent = |of: &GenericArgument| matches!(of, GenericArgument::Lifetime(of) if undeclared(&of.ident));
            let (types, holds) = (contained_types(ty), matches!(&name[..], "Vec" | "Option"));
            let counted =
                ARGUMENTS.iter().find(|(names, ..)| in_std && is_one_of(&last.ident, names));
            counted.is_some_and(|(_, least, most)| types.len() < *least || types.len() > *most)
                || any && segments.len() == 1 && is_one_of(&last.ident, PRIMITIVES)
                || in_std && is_one_of(&last.ident, TRAITS)
                || given.any(absent)
                || holds && types.into_iter().any(is_unsized)
        }
        _ => false,
    };
    own || contained_types(ty).into_iter().any(|ty| has_error(ty, lifetimes))
}
