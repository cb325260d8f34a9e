// A `jvp` in an op that it does not fit.
use autograd_core::prelude::*;

CASE

fn main() {
    Double::apply(&Tensor::from(1.0));
}

//= The context of `jvp` is not that of `backward`.
#[py_layer]
impl Double {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &JvpContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }

    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        dx * 2.0
    }
}

//= An op without a gradient has no `jvp`.
#[py_layer(no_grad)]
impl Double {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        dx * 2.0
    }
}

//= Two outputs have two tangents.
#[py_layer]
impl Double {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (x * 2.0, x * 3.0)
    }

    fn backward(_ctx: &BackwardContext<Self>, da: &Tensor<f64>, db: &Tensor<f64>) -> Tensor<f64> {
        da * 2.0 + db * 3.0
    }

    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        dx * 2.0
    }
}

//= The tangents of several outputs come in a tuple, not in a list.
#[py_layer]
impl Double {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (x * 2.0, x * 3.0)
    }

    fn backward(_ctx: &BackwardContext<Self>, da: &Tensor<f64>, db: &Tensor<f64>) -> Tensor<f64> {
        da * 2.0 + db * 3.0
    }

    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Vec<Tensor<f64>> {
        vec![dx * 2.0, dx * 3.0]
    }
}

//= A tuple behind another name has a tangent for each output too.
type Three = (Tensor<f64>, Tensor<f64>, Tensor<f64>);

#[py_layer]
impl Double {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (x * 2.0, x * 3.0)
    }

    fn backward(_ctx: &BackwardContext<Self>, da: &Tensor<f64>, db: &Tensor<f64>) -> Tensor<f64> {
        da * 2.0 + db * 3.0
    }

    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Three {
        (dx * 2.0, dx * 3.0, dx * 4.0)
    }
}

//= The compiler proves the types that the macro cannot see.
type Single = Tensor<f32>;
type Maybe<'a> = Option<&'a Tensor<f32>>;

#[py_layer]
impl Double {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }

    fn jvp(_ctx: &JvpContext<Self>, _x: &Single, dx: Maybe<'_>) -> Single {
        let _ = dx;
        Tensor::from(1.0f32)
    }
}

//= `jvp` returns a tangent for each output, not nothing.
#[py_layer]
impl Double {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }

    fn jvp(_ctx: &JvpContext<Self>, _x: &Tensor<f64>, _dx: &Tensor<f64>) {}
}
