//! The messages of `check(..)`. Lower case: first the mistake, then the fix.

use crate::messages::sentences;

sentences! {
    without_inputs()
        "`check` needs a shape for each tensor of `forward` and a value for all else; write \
         `check(x = [2, 3], slope = 0.1)`";
    unknown(name, near: Option<&str>, known)
        near? "`forward` has no parameter `{name}`; did you mean `{near}`?" else
        "`forward` has no parameter `{name}`; it has {known}";
    malformed()
        "this is no input of `check(..)`; write `x = [2, 3]` for a tensor of this shape, `slope = \
         0.1` for a value";
    colon(name, value) "an input of `check(..)` has no `:`; write `{name} = {value}`";
    empty() "an input of `check(..)` is empty; remove the comma";
    range() "`in` is followed by the least and the greatest number; write `x = [2, 3] in 0.5..2.0`";
    range_without_shape(name) "`in` stands after a shape; write `{name} = [2, 3] in 0.5..2.0`";
    wrong_value(name, kind, write, make)
        "`{name}` is {kind}; write its shape, like `{name} = {write}`, or an expression that makes \
         it, like `{make}`";
    no_line()
        "`_` is the shape that `shapes(..)` says, and this op has no `shapes(..)`; write a shape, like `[2, 3]`";
    missing(names, add) "`check(..)` says nothing of {names}; add `{add}`";
    unknown_parameter(name, op)
        "`check(..)` cannot know `{name}`, which no parameter of `forward` mentions; call \
         `gradcheck` in a test of your own, with `{op}::<..>::apply`";
    exhaustive()
        "`check(exhaustive)` tries all numbers of type `f32`, so it is for an elementwise op of one \
         number with one result, without `reduce`, and with a default for each plain input; write \
         `check(x = [2, 3])`";
    no_gradient()
        "the op is `#[py_layer(no_grad)]`, so there is no gradient to check; remove `check(..)`";
    surrogate()
        "`surrogate` says that `backward` is not the derivative of `forward`, so there is nothing \
         to check it against; remove `check(..)`";
}
