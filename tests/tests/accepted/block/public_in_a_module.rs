// a public op with private types

mod ops {
    use autograd_core::prelude::*;

    #[derive(Saved)]
    struct Kept {
        x: Tensor<f64>,
    }
    struct Factor(f64);

    #[py_layer]
    impl Op {
        type Saved = Kept;
        type Attrs = Factor;

        pub fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
            ctx.save_for_backward(Kept { x: x.clone() });
            ctx.set_attrs(Factor(2.0));
            x * 2.0
        }

        fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
            dy * &ctx.saved_tensor().x * ctx.attrs().0
        }
    }
}

compiles_and_runs!(|[x]| ops::Op::apply(x), [3.0] => [6.0]);
