//! The ops.

use std::sync::Mutex;

use autograd_core::prelude::*;

/// Hyperbolic tangent with a hand-written gradient, in either float type.
#[py_layer(export(f32, f64), shapes(x: [n..] -> [n..]))]
impl<T: Float> CusTanh<T> {
    type Saved = Tensor<T>;
    pub(crate) fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
        let y = x.tanh();
        ctx.save_for_backward(&y);
        y
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy * (1.0 - ctx.saved_tensor().square())
    }
}

/// The squares of `by` times the rows of `x` at `rows`.
#[py_layer(export)]
impl Gate {
    type Saved = (Tensor<f32>, Tensor<f32>, Tensor<i32>);
    type Attrs = f64;
    pub(crate) fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f32>,
        #[stop_gradient] rows: &Tensor<i32>,
        #[default(2.0)] by: f64,
    ) -> Result<Tensor<f32>, String> {
        if by <= 0.0 {
            return Err(format!("`by` must be positive, found {by}"));
        }
        let double = x.index_select(0, &rows.cast::<i64>()) * by;
        ctx.save_for_backward((x, &double, rows));
        ctx.set_attrs(by);
        Ok(double.square())
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f32>) -> Tensor<f32> {
        let (x, double, rows) = ctx.saved_tensor();
        let taken = dy * double * (2.0 * *ctx.attrs());
        Tensor::zeros_like(x).index_add(0, &rows.cast::<i64>(), &taken)
    }
}

/// The sum of the tensors of a list.
#[py_layer(export)]
impl Total {
    type Attrs = usize;
    pub(crate) fn forward(ctx: &mut ForwardContext<Self>, xs: &[&Tensor<f32>]) -> Tensor<f32> {
        ctx.set_attrs(xs.len());
        xs.iter().skip(1).fold(xs[0].copy(), |sum, x| sum + *x)
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f32>) -> Vec<Tensor<f32>> {
        vec![dy.clone(); *ctx.attrs()]
    }
}

/// The smaller and the larger of two numbers. It saves an intermediate, and no attributes.
#[py_layer(export)]
impl MinMax {
    type Saved = Tensor<f32>;
    pub(crate) fn forward(
        ctx: &mut ForwardContext<Self>,
        a: &Tensor<f32>,
        b: &Tensor<f32>,
    ) -> (Tensor<f32>, Tensor<f32>) {
        let first = a.less_equal(b).cast::<f32>();
        ctx.save_for_backward(&first);
        (a.minimum(b), a.maximum(b))
    }
    fn backward(
        ctx: &BackwardContext<Self>,
        dlow: &Tensor<f32>,
        dhigh: &Tensor<f32>,
    ) -> (Tensor<f32>, Tensor<f32>) {
        let first = ctx.saved_tensor();
        let other = 1.0 - first;
        (dlow * first + dhigh * &other, dlow * &other + dhigh * first)
    }
}

/// `x + by`, or `x + 1`.
#[py_layer(export)]
impl Shift {
    pub(crate) fn forward(
        _: &mut ForwardContext<Self>,
        x: &Tensor<f32>,
        by: Option<&Tensor<f32>>,
    ) -> Tensor<f32> {
        by.map_or_else(|| x + 1.0, |by| x + by)
    }
    fn backward(
        ctx: &BackwardContext<Self>,
        dy: &Tensor<f32>,
    ) -> (Tensor<f32>, Option<Tensor<f32>>) {
        (dy.clone(), ctx.needs_input_grad().by.then(|| dy.clone()))
    }
}

/// GELU, by tanh.
#[py_layer(elementwise, export)]
impl Gelu {
    pub(crate) fn forward(x: Real, #[default(0.797_884_560_802_865_4)] c: f64) -> Real {
        // Beyond 1000, tanh is 1; without the limit, the cube and its slope would overflow.
        let z = x.clamp(-1e3, 1e3);
        0.5 * x * (1.0 + (c * (z + 0.044715 * z * z * z)).tanh())
    }
}

/// `x * by`, in either float type.
#[py_layer(export(f32, f64))]
impl<T: Float> Scale<T> {
    type Saved = (Tensor<T>, Tensor<T>);
    pub(crate) fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<T>,
        by: &Tensor<T>,
    ) -> Tensor<T> {
        ctx.save_for_backward((x, by));
        x * by
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> (Tensor<T>, Tensor<T>) {
        let (x, by) = ctx.saved_tensor();
        (dy * by, dy * x)
    }
}

