// The ops as candle writes them, with forward by candle's own ops.
use candle_core::{CpuStorage, CustomOp1, CustomOp2, CustomOp3, DType, Device, Layout, Result, Shape, Storage, Tensor, Var};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

fn storage(y: Result<Tensor>) -> Result<(CpuStorage, Shape)> {
    let y = y?.contiguous()?;
    let Storage::Cpu(data) = &*y.storage_and_layout().0 else { unreachable!() };
    Ok((data.clone(), y.shape().clone()))
}

fn read(data: &CpuStorage, layout: &Layout) -> Result<Tensor> {
    match data {
        CpuStorage::F64(data) => Tensor::from_slice(data, layout.shape(), &Device::Cpu),
        CpuStorage::U8(data) => Tensor::from_slice(data, layout.shape(), &Device::Cpu),
        CpuStorage::U32(data) => Tensor::from_slice(data, layout.shape(), &Device::Cpu),
        _ => unreachable!(),
    }
}

fn leaf(shape: impl Into<Shape>) -> Var {
    static COUNT: AtomicUsize = AtomicUsize::new(1);
    let shape = shape.into();
    let data = (0..shape.elem_count()).map(|_| (COUNT.fetch_add(1, Relaxed) as f64 * 1.7).sin());
    Var::from_vec(data.collect::<Vec<f64>>(), shape, &Device::Cpu).unwrap()
}

fn called(y: Result<Tensor>, leaves: &[&Var]) {
    let grads = y.and_then(|y| y.sqr()? * y).and_then(|y| y.sum_all()).and_then(|y| y.backward()).unwrap();
    print!("gradients");
    for x in leaves {
        // A gradient of another shape or type is an error when it is used, by an optimizer's step.
        let dx = grads.get(x).expect("a gradient");
        x.set(&x.sub(&(dx * 0.1).unwrap()).unwrap()).unwrap();
        for n in dx.dims() {
            print!(" {n}");
        }
        for n in dx.flatten_all().unwrap().to_dtype(DType::F64).unwrap().to_vec1::<f64>().unwrap() {
            print!(" {n}");
        }
    }
}

// == tanh
struct Op;
impl CustomOp1 for Op {
    fn name(&self) -> &'static str { "op" }
    fn cpu_fwd(&self, x: &CpuStorage, l: &Layout) -> Result<(CpuStorage, Shape)> {
        storage(read(x, l)?.tanh())
    }
    fn bwd(&self, x: &Tensor, y: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let _ = (x, DType::F32);
        Ok(Some((dy * (1.0 - y.sqr()?)?)?))
    }
}
fn main() {
    let x = leaf((2, 3));
    called(x.apply_op1(Op), &[&x]);
}
// a sign: dy * (1.0 -> dy.neg()? * (1.0
// a term dropped: y.sqr()? -> y
// dy ignored: (dy * (1.0 - y.sqr()?)?)? -> (1.0 - y.sqr()?)?
// another tensor saved: y.sqr()? -> x.sqr()?
// another element type: (dy * (1.0 - y.sqr()?)?)? -> (dy * (1.0 - y.sqr()?)?)?.to_dtype(DType::F32)?

// == product
struct Op;
impl CustomOp2 for Op {
    fn name(&self) -> &'static str { "op" }
    fn cpu_fwd(&self, x: &CpuStorage, l: &Layout, w: &CpuStorage, k: &Layout) -> Result<(CpuStorage, Shape)> {
        storage(read(x, l)? * read(w, k)?)
    }
    fn bwd(&self, x: &Tensor, w: &Tensor, _y: &Tensor, dy: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        Ok((Some((dy * w)?), Some((dy * x)?)))
    }
}
fn main() {
    let (x, w) = (leaf((2, 3)), leaf((2, 3)));
    called(x.apply_op2(&w, Op), &[&x, &w]);
}
// two gradients exchanged: (Some((dy * w)?), Some((dy * x)?)) -> (Some((dy * x)?), Some((dy * w)?))
// a sign: Some((dy * x)?) -> Some((dy.neg()? * x)?)
// dy ignored: Some((dy * w)?) -> Some(w.clone())
// a gradient too few: (Some((dy * w)?), Some((dy * x)?)) -> Some((dy * w)?)
// a gradient too many: Some((dy * x)?)) -> Some((dy * x)?), Some((dy * x)?))

