// Generic ops: element types, closures, lifetimes, constants, where clauses.
use autograd_core::prelude::*;
use support::{gradient, leaf};

#[py_layer]
impl<T: Float> Square<T> {
    type Saved = Tensor<T>;

    pub fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        ctx.save_for_backward(x);
        x * x
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy * ctx.saved_tensor() * 2.0
    }
}

#[py_layer]
impl<F: Fn(&Tensor<f64>) -> Tensor<f64>> Through<F> {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, f: F) -> Tensor<f64> {
        f(x)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 2.0
    }
}

#[py_layer]
impl<const N: usize, T> Repeat<T, N>
where
    T: Float,
{
    fn forward<'a, S: AsRef<str>>(
        _ctx: &mut ForwardContext<Self>,
        x: &'a Tensor<T>,
        name: &'a str,
        other: S,
    ) -> ([Tensor<T>; N], &'a str)
    where
        S: Clone,
    {
        assert_eq!(other.clone().as_ref(), "other");
        ([(); N].map(|()| x * 1.0), name)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &[Tensor<T>]) -> Grads {
        let mut sum = dy[0].clone();
        for d in &dy[1..] {
            sum = sum + d;
        }
        Grads { x: sum }
    }
}

#[py_layer]
impl<'a> Borrowed<'a> {
    type Attrs = f64;
    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, by: &'a [f64]) -> Tensor<f64> {
        ctx.set_attrs(by[0]);
        x * by[0]
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * *ctx.attrs()
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    Square::apply(&x).sum().backward().unwrap();
    assert_eq!(gradient(&x), [6.0]);

    let local = 2.0;
    Through::apply(&x, |x| x * local).sum().backward().unwrap();
    assert_eq!(gradient(&x), [8.0]);
    Through::with().f(|x| x * local).x(&x).apply().sum().backward().unwrap();
    assert_eq!(gradient(&x), [10.0]);

    let name = String::from("name");
    let (ys, same) = Repeat::<f64, 3>::apply(&x, &name, "other");
    assert_eq!(same, "name");
    (ys[0].sum() + ys[2].sum()).backward().unwrap();
    assert_eq!(gradient(&x), [12.0]);
    let (ys, _) = Repeat::<f64, 1>::with().x(&x).other("other").name(&name).apply();
    ys[0].sum().backward().unwrap();
    assert_eq!(gradient(&x), [13.0]);

    let by = [4.0];
    Borrowed::with().by(&by).x(&x).apply().sum().backward().unwrap();
    assert_eq!(gradient(&x), [17.0]);
}
