//! A layer's call without a node: inputs, outputs, saved tensors with their roles, and attributes. A node is one
//! place to keep what is left of it.

use std::any::Any;
use std::panic::Location;
use std::sync::Arc;

use smallvec::SmallVec;

use super::inputs::{Info, TensorInput};
use super::outputs::Visitor;
use super::saved::Pack;
use crate::array::Shape;
use crate::array::shape::{copied, same};
use crate::graph::{AnyTensor, Edge, Edges, Handle, Plain, Role, Saved, SavedTensor};

/// An input for `jvp`, and its version.
pub(super) type Primal = (AnyTensor, u32);

pub(super) type Attrs = Option<Box<dyn Any + Send + Sync>>;

#[derive(Default)]
pub(super) struct Call {
    given: SmallVec<[Given; 2]>,
    pub(super) saved: Pack,
    /// The inputs for `jvp`, if forward mode is on.
    primals: Option<Box<[Primal]>>,
}

struct Given {
    /// Only compared, never dereferenced.
    address: *const (),
    input: u16,
    /// The edge of its gradient; `None` if the input is not differentiated.
    edge: Option<Edge>,
}

/// What is left of a call beside saved tensors. One of single tensors of one shape without attributes needs none.
pub(super) struct Notes {
    /// The number of tensors up to the end of each parameter: first the inputs, then the outputs.
    ends: Vec<u32>,
    shapes: Vec<Shape>,
    attrs: Attrs,
    primals: Option<Box<[Primal]>>,
}

impl Call {
    #[inline]
    pub(super) fn add(&mut self, position: usize, tensor: &dyn Handle, differentiable: bool) {
        self.given.push(Given {
            address: tensor.address(),
            input: u16::try_from(position).unwrap_or(u16::MAX),
            edge: differentiable.then(|| tensor.edge()),
        });
    }

    pub(super) fn keep_primals(&mut self, info: &Info, inputs: &[&dyn TensorInput]) {
        let mut primals = Vec::new();
        for (position, input) in inputs.iter().enumerate() {
            if info.is_differentiable(position) {
                input.each(&mut |tensor| primals.push((tensor.any(), tensor.version())));
            }
        }
        self.primals = Some(primals.into());
    }

    /// Ends the call, whose forward returned `outputs`; those that are `marked` are not differentiable. Its saved
    /// tensors then have their roles. Returns [`Notes`], if it needs any.
    pub(super) fn end(
        &mut self,
        (info, inputs): (&Info, &[&dyn TensorInput]),
        attrs: Attrs,
        (outputs, marked): (&Visitor<'_>, &[AnyTensor]),
    ) -> Option<Plain> {
        self.assign_roles(outputs, marked);
        let is_plain = attrs.is_none() && self.primals.is_none() && self.is_plain(inputs, outputs);
        (!is_plain).then(|| {
            let primals = self.primals.take();
            let mut notes = Notes { ends: Vec::new(), shapes: Vec::new(), attrs, primals };
            for (position, input) in inputs.iter().enumerate() {
                if info.is_differentiable(position) {
                    input.each(&mut |tensor| notes.shapes.push(copied(tensor.shape())));
                }
                notes.ends.push(notes.shapes.len() as u32);
            }
            let (tensors, ends) = outputs.all();
            let inputs = notes.shapes.len() as u32;
            notes.shapes.extend(tensors.iter().map(|tensor| copied(tensor.shape())));
            notes.ends.extend(ends.map(|end| inputs + end));
            Arc::new(notes) as Plain
        })
    }

    /// Takes the edges of the differentiable inputs.
    #[inline]
    pub(super) fn take_edges(&mut self) -> Edges {
        self.given.iter_mut().filter_map(|given| given.edge.take()).collect()
    }

    /// Finds the role of each saved tensor. An input, or an output without a gradient, is saved as it is; of
    /// another output only the value is, as the output holds the node and the node must not hold the output.
    fn assign_roles(&mut self, outputs: &Visitor<'_>, marked: &[AnyTensor]) {
        for saved in &mut self.saved.0 {
            let Saved::Tensor(SavedTensor { tensor, version, role }) = saved else { continue };
            let address = tensor.address();
            if let Some(given) = self.given.iter().find(|given| given.address == address) {
                *role = Role::Input(given.input);
                continue;
            }
            let Some(slot) = outputs.position(address) else { continue };
            if marked.iter().any(|marked| marked.address() == address) {
                *role = Role::Constant;
                continue;
            }
            // Beyond the range of a slot, an intermediate.
            *role = u16::try_from(slot).map_or(Role::Intermediate, Role::Output);
            // Not zero if forward changed the output after saving it.
            *version = tensor.version().abs_diff(*version);
            *tensor = tensor.saved_output();
        }
    }

    /// Whether each input, and the output, is a single differentiable tensor, and all have one shape.
    fn is_plain(&self, inputs: &[&dyn TensorInput], outputs: &Visitor<'_>) -> bool {
        let Some(output) = outputs.only() else { return false };
        let is_one = |(position, given): (usize, &Given)| {
            position == usize::from(given.input) && given.edge.is_some()
        };
        let mut is_plain =
            self.given.len() == inputs.len() && self.given.iter().enumerate().all(is_one);
        for input in inputs {
            input.each(&mut |tensor| is_plain &= same(tensor.shape(), output.shape()));
        }
        is_plain
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
    use std::marker::PhantomData;
    use std::panic::Location;

    use super::super::apply::start;
    use super::super::backward::RawBackward;
    use super::super::inputs::TensorInput;
    use super::super::outputs::{TensorOutput, Visitor};
    use super::super::saved::Unpack;
    use super::super::{BackwardContext, ForwardContext, Layer, LayerRules, py_layer};
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
        let inputs: [&dyn TensorInput; 2] = [&x_ref, &b_ref];
        let mut call = start(rules(&Parts), &inputs);
        let mut ctx = ForwardContext(call.start(), PhantomData);
        let mut outputs = Parts::forward(&mut ctx, x, b, 3.0);
        let mut visitor = Visitor::new();
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
    ) -> Result<Vec<(usize, AnyTensor)>> {
        let rules = rules(&Parts);
        let notes = notes.as_ref().and_then(|notes| notes.downcast_ref::<Notes>());
        let called = Called { info: &rules.info, location: Location::caller(), notes };
        let raw = RawBackward::new(called, wants, grads);
        let saved = &mut Unpack(SavedReader::apart(saved));
        GradMode::of(false, || (rules.run)(&raw, saved, rules.pull))?;
        Ok(raw.returned()?.into_vec())
    }

    /// The rules of an op, whose key has no name.
    fn rules<L: Layer<K>, K>(_: &L) -> &'static LayerRules {
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
        let [(0, AnyTensor::Float64(dx))] = &returned[..] else { panic!("{returned:?}") };
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
