//! Ops of a few numbers, which stand inline unless they change in place, all of one shape, with one result
//! of that shape: without a pass, and with a node that is built where it stays.

use super::node::ElementwiseNode;
use super::op::{Handle, Info, Reduction};
use super::{Caller, Float, Tensor};
use crate::array::Value;
use crate::array::shape::{copied, same};
use crate::error::Result;
use crate::formula::{Formula, block_of, run_block};
use crate::graph::{
    AnyTensor, At, Edge, Keep, KeepOutput, Keeps, Lost, NodeRef, Packing, Pull, Push, Rule, Slots,
    State, Visit, is_grad_enabled, only, typed,
};
use smallvec::SmallVec;

/// Whether an op may be one of this kind.
pub(super) fn is_small<T: Float>(info: &Info, reals: &[&Tensor<T>]) -> bool {
    let small = reals.iter().all(|x| x.is_small());
    let whole = matches!(info.reduction, Reduction::None);
    small && whole && info.masks.is_empty() && info.outputs == 1
}

/// Runs and, where it must be, records such an op; `None` if the shapes differ.
pub(super) fn run<T: Float, const N: usize>(
    op: &Handle<T>,
    reals: [&Tensor<T>; N],
    caller: Caller,
) -> Option<Tensor<T>> {
    let (mut data, mut now): ([&[T]; N], _) = ([&[]; N], [const { None }; N]);
    for ((data, x), now) in data.iter_mut().zip(reals).zip(&mut now) {
        if !same(x.shape(), reals[0].shape()) {
            return None;
        }
        *data = x.small_data(now)?.as_ref();
    }
    let mut y = result(reals[0], |y| {
        run_block(op.forward(), [reals[0].len(), y.len()], &data, &[], y);
    })?;
    let info = op.info();
    let wants = |i: usize| info.differentiable[i] && !reals[i].stop_gradient();
    if !is_grad_enabled() || !(0..N).any(wants) {
        let of = |i: usize| match info.differentiable[i] {
            true => Lost::of(info.name, caller, reals[i]),
            false => Lost::without_derivative(info.name, caller, reals[i]),
        };
        return Some(y.with_lost((0..N).map(of).fold(Lost::NONE, Lost::and)));
    }
    let differentiable = (0..N).filter(|&i| info.differentiable[i]);
    let keeps = op.lasts().then(|| op.keeps(differentiable.map(wants)));
    let keeps = |at: usize| keeps.as_ref().is_none_or(|keeps| keeps(at));
    let mut inputs = [const { None }; N];
    for (at, &i) in info.keeps_reals.iter().enumerate() {
        if keeps(at) {
            inputs[i] = Some(Keep::input(i as u8, reals[i]));
        }
    }
    let keeps_output = !info.keeps_outputs.is_empty() && keeps(info.keeps_reals.len());
    let edges: [Edge; N] = std::array::from_fn(|i| match info.differentiable[i] {
        true => reals[i].edge(),
        false => Edge::None(reals[i].absent()),
    });
    let kept = Kept { inputs, output: keeps_output.then(|| KeepOutput::of(&y)) };
    let node = SmallNode { op: op.clone(), edges, kept: State::new(kept) };
    y.attach(NodeRef::record(node, caller), 0);
    Some(y)
}

/// A tensor like another one, with what `run` writes over its numbers.
fn result<T: Float>(like: &Tensor<T>, run: impl FnOnce(&mut [T])) -> Option<Tensor<T>> {
    let mut tensor = like.small_copy()?;
    let run = |value: &mut Value<T>| value.as_padded_mut_slice().map(run).is_some();
    tensor.try_in_place(run, || None).then_some(tensor)
}

struct SmallNode<T: Float, const N: usize> {
    op: Handle<T>,
    edges: [Edge; N],
    kept: State<Kept<T, N>>,
}

/// What backward gets.
#[derive(Clone)]
struct Kept<T: Float, const N: usize> {
    /// By position; `None` where backward does not depend on it.
    inputs: [Option<Keep<T>>; N],
    output: Option<KeepOutput<T>>,
}

