// hidden lifetimes in many positions of one signature, and inside a macro
#![deny(missing_docs, warnings)]
//! Each by name and by position.
use std::borrow::Cow;
use std::marker::PhantomData;

use autograd_core::prelude::*;

/// Names.
#[derive(Clone)]
pub struct Names<'a>(pub &'a str);
/// Kinds.
pub mod kinds {
    /// A kind.
    #[derive(Clone, Copy)]
    pub enum Kind {
        /// a
        A,
        /// b
        B,
    }
    /// Options.
    pub struct Options<'a, T> {
        /// i
        pub inner: &'a [T],
    }
}

macro_rules! op {
    ($name:ident, $ty:ty, $value:expr) => {
        /// Made.
        #[py_layer]
        impl $name {
            /// F.
            pub fn forward(
                _ctx: &mut ForwardContext<Self>,
                x: &Tensor<f64>,
                n: $ty,
                #[default($value)] m: $ty,
            ) -> Tensor<f64> {
                let _ = (n, m);
                x * 2.0
            }
            fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
                dy * 2.0
            }
        }
    };
}
op!(MadeNames, Names, Names("x"));
op!(MadeKind, kinds::Kind, kinds::Kind::A);
op!(MadeRef, &kinds::Options<f64>, &kinds::Options { inner: &[] });
op!(MadeCow, Cow<str>, Cow::Borrowed("x"));
op!(MadeSelf, Held<PhantomData<Self>>, Held("x", PhantomData));

/// Op.
#[py_layer]
impl<'op, T: Float, const N: usize> Wide<'op, T, N> {
    type Saved = Tensor<T>;
    /// F.
    pub fn forward<'a, F>(
        ctx: &mut ForwardContext<Self>,
        xs: [&'a Tensor<T>; N],
        names: &'op [Names],
        f: F,
        options: kinds::Options<'_, Names>,
        r#type: Option<kinds::Kind>,
        many: Vec<(Names, &str)>,
        each: &mut Vec<Names>,
        iter: impl Iterator<Item = &'a str>,
        g: &dyn Fn(&Names) -> f64,
        h: fn(Names) -> f64,
    ) -> Result<(Tensor<T>, usize), String>
    where
        F: Fn(&Tensor<T>) -> Tensor<T>,
    {
        let count = names.len() + options.inner.len() + many.len() + each.len() + iter.count();
        let _ = (r#type, g(&Names("a")), h(Names("b")));
        let y = f(xs[0]);
        ctx.save_for_backward(&y);
        Ok((y, count))
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Vec<Option<Tensor<T>>> {
        vec![Some(dy * ctx.saved_tensor()); N]
    }
}

/// What hides them mentions parameters, the op and an `impl Trait`.
pub struct Held<'a, F>(pub &'a str, pub F);

/// Op.
#[py_layer]
impl<T: Float> Mentions<T> {
    /// F.
    pub fn forward<I: Iterator<Item = usize>>(
        _ctx: &mut ForwardContext<Self>,
        x: &Tensor<T>,
        by: Held<impl Fn(f64) -> f64>,
        options: kinds::Options<T>,
        more: &mut Held<I>,
        op: Held<PhantomData<Self>>,
    ) -> Tensor<T> {
        let count = options.inner.len() + more.1.by_ref().count() + by.0.len() + op.0.len();
        x * T::from_f64((by.1)(count as f64))
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy.clone()
    }
}

#[test]
fn compiles_and_runs() {
    let x = Tensor::from(2.0);
    let s = String::from("s");
    assert!((MadeNames::with().x(&x).n(Names(&s)).apply().item() - 4.0).abs() < 1e-9);
    let _ = MadeNames::with().x(&x).n(Names(&s)).m(Names(&s)).apply();
    let _ = MadeKind::with().x(&x).n(kinds::Kind::B).apply();
    let _ = MadeRef::with().x(&x).n(&kinds::Options { inner: &[1.0] }).apply();
    let _ = MadeCow::with().x(&x).n(Cow::Borrowed(&s)).apply();
    let names = [Names(&s)];
    let mut each = vec![Names("e")];
    let call = Wide::with().xs([&x]).names(&names).f(|x: &Tensor<f64>| x * 3.0);
    let call =
        call.options(kinds::Options { inner: &names }).r#type(None).many(vec![(Names("q"), &s)]);
    let (y, count) = call
        .each(&mut each)
        .iter(["a", "b"].into_iter())
        .g(&|n| n.0.len() as f64)
        .h(|n| n.0.len() as f64)
        .apply()
        .unwrap();
    assert!((y.item() - 6.0).abs() < 1e-9 && count == 6, "{count}");

    let op = || Held("op", PhantomData);
    let y = Mentions::apply(
        &x,
        Held(&s, |by| by),
        kinds::Options { inner: &[1.0] },
        &mut Held(&s, 0..2),
        op(),
    );
    assert!((y.item() - 12.0).abs() < 1e-9);
    let call = Mentions::with().op(op()).options(kinds::Options { inner: &[1.0] }).x(&x);
    let y = call.more(&mut Held(&s, 0..2)).by(Held("a", |by| by * 2.0)).apply();
    assert!((y.item() - 24.0).abs() < 1e-9);
}
