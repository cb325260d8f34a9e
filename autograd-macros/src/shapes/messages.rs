//! The messages of `shapes(..)`. Lower case: first the mistake, then the fix.

use crate::messages::sentences;

sentences! {
    without_line()
        "`shapes` needs the shapes of the inputs, `->`, and that of the output; write `shapes(x: [n, k] -> [n])`";
    no_arrow()
        "`shapes(..)` has no `->`, so the output has no shape; write `shapes(x: [n, k] -> [n])`";
    elementwise()
        "an elementwise op computes each element alone, so its output has the shape of its inputs; remove `shapes(..)`";
    empty_part() "an input of `shapes(..)` is empty; remove the comma";
    malformed_input() "this is no input of `shapes(..)`; write `x: [n, k]`";
    equals(name, shape) "`shapes(..)` declares with `:`; write `{name}: {shape}`";
    without_shape(name) "`{name}` has no shape here; write it, such as `{name}: [n, k]`, or `{name}: _` for any shape";
    missing_shape()
        "the shape of an output is missing after `->`; write `[n, k]`, `[]` for a single number, or `_` for any shape";
    no_shape()
        "this is no shape; write `[n, k]`, `[b.., n]`, `[]` for a single number, or `_` for any shape";
    not_in_brackets(axes) "a shape is in brackets; write `[{axes}]`";
    outputs_without_parentheses(outputs)
        "several outputs of `forward` are in parentheses; write `-> ({outputs})`";
    input_after_arrow() "what follows `->` are the outputs, without names; write the inputs before it";
    no_length()
        "this is no length; write a name, a number, `_` for any, or `+ - * /` of names and numbers, like `n / 2`";
    one_shape_of_list()
        "the tensors of a list have one shape here; write `[[n, k]]`, or `[[n, k]; c]` for `c` tensors";
    two_groups()
        "a shape can have only one `..`, because nothing would say where the first ends; write names for the axes of \
         one";
    unnamed_group() "axes need a name, so that they can be compared; write `b..`";
    broadcast_input()
        "`&` stands only after `->`: an input has its own axes; give it a name of its own, like `a..`";
    any_in_computed() "`_` is any length, so nothing can be computed from it; write a name";

    unknown_input(name, near: Option<&str>)
        near? "`forward` has no parameter `{name}`; did you mean `{near}`?" else
        "`forward` has no parameter `{name}`; name its tensor inputs";
    not_a_tensor(name)
        "`{name}` is not a tensor, so it has no shape; an integer parameter, like `{name}: usize`, may be a length: \
         `[n, {name}]`";
    list_as_one(name, shape)
        "`{name}` is a list of tensors; write `{name}: [{shape}]` for tensors of this shape";
    one_as_list(name, shape) "`{name}` is one tensor, not a list; write `{name}: {shape}`";
    output_list_as_one(shape)
        "this output of `forward` is a list of tensors; write `[{shape}]` for tensors of this shape";
    output_one_as_list(shape) "this output of `forward` is one tensor, not a list; write `{shape}`";
    missing_input(name, shape)
        "`shapes(..)` says nothing of `{name}`; add its shape, such as `{name}: {shape}`, or `{name}: _` for any shape";
    plain_output() "this output of `forward` is no tensor, so it has no shape; write `_`";
    output_count(returns, says: usize, write)
        "`forward` returns {returns}, but `shapes(..)` has {says} after `->`; write `-> {write}`, with `_` for what is \
         no tensor";
    not_an_integer(name)
        "`{name}` is a parameter of `forward`, but not an integer, so it is no length; rename the axis";
    group_and_length(name) "`{name}` is one length here and `{name}..` several axes elsewhere; rename one";

    unknown_length(name, near: Option<&str>)
        near? "no input has an axis `{name}`; did you mean `{near}`?" else
        "no input has an axis `{name}`, and no integer parameter has this name, so its length is unknown; write `_` if \
         it depends on the numbers in the inputs";
    unknown_group(name, near: Option<&str>)
        near? "no input has the axes `{name}..`; did you mean `{near}..`?" else
        "no input has the axes `{name}..`, so their lengths are unknown; write the shape as `_` if they depend on the \
         numbers in the inputs";
    only_optional(name, input)
        "`{name}` is known only from `{input}`, which may be `None`; take it from another input, or from a parameter \
         `{name}: usize`";
    group_only_optional(name, input)
        "`{name}..` is known only from `{input}`, which may be `None`; take it from another input";
    not_determined(length, name)
        "`{name}` cannot be found from `{length}`: several names in it are known nowhere else, or a division rounds; \
         write a name for this axis, or an integer parameter `{name}: usize`";
    division_by_zero() "a length cannot be divided by 0";

    // Shapes in the bodies.

    no_broadcast(left, of_left, right, of_right)
        "`{left}` has the shape {of_left} and `{right}` the shape {of_right}, which cannot be broadcast together; \
         reshape one, or correct `shapes(..)`";
    product(left, of_left, right, of_right, n, k)
        "`{left}` has the shape {of_left} and `{right}` the shape {of_right}: a product needs `{n}` and `{k}` to be \
         equal; transpose one, or correct `shapes(..)`";
    output(which, found, says)
        "{which} has the shape {found} here, but `shapes(..)` says {says}; correct one of them";
    gradient(name, found, shape, hint)
        "the gradient of `{name}` has the shape {found} here, but `{name}` is {shape}{hint}";
    swapped(other) "; that is the shape of `{other}`, so the two gradients are swapped";
    shape_of_other(other) "; that is the shape of `{other}`";
    sum_over(axes, write)
        "; sum it over {axes}, over which `forward` broadcasts it: `{write}`";
    transposed() "; transpose it: `.t()`";
    no_hint() "; correct the gradient, or `shapes(..)`";
}
