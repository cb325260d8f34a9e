// Gradients that do not fit their op.
use autograd_core::prelude::*;

#[py_layer]
impl Op {
CASE
}

fn main() {}

//= an integer output has no gradient
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<i64>) {
        (x * 2.0, x.cast())
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>, _dn: &Tensor<i64>) -> Tensor<f64> {
        dy * 2.0
    }

//= an integer output has no gradient
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, Tensor<i64>) {
        (x * 2.0, x.argmax(0))
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
        _di: &Tensor<i64>,
    ) -> Tensor<f64> {
        dy * 2.0
    }

//= the gradients of a list input come as a `Vec`
    fn forward(_ctx: &mut ForwardContext<Self>, xs: &[Tensor<f64>]) -> Tensor<f64> {
        &xs[0] * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }

//= 15 gradients for 16 inputs
    fn forward(_ctx: &mut ForwardContext<Self>, x0: &Tensor<f64>, x1: &Tensor<f64>, x2: &Tensor<f64>, x3: &Tensor<f64>, x4: &Tensor<f64>, x5: &Tensor<f64>, x6: &Tensor<f64>, x7: &Tensor<f64>, x8: &Tensor<f64>, x9: &Tensor<f64>, x10: &Tensor<f64>, x11: &Tensor<f64>, x12: &Tensor<f64>, x13: &Tensor<f64>, x14: &Tensor<f64>, x15: &Tensor<f64>) -> Tensor<f64> {
        x0 * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>, Tensor<f64>) {
        todo!()
    }

//= an array output has one gradient parameter
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> [Tensor<f64>; 2] {
        [x * 2.0, x * 3.0]
    }

    fn backward(_ctx: &BackwardContext<Self>, da: &Tensor<f64>, db: &Tensor<f64>) -> Tensor<f64> {
        da * db
    }

//= `Grads` has named fields
    type Saved = (Tensor<f64>, Tensor<f64>);

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        ctx.save_for_backward((x, w));
        x * w
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (x, w) = ctx.saved_tensor();
        Grads(dy * w, dy * x)
    }

//= `Grads` has no default
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        x * w
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy.clone(), ..Default::default() }
    }

//= a field of `Grads` for a plain input
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, factor: f64) -> Tensor<f64> {
        x * factor
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy * 2.0, factor: 3.0 }
    }

//= a list has a gradient for each of its tensors
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, ys: &[Tensor<f64>]) -> Tensor<f64> {
        x * ys.len() as f64
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        Grads { x: dy * 2.0, ys: vec![] }
    }

//= `Grads` is written without arguments
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads<f64> {
        Grads { x: dy * 2.0 }
    }
}

#[py_layer]
impl Fallible {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> Result<Grads<Tensor<f64>>, String> {
        Ok(Grads { x: dy * 2.0 })
    }

//= several missing gradients in `Grads { .. }`, in one of two places
    fn forward(_ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>, c: &Tensor<f64>) -> Tensor<f64> {
        a * b * c
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        if dy.len() > 1 {
            return Grads { a: dy * 2.0, b: None, c: None };
        }
        Grads { a: dy * 2.0 }
    }

//= `backward` gets gradients, not inputs
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        x * w
    }

    fn backward(
        _ctx: &BackwardContext<Self>,
        x: &Tensor<f64>,
        w: &Tensor<f64>,
        dy: &Tensor<f64>,
    ) -> (Tensor<f64>, Tensor<f64>) {
        (dy * w, dy * x)
    }

//= `backward` ends with a gradient, but says that it returns nothing
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) {
        dy * 2.0
    }
}

#[py_layer]
impl Two {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Tensor<f64>) -> Tensor<f64> {
        x + w
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) {
        (dy.clone(), dy.clone())
    }

//= the count is checked inside `Result` too
    fn forward(_ctx: &mut ForwardContext<Self>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
        a * b
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Result<Tensor<f64>, String> {
        Ok(dy * 2.0)
    }

//= 3 gradients for 2 outputs, and a plain value between them
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> (Tensor<f64>, usize, Tensor<f64>) {
        (x * 2.0, 1, x * 3.0)
    }

    fn backward(_ctx: &BackwardContext<Self>, da: &Tensor<f64>, _n: usize, db: &Tensor<f64>) -> Tensor<f64> {
        da * db
    }

//= `backward` returns 2 gradients, but `forward` has 1 differentiable tensor input
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, #[stop_gradient] mask: &Tensor<f64>) -> Tensor<f64> {
        x * mask
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> (Tensor<f64>, Tensor<f64>) {
        (dy * 2.0, dy * 3.0)
    }
