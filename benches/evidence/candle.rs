// The ops as candle writes them, with forward by candle's own ops.
use candle_core::{CpuStorage, CustomOp1, CustomOp2, DType, Device, Layout, Result, Shape, Storage, Tensor, Var};

fn storage(y: Result<Tensor>) -> Result<(CpuStorage, Shape)> {
    let y = y?.contiguous()?;
    let Storage::Cpu(data) = &*y.storage_and_layout().0 else { unreachable!() };
    Ok((data.clone(), y.shape().clone()))
}

fn read(data: &CpuStorage, layout: &Layout) -> Result<Tensor> {
    match data {
        CpuStorage::F64(data) => Tensor::from_slice(data, layout.shape(), &Device::Cpu),
        CpuStorage::U32(data) => Tensor::from_slice(data, layout.shape(), &Device::Cpu),
        _ => unreachable!(),
    }
}

fn leaf(shape: impl Into<Shape>) -> Var {
    Var::rand(-1.0, 1.0, shape, &Device::Cpu).unwrap()
}

fn called(y: Result<Tensor>, leaves: &[&Var]) {
    let grads = y.and_then(|y| y.sum_all()).and_then(|y| y.backward()).unwrap();
    for x in leaves {
        // A gradient of another shape or type is an error when it is used, by an optimizer's step.
        let dx = grads.get(x).expect("a gradient");
        x.set(&x.sub(&(dx * 0.1).unwrap()).unwrap()).unwrap();
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
