//! Ops of a few numbers that stand inline, all of one shape, with one result of that shape: without
//! a pass, and with a node that is built where it stays.

use super::node::ElementwiseNode;
use super::op::{Handle, Info, Reduction};
use super::{Caller, Float, Tensor};
use crate::array::Value;
use crate::array::shape::{copied, same};
use crate::error::Result;
use crate::formula::{Formula, block_of, run_block};
use crate::graph::{
    AnyTensor, At, Edge, Keep, KeepOutput, Keeps, Lost, NodeRef, Packing, Pull, Push, Rule, Slots,
    State, Visit, is_grad_enabled,
};
use smallvec::SmallVec;

/// Whether an op may be one of this kind.
pub(super) fn is_small<T: Float>(info: &Info, reals: &[&Tensor<T>]) -> bool {
    let inline = reals.iter().all(|x| x.fixed().is_some_and(Value::is_inline));
    let whole = matches!(info.reduction, Reduction::None);
    inline && whole && info.masks.is_empty() && info.outputs == 1
}

/// Runs and, where it must be, records such an op; `None` if the shapes differ.
pub(super) fn run<T: Float, const N: usize>(
    op: &Handle<T>,
    reals: [&Tensor<T>; N],
    caller: Caller,
) -> Option<Tensor<T>> {
    let mut data: [&[T]; N] = [&[]; N];
    for (data, x) in data.iter_mut().zip(reals) {
        if !same(x.shape(), reals[0].shape()) {
            return None;
        }
        *data = x.fixed()?.as_padded_inline()?;
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
    let level = NodeRef::level_over(&edges);
    let node = SmallNode { op: op.clone(), edges, kept: State::new(kept) };
    y.attach(NodeRef::record_at(level, node, caller), 0);
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

    /// The numbers that backward gets, in its order, but the gradients.
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

    fn pull(&self, pull: &mut Pull<'_>) -> Result<()> {
        let info = self.op.info();
        let mut operands = self.kept.take(pull, &Kept::visit)?.unpack(info, &pull.at())?;
        let dy = pull.grads[0].take().and_then(T::unwrap);
        let dy = dy.unwrap_or_else(|| unreachable!("a node is visited when its gradient came"));
        let shape = copied(dy.shape());
        // The inputs that have a gradient, and whether it is of use.
        let (mut inputs, mut wanted, mut count) = ([0; N], [false; N], 0);
        for (i, edge) in self.edges.iter().enumerate() {
            if info.differentiable[i] {
                (inputs[count], wanted[count]) = (i, pull.sink.wants(edge));
                count += 1;
            }
        }
        let wanted = &wanted[..count];
        let reads_dy = !info.gradients.is_empty();
        let compiled = self.op.compiled_backward().filter(|_| !is_grad_enabled());
        let done =
            compiled.and_then(|compiled| small(compiled, &operands, (&dy, reads_dy), wanted));
        let grads = done.unwrap_or_else(|| {
            if reads_dy {
                operands.push(Some(dy));
            }
            let general = ElementwiseNode::bare(&self.op, &self.edges);
            general.gradients(operands, &[], wanted, (shape, pull.node.location))
        });
        for (&i, grad) in inputs.iter().zip(grads) {
            if let Some(grad) = grad {
                pull.sink.deliver(&self.edges[i], T::wrap(grad))?;
            }
        }
        Ok(())
    }

    fn push(&self, push: &mut Push<'_>) -> Result<Option<Slots>> {
        let kept = self.kept.copied(&push.at(), &Kept::visit)?;
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

/// The gradients, where all that they are computed from stands inline.
fn small<T: Float>(
    formula: &dyn Formula<T>,
    operands: &[Option<Tensor<T>>],
    (dy, reads_dy): (&Tensor<T>, bool),
    wanted: &[bool],
) -> Option<SmallVec<[Option<Tensor<T>>; 2]>> {
    // Nothing depends on what is absent: anything may stand there.
    let absent = dy.fixed()?.as_padded_inline()?;
    let mut data: SmallVec<[&[T]; 6]> = SmallVec::new();
    for operand in operands {
        data.push(match operand {
            Some(operand) => operand.fixed()?.as_padded_inline()?,
            None => absent,
        });
    }
    if reads_dy {
        data.push(absent);
    }
    let lengths = [dy.len(), absent.len()];
    if let [true] = wanted {
        let dx = result(dy, |dx| run_block(formula, lengths, &data, &[], dx))?;
        return Some(SmallVec::from_iter([Some(dx)]));
    }
    let stride = block_of(wanted.len());
    T::with_scratch(wanted.len() * stride, |out| {
        run_block(formula, lengths, &data, &[], out);
        let mut grads = SmallVec::new();
        for (k, wanted) in wanted.iter().enumerate() {
            grads.push(match wanted {
                true => Some(result(dy, |dx| dx.copy_from_slice(&out[k * stride..][..dx.len()]))?),
                false => None,
            });
        }
        Some(grads)
    })
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
