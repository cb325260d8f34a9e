// A second input of a form or type that it cannot have.
use autograd_core::prelude::*;

#[py_layer]
impl Op {
CASE

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

fn main() {}

//= an array of tensors holds references
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: [Tensor<f64>; 2]) -> Tensor<f64> {
        let _ = w;
        x * 2.0
    }

//= a tensor in a `Box`
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: Box<Tensor<f64>>) -> Tensor<f64> {
        let _ = w;
        x * 2.0
    }

//= an op cannot change its inputs
    fn forward(_ctx: &mut ForwardContext<Self>, x: &mut Tensor<f64>) -> Tensor<f64> {
        &*x * 2.0
    }

//= a tensor input must be borrowed
    fn forward(_ctx: &mut ForwardContext<Self>, x: Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

//= the only tensor is behind a parameter that becomes one
    fn forward<X: Into<Tensor<f64>>>(_ctx: &mut ForwardContext<Self>, x: X) -> Tensor<f64> {
        x.into() * 2.0
    }

//= tensors given by a parameter of `forward` that is an iterator
    fn forward<I>(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, all: I) -> Tensor<f64>
    where
        I: IntoIterator<Item = Tensor<f64>>,
    {
        all.into_iter().fold(x.clone(), |sum, one| sum + one)
    }

//= a tensor that depends on a parameter of `forward`
    fn forward<T: Float>(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<f64> {
        Tensor::from(x.len() as f64)
    }

//= a tensor given by a conversion
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: impl Into<Tensor<f64>>) -> Tensor<f64> {
        let _ = w;
        x * 2.0
    }

//= tensors in a map
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &std::collections::HashMap<String, Tensor<f64>>) -> Tensor<f64> {
        let _ = w;
        x * 2.0
    }

//= a tensor in a `Result`
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: Result<&Tensor<f64>, String>) -> Tensor<f64> {
        let _ = w;
        x * 2.0
    }

//= tensors in a tuple
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: (&Tensor<f64>, &Tensor<f64>)) -> Tensor<f64> {
        let _ = w;
        x * 2.0
    }

//= a list of integer tensors must be marked
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, at: &[&Tensor<i64>]) -> Tensor<f64> {
        let _ = at;
        x * 2.0
    }

//= tensors given by an iterator
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: impl IntoIterator<Item = Tensor<f64>>) -> Tensor<f64> {
        let _ = w;
        x * 2.0
    }

//= a tensor input needs a name
    fn forward(_ctx: &mut ForwardContext<Self>, _: &Tensor<f64>) -> Tensor<f64> {
        Tensor::from(1.0)
    }

//= a tensor behind a trait object
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &dyn AsRef<Tensor<f64>>) -> Tensor<f64> {
        let _ = w;
        x * 2.0
    }

//= `&Option<Tensor>` is not a form of input
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &Option<Tensor<f64>>) -> Tensor<f64> {
        let _ = w;
        x * 2.0
    }

//= an optional tensor is borrowed inside the `Option`
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: Option<Tensor<f64>>) -> Tensor<f64> {
        let _ = w;
        x * 2.0
    }

//= an optional bool tensor must be marked
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, mask: Option<&Tensor<bool>>) -> Tensor<f64> {
        let _ = mask;
        x * 2.0
    }

//= a list is not optional
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: Option<&[Tensor<f64>]>) -> Tensor<f64> {
        let _ = w;
        x * 2.0
    }

//= a tensor in a form that has no gradient
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, named: &[(String, Tensor<f64>)]) -> Tensor<f64> {
        x * named.len() as f64
    }

//= a reference to a reference to a tensor
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &&Tensor<f64>) -> Tensor<f64> {
        let _ = w;
        x * 2.0
    }

//= two parameters of the same name are reported once
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, apply: f64) -> Tensor<f64> {
        x * apply
    }

//= a list of tensors is not `&mut`
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: &mut [Tensor<f64>]) -> Tensor<f64> {
        let _ = w;
        x * 2.0
    }

//= two parameters of one name
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, x: f64) -> Tensor<f64> {
        x * 2.0
    }

//= a list of tensors is borrowed
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, w: Vec<Tensor<f64>>) -> Tensor<f64> {
        let _ = w;
        x * 2.0
    }