impl<T: Float, const N: usize> Kept<T, N> {
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        self.inputs.iter_mut().flatten().try_for_each(|kept| visit(Some(kept)))?;
        self.output.iter_mut().try_for_each(|kept| visit(Some(kept)))
    }

    /// The numbers that backward gets, in its order, but the gradients: where they stand.
    fn read(&self, info: &Info, at: &At<'_>) -> Result<SmallVec<[Option<&Tensor<T>>; 4]>> {
        let mut operands = SmallVec::new();
        for &i in info.keeps_reals.iter() {
            operands.push(self.inputs[i].as_ref().map(|kept| kept.read(at)).transpose()?);
        }
        if !info.keeps_outputs.is_empty() {
            operands.push(self.output.as_ref().map(KeepOutput::read));
        }
        Ok(operands)
    }

    /// The same, put together again.
    fn unpack(self, info: &Info, at: &At<'_>) -> Result<SmallVec<[Option<Tensor<T>>; 4]>> {
        let mut inputs = self.inputs;
        let mut operands = SmallVec::new();
        for &i in info.keeps_reals.iter() {
            operands.push(inputs[i].take().map(|kept| kept.unpack(at)).transpose()?);
        }
        if !info.keeps_outputs.is_empty() {
            let output = self.output.map(|kept| kept.unpack(at)).transpose()?;
            operands.push(output.map(|output| output.into_tensor()));
        }
        Ok(operands)
    }
}

impl<T: Float, const N: usize> Rule for SmallNode<T, N> {
    fn name(&self) -> &'static str {
        self.op.info().name
    }

    fn edges(&self) -> &[Edge] {
        &self.edges
    }

    fn pull<'g>(&'g self, grads: Slots, pull: &mut Pull<'_, 'g>) -> Result<()> {
        let info = self.op.info();
        let kept = self.kept.take(pull.retain, &pull.at(), &Kept::visit)?;
        let mut dy: Tensor<T> = typed(only(grads));
        // The inputs that have a gradient, and whether it is of use.
        let (mut inputs, mut wanted, mut count) = ([0; N], [false; N], 0);
        for (i, edge) in self.edges.iter().enumerate() {
            if info.differentiable[i] {
                (inputs[count], wanted[count]) = (i, pull.wants(edge));
                count += 1;
            }
        }
        let (inputs, wanted) = (&inputs[..count], &wanted[..count]);
        if let Some(compiled) = self.op.compiled_backward().filter(|_| !is_grad_enabled()) {
            match gradients((compiled, &self.op), &kept, dy, wanted, &pull.at())? {
                Ok(grads) => return self.deliver(pull, inputs, grads),
                Err(given) => dy = given,
            }
        }
        let mut operands = kept.unpack(info, &pull.at())?;
        let shape = copied(dy.shape());
        if !info.gradients.is_empty() {
            operands.push(Some(dy));
        }
        let general = ElementwiseNode::bare(&self.op, &self.edges);
        let grads = general.gradients(operands, &[], wanted, (shape, pull.node.location));
        self.deliver(pull, inputs, grads)
    }

    fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        let kept = self.kept.take(true, &push.at(), &Kept::visit)?;
        let operands = kept.unpack(self.op.info(), &push.at())?;
        Ok(ElementwiseNode::bare(&self.op, &self.edges).pushed(operands, &[], push))
    }

    fn pack(&mut self, packing: &Packing<'_>) {
        self.kept.pack(packing, &Kept::visit);
    }

    fn saved(&self, at: &At<'_>) -> Result<Vec<Option<AnyTensor>>> {
        self.kept.show(at, &Kept::visit)
    }
}

impl<T: Float, const N: usize> SmallNode<T, N> {
    fn deliver<'g>(
        &'g self,
        pull: &mut Pull<'_, 'g>,
        inputs: &[usize],
        grads: impl IntoIterator<Item = Option<Tensor<T>>>,
    ) -> Result<()> {
        for (&i, grad) in inputs.iter().zip(grads) {
            if let Some(grad) = grad {
                pull.sink.deliver(&self.edges[i], T::wrap(grad))?;
            }
        }
        Ok(())
    }
}

/// What backward reads at most: three inputs, the output and its gradient.
const MOST: usize = 5;