// == linear
struct Op;
impl CustomOp2 for Op {
    fn name(&self) -> &'static str { "op" }
    fn cpu_fwd(&self, x: &CpuStorage, l: &Layout, w: &CpuStorage, k: &Layout) -> Result<(CpuStorage, Shape)> {
        storage(read(x, l)?.matmul(&read(w, k)?))
    }
    fn bwd(&self, x: &Tensor, w: &Tensor, _y: &Tensor, dy: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        Ok((Some(dy.matmul(&w.t()?)?), Some(x.t()?.matmul(dy)?)))
    }
}
fn main() {
    let (x, w) = (leaf((2, 3)), leaf((3, 4)));
    called(x.apply_op2(&w, Op), &[&x, &w]);
}
// two gradients exchanged: (Some(dy.matmul(&w.t()?)?), Some(x.t()?.matmul(dy)?)) -> (Some(x.t()?.matmul(dy)?), Some(dy.matmul(&w.t()?)?))
// a transposition missing: dy.matmul(&w.t()?)? -> dy.matmul(w)?
// the wrong factor transposed: x.t()?.matmul(dy)? -> dy.t()?.matmul(x)?
// dy ignored: x.t()?.matmul(dy)? -> x.t()?.matmul(&dy.ones_like()?)?
// a sign: x.t()?.matmul(dy)? -> x.t()?.matmul(dy)?.neg()?

// == bias
struct Op;
impl CustomOp2 for Op {
    fn name(&self) -> &'static str { "op" }
    fn cpu_fwd(&self, x: &CpuStorage, l: &Layout, b: &CpuStorage, k: &Layout) -> Result<(CpuStorage, Shape)> {
        storage(read(x, l)?.broadcast_add(&read(b, k)?))
    }
    fn bwd(&self, _x: &Tensor, _b: &Tensor, _y: &Tensor, dy: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        Ok((Some(dy.clone()), Some(dy.sum(0)?)))
    }
}
fn main() {
    let (x, b) = (leaf((2, 3)), leaf(3));
    called(x.apply_op2(&b, Op), &[&x, &b]);
}
// a sum over a broadcast axis missing: dy.sum(0)? -> dy.clone()
// a sum over the wrong axis: dy.sum(0)? -> dy.sum(1)?
// a mean for a sum: dy.sum(0)? -> dy.mean(0)?
// two gradients exchanged: (Some(dy.clone()), Some(dy.sum(0)?)) -> (Some(dy.sum(0)?), Some(dy.clone()))
// a sum that keeps the axis: dy.sum(0)? -> dy.sum_keepdim(0)?

// == scale
struct Op {
    s: f64,
}
impl CustomOp1 for Op {
    fn name(&self) -> &'static str { "op" }
    fn cpu_fwd(&self, x: &CpuStorage, l: &Layout) -> Result<(CpuStorage, Shape)> {
        storage(read(x, l)? * self.s)
    }
    fn bwd(&self, _x: &Tensor, _y: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let s = self.s;
        Ok(Some((dy * s)?))
    }
}
fn main() {
    let x = leaf((2, 3));
    called(x.apply_op1(Op { s: 3.0 }), &[&x]);
}
// a factor dropped: dy * s -> dy * 1.0
// dy ignored: dy * s -> dy.ones_like()? * s
// a gradient for a number too: Some((dy * s)?) -> Some((dy * s)?), Some(dy.sum_all()?)
// a sign: dy * s -> dy * -s
// a factor twice: dy * s -> dy * (s * s)

