// types, traits and constants with names like those of generated items, in every place of a block
#![deny(warnings)]
#![allow(dead_code, non_camel_case_types, non_upper_case_globals)]
use autograd_core::prelude::*;
use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};

macro_rules! plain {
    ($($name:ident)*) => {$(
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name(pub f64);
    )*};
}

plain!(OpWith NeedsInputGrad OpArguments OpElement0 OpOutput OpType_a OpReported Argument0 Argument1 Input0 G0);
plain!(FmFormula FmInfo FmPair FmType_a FmOutput FmElement0 FmWith FmArguments L Lane0);
plain!(KeptKept ArArguments ArReported);

pub trait OpKey {
    fn half(&self) -> f64;
}

impl OpKey for f64 {
    fn half(&self) -> f64 {
        self / 2.0
    }
}

pub trait Given2_0 {}
impl Given2_0 for f64 {}

pub const needs: f64 = 1.0;
pub const WHICH: usize = 2;

#[derive(Saved)]
pub struct Kept {
    x: Tensor<f64>,
    by: Vec<Tensor<f64>>,
}

#[py_layer(check(x = [2], keys = 2.0, given = 1.0))]
impl<K: OpKey + Copy + Send + Sync + 'static> Op<K> {
    type Saved = Tensor<f64>;
    type Attrs = (OpWith, NeedsInputGrad, f64);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        keys: K,
        given: impl Given2_0,
        #[default(OpWith(1.0))] with: OpWith,
        #[default(NeedsInputGrad(needs))] needed: NeedsInputGrad,
        #[default(&[OpArguments(1.0), OpArguments(2.0)])] arguments: &[OpArguments],
        #[default((OpElement0(1.0), OpOutput(2.0)))] a: (OpElement0, OpOutput),
        #[default((OpType_a(1.0), OpReported(2.0)))] b: (OpType_a, OpReported),
        #[default((Argument0(1.0), Argument1(2.0), Input0(3.0), G0(4.0)))] c: (
            Argument0,
            Argument1,
            Input0,
            G0,
        ),
    ) -> Tensor<f64> {
        let _ = (given, arguments.len(), a.0, a.1, b.0, b.1, c.0, c.1, c.2, c.3);
        let _ = ctx.needs_input_grad().x;
        ctx.save_for_backward(x);
        ctx.set_attrs((with, needed, keys.half()));
        x * (keys.half() * needs)
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let _ = ctx.saved_tensor();
        let (with, needed, half) = ctx.attrs();
        let _: (&OpWith, &NeedsInputGrad) = (with, needed);
        Grads { x: dy * (half * needs) }
    }
}

#[py_layer(elementwise)]
impl Fm {
    fn forward(
        x: Real,
        a: FmType_a,
        #[default([1.0; WHICH])] array: [f64; WHICH],
        #[default((FmFormula(1.0), FmInfo(2.0), FmPair(3.0)))] b: (FmFormula, FmInfo, FmPair),
        #[default((FmOutput(1.0), FmElement0(2.0)))] c: (FmOutput, FmElement0),
        #[default((FmWith(1.0), FmArguments(2.0)))] d: (FmWith, FmArguments),
    ) -> Real {
        let _ = (b.0, b.1, b.2, c.0, c.1, d.0, d.1);
        x * (L(2.0).0 * a.0 * array[1] * needs)
    }

    fn backward(a: FmType_a, array: [f64; WHICH], dy: Real) -> Real {
        dy * (L(2.0).0 * a.0 * array[1] * needs)
    }
}

#[py_func]
impl Ar {
    fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {
        &x * (ArArguments(2.0).0 * ArReported(1.0).0 * needs)
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::<f64>::from(vec![3.0]);
    x.set_stop_gradient(false);
    let y = Op::with().x(&x).keys(4.0).given(1.0).apply();
    assert_eq!(y.to_vec(), [6.0]);
    y.sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [2.0]);
    assert_eq!(Fm::with().x(&x).a(FmType_a(1.0)).apply().to_vec(), [6.0]);
    let kept = Kept { x: x.clone(), by: vec![x] };
    assert_eq!((kept.x.len(), kept.by.len(), KeptKept(1.0).0, Lane0(1.0).0), (1, 1, 1.0, 1.0));
    let doubled = Ar::forward(ndarray::arr0(2.0).into_dyn().view());
    assert_eq!(doubled.sum(), 4.0);
}
