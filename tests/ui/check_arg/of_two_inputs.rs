// Arguments of `check(..)` for an op of two inputs.
use autograd_core::prelude::*;

#[py_layer(CASE)]
impl Op {
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x * w
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        Grads { x: dy * w, w: dy * x }
    }
}

fn main() {}

//= a range without an end, an empty range, and a range after something other than a shape
check(x = [2] in 0.., w = [2] in 1.0), check(x = Tensor::ones([2]) in 0.0..1.0, w = [2])

//= numbers, a list of shapes, text and None in place of the shape of one tensor
check(x = [2.5, -1], w = [[2], [3]]), check(x = "2, 3", w = None), check(x = 2, w = -1.0)

//= malformed inputs, no inputs, and `check` alone
check([2, 3], w = [3]), check(x = [2, 3], , w = [3]), check, check = [2, 3]

//= an input of which nothing is said
check(x = [2, 3])

//= the same input twice
check(x = [2, 3], w = [3], x = [3])

//= a name that is no parameter, and a slip
check(x = [2, 3], w = [3], scale = 0.1), check(x = [2], v = [2])