// == select
struct Op;
impl CustomOp2 for Op {
    fn name(&self) -> &'static str { "op" }
    fn cpu_fwd(&self, x: &CpuStorage, l: &Layout, i: &CpuStorage, k: &Layout) -> Result<(CpuStorage, Shape)> {
        storage(read(x, l)?.index_select(&read(i, k)?, 0))
    }
    fn bwd(&self, x: &Tensor, i: &Tensor, _y: &Tensor, dy: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let zeros = x.zeros_like()?;
        Ok((Some(zeros.index_add(i, dy, 0)?), None))
    }
}
fn main() {
    let (x, i) = (leaf((4, 3)), Tensor::new(&[0u32, 2, 2], &Device::Cpu).unwrap());
    called(x.apply_op2(&i, Op), &[&x]);
}
// written, not added: zeros.index_add(i, dy, 0)? -> zeros.scatter(&i.unsqueeze(1)?.broadcast_as((3, 3))?.contiguous()?, dy, 0)?
// an integer input given a gradient: None)) -> Some(zeros)))
// zeros returned: zeros.index_add(i, dy, 0)? -> zeros
// the output's shape returned: zeros.index_add(i, dy, 0)? -> dy.clone()
// a sign: zeros.index_add(i, dy, 0)? -> zeros.index_add(i, &dy.neg()?, 0)?

// == softmax
fn softmax(x: &Tensor) -> Result<Tensor> {
    let e = x.broadcast_sub(&x.max_keepdim(1)?)?.exp()?;
    e.broadcast_div(&e.sum_keepdim(1)?)
}
struct Op;
impl CustomOp1 for Op {
    fn name(&self) -> &'static str { "op" }
    fn cpu_fwd(&self, x: &CpuStorage, l: &Layout) -> Result<(CpuStorage, Shape)> {
        storage(softmax(&read(x, l)?))
    }
    fn bwd(&self, x: &Tensor, y: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let _ = x;
        Ok(Some((y * dy.broadcast_sub(&(dy * y)?.sum_keepdim(1)?)?)?))
    }
}
fn main() {
    let x = leaf((2, 3));
    called(x.apply_op1(Op), &[&x]);
}
// a sum over the wrong axis: sum_keepdim(1)?)?)?)) -> sum_keepdim(0)?)?)?))
// a term dropped: dy.broadcast_sub(&(dy * y)?.sum_keepdim(1)?)? -> dy
// a sum over all axes: (dy * y)?.sum_keepdim(1)? -> (dy * y)?.sum_all()?
// dy ignored: (dy * y)?.sum_keepdim(1)? -> y.sum_keepdim(1)?
// another tensor saved: let _ = x; -> let y = x;

// == unit
struct Op;
impl CustomOp1 for Op {
    fn name(&self) -> &'static str { "op" }
    fn cpu_fwd(&self, x: &CpuStorage, l: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = read(x, l)?;
        storage(x.broadcast_div(&x.sqr()?.sum_keepdim(1)?.sqrt()?))
    }
    fn bwd(&self, x: &Tensor, y: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let n = x.sqr()?.sum_keepdim(1)?.sqrt()?;
        let along = (dy * y)?.sum_keepdim(1)?;
        Ok(Some((dy - y.broadcast_mul(&along)?)?.broadcast_div(&n)?))
    }
}
fn main() {
    let x = leaf((2, 3));
    called(x.apply_op1(Op), &[&x]);
}
// a term dropped: (dy - y.broadcast_mul(&along)?)? -> dy
// a factor dropped: .broadcast_div(&n)?)) -> ))
// an axis lost by a sum: (dy * y)?.sum_keepdim(1)? -> (dy * y)?.sum(1)?
// a sign: dy - y.broadcast -> dy + y.broadcast
// a factor twice: .broadcast_div(&n)?)) -> .broadcast_div(&n.sqr()?)?))

