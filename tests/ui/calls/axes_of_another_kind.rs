// axes are numbers of one type, alone, in an array, or all of them
use autograd_core::prelude::*;

fn main() {
    let x = Tensor::<f64>::ones([2, 3, 4]);
    let _ = x.sum_axes(1_usize);
    let _ = x.mean_axes((0, 1));
    let _ = x.norm_axes("rows", 2.0);
    // these compile
    let _ = (x.sum_axes(-1), x.max_axes([0, 2]), x.prod_axes_keep(..), x.min_axes(&[1]));
}