/// The gradients, where all that they are computed from is few numbers; otherwise `dy` back.
fn gradients<T: Float, const N: usize>(
    (formula, op): (&dyn Formula<T>, &Handle<T>),
    kept: &Kept<T, N>,
    dy: Tensor<T>,
    wanted: &[bool],
    at: &At<'_>,
) -> Result<Result<[Option<Tensor<T>>; N], Tensor<T>>> {
    let info = op.info();
    // A copy: the gradient's own place is written over. Nothing depends on what is absent, so that
    // anything may stand there.
    let Some(seed) = dy.inline().copied() else { return Ok(Err(dy)) };
    let seed = seed.as_ref();
    let (mut data, mut now, mut count) = ([seed; MOST], [const { None }; MOST], 0);
    for ((data, now), x) in data.iter_mut().zip(&mut now).zip(kept.read(info, at)?) {
        if let Some(x) = x {
            let Some(x) = x.small_data(now) else { return Ok(Err(dy)) };
            *data = x.as_ref();
        }
        count += 1;
    }
    count += usize::from(!info.gradients.is_empty());
    let (data, lengths) = (&data[..count], [dy.len(), seed.len()]);
    let mut grads = [const { None }; N];
    let mut left = [false; N];
    left[..wanted.len()].copy_from_slice(wanted);
    for (k, _) in op.handed().iter().enumerate().filter(|(_, handed)| handed.is_some()) {
        if std::mem::take(&mut left[k]) {
            grads[k] = Some(dy.clone());
        }
    }
    let wanted = &left[..wanted.len()];
    if !wanted.contains(&true) {
        return Ok(Ok(grads));
    }
    if let [true] = wanted {
        grads[0] = Some(over(dy, |dx| run_block(formula, lengths, data, &[], dx)));
        return Ok(Ok(grads));
    }
    let stride = block_of(wanted.len());
    T::with_scratch(wanted.len() * stride, |out| {
        run_block(formula, lengths, data, &[], out);
        let take = |k: usize, dx: &mut [T]| dx.copy_from_slice(&out[k * stride..][..dx.len()]);
        let last = wanted.iter().rposition(|wanted| *wanted);
        for k in (0..last.unwrap_or(0)).filter(|&k| wanted[k]) {
            grads[k] = Some(like(&dy, |dx| take(k, dx)));
        }
        if let Some(k) = last {
            grads[k] = Some(over(dy, |dx| take(k, dx)));
        }
    });
    Ok(Ok(grads))
}

/// As [`result`] of a tensor that stands inline.
fn like<T: Float>(inline: &Tensor<T>, run: impl FnOnce(&mut [T])) -> Tensor<T> {
    result(inline, run).unwrap_or_else(|| unreachable!("the caller has seen that it is inline"))
}

/// As [`like`], in the tensor's own place where nobody else sees it.
fn over<T: Float>(mut inline: Tensor<T>, run: impl Fn(&mut [T])) -> Tensor<T> {
    let written = |value: &mut Value<T>| value.as_padded_mut_slice().map(&run).is_some();
    if inline.try_in_place(written, || None) { inline } else { like(&inline, run) }
}

#[cfg(test)]
mod tests {
    use crate::{Tensor, fuse, grad, jvp};

    #[test]
    fn what_is_not_kept_spoils_no_tangent() {
        // The gradient of `a` would read it; nobody wants that gradient.
        let (a, b) = (Tensor::from(vec![2.0, 3.0]), Tensor::from(vec![1.0, 1.0]));
        let (_, dy) =
            jvp(|t| fuse([&a, &t[0]], |[a, b]| b + a.ln()), &[b], &[Tensor::ones([2])]).unwrap();
        assert_eq!(dy.to_vec(), [1.0, 1.0]);
    }

    #[test]
    fn a_gradient_alone_reads_what_it_needs() {
        for wanted in [[true, false], [false, true], [true, true]] {
            let [a, b] = [2.0, 3.0].map(|value| Tensor::from(vec![value; 3]));
            a.set_stop_gradient(!wanted[0]);
            b.set_stop_gradient(!wanted[1]);
            let y = fuse!(|a, b| a * b.exp());
            y.sum().backward().unwrap();
            assert_eq!(a.grad().map(|g| g.at(&[1])), wanted[0].then(|| 3.0_f64.exp()));
            let found = b.grad().map(|g| (g.at(&[1]) - 2.0 * 3.0_f64.exp()).abs() < 1e-13);
            assert_eq!(found, wanted[1].then_some(true));
        }
        let x = Tensor::from(vec![0.5, 2.0]);
        x.set_stop_gradient(false);
        let y = fuse!(|x| x * x * x).sum();
        assert_eq!(grad(&[&y], &[&x]).unwrap()[0].to_vec(), [0.75, 12.0]);
    }
}