// == rms_norm
struct Op;
impl CustomOp2 for Op {
    fn name(&self) -> &'static str { "op" }
    fn cpu_fwd(&self, x: &CpuStorage, l: &Layout, g: &CpuStorage, k: &Layout) -> Result<(CpuStorage, Shape)> {
        let (x, g) = (read(x, l)?, read(g, k)?);
        let scale = x.sqr()?.mean_keepdim(1)?.sqrt()?.recip()?;
        storage(x.broadcast_mul(&scale)?.broadcast_mul(&g))
    }
    fn bwd(&self, x: &Tensor, g: &Tensor, _y: &Tensor, dy: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let scale = x.sqr()?.mean_keepdim(1)?.sqrt()?.recip()?;
        let (unit, dunit) = (x.broadcast_mul(&scale)?, dy.broadcast_mul(g)?);
        let mean = (&dunit * &unit)?.mean_keepdim(1)?;
        let dx = (dunit - unit.broadcast_mul(&mean)?)?.broadcast_mul(&scale)?;
        Ok((Some(dx), Some((dy * unit)?.sum(0)?)))
    }
}
fn main() {
    let (x, g) = (leaf((2, 3)), leaf(3));
    called(x.apply_op2(&g, Op), &[&x, &g]);
}
// a sum over a broadcast axis missing: (dy * unit)?.sum(0)? -> (dy * unit)?
// a term dropped: (dunit - unit.broadcast_mul(&mean)?)? -> dunit
// a factor dropped: dy.broadcast_mul(g)? -> dy.clone()
// a sum for a mean: (&dunit * &unit)?.mean_keepdim(1)? -> (&dunit * &unit)?.sum_keepdim(1)?
// a sum over the wrong axis: .sum(0)? -> .sum(1)?

// == cross_entropy
fn softmax(x: &Tensor) -> Result<Tensor> {
    let e = x.broadcast_sub(&x.max_keepdim(1)?)?.exp()?;
    e.broadcast_div(&e.sum_keepdim(1)?)
}
struct Op;
impl CustomOp2 for Op {
    fn name(&self) -> &'static str { "op" }
    fn cpu_fwd(&self, z: &CpuStorage, l: &Layout, t: &CpuStorage, k: &Layout) -> Result<(CpuStorage, Shape)> {
        let (z, t) = (read(z, l)?, read(t, k)?);
        storage(softmax(&z)?.gather(&t.unsqueeze(1)?, 1)?.squeeze(1)?.log()?.neg())
    }
    fn bwd(&self, z: &Tensor, t: &Tensor, _y: &Tensor, dy: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let p = softmax(z)?;
        let target = Tensor::eye(4, DType::F64, &Device::Cpu)?.index_select(t, 0)?;
        Ok((Some((p - target)?.broadcast_mul(&dy.unsqueeze(1)?)?), None))
    }
}
fn main() {
    let (z, t) = (leaf((2, 4)), Tensor::new(&[0u32, 3], &Device::Cpu).unwrap());
    called(z.apply_op2(&t, Op), &[&z]);
}
// dy ignored: (p - target)?.broadcast_mul(&dy.unsqueeze(1)?)? -> (p - target)?
// a term dropped: (p - target)? -> p
// a sign: (p - target) -> (p + target)
// an integer input given a gradient: None)) -> Some(dy.clone())))
// an axis not added: &dy.unsqueeze(1)? -> dy

// == mean
struct Op;
impl CustomOp1 for Op {
    fn name(&self) -> &'static str { "op" }
    fn cpu_fwd(&self, x: &CpuStorage, l: &Layout) -> Result<(CpuStorage, Shape)> {
        storage(read(x, l)?.mean(1))
    }
    fn bwd(&self, x: &Tensor, _y: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        Ok(Some((dy.unsqueeze(1)?.broadcast_as(x.shape())? / x.dim(1)? as f64)?))
    }
}
fn main() {
    let x = leaf((2, 3));
    called(x.apply_op1(Op), &[&x]);
}
// a factor dropped: / x.dim(1)? as f64 -> / 1.0
// an axis not added: dy.unsqueeze(1)? -> dy
// a broadcast missing: dy.unsqueeze(1)?.broadcast_as(x.shape())? -> dy.unsqueeze(1)?
// the wrong axis counted: x.dim(1)? -> x.dim(0)?
// dy ignored: dy.unsqueeze(1)? -> dy.unsqueeze(1)?.ones_like()?

