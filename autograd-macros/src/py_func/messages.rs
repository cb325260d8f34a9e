//! The messages of `#[py_func]`. Lower case: first the mistake, then the fix.

use crate::messages::{plural, sentences};

sentences! {
    lifetime()
        "a #[py_func] block has no lifetime parameter: a program keeps the function for as long as \
         it likes";
    unknown_argument()
        "#[py_func] takes the names of forward's outputs, and where the library is: `#[py_func(y, \
         z)]`, `#[py_func(crate = path::to::autograd_core)]`";
    no_forward() "a #[py_func] block needs a function `forward`";
    receiver(function)
        "`{function}` has no `self`: a py_func keeps no state; capture it with `Program::py_func`";
    function_generic(function)
        "`{function}` of a #[py_func] cannot be generic; let the block be: `impl<T: Float> MyOp<T>`";
    context(function)
        "`{function}` of a #[py_func] takes no context: it gets arrays, and backward the inputs, the outputs \
         and their gradients by name; remove this parameter";
    parameter_needs_name(function)
        "a parameter of `{function}` needs a name, by which backward asks for it";
    no_array(name, found, write)
        "a program calls this function with arrays, so `{name}` cannot be `{found}`; write `{name}: {write}`";
    no_array_returned(found, write)
        "this function returns arrays to a program, so it cannot return `{found}`; write `{write}`";
    unbound_element(parameter, op)
        "the elements of this array are of the type `{parameter}`, which need not be one of a program; write \
         `impl<{parameter}: Float> {op}<{parameter}>`";
    unknown_parameter(name, known) "`backward` cannot take `{name}`; it may take {known}";
    order(expected) "backward takes inputs, then outputs, then gradients: {expected}";
    neither() "`forward` has neither an input nor an output";
    name_clash(name)
        "`{name}` is an input and the name of an output too; name the outputs otherwise: \
         `#[py_func(out)]`";
    backward_of_nothing()
        "`forward` has no output, so there is nothing to go backward from; remove `backward`";
    gradient_skipped(gradient, output)
        "backward does not take `{gradient}`, the gradient of the output `{output}`; inputs and \
         outputs can be left out, gradients cannot";
}

pub(super) fn output_count(named: usize, returned: usize) -> String {
    format!(
        "{} named here, but `forward` returns {}",
        if named == 1 { "1 output is".to_owned() } else { format!("{named} outputs are") },
        plural(returned, "value")
    )
}
