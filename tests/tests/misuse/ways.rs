//! The ways, in the order of the table in `docs/misuse.md`.

use crate::{requests, run, user_code, values};

/// One way to misuse an op.
pub(crate) struct Way {
    /// A description.
    pub(crate) way: &'static str,
    /// The function of `golden/misuse.py` that does the same elsewhere; empty if none does.
    pub(crate) peer: &'static str,
    /// The program here that shows it.
    pub(crate) proof: Proof,
}

/// The result.
pub(crate) enum Proof {
    /// A fixture that does not compile, in `tests`; `#` comes before a case of a table.
    Compiler(&'static str),
    /// An error that contains these words, before backward starts.
    Error(&'static str, fn() -> String, &'static str),
    /// As `Error`, in builds with debug assertions.
    Debug(&'static str, fn() -> String, &'static str),
    /// As `Error`, but in backward.
    Backward(&'static str, fn() -> String, &'static str),
    /// Backward has nothing to do; an error that contains these words says so where the gradient is read.
    Read(&'static str, fn() -> String, &'static str),
    /// Types cannot show it; `gradcheck`, or the check that the macro generates, finds it.
    Check(&'static str, fn() -> String, &'static str),
    /// A run with `AUTOGRAD_VERIFY=1` finds it too, as the tests in `tests/verifying` prove.
    Verified(&'static str, fn() -> String, &'static str),
    /// It works as meant.
    Right(&'static str, fn()),
}

/// A function is one of `run`, or `(module function)`.
macro_rules! ways {
    (@ $way:literal $peer:literal compiler $fixture:literal) => {
        Way { way: $way, peer: $peer, proof: Proof::Compiler($fixture) }
    };
    (@ $way:literal $peer:literal $kind:ident ($module:ident $f:ident) $($words:literal)?) => {
        Way {
            way: $way,
            peer: $peer,
            proof: ways!(@kind $kind)(
                concat!(stringify!($module), "::", stringify!($f)),
                $module::$f
                $(, $words)?
            ),
        }
    };
    (@ $way:literal $peer:literal $kind:ident $f:ident $($words:literal)?) => {
        ways!(@ $way $peer $kind (run $f) $($words)?)
    };
    (@kind error) => { Proof::Error };
    (@kind debug) => { Proof::Debug };
    (@kind backward) => { Proof::Backward };
    (@kind read) => { Proof::Read };
    (@kind check) => { Proof::Check };
    (@kind verified) => { Proof::Verified };
    (@kind right) => { Proof::Right };
    ($($way:literal $peer:literal => $kind:ident $proof:tt $($words:literal)?;)*) => {
        pub(crate) const WAYS: &[Way] = &[$(ways!(@ $way $peer $kind $proof $($words)?)),*];
    };
}

ways! {
    "a gradient too few is returned" "too_few_returned" => compiler "ui/arity/too_few_returned";
    "a gradient too many is returned" "too_many_returned" => compiler "compiler/fixtures/arity/whole_ops#`backward` returns 2 gradients, but `forward` has 1 differentiable tensor input";
    "nothing is returned" "nothing_returned" => compiler "compiler/fixtures/arity/gradients_of_one_input#`backward` returns no gradient, but `forward` has 1 differentiable tensor input";
    "a gradient too few is taken" "too_few_taken" => compiler "ui/arity/too_few_gradients";
    "a gradient too many is taken" "too_many_taken" => compiler "ui/arity/too_many_gradients";
    "a gradient for a plain argument" "gradient_for_a_plain_argument" => compiler "ui/arity/gradient_for_a_plain_argument";
    "a gradient for an input that wants none" "gradient_for_an_input_that_wants_none" => right gradient_for_an_input_that_wants_none;
    "gradients swapped, inputs of two shapes" "swapped_of_two_shapes" => backward swapped_gradients "backward returned a gradient of shape [] for `x`, which has shape [2]";
    "gradients swapped, in an op with `shapes(..)`" "swapped_of_two_shapes" => compiler "compiler/fixtures/misuse/shapes_of_gradients#gradients swapped";
    "gradients swapped, inputs of two element types" "swapped_of_two_types" => compiler "ui/types/returned_in_tuple_of_another_element_type";
    "a gradient of a shape that broadcasts" "shape_that_broadcasts" => backward gradient_of_a_shape_that_broadcasts "backward returned a gradient of shape [] for `x`, which has shape [2]";
    "a gradient of a shape that broadcasts, with `shapes(..)`" "shape_that_broadcasts" => compiler "compiler/fixtures/misuse/shapes_of_gradients#a gradient that broadcasts to its input";
    "a gradient of a shape that does not" "shape_that_does_not" => backward gradient_of_another_shape "backward returned a gradient of shape [5] for `x`, which has shape [2]";
    "a gradient of a shape that does not, with `shapes(..)`" "shape_that_does_not" => compiler "compiler/fixtures/misuse/shapes_of_gradients#a gradient that does not";
    "a gradient of another element type" "another_element_type" => compiler "compiler/fixtures/types/declared_and_returned#a returned gradient with other elements than its input";
    "a number for a gradient" "number_for_a_gradient" => compiler "compiler/fixtures/types/declared_and_returned#a gradient is a tensor, not a number";
    "`None` where a gradient is needed" "none_where_needed" => backward none_where_a_gradient_is_needed "backward returned no gradient for `x`, which needs one";
    "a gradient that may be `None`, used unguarded" "unguarded_none" => compiler "compiler/fixtures/misuse/unguarded_none";
    "`set_materialize_grads(false)`, gradients taken as always there" "" => compiler "ui/context/bare_gradient";
    "one tensor returned as two gradients" "one_tensor_twice" => right one_tensor_for_two_gradients;
    "the gradient changed in place by backward" "gradient_changed_in_place" => right gradient_written_by_backward;
    "a list input, its gradients not in a list" "list_not_in_a_list" => compiler "compiler/fixtures/arity/whole_ops#the gradients of a list input come as a `Vec`";
    "a list input, its gradients too few" "list_too_short" => backward list_of_gradients_too_short "backward returned 1 gradient for the list `xs`, which has 2 tensors";
    "an array of inputs, its gradients an array of another length" "list_too_short" => compiler "compiler/fixtures/arity/array_of_another_length";
    "`save_for_backward` twice" "save_twice" => compiler "ui/context/save_twice";
    "`save_for_backward` in backward" "save_in_backward" => compiler "compiler/fixtures/context/save_in_backward";
    "saving what is no tensor" "save_a_number" => compiler "compiler/fixtures/types/declared_and_returned#a number cannot be saved";
    "saving another type than declared" "" => compiler "compiler/fixtures/types/saved_of_another_type";
    "taking apart more than was saved" "wrong_destructuring" => compiler "compiler/fixtures/types/declared_and_returned#reading more tensors than are saved";
    "reading what was never saved" "never_saved" => compiler "compiler/fixtures/context/calls#declared, but never saved";
    "saving on one path only" "saved_on_one_path" => error not_saved_on_one_path "`type Saved` is declared, but forward returned without this call";
    "a saved input changed in place" "saved_input_changed" => backward saved_input_changed_in_place "`x` was changed in place after it was saved for backward";
    "a saved output changed in place" "saved_output_changed" => backward saved_output_changed_in_place "was changed in place after it was saved for backward";
    "an input that another op saved, changed by forward" "input_changed_by_forward" => error input_written_that_another_op_saved "forward must not change `x` in place";
    "an output kept in attributes" "output_in_attributes" => compiler "compiler/fixtures/types/attributes#`type Attrs` is a tensor";
    "an output saved, backward never run" "output_saved_never_run" => right saved_output_and_no_backward;
    "a saved intermediate differentiated twice" "intermediate_twice" => backward second_order_over_a_saved_intermediate "is neither an input nor an output of the op";
    "a backward that reads numbers, differentiated twice" "backward_reads_numbers" => backward second_order_through_numbers "reads numbers of a tensor that wants a gradient";
    "a second derivative of an op that has none" "second_order_of_once" => backward second_order_of_an_op_that_has_none "its backward is `once_differentiable`";
    "an attribute kept under one name, read under another" "attribute_with_a_slip" => compiler "ui/misuse/attribute_with_a_slip";
    "a context call with a slip" "context_call_with_a_slip" => compiler "compiler/fixtures/context/calls#a call that no context has";
    "an attribute's argument with a slip" "" => compiler "compiler/fixtures/attributes/arguments#a slip";
    "`backward` with a slip" "backward_with_a_slip" => compiler "compiler/fixtures/block/items#`backwards` is a slip of `backward`";
    "no `backward`" "no_backward" => compiler "ui/block/no_backward";
    "no `forward`" "no_forward" => compiler "ui/block/no_forward";
    "two `forward`s" "two_forwards" => compiler "compiler/fixtures/block/items#two of either";
    "no context parameter" "no_context" => compiler "compiler/fixtures/context/calls#`forward` and `backward` need the context";
    "marking an input as not differentiable" "mark_an_input" => compiler "compiler/fixtures/context/calls#an input marked as an output";
    "marking another tensor as not differentiable" "mark_another_tensor" => error mark_on_what_is_no_output "tensor 0 is not an output of the op; mark outputs only";
    "marking another tensor as not in place" "" => error mark_on_what_is_no_input "tensor 0 is not an input of the op; mark inputs only";
    "marking twice" "mark_twice" => compiler "ui/context/mark_twice";
    "no tensor output" "no_tensor_output" => compiler "ui/outputs/shape_only";
    "integer outputs only" "integer_output" => compiler "compiler/fixtures/outputs/forms#`forward` returns an integer tensor only";
    "a gradient taken for an integer output" "" => compiler "compiler/fixtures/arity/whole_ops#an integer output has no gradient";
    "an integer input that is to have a gradient" "integer_input" => compiler "ui/inputs/integer_not_marked";
    "no tensor input" "no_tensor_input" => compiler "ui/inputs/no_tensor_input";
    "an input returned as it is" "input_returned" => right input_returned_as_it_is;
    "a tensor hidden in a tuple" "tensor_in_a_tuple" => compiler "compiler/fixtures/inputs/forms#tensors in a tuple";
    "a tensor hidden in a map" "tensor_in_a_map" => compiler "compiler/fixtures/inputs/forms#tensors in a map";
    "a tensor hidden behind an alias" "" => compiler "compiler/fixtures/inputs/alias";
    "a tensor hidden in a layer of a network" "tensor_in_a_layer" => compiler "compiler/fixtures/misuse/layer_as_a_plain_input";
    "a tensor hidden in a closure"
        "tensor_in_a_closure" => debug tensor_held_by_a_closure "forward reads a tensor of shape [1] that wants a gradient";
    "a tensor hidden in a user's struct"
        "tensor_in_a_struct" => debug tensor_held_by_a_struct "forward reads a tensor of shape [1] that wants a gradient";
    "a tensor hidden behind a type parameter" "" => error tensor_through_a_type_parameter "the plain parameter `value` was given a tensor";
    "arguments by name in another order" "keyword_order" => right arguments_by_name_in_another_order;
    "an argument by name with a slip" "keyword_with_a_slip" => compiler "compiler/fixtures/names/by_name#an argument of an unknown name";
    "an argument by name twice" "keyword_twice" => compiler "compiler/fixtures/names/by_name#an argument given twice";
    "an argument too few" "argument_too_few" => compiler "ui/calls/too_few_arguments";
    "an argument of another element type" "argument_of_another_type" => compiler "compiler/fixtures/calls/of_one_input#`apply` takes the declared element type";
    "`forward` called in place of `apply`" "forward_called" => compiler "compiler/fixtures/calls/of_one_input#`forward` called in place of `apply`";
    "an input that wants a gradient, for an op without" "" => error input_that_wants_a_gradient_for_an_op_without "wants a gradient (stop_gradient is false), but this op has no backward";
    "data of another length than the shape" "another_length" => error buffer_of_another_length "from_vec: expected 6 elements for shape [2, 3], found 5";
    "a second backward" "second_backward" => backward second_backward "its graph was freed by an earlier backward";
    "a backward of a loss that is detached, or computed under `no_grad`" "" => read (requests a_backward_of_a_loss_without_a_graph) "was\n  `detach()`ed at ";
    "no seed for an output of several elements" "no_seed" => backward no_seed_for_several_elements "so it needs a seed: give one with `backward_with`";
    "a seed of another shape" "seed_of_another_shape" => backward seed_of_another_shape "must have its shape [2], found []";
    "a seed of another element type" "seed_of_another_type" => compiler "compiler/fixtures/misuse/seed_of_another_element_type";
    "seeds of another count" "seeds_of_another_count" => backward seeds_of_another_count "expected 2 seeds, one for each output, found 1";
    "a hook that returns another shape" "hook_of_another_shape" => backward hook_that_returns_another_shape "must give a gradient of shape [2] for output 0, found shape [5]";
    "a hook that returns a number" "hook_returns_a_number" => compiler "compiler/fixtures/misuse/hook_returns_a_number";
    "an unpack hook that returns another shape" "unpack_of_another_shape" => backward unpack_hook_that_returns_another_shape "must give saved tensor 0 back as it was packed";
    "a leaf that wants a gradient, changed in place" "leaf_changed" => error leaf_changed_in_place "a leaf that wants a gradient cannot be changed in place";
    "an error in backward" "error_in_backward" => backward error_in_backward "backward failed: no slope today";
    "a panic in backward" "" => backward panic_in_backward "a slope of Tensor(";
    "a gradient that is not finite, looked for" "not_finite" => backward gradient_that_is_not_finite "backward gave its input 0 a gradient with 2 infinities";
    "100,000 ops in a chain" "long_chain" => right a_hundred_thousand_ops_in_a_chain;
    "`jvp` with a tangent too few" "" => compiler "compiler/fixtures/jvp/of_one_input#`jvp` takes the input and its tangent.";
    "a tangent of another shape" "tangent_of_another_shape" => error tangent_of_another_shape "jvp returned a tangent of shape [] for the output, which has shape [2]";
    "a formula without `elementwise`" "" => compiler "compiler/fixtures/elementwise/blocks#a formula without `elementwise`";
    "`elementwise` on tensors" "" => compiler "compiler/fixtures/elementwise/of_one_input#`elementwise` on an op of tensors";
    "a branch on a number in a formula" "" => compiler "compiler/fixtures/elementwise/of_one_input#a formula cannot branch on a value: `select` is named";
    "shapes that do not fit in a formula" "" => error shapes_in_a_formula_that_do_not_fit "must be of a shape that can be broadcast with [2], found shape [3]";
    "a py_func with a gradient too few" "" => compiler "compiler/fixtures/py_func/backward#backward returns one gradient for two inputs";
    "a py_func that skips a gradient" "" => compiler "compiler/fixtures/py_func/backward#backward leaves out the gradient of an output";
    "a py_func's value of another shape than declared" "py_func_of_another_shape" => error py_func_of_another_shape "must have shape [2], found [3]";
    "a py_func that panics" "" => error py_func_that_panics "panicked: no value for 2 numbers";
    "a py_func whose backward lacks a needed gradient" "py_func_none" => backward py_func_whose_backward_lacks_a_needed_gradient "returned no gradient for input 0, which needs one";
    "a list in a list among the outputs" "" => compiler "compiler/fixtures/outputs/forms#a list of lists";
    "a reference as the output" "" => compiler "compiler/fixtures/outputs/forms#an output is returned by value";
    "an optional output" "" => compiler "compiler/fixtures/outputs/forms#a tensor in an `Option` would lose its gradient";
    "an input by value" "" => compiler "compiler/fixtures/inputs/forms#a tensor input must be borrowed";
    "an input by `&mut`" "" => compiler "compiler/fixtures/inputs/forms#an op cannot change its inputs";
    "an input in a box" "" => compiler "compiler/fixtures/inputs/forms#a tensor in a `Box`";
    "an input without a name" "" => compiler "compiler/fixtures/inputs/forms#a tensor input needs a name";
    "an input with the name of what is generated" "" => compiler "compiler/fixtures/inputs/forms#two parameters of the same name are reported once";
    "another library's `Tensor`" "" => compiler "compiler/fixtures/types/foreign_tensor";
    "attributes that cannot go to another thread" "" => compiler "compiler/fixtures/types/attributes#`type Attrs` goes to other threads";
    "a reference saved" "" => compiler "compiler/fixtures/types/declared_and_returned#saved values are owned";
    "a gradient taken by value" "" => compiler "compiler/fixtures/types/declared_and_returned#a gradient comes by reference";
    "reading in forward what backward is to read" "" => compiler "compiler/fixtures/context/calls#`saved_tensor` and `attrs` in `forward`";
    "the context of another op" "" => compiler "ui/context/of_another_op";
    "a `self` parameter" "" => compiler "ui/block/self_receiver";
    "a helper with the name of what is generated" "" => compiler "ui/block/helper_named_try_apply";
    "gradients returned under each other's names" "" => compiler "compiler/fixtures/arity/gradients_of_two_inputs#`dw` is returned in the place of the gradient of `x`";
    "one tensor as both inputs" "" => right (values one_tensor_as_both_inputs);
    "inputs without elements" "" => right (values no_elements_at_all);
    "inputs that are broadcast, their gradients not summed" "" => backward (values inputs_that_broadcast) "for `w`, which has shape [1]";
    "a saved tensor returned as the gradient" "" => right (values a_saved_tensor_returned_as_the_gradient);
    "one tensor twice in a list" "" => right (values one_tensor_twice_in_a_list);
    "an empty list" "" => right (values an_empty_list);
    "a list input, its gradients too many" "" => backward (values list_of_gradients_too_long) "backward returned 3 gradients for the list `xs`, which has 2 tensors";
    "a gradient for an optional input that was not given" "" => right (values a_gradient_for_an_input_that_was_not_given);
    "one tensor as several outputs" "" => right (values one_tensor_as_several_outputs);
    "a list of outputs that is empty" "" => right (values no_output_in_the_list);
    "another's tensor returned as the output" "" => right (values somebody_elses_tensor_returned);
    "a mode of gradients left on in forward" "" => right (user_code a_scope_forgotten_in_forward);
    "a whole backward inside of forward and backward" "" => right (user_code a_whole_backward_inside_of_forward_and_backward);
    "an input's `stop_gradient` set inside of forward" "" => right (user_code an_input_stopped_inside_of_forward);
    "a backward of the same output inside of its backward" "" => backward (user_code the_same_backward_from_inside_of_backward) "its graph was freed by an earlier backward";
    "a hook that removes itself" "" => right (user_code a_hook_that_removes_itself);
    "a hook that clears the gradient it feeds" "" => right (user_code a_hook_that_clears_the_gradient_it_feeds);
    "a hook on a tensor without a gradient" "" => error (requests a_hook_on_what_wants_no_gradient) "a tensor with stop_gradient gets no gradient to see";
    "a gradient of another shape set by hand" "" => error (requests a_gradient_kept_by_hand_of_another_shape) "`grad` must be of shape [2], found shape [3]";
    "a gradient with respect to what is not used" "" => backward (requests a_gradient_with_respect_to_what_is_not_used) "was not used to compute the outputs";
    "a gradient with respect to what wants none" "" => backward (requests a_gradient_with_respect_to_what_wants_none) "input 0 wants no gradient";
    "the gradient of a tensor with respect to itself" "" => right (requests the_gradient_of_a_tensor_by_itself);
    "one output twice in one backward" "" => backward (requests one_output_twice_in_a_backward) "outputs";
    "a panic in forward" "" => error (user_code forward_panics) "no value for 1";
    "an op applied while a panic unwinds" "" => right (user_code an_op_applied_while_another_panics);
    "a graph walked and dropped on another thread" "" => right (requests a_graph_walked_and_dropped_on_another_thread);
    "an input changed in place that nobody saved" "" => right (user_code an_input_changed_that_nobody_saved);
    "an output that is a view of an input" "" => right (values an_output_that_is_a_view_of_the_input);
    "a graph asked for again that `grad` has freed" "" => backward (requests every_gradient_freed_before_it_is_asked_for) "its graph was freed by an earlier backward";
    "a wrong slope of a formula" "" => debug wrong_slope_of_a_formula "by the derivative of forward";
    "a wrong formula" "wrong_formula" => verified wrong_formula "by backward and";
    "gradients swapped, inputs of one shape" "swapped_of_one_shape" => verified swapped_gradients_of_one_shape "by backward and";
    "a tensor hidden in a closure, under `no_grad` in forward"
        "tensor_in_a_closure" => check tensor_held_by_a_closure_unasked "input 1";
}