// == outer
struct Op;
impl CustomOp2 for Op {
    fn name(&self) -> &'static str { "op" }
    fn cpu_fwd(&self, a: &CpuStorage, l: &Layout, b: &CpuStorage, k: &Layout) -> Result<(CpuStorage, Shape)> {
        storage(read(a, l)?.unsqueeze(1)?.broadcast_mul(&read(b, k)?))
    }
    fn bwd(&self, a: &Tensor, b: &Tensor, _y: &Tensor, dy: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (da, db) = (dy.mv(b)?, dy.t()?.mv(a)?);
        Ok((Some(da), Some(db)))
    }
}
fn main() {
    let (a, b) = (leaf(2), leaf(3));
    called(a.apply_op2(&b, Op), &[&a, &b]);
}
// two gradients exchanged: (Some(da), Some(db)) -> (Some(db), Some(da))
// a transposition missing: dy.t()?.mv(a)? -> dy.mv(a)?
// another element type: dy.t()?.mv(a)? -> dy.t()?.mv(a)?.to_dtype(DType::F32)?
// dy ignored: dy.mv(b)? -> dy.ones_like()?.mv(b)?
// a sign: dy.t()?.mv(a)? -> dy.t()?.mv(a)?.neg()?

// == concat
struct Op;
impl CustomOp2 for Op {
    fn name(&self) -> &'static str { "op" }
    fn cpu_fwd(&self, a: &CpuStorage, l: &Layout, b: &CpuStorage, k: &Layout) -> Result<(CpuStorage, Shape)> {
        storage(Tensor::cat(&[read(a, l)?, read(b, k)?], 1))
    }
    fn bwd(&self, _a: &Tensor, _b: &Tensor, _y: &Tensor, dy: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        Ok((Some(dy.narrow(1, 0, 2)?), Some(dy.narrow(1, 2, 3)?)))
    }
}
fn main() {
    let (a, b) = (leaf((4, 2)), leaf((4, 3)));
    called(a.apply_op2(&b, Op), &[&a, &b]);
}
// two gradients exchanged: (Some(dy.narrow(1, 0, 2)?), Some(dy.narrow(1, 2, 3)?)) -> (Some(dy.narrow(1, 2, 3)?), Some(dy.narrow(1, 0, 2)?))
// the wrong start: dy.narrow(1, 2, 3)? -> dy.narrow(1, 1, 3)?
// cut along the wrong axis: dy.narrow(1, 0, 2)? -> dy.narrow(0, 0, 2)?
// the output's shape returned: dy.narrow(1, 2, 3)? -> dy.clone()
// a sign: dy.narrow(1, 2, 3)? -> dy.narrow(1, 2, 3)?.neg()?

// == columns
struct Op;
impl CustomOp1 for Op {
    fn name(&self) -> &'static str { "op" }
    fn cpu_fwd(&self, x: &CpuStorage, l: &Layout) -> Result<(CpuStorage, Shape)> {
        storage(read(x, l)?.narrow(1, 1, 2))
    }
    fn bwd(&self, x: &Tensor, _y: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let zeros = x.zeros_like()?;
        Ok(Some(zeros.slice_scatter(dy, 1, 1)?))
    }
}
fn main() {
    let x = leaf((2, 4));
    called(x.apply_op1(Op), &[&x]);
}
// put at the wrong place: (dy, 1, 1) -> (dy, 1, 0)
// put along the wrong axis: (dy, 1, 1) -> (dy, 0, 0)
// zeros returned: zeros.slice_scatter(dy, 1, 1)? -> zeros
// the output's shape returned: zeros.slice_scatter(dy, 1, 1)? -> dy.broadcast_add(&zeros.sum_all()?)?
// dy ignored: (dy, 1, 1) -> (&dy.ones_like()?, 1, 1)

