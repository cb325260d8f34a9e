// what stands behind `export`
use autograd_core::prelude::*;

macro_rules! op {
    ($name:ident, $($arguments:tt)*) => {
        #[py_layer($($arguments)*)]
        impl $name {
            fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
                x * 2.0
            }
            fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
                dy * 2.0
            }
        }
    };
}

op!(Assigned, export = true);
op!(Empty, export());
op!(OfOtherTypes, export(f16, f64, f64));
op!(Twice, export, export);
op!(NotGeneric, export(f32));

fn main() {}
