// where clauses on the impl and on forward
use autograd_core::prelude::*;
use support::{gradient, leaf};

trait Scale {
    const BY: f64;
}
struct Three;
impl Scale for Three {
    const BY: f64 = 3.0;
}

#[py_layer]
impl<S, T> Op<S, T>
where
    S: Scale,
    T: Float,
{
    fn forward<W>(_ctx: &mut ForwardContext<Self>, x: &Tensor<T>, with: W) -> Tensor<T>
    where
        W: AsRef<str>,
    {
        x * (S::BY * with.as_ref().len() as f64)
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy * S::BY
    }
}

#[test]
fn compiles_and_runs() {
    let x = leaf(&[3.0]);
    Op::<Three, f64>::apply(&x, "w").sum().backward().unwrap();
    assert_eq!(gradient(&x), [3.0]);
}