// == where
struct Op;
impl CustomOp3 for Op {
    fn name(&self) -> &'static str { "op" }
    fn cpu_fwd(
        &self,
        c: &CpuStorage, k: &Layout,
        a: &CpuStorage, l: &Layout,
        b: &CpuStorage, m: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        storage(read(c, k)?.where_cond(&read(a, l)?, &read(b, m)?))
    }
    fn bwd(
        &self, c: &Tensor, _a: &Tensor, _b: &Tensor, _y: &Tensor, dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let zero = dy.zeros_like()?;
        let (da, db) = (c.where_cond(dy, &zero)?, c.where_cond(&zero, dy)?);
        Ok((None, Some(da), Some(db)))
    }
}
fn main() {
    let c = Tensor::new(&[[1u8, 0, 1], [1, 0, 1]], &Device::Cpu).unwrap();
    let (a, b) = (leaf((2, 3)), leaf((2, 3)));
    called(c.apply_op3(&a, &b, Op), &[&a, &b]);
}
// two gradients exchanged: Some(da), Some(db) -> Some(db), Some(da)
// the mask ignored: c.where_cond(&zero, dy)? -> dy.clone()
// dy ignored: c.where_cond(dy, &zero)? -> c.where_cond(&dy.ones_like()?, &zero)?
// an integer input given a gradient: (None, Some(da) -> (Some(zero), Some(da)
// a sign: c.where_cond(&zero, dy)? -> c.where_cond(&zero, &dy.neg()?)?

// == cumsum
struct Op;
impl CustomOp1 for Op {
    fn name(&self) -> &'static str { "op" }
    fn cpu_fwd(&self, x: &CpuStorage, l: &Layout) -> Result<(CpuStorage, Shape)> {
        storage(read(x, l)?.cumsum(1))
    }
    fn bwd(&self, _x: &Tensor, _y: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        Ok(Some(dy.flip(&[1])?.cumsum(1)?.flip(&[1])?))
    }
}
fn main() {
    let x = leaf((2, 3));
    called(x.apply_op1(Op), &[&x]);
}
// not reversed: dy.flip(&[1])?.cumsum(1)?.flip(&[1])? -> dy.cumsum(1)?
// reversed once: .cumsum(1)?.flip(&[1])? -> .cumsum(1)?
// a sum over the wrong axis: cumsum(1) -> cumsum(0)
// dy ignored: dy.flip(&[1])? -> dy.ones_like()?.flip(&[1])?
// a sum missing: dy.flip(&[1])?.cumsum(1)? -> dy.flip(&[1])?

// == gated
fn sigmoid(x: &Tensor) -> Result<Tensor> {
    (x.neg()?.exp()? + 1.0)?.recip()
}
struct Op;
impl CustomOp2 for Op {
    fn name(&self) -> &'static str { "op" }
    fn cpu_fwd(&self, a: &CpuStorage, l: &Layout, b: &CpuStorage, k: &Layout) -> Result<(CpuStorage, Shape)> {
        storage(read(a, l)? * sigmoid(&read(b, k)?)?)
    }
    fn bwd(&self, a: &Tensor, b: &Tensor, _y: &Tensor, dy: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let s = &sigmoid(b)?;
        let da = (dy * s)?;
        let db = (((dy * a)? * s)? * (1.0 - s)?)?;
        Ok((Some(da), Some(db)))
    }
}
fn main() {
    let (a, b) = (leaf((2, 3)), leaf((2, 3)));
    called(a.apply_op2(&b, Op), &[&a, &b]);
}
// two gradients exchanged: (Some(da), Some(db)) -> (Some(db), Some(da))
// a factor dropped: ((dy * a)? * s)? -> (dy * a)?
// dy ignored: (((dy * a)? * s)? -> ((a * s)?
// another tensor saved: s = &sigmoid(b)? -> s = b
// another element type: (dy * s)? -> (dy * s)?.to_dtype(DType::F32)?

