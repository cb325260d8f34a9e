//! Messages with a count of one, which have no plural.

use std::panic::catch_unwind;

use autograd_core::{Padding, Result, Tensor, jvp};

#[test]
fn one_of_a_thing_has_no_plural() {
    let x = Tensor::from([1.0, 2.0]);
    let f = |x: &[Tensor<f64>]| x[0].tanh();
    let why = |done: Result<Tensor<f64>>| done.unwrap_err().to_string();
    for (found, expected) in [
        (why(Tensor::from_vec([1], vec![])), "from_vec: expected 1 element for shape [1], found 0"),
        (
            why(x.try_i((0, 0))),
            "i: expected 1 axis of the shape [2], or fewer, in the index, found 2",
        ),
        (why(x.try_permute(&[0, 1])), "permute: expected 1 axis in `order`, found 2"),
        (
            why(x.try_pad(&[[0, 0], [1, 1]], Padding::Constant(0.0))),
            "pad: expected 1 pair in `widths`, or fewer, found 2",
        ),
        (
            why(jvp(f, std::slice::from_ref(&x), &[]).map(|(y, _)| y)),
            "jvp: expected 1 tangent, one for each input, found 0",
        ),
        (
            why(x.try_reshape([-1, -1])),
            "reshape: `shape` must be a shape with at most one free length (-1), found [-1, -1]",
        ),
        (
            why(Tensor::try_concat(Vec::<Tensor<f64>>::new(), 0)),
            "concat: expected 1 or more tensors, found 0",
        ),
    ] {
        assert_eq!(found, expected);
    }
    let panicked = catch_unwind(|| Tensor::from([1.0, 2.0]).unfold(0, 3, 1)).unwrap_err();
    let text = panicked.downcast_ref::<String>().unwrap();
    assert!(text.contains("size and step must be such that 1 <= size <= 2,"), "{text}");
}
