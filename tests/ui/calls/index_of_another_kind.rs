// a part of an index is a number, a range, a step, a new axis, an ellipsis or a tensor
use autograd_core::prelude::*;

fn main() {
    let x = Tensor::<f64>::ones([2, 3, 4]);
    let _ = x.i("first");
    let _ = x.i((.., 1.5));
    let _ = x.i([0, 1]);
    // these compile
    let _ = (x.i(-1), x.i((.., 1..3)), x.i(&Tensor::from([0, 1])));
}