// == attention
fn softmax(x: &Tensor) -> Result<Tensor> {
    let e = x.broadcast_sub(&x.max_keepdim(1)?)?.exp()?;
    e.broadcast_div(&e.sum_keepdim(1)?)
}
struct Op;
impl CustomOp3 for Op {
    fn name(&self) -> &'static str { "op" }
    fn cpu_fwd(
        &self,
        q: &CpuStorage, l: &Layout,
        k: &CpuStorage, m: &Layout,
        v: &CpuStorage, n: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        storage(softmax(&read(q, l)?.matmul(&read(k, m)?.t()?)?)?.matmul(&read(v, n)?))
    }
    fn bwd(
        &self, q: &Tensor, k: &Tensor, v: &Tensor, _y: &Tensor, dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let s = q.matmul(&k.t()?)?;
        let p = softmax(&s)?;
        let dp = dy.matmul(&v.t()?)?;
        let ds = (&p * dp.broadcast_sub(&(&dp * &p)?.sum_keepdim(1)?)?)?;
        let (dq, dk, dv) = (ds.matmul(k)?, ds.t()?.matmul(q)?, p.t()?.matmul(dy)?);
        Ok((Some(dq), Some(dk), Some(dv)))
    }
}
fn main() {
    let (q, k, v) = (leaf((2, 3)), leaf((4, 3)), leaf((4, 3)));
    called(q.apply_op3(&k, &v, Op), &[&q, &k, &v]);
}
// a term dropped: dp.broadcast_sub(&(&dp * &p)?.sum_keepdim(1)?)? -> &dp
// a transposition missing: ds.t()?.matmul(q)? -> ds.matmul(q)?
// two gradients exchanged: Some(dk), Some(dv) -> Some(dv), Some(dk)
// dy ignored: p.t()?.matmul(dy)? -> p.t()?.matmul(&dy.ones_like()?)?
// another tensor saved: p = softmax(&s)? -> p = s

// == distances
struct Op;
impl CustomOp2 for Op {
    fn name(&self) -> &'static str { "op" }
    fn cpu_fwd(&self, a: &CpuStorage, l: &Layout, b: &CpuStorage, k: &Layout) -> Result<(CpuStorage, Shape)> {
        storage(read(a, l)?.unsqueeze(1)?.broadcast_sub(&read(b, k)?.unsqueeze(0)?)?.sqr()?.sum(2))
    }
    fn bwd(&self, a: &Tensor, b: &Tensor, _y: &Tensor, dy: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let da = ((a.broadcast_mul(&dy.sum_keepdim(1)?)? - dy.matmul(b)?)? * 2.0)?;
        let db = ((b.broadcast_mul(&dy.t()?.sum_keepdim(1)?)? - dy.t()?.matmul(a)?)? * 2.0)?;
        Ok((Some(da), Some(db)))
    }
}
fn main() {
    let (a, b) = (leaf((2, 3)), leaf((4, 3)));
    called(a.apply_op2(&b, Op), &[&a, &b]);
}
// a factor dropped: - dy.matmul(b)?)? * 2.0 -> - dy.matmul(b)?)? * 1.0
// a sign: - dy.matmul(b)? -> + dy.matmul(b)?
// a sum over the wrong axis: dy.sum_keepdim(1)? -> dy.sum_keepdim(0)?
// two gradients exchanged: (Some(da), Some(db)) -> (Some(db), Some(da))
// a term dropped: (b.broadcast_mul(&dy.t()?.sum_keepdim(1)?)? - dy.t()?.matmul(a)?)? -> b.broadcast_mul(&dy.t()?.sum_keepdim(1)?)?

// == shifted
struct Op;
impl CustomOp1 for Op {
    fn name(&self) -> &'static str { "op" }
    fn cpu_fwd(&self, x: &CpuStorage, l: &Layout) -> Result<(CpuStorage, Shape)> {
        storage(((read(x, l)? * 2.0)? + 1.0)?.sqr())
    }
    fn bwd(&self, x: &Tensor, _y: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let before = &(x * 2.0)?;
        let h = &(before + 1.0)?;
        Ok(Some(((dy * h)? * 4.0)?))
    }
}
fn main() {
    let x = leaf((2, 3));
    called(x.apply_op1(Op), &[&x]);
}
// saved before a change: h = &(before + 1.0)? -> h = before
// a factor dropped: * 4.0 -> * 2.0
// dy ignored: (dy * h)? -> h
// a sign: (dy * h)? -> (dy.neg()? * h)?
// another tensor saved: h = &(before + 1.0)? -> h = x
