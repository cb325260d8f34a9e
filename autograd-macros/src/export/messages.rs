//! The messages about `export`. Lower case: first the mistake, then the fix.

use crate::messages::sentences;

sentences! {
    malformed()
        "`export` takes the element types of a generic op; write `export` alone, or `export(f32, f64)`";
    unknown_instance(found)
        "`export` takes element types of tensors, and `{found}` is none; write `export(f32, f64)`";
    instances_missing(op, parameter)
        "a host calls an op with one type for `{parameter}`; name those that `{op}` is exported for: `export(f32, f64)`";
    instances_of_none(op)
        "`{op}` has no type parameter, so there is nothing to choose; write `export` alone";
    second_parameter(parameter)
        "an exported op has at most one parameter, the element type of its tensors; a host cannot choose `{parameter}`";
    own_parameter(parameter)
        "a host cannot choose `{parameter}`, a parameter of `forward`; write a type in its place, or put an element \
         type on the impl";
    plain(name, found)
        "a host cannot give a `{found}` for `{name}`; an exported op takes tensors, and numbers, `bool`, `String` and \
         `&str`";
}
