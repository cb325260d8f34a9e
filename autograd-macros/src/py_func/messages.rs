//! Every sentence of `#[py_func]`. Lower case; what is wrong, then how to mend it.

use crate::messages::{list, plural};

pub(super) fn not_an_impl() -> String {
    "#[py_func] stands on an impl block with `forward`: `#[py_func] impl MyOp { fn forward(..) .. }`"
        .into()
}

pub(super) fn trait_impl() -> String {
    "#[py_func] stands on an impl block of the op's own, not on that of a trait".into()
}

pub(super) fn generic() -> String {
    "#[py_func] makes the struct of this name, so it is one name with the block's own parameters: \
     `impl<T: Float> MyOp<T>`"
        .into()
}

pub(super) fn lifetime() -> String {
    "a #[py_func] block has no lifetime parameter: a program keeps the function for as long as it \
     likes"
        .into()
}

pub(super) fn unknown_argument() -> String {
    "#[py_func] takes the names of forward's outputs, and where the library is: `#[py_func(y, z)]`, \
     `#[py_func(crate = path::to::autograd_core)]`"
        .into()
}

pub(super) fn no_forward() -> String {
    "a #[py_func] block needs a function `forward`".into()
}

pub(super) fn path_twice() -> String {
    "the path of the library stands twice; remove one".into()
}

pub(super) fn twice(name: &str) -> String {
    format!("`{name}` stands twice in this block; remove one")
}

pub(super) fn taken(name: &str) -> String {
    format!("a function `{name}` is what #[py_func] makes; give this one another name")
}

pub(super) fn receiver(function: &str) -> String {
    format!(
        "`{function}` has no `self`: a py_func keeps no state; capture it with `Program::py_func`"
    )
}

pub(super) fn unusual(function: &str, what: &str) -> String {
    format!("`{function}` of a #[py_func] cannot be `{what}`")
}

pub(super) fn function_generic(function: &str) -> String {
    format!(
        "`{function}` of a #[py_func] cannot be generic; let the block be: `impl<T: Float> MyOp<T>`"
    )
}

pub(super) fn parameter_needs_name(function: &str) -> String {
    format!("a parameter of `{function}` needs a name, by which backward asks for it")
}

pub(super) fn neither() -> String {
    "`forward` has neither an input nor an output".into()
}

pub(super) fn output_count(named: usize, returned: usize) -> String {
    format!(
        "{} named here, but `forward` returns {}",
        if named == 1 { "1 output is".to_owned() } else { format!("{named} outputs are") },
        plural(returned, "value")
    )
}

pub(super) fn name_clash(name: &str) -> String {
    format!(
        "`{name}` is an input and the name of an output too; name the outputs otherwise: \
         `#[py_func(out)]`"
    )
}

pub(super) fn backward_of_nothing() -> String {
    "`forward` has no output, so there is nothing to go backward from; remove `backward`".into()
}

pub(super) fn unknown_parameter(name: &str, known: &[String]) -> String {
    format!("backward has no value `{name}` to take; there are {}", list(known))
}

pub(super) fn gradient_skipped(gradient: &str, output: &str) -> String {
    format!(
        "backward does not take `{gradient}`, the gradient of the output `{output}`; inputs and \
         outputs can be left out, gradients cannot"
    )
}

pub(super) fn order(expected: &[String]) -> String {
    format!("backward takes inputs, then outputs, then gradients: {}", list(expected))
}

pub(super) fn gradient_count(returned: usize, inputs: usize) -> String {
    format!(
        "backward returns {}, but forward has {}; return one for each input",
        plural(returned, "gradient"),
        plural(inputs, "input")
    )
}
