//! What a custom op's call leaves beside its outputs: edges, saved tensors with their roles, shapes and attributes.
//! They are kept in the call's node; backward reads them without knowing one.

use std::any::Any;
use std::panic::Location;
use std::sync::Arc;

use super::inputs::{Info, InputTensors, contains, each};
use super::outputs::Visitor;
use crate::array::Shape;
use crate::array::shape::{copied, same};
use crate::graph::{AnyTensor, Edges, Plain, Role, Saved, SavedState};

/// An input for `jvp`, and its version.
pub(super) type Primal = (AnyTensor, u32);

pub(super) type Attrs = Option<Box<dyn Any + Send + Sync>>;

/// What is left of a call beside saved tensors. One of single tensors of one shape without attributes needs none.
pub(super) struct Notes {
    /// The number of tensors up to the end of each parameter: first the inputs, then the outputs.
    ends: Vec<u32>,
    shapes: Vec<Shape>,
    attrs: Attrs,
    primals: Option<Box<[Primal]>>,
}

/// The inputs of a call.
#[derive(Clone, Copy)]
pub(super) struct Inputs<'a>(pub(super) &'a Info, pub(super) &'a [InputTensors<'a>]);

impl<'a> Inputs<'a> {
    /// The differentiable inputs.
    #[inline]
    fn differentiable(self) -> impl Iterator<Item = InputTensors<'a>> {
        let Self(info, inputs) = self;
        let inputs = inputs.iter().copied().enumerate();
        inputs
            .filter(move |(position, _)| info.is_differentiable(*position))
            .map(|(_, input)| input)
    }

    pub(super) fn primals(self) -> Box<[Primal]> {
        let tensors = self.differentiable().flat_map(each);
        tensors.map(|tensor| (tensor.any(), tensor.version())).collect()
    }

    /// The edges of the differentiable inputs.
    #[inline]
    pub(super) fn edges(self) -> Edges {
        let mut edges = Edges::EMPTY;
        for input in self.differentiable() {
            input.for_each(|tensor| edges.push(tensor.edge()));
        }
        edges
    }

    /// Whether each input, and the output, is a single differentiable tensor, and all have one shape.
    #[inline]
    fn are_plain(self, outputs: &Visitor<'_>) -> bool {
        let Self(info, inputs) = self;
        let Some(output) = outputs.only() else { return false };
        let is_plain = |(position, input): (usize, &InputTensors<'_>)| match input {
            InputTensors::One(tensor) => {
                info.is_differentiable(position) && same(tensor.shape(), output.shape())
            }
            InputTensors::List(_) => false,
        };
        inputs.iter().enumerate().all(is_plain)
    }

    /// Ends the call, whose forward returned `outputs`; those that are `marked` are not differentiable. Its saved
    /// tensors then have their roles. Returns [`Notes`], if it needs any.
    #[inline(always)]
    pub(super) fn end(
        self,
        state: &mut SavedState,
        (attrs, primals): (Attrs, Option<Box<[Primal]>>),
        (outputs, marked): (&Visitor<'_>, &[AnyTensor]),
    ) {
        self.assign_roles(state.entries_mut(), outputs, marked);
        if attrs.is_some() || primals.is_some() || !self.are_plain(outputs) {
            state.set_attrs(self.notes((attrs, primals), outputs));
        }
    }

    #[inline(never)]
    fn notes(
        self,
        (attrs, primals): (Attrs, Option<Box<[Primal]>>),
        outputs: &Visitor<'_>,
    ) -> Plain {
        let Self(info, inputs) = self;
        let (mut ends, mut shapes) = (Vec::new(), Vec::new());
        for (position, input) in inputs.iter().enumerate() {
            if info.is_differentiable(position) {
                shapes.extend(each(*input).map(|tensor| copied(tensor.shape())));
            }
            ends.push(shapes.len() as u32);
        }
        let (tensors, output_ends) = outputs.all();
        let inputs = shapes.len() as u32;
        shapes.extend(tensors.iter().map(|tensor| copied(tensor.shape())));
        ends.extend(output_ends.map(|end| inputs + end));
        Arc::new(Notes { ends, shapes, attrs, primals })
    }

    #[inline(always)]
    /// Finds the role of each saved tensor. An input, or an output without a gradient, is saved as it is; of
    /// another output only the value is, as the output holds the node and the node must not hold the output.
    fn assign_roles(self, saved: &mut [Saved], outputs: &Visitor<'_>, marked: &[AnyTensor]) {
        let inputs = self.1;
        for saved in saved {
            let Saved::Tensor(saved) = saved else { continue };
            let address = saved.tensor.address();
            if let Some(input) = inputs.iter().position(|input| contains(*input, address)) {
                saved.role = Role::Input(u16::try_from(input).unwrap_or(u16::MAX));
                continue;
            }
            let Some((slot, output)) = outputs.find(address) else { continue };
            if marked.iter().any(|marked| marked.address() == address) {
                saved.role = Role::Constant;
                continue;
            }
            *saved = output.kept_output(saved.version);
            // Beyond the range of a slot, an intermediate.
            saved.role = u16::try_from(slot).map_or(Role::Intermediate, Role::Output);
        }
    }
}

