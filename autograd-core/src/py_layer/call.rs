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
    fn have_one_shape(self, outputs: &Visitor<'_>) -> bool {
        let Self(info, inputs) = self;
        let Some(output) = outputs.only() else { return false };
        let is_alike = |(position, input): (usize, &InputTensors<'_>)| match input {
            InputTensors::One(tensor) => {
                info.is_differentiable(position) && same(tensor.shape(), output.shape())
            }
            InputTensors::List(_) => false,
        };
        inputs.iter().enumerate().all(is_alike)
    }

    /// Ends the call, whose forward returned `outputs`; those that are `marked` are not differentiable. Its saved
    /// tensors then have their roles, and the node has [`Notes`], if the call needs any.
    #[inline(always)]
    pub(super) fn end(
        self,
        state: &mut SavedState,
        attrs: Attrs,
        primals: Option<Box<[Primal]>>,
        outputs: &Visitor<'_>,
        marked: &[AnyTensor],
    ) {
        self.assign_roles(state.entries_mut(), outputs, marked);
        if attrs.is_some() || primals.is_some() || !self.have_one_shape(outputs) {
            state.set_attrs(self.notes(attrs, primals, outputs));
        }
    }

    #[inline(never)]
    fn notes(self, attrs: Attrs, primals: Option<Box<[Primal]>>, outputs: &Visitor<'_>) -> Plain {
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

    /// Finds the role of each saved tensor. An input, or an output without a gradient, is saved as it is; of
    /// another output only the value is, as the output holds the node and the node must not hold the output.
    #[inline(always)]
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

// A unit test, because miri interprets these only.
#[cfg(test)]
mod tests {
    use super::super::{BackwardContext, ForwardContext, py_layer};
    use crate::error::Result;
    use crate::graph::Tensor;

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

    #[test]
    fn an_input_an_intermediate_and_an_output_are_read_again() -> Result<()> {
        let (x, b) = (Tensor::from([1.0, 2.0]), Tensor::from([5.0, 7.0]));
        x.set_stop_gradient(false);
        let (product, sum) = Parts::apply(&x, &b, 3.0);
        assert_eq!((product.to_vec(), sum.to_vec()), (vec![3.0, 6.0], vec![8.0, 13.0]));
        sum.backward_with(&Tensor::from([10.0, 20.0]))?;
        assert_eq!(x.try_grad()?.to_vec(), [30.0, 60.0]);
        assert!(b.grad().is_none());
        Ok(())
    }
}
