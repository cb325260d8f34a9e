// Array views as plain parameters, and names that the expansion uses.
#![deny(warnings)]

use autograd_core::nn::Module;
use autograd_core::prelude::*;
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayView1, ArrayViewD};

trait Float: autograd_core::Float {}
impl Float for f32 {}

#[derive(Clone)]
struct Price;

struct Viewed<T>(Option<T>);

#[py_layer]
impl Views {
    fn forward(
        _ctx: &mut ForwardContext<'_, Self>,
        x: &Tensor<f64>,
        p: ArrayViewD<'_, f64>,
        q: Option<ArrayView1<f64>>,
        r: (&'static str, Viewed<&str>),
    ) -> Tensor<f64> {
        let _ = (p, q, r.0, r.1.0);
        x * 2.0
    }
    fn backward(_ctx: &BackwardContext<'_, Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[py_layer]
impl<T: Float> Own<T> {
    fn forward(_ctx: &mut ForwardContext<'_, Self>, x: &Tensor<T>, p: Price) -> Tensor<T> {
        let _ = p;
        x.clone()
    }
    fn backward(_ctx: &BackwardContext<'_, Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy.clone()
    }
}

#[py_func]
impl<T: Float> Program<T> {
    fn forward(x: ArrayViewD<T>) -> ArrayD<T> {
        x.to_owned()
    }
    fn backward(dy: ArrayViewD<T>) -> ArrayD<T> {
        dy.to_owned()
    }
}

#[py_layer(elementwise)]
impl Send {
    fn forward(x: Real, p: Price) -> Real {
        let _ = p;
        x * 2.0
    }
}

#[py_layer(elementwise)]
impl Old {
    #[deprecated]
    fn forward(x: Real, p: Price) -> Real {
        let _ = p;
        x * 2.0
    }
    #[deprecated]
    fn backward(dy: Real) -> Real {
        dy * 2.0
    }
}

#[derive(Saved)]
struct __Saved {
    x: Tensor<f64>,
}

#[derive(Saved)]
struct __Kept {
    x: Tensor<f64>,
}

#[derive(Module)]
struct Net {
    x: Tensor<f64>,
    #[module(skip)]
    name: str,
}

mod own {
    use autograd_core::nn::{Module, Visitor};

    pub struct Linear<T>(pub T);

    impl Module for Linear<u8> {
        fn visit(&self, _: &mut Visitor<'_>) {}
    }

    #[derive(Module)]
    pub struct Bytes<T>
    where
        Linear<T>: Module,
    {
        pub layer: Linear<T>,
    }
}

fn main() {
    let (x, y) = (Tensor::<f64>::from(1.0), Tensor::<f32>::from(1.0));
    let array = ndarray::arr1(&[1.0]);
    let view = || array.view().into_dyn();
    let _ = Views::apply(&x, view(), Some(array.view()), ("a", Viewed(Some(&String::new()))));
    let _ = Views::with().x(&x).p(view()).q(None).r(("a", Viewed(None))).apply();
    let _ = (Own::<f32>::apply(&y, Price), Program::<f32>::call, Send::apply(&x, Price));
    #[allow(deprecated)]
    let _ = Old::apply(&x, Price);
    let _ = (__Saved { x: x.clone() }.x, __Kept { x: x.clone() }.x);
    let bytes = own::Bytes { layer: own::Linear(1_u8) };
    let _ = (&bytes as &dyn Module, bytes.layer.0);
    let _ = |net: &Net| (net.x.clone(), net.name.len());
}