/// A call that has ended, as its backward and its `jvp` see it.
#[derive(Clone, Copy)]
pub(super) struct Called<'a> {
    pub(super) info: &'a Info,
    pub(super) location: &'static Location<'static>,
    pub(super) notes: Option<&'a Notes>,
}

impl<'a> Called<'a> {
    /// The number of tensors of the differentiable inputs.
    #[inline]
    pub(super) fn input_tensors(&self) -> usize {
        let (first, _) = self.group(self.info.inputs);
        first
    }

    /// The first tensor of a parameter, by position, and its number of tensors. Outputs follow the inputs.
    #[inline]
    pub(super) fn group(&self, group: usize) -> (usize, usize) {
        let Some(notes) = self.notes else { return (group, 1) };
        let end = |group: usize| notes.ends.get(group).map(|&end| end as usize);
        let first = group.checked_sub(1).and_then(end).unwrap_or(0);
        (first, end(group).map_or(0, |end| end - first))
    }

    pub(super) fn outputs(&self) -> usize {
        self.notes.map_or(1, |notes| notes.ends.len() - self.info.inputs)
    }

    pub(super) fn output_tensors(&self) -> usize {
        self.notes.map_or(1, |notes| notes.shapes.len() - self.input_tensors())
    }

    /// The shape of a tensor; `None` if all tensors have the same.
    #[inline]
    pub(super) fn shape(&self, tensor: usize) -> Option<&'a [usize]> {
        self.notes.map(|notes| &notes.shapes[tensor][..])
    }

    pub(super) fn attrs(&self) -> &'a dyn Any {
        self.notes.and_then(|notes| notes.attrs.as_deref()).map_or(&(), |attrs| attrs)
    }

    pub(super) fn primals(&self) -> Option<&'a [Primal]> {
        self.notes?.primals.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::marker::PhantomData;
    use std::panic::Location;

    use super::super::apply::start;
    use super::super::backward::RawBackward;
    use super::super::inputs::TensorInput;
    use super::super::outputs::{TensorOutput, Visitor};
    use super::super::saved::Unpack;
    use super::super::{BackwardContext, CustomOp, CustomOpRules, ForwardContext, py_layer};
    use super::{Called, Notes};
    use crate::error::Result;
    use crate::graph::{AnyTensor, GradMode, Plain, Role, Saved, SavedReader, Slots, Tensor};

    /// The parts of `x * by + b`: the product and the sum.
    #[py_layer(crate = crate)]
    impl Parts {
        type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>);
        type Attrs = f64;

        fn forward(
            ctx: &mut ForwardContext<Self>,
            x: &Tensor<f64>,
            b: &Tensor<f64>,
            by: f64,
        ) -> (Tensor<f64>, Tensor<f64>) {
            let (double, product) = (x * 2.0, x * by);
            let sum = &product + b;
            ctx.save_for_backward((x, &double, &sum));
            ctx.set_attrs(by);
            (product, sum)
        }

        fn backward(
            ctx: &BackwardContext<Self>,
            dproduct: Option<&Tensor<f64>>,
            dsum: &Tensor<f64>,
        ) -> (Tensor<f64>, Tensor<f64>) {
            let (x, double, sum) = ctx.saved_tensor();
            assert_eq!(double.to_vec(), (x + x).to_vec());
            let needs = ctx.needs_input_grad();
            assert!(dproduct.is_none() && needs.x != needs.b);
            (dsum * *ctx.attrs() + sum * 0.0, dsum.clone())
        }
    }

    type Apart = (Vec<Saved>, Option<Plain>);

    /// Runs forward and ends the call, as a node would, but keeps the rest here.
    fn forward(x: &Tensor<f64>, b: &Tensor<f64>) -> (Apart, (Tensor<f64>, Tensor<f64>)) {
        let (x_ref, b_ref) = (x, b);
        let inputs = [x_ref.tensors(), b_ref.tensors()];
        let mut call = start(rules(&Parts), &inputs);
        let mut ctx = ForwardContext(call.start(), PhantomData);
        let mut outputs = Parts::forward(&mut ctx, x, b, 3.0);
        let mut visitor = Visitor::default();
        outputs.0.visit(&mut visitor);
        outputs.1.visit(&mut visitor);
        let apart = ctx.0.end_apart(&visitor);
        drop(visitor);
        (apart, outputs)
    }

    fn backward(
        (saved, notes): Apart,
        grads: Slots,
        wants: &dyn Fn(usize) -> bool,
    ) -> Result<Vec<(usize, Option<AnyTensor>)>> {
        let rules = rules(&Parts);
        let notes = notes.as_ref().and_then(|notes| notes.downcast_ref::<Notes>());
        let called = Called { info: &rules.info, location: Location::caller(), notes };
        let returned = RefCell::default();
        let raw = RawBackward::new(called, wants, &grads, &returned);
        let saved = &mut Unpack(SavedReader::apart(saved));
        GradMode::of(false, || (rules.run)(&raw, saved, rules.pull))?;
        match raw.error.into_inner() {
            Some(error) => Err(*error),
            None => Ok(returned.take().into_vec()),
        }
    }

    /// The rules of an op, whose key has no name.
    fn rules<L: CustomOp<K>, K>(_: &L) -> &'static CustomOpRules {
        L::RULES
    }

    #[test]
    fn a_call_needs_no_node() -> Result<()> {
        let (x, b) = (Tensor::from([1.0, 2.0]), Tensor::from([5.0, 7.0]));
        x.set_stop_gradient(false);
        let (apart, (product, sum)) = forward(&x, &b);
        assert_eq!((product.to_vec(), sum.to_vec()), (vec![3.0, 6.0], vec![8.0, 13.0]));
        assert!(product.stop_gradient() && sum.stop_gradient());
        let roles = apart.0.iter().map(|saved| match saved {
            Saved::Tensor(saved) => saved.role,
            _ => unreachable!("three tensors are saved"),
        });
        assert_eq!(
            roles.collect::<Vec<_>>(),
            [Role::Input(0), Role::Intermediate, Role::Output(1)]
        );
        let grads = Slots::from_vec(vec![None, Some(Tensor::from([10.0, 20.0]).into())]);
        let returned = backward(apart, grads, &|tensor| tensor == 0)?;
        let [(0, Some(AnyTensor::Float64(dx)))] = &returned[..] else { panic!("{returned:?}") };
        assert_eq!(dx.to_vec(), [30.0, 60.0]);
        Ok(())
    }

    #[test]
    fn gradients_are_checked_without_a_node() {
        let (x, b) = (Tensor::from([1.0, 2.0]), Tensor::from([5.0, 7.0]));
        x.set_stop_gradient(false);
        let (apart, _) = forward(&x, &b);
        let grads = Slots::from_vec(vec![None, Some(Tensor::from(10.0).into())]);
        let error = backward(apart, grads, &|tensor| tensor == 1).unwrap_err().to_string();
        assert!(error.contains("Parts") && error.contains("`b`"), "{error}");
    }
}