/// The logarithm of positive numbers.
#[py_layer(export, shapes(x: [n..] -> [n..]))]
impl Positive {
    type Saved = Tensor<f32>;
    pub(crate) fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f32>,
    ) -> Result<Tensor<f32>, String> {
        if x.to_vec().iter().any(|x| *x <= 0.0) {
            return Err("`x` must be positive".to_owned());
        }
        ctx.save_for_backward(x);
        Ok(x.ln())
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f32>) -> Tensor<f32> {
        dy / ctx.saved_tensor()
    }
}

/// Panics on negative numbers.
#[py_layer(export)]
impl Panics {
    pub(crate) fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f32>) -> Tensor<f32> {
        assert!(x.to_vec().iter().all(|x| *x >= 0.0), "a negative number");
        x + 1.0
    }
    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f32>) -> Tensor<f32> {
        dy.clone()
    }
}

/// `x` times `scale` times random numbers.
#[py_layer(export)]
impl Noisy {
    type Saved = Tensor<f32>;
    type Attrs = f64;
    pub(crate) fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f32>,
        scale: f64,
    ) -> Tensor<f32> {
        let noise = Tensor::<f32>::rand_like(x);
        ctx.save_for_backward(&noise);
        ctx.set_attrs(scale);
        x * noise * scale
    }
    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f32>) -> Tensor<f32> {
        dy * ctx.saved_tensor() * *ctx.attrs()
    }
}

static KEPT: Mutex<Option<Tensor<f32>>> = Mutex::new(None);

/// Returns the input of the call before, and keeps its own.
#[py_layer(export)]
impl Keeps {
    pub(crate) fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f32>) -> Tensor<f32> {
        let before = KEPT.lock().ok().and_then(|mut kept| kept.replace(x.detach()));
        before.filter(|before| before.shape() == x.shape()).unwrap_or_else(|| x.copy())
    }
    fn backward(_: &BackwardContext<Self>, dy: &Tensor<f32>) -> Tensor<f32> {
        dy.clone()
    }
}

/// All comparisons and selections.
#[py_layer(elementwise, export)]
impl Choice {
    pub(crate) fn forward(x: Real, w: Real, #[stop_gradient] on: Mask) -> Real {
        let product = on.select(x.tanh() * w, w);
        (x.lt(w) & !x.le(-1.0) | x.eq(w)).select(product, x * w - x / (x.abs() + 0.5))
    }
}

/// A function of formulas, by its name in Rust.
#[py_layer(elementwise, export)]
impl Function {
    pub(crate) fn forward(x: Real, w: Real, name: String) -> Real {
        match name.as_str() {
            "exp" => x.exp(),
            "exp_m1" => x.exp_m1(),
            "ln" => x.ln(),
            "ln_1p" => x.ln_1p(),
            "log2" => x.log2(),
            "log10" => x.log10(),
            "tanh" => x.tanh(),
            "sigmoid" => x.sigmoid(),
            "softplus" => x.softplus(),
            "erf" => x.erf(),
            "erfinv" => x.erfinv(),
            "digamma" => x.digamma(),
            "lgamma" => x.lgamma(),
            "sin" => x.sin(),
            "cos" => x.cos(),
            "tan" => x.tan(),
            "asin" => x.asin(),
            "acos" => x.acos(),
            "atan" => x.atan(),
            "sinh" => x.sinh(),
            "cosh" => x.cosh(),
            "sqrt" => x.sqrt(),
            "rsqrt" => x.rsqrt(),
            "recip" => x.recip(),
            "abs" => x.abs(),
            "signum" => x.signum(),
            "floor" => x.floor(),
            "ceil" => x.ceil(),
            "round" => x.round(),
            "trunc" => x.trunc(),
            "powf" => x.powf(w),
            "min" => x.min(w),
            "max" => x.max(w),
            "hypot" => x.hypot(w),
            "atan2" => x.atan2(w),
            "logaddexp" => x.logaddexp(w),
            "xlogy" => x.xlogy(w),
            "remainder" => x.remainder(w),
            "copysign" => x.copysign(w),
            "div" => x / w,
            _ => panic!("there is no function {name:?}"),
        }
    }
}
