//! What a call keeps for its backward: the record of its node, from which a node of its own is made for each backward.

use std::fmt;

use super::args::wanting;
use super::caught::caught;
use crate::array::{DType, Shape, Value};
use crate::engine::{BackwardOptions, grad_any};
use crate::error::{Error, Result};
use crate::graph::{
    Absent, AnyTensor, Edge, NodeRecord, NodeRef, Role, Saved, SavedState, Tensor, for_any,
};

/// Where a saved tensor comes from.
///
/// ```
/// use autograd_core::host::{Arg, Origin};
/// use autograd_core::prelude::*;
///
/// #[py_layer(export)]
/// impl Swish {
///     type Saved = (Tensor<f64>, Tensor<f64>);
///     fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
///         let gate = x.sigmoid();
///         let y = x * &gate;
///         ctx.save_for_backward((&gate, &y));
///         y
///     }
///     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
///         let (gate, y) = ctx.saved_tensor();
///         dy * (gate + y * (1.0 - gate))
///     }
/// }
///
/// let (_, kept) = Swish::EXPORT.forward(&[Arg::One(Tensor::from([1.0]).into())], &[])?;
/// let origins: Vec<Origin> = kept.tensors().into_iter().map(|(origin, _)| origin).collect();
/// assert_eq!(origins, [Origin::Intermediate, Origin::Output(0)]);
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "a host has a place for each")]
pub enum Origin {
    /// The tensor with this position among those of the arguments, list by list.
    Input(usize),
    /// The tensor with this position among those of the outputs, list by list.
    Output(usize),
    /// None of these: forward computed it.
    Intermediate,
}

/// What a call keeps for its backward. A host may store the tensors itself, as [`tensors`](Self::tensors) gives
/// them, with the [`skeleton`](Self::skeleton) beside them, and put them together again by [`with`](Self::with).
///
/// ```
/// use autograd_core::host::Arg;
/// use autograd_core::prelude::*;
///
/// #[py_layer(export)]
/// impl Square {
///     type Saved = Tensor<f64>;
///     fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
///         ctx.save_for_backward(x);
///         x * x
///     }
///     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
///         dy * ctx.saved_tensor() * 2.0
///     }
/// }
///
/// let (_, kept) = Square::EXPORT.forward(&[Arg::One(Tensor::from([3.0]).into())], &[])?;
/// let stored: Vec<_> = kept.tensors().into_iter().map(|(_, tensor)| tensor).collect();
/// let skeleton = kept.skeleton();
/// assert_eq!(skeleton.forms()[0].2, [1]);
/// let grads = skeleton.with(stored)?.backward(&[Some(Tensor::from([1.0]).into())], &[])?;
/// assert_eq!(grads[0].as_ref().unwrap().norm(), 6.0);
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Kept {
    op: &'static str,
    /// The arguments' tensors.
    inputs: Vec<Form>,
    outputs: Vec<OutputForm>,
    /// `None` if no argument wants a gradient, or no output has one.
    record: Option<Recorded>,
}

#[derive(Clone)]
struct Form {
    dtype: DType,
    shape: Shape,
}

#[derive(Clone)]
struct OutputForm {
    form: Form,
    /// The output of the node, if it has a gradient.
    slot: Option<u32>,
}

#[derive(Clone)]
struct Recorded {
    node: NodeRecord,
    /// The argument behind each edge, if it wants a gradient.
    edges: Vec<Option<usize>>,
    /// Of each saved tensor.
    saved: Vec<(Origin, Form)>,
}

/// The gradients of a backward, as [`Kept::second`] returns them.
///
/// ```
/// use autograd_core::host::Arg;
/// use autograd_core::prelude::*;
///
/// #[py_layer(export)]
/// impl Double {
///     fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
///         x * 2.0
///     }
///     fn backward(_: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
///         dy * 2.0
///     }
/// }
///
/// let (_, kept) = Double::EXPORT.forward(&[Arg::One(Tensor::from([3.0]).into())], &[])?;
/// let (dy, along) = (Tensor::from([1.0]), Tensor::from([10.0]));
/// let second = kept.second(&[Some(dy.into())], &[], &[Some(along.into())])?;
/// assert!(second.saved.is_empty());
/// assert_eq!(second.grads[0].as_ref().unwrap().norm(), 20.0);
/// # Ok::<(), autograd_core::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Second {
    /// Those of the saved tensors.
    pub saved: Vec<Option<AnyTensor>>,
    /// Those of the gradients of the outputs.
    pub grads: Vec<Option<AnyTensor>>,
}

impl Form {
    fn of(tensor: &AnyTensor) -> Self {
        Self { dtype: tensor.dtype(), shape: for_any!(tensor, t => t.shape_owned()) }
    }

    /// A tensor of zeros of this form, which takes no memory.
    fn zeros(&self) -> AnyTensor {
        fn zeros<T: crate::graph::Element>(shape: &[usize]) -> AnyTensor {
            Tensor::from_value(Value::scalar(T::ZERO).broadcast_to(shape)).into()
        }
        match self.dtype {
            DType::Float32 => zeros::<f32>(&self.shape),
            DType::Float64 => zeros::<f64>(&self.shape),
            DType::Int32 => zeros::<i32>(&self.shape),
            DType::Int64 => zeros::<i64>(&self.shape),
            DType::UInt8 => zeros::<u8>(&self.shape),
            DType::Bool => zeros::<bool>(&self.shape),
        }
    }

    fn fits(&self, tensor: &AnyTensor) -> bool {
        self.dtype == tensor.dtype() && self.shape[..] == *tensor.shape()
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with shape {:?}", self.dtype, &self.shape[..])
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let saved: Vec<Origin> = self.saved().iter().map(|(origin, _)| *origin).collect();
        f.debug_struct("Kept").field("op", &self.op).field("saved", &saved).finish_non_exhaustive()
    }
}

impl Kept {
    /// Takes the record of a call's node. Returns the outputs, which are then outside the graph.
    pub(super) fn of_call(
        op: &'static str,
        inputs: &[AnyTensor],
        outputs: Vec<AnyTensor>,
    ) -> Result<(Vec<AnyTensor>, Self)> {
        let producers: Vec<Option<(NodeRef, u32)>> =
            outputs.iter().map(|output| for_any!(output, t => t.producer().cloned())).collect();
        let node = producers.iter().flatten().map(|(node, _)| node).next();
        if let Some(node) = node
            && producers.iter().flatten().any(|(other, _)| other.address() != node.address())
        {
            let why = "its outputs come from several recorded ops, and an exported op is one";
            return Err(Error::Unsupported { op, why: why.to_owned() });
        }
        let forms = outputs.iter().zip(&producers).map(|(output, producer)| OutputForm {
            form: Form::of(output),
            slot: producer.as_ref().map(|(_, slot)| *slot),
        });
        let forms: Vec<OutputForm> = forms.collect();
        let record = node.map(|node| Recorded::of(node, inputs, &outputs, &forms));
        let kept =
            Self { op, inputs: inputs.iter().map(Form::of).collect(), outputs: forms, record };
        let outputs = outputs.iter().map(AnyTensor::alias).collect();
        Ok((outputs, kept))
    }

    fn saved(&self) -> &[(Origin, Form)] {
        self.record.as_ref().map_or(&[], |record| &record.saved)
    }

    /// The saved tensors in their order, each with its origin. [`forms`](Self::forms) has their shapes.
    ///
    /// ```
    /// use autograd_core::host::{Arg, Origin};
    /// use autograd_core::prelude::*;
    ///
    /// #[py_layer(elementwise, export)]
    /// impl Square {
    ///     fn forward(x: Real) -> Real {
    ///         x * x
    ///     }
    /// }
    ///
    /// let (_, kept) = Square::EXPORT.forward(&[Arg::One(Tensor::from([3.0, 4.0]).into())], &[])?;
    /// let tensors = kept.tensors();
    /// assert_eq!((tensors.len(), tensors[0].0), (1, Origin::Input(0)));
    /// assert_eq!(tensors[0].1.downcast_ref::<f64>().unwrap().to_vec(), [3.0, 4.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    #[must_use]
    pub fn tensors(&self) -> Vec<(Origin, AnyTensor)> {
        let entries = self.record.iter().flat_map(|record| &record.node.entries);
        let tensors = entries.filter_map(|entry| match entry {
            Saved::Tensor(saved) => Some(saved.tensor.alias()),
            _ => None,
        });
        self.saved().iter().map(|(origin, _)| *origin).zip(tensors).collect()
    }

    /// The same with these tensors in place of the saved ones.
    ///
    /// ```
    /// use autograd_core::host::Arg;
    /// use autograd_core::prelude::*;
    ///
    /// #[py_layer(elementwise, export)]
    /// impl Square {
    ///     fn forward(x: Real) -> Real {
    ///         x * x
    ///     }
    /// }
    ///
    /// let (_, kept) = Square::EXPORT.forward(&[Arg::One(Tensor::from([3.0, 4.0]).into())], &[])?;
    /// let other = kept.with([Tensor::from([10.0, 20.0]).into()])?;
    /// let dx = other.backward(&[Some(Tensor::from([1.0, 1.0]).into())], &[])?.remove(0).unwrap();
    /// assert_eq!(dx.downcast::<f64>().unwrap().to_vec(), [20.0, 40.0]);
    /// assert!(kept.with([Tensor::from([10.0]).into()]).is_err());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Count`] for another number of tensors, [`Error::Value`] for one of another shape or element type.
    pub fn with(&self, tensors: impl IntoIterator<Item = AnyTensor>) -> Result<Self> {
        let (op, tensors) = (self.op, tensors.into_iter().collect::<Vec<_>>());
        check_count(op, "tensors that forward saved", self.saved().len(), tensors.len())?;
        for ((_, form), tensor) in self.saved().iter().zip(&tensors) {
            check_form(op, "a saved tensor", form, tensor)?;
        }
        Ok(self.replaced(tensors))
    }

    fn replaced(&self, tensors: Vec<AnyTensor>) -> Self {
        let mut kept = self.clone();
        let entries = kept.record.iter_mut().flat_map(|record| &mut record.node.entries);
        let saved = entries.filter_map(|entry| match entry {
            Saved::Tensor(saved) => Some(saved),
            _ => None,
        });
        for (saved, tensor) in saved.zip(tensors) {
            (saved.tensor, saved.version) = (tensor.alias(), 0);
        }
        kept
    }

    /// The same without the memory of the saved tensors, of which only the shapes stay: an output that was saved is
    /// then shared no more.
    ///
    /// ```
    /// use autograd_core::host::Arg;
    /// use autograd_core::prelude::*;
    ///
    /// #[py_layer(elementwise, export)]
    /// impl Square {
    ///     fn forward(x: Real) -> Real {
    ///         x * x
    ///     }
    /// }
    ///
    /// let (_, kept) = Square::EXPORT.forward(&[Arg::One(Tensor::from([3.0, 4.0]).into())], &[])?;
    /// let skeleton = kept.skeleton();
    /// assert_eq!(skeleton.forms()[0].2, [2]);
    /// assert_eq!(skeleton.tensors()[0].1.downcast_ref::<f64>().unwrap().to_vec(), [0.0, 0.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    #[must_use]
    pub fn skeleton(self) -> Self {
        self.replaced(self.saved().iter().map(|(_, form)| form.zeros()).collect())
    }

    /// The shape and element type of each saved tensor.
    ///
    /// ```
    /// use autograd_core::host::{Arg, Origin};
    /// use autograd_core::prelude::*;
    ///
    /// #[py_layer(elementwise, export)]
    /// impl Square {
    ///     fn forward(x: Real) -> Real {
    ///         x * x
    ///     }
    /// }
    ///
    /// let (_, kept) = Square::EXPORT.forward(&[Arg::One(Tensor::from([3.0, 4.0]).into())], &[])?;
    /// assert_eq!(kept.forms(), [(Origin::Input(0), autograd_core::DType::Float64, vec![2])]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    #[must_use]
    pub fn forms(&self) -> Vec<(Origin, DType, Vec<usize>)> {
        self.saved().iter().map(|(of, form)| (*of, form.dtype, form.shape.to_vec())).collect()
    }

    /// Runs backward. `grads` are the gradients of the outputs' tensors, in their shapes, of which some may be absent.
    /// Returns the gradients of the arguments' tensors, in theirs; `None` for those that want none, by `needs` (see
    /// [`forward`](trait@super::DynOp#method.forward)), or that no given gradient reaches.
    ///
    /// ```
    /// use autograd_core::host::Arg;
    /// use autograd_core::prelude::*;
    ///
    /// #[py_layer(elementwise, export)]
    /// impl Square {
    ///     fn forward(x: Real) -> Real {
    ///         x * x
    ///     }
    /// }
    ///
    /// let (_, kept) = Square::EXPORT.forward(&[Arg::One(Tensor::from([3.0, 4.0]).into())], &[])?;
    /// let dx = kept.backward(&[Some(Tensor::from([1.0, 10.0]).into())], &[])?.remove(0).unwrap();
    /// assert_eq!(dx.downcast::<f64>().unwrap().to_vec(), [6.0, 80.0]);
    /// assert!(kept.backward(&[Some(Tensor::from([1.0]).into())], &[]).is_err());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the gradients do not fit the outputs, and those of a recorded call's backward. A panic is an error.
    pub fn backward(
        &self,
        grads: &[Option<AnyTensor>],
        needs: &[bool],
    ) -> Result<Vec<Option<AnyTensor>>> {
        self.check_grads(grads)?;
        let Some(record) = &self.record else { return Ok(vec![None; self.inputs.len()]) };
        let leaves: Vec<AnyTensor> = self.leaves(record, needs, &[]);
        let entries = record.node.entries.clone();
        self.walk(record, (entries, &leaves), grads, BackwardOptions::new())
    }

    /// A leaf for each argument's tensor: a saved one, or zeros of its form; one that wants a gradient, if needed.
    fn leaves(&self, record: &Recorded, needs: &[bool], saved: &[AnyTensor]) -> Vec<AnyTensor> {
        let each = self.inputs.iter().enumerate().map(|(i, form)| {
            if !record.edges.contains(&Some(i)) || !needs.get(i).copied().unwrap_or(true) {
                return form.zeros();
            }
            let known = record.saved.iter().zip(saved);
            let known = known.filter(|((origin, _), _)| *origin == Origin::Input(i));
            let mut known = known.map(|(_, tensor)| tensor.clone());
            known.next().unwrap_or_else(|| wanting(form.zeros()))
        });
        each.collect()
    }

    fn walk(
        &self,
        record: &Recorded,
        (mut entries, leaves): (Vec<Saved>, &[AnyTensor]),
        grads: &[Option<AnyTensor>],
        options: BackwardOptions,
    ) -> Result<Vec<Option<AnyTensor>>> {
        let mut all = vec![None; leaves.len()];
        let edge = |input: &Option<usize>| match input {
            Some(input) => for_any!(&leaves[*input], t => t.edge()),
            None => Edge::None(Absent::UNOBSERVED),
        };
        let edges: Vec<Edge> = record.edges.iter().map(edge).collect();
        let NodeRecord { op, attrs, location, .. } = &record.node;
        let state = SavedState::new(attrs.clone(), &mut entries);
        let node = NodeRef::record(*op, edges.into_iter().collect(), state, location);
        let (mut outputs, mut seeds) = (Vec::new(), Vec::new());
        for (output, grad) in self.outputs.iter().zip(grads) {
            if let (Some(slot), Some(grad)) = (output.slot, grad) {
                let output = output.form.zeros();
                outputs.push(for_any!(output, t => t.attached(node.clone(), slot).into()));
                seeds.push(Some(grad.clone()));
            }
        }
        drop(node);
        let wanted: Vec<usize> =
            (0..leaves.len()).filter(|&i| !leaves[i].stop_gradient()).collect();
        if outputs.is_empty() || wanted.is_empty() {
            return Ok(all);
        }
        let inputs: Vec<AnyTensor> = wanted.iter().map(|&i| leaves[i].clone()).collect();
        let found = caught(self.op, "backward", || grad_any(&outputs, &inputs, &seeds, options))?;
        for (input, grad) in wanted.into_iter().zip(found) {
            all[input] = grad;
        }
        Ok(all)
    }

    /// The gradient of [`backward`](Self::backward): with respect to what the call saved and to `grads`, in their
    /// shapes. `along` are the gradients of backward's results, in those of the arguments.
    ///
    /// A saved output has a gradient of its own here, as if it were an argument of backward.
    ///
    /// ```
    /// use autograd_core::host::Arg;
    /// use autograd_core::prelude::*;
    ///
    /// #[py_layer(export)]
    /// impl Square {
    ///     type Saved = Tensor<f64>;
    ///     fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
    ///         ctx.save_for_backward(x);
    ///         x * x
    ///     }
    ///     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
    ///         dy * ctx.saved_tensor() * 2.0
    ///     }
    /// }
    ///
    /// let (_, kept) = Square::EXPORT.forward(&[Arg::One(Tensor::from([3.0]).into())], &[])?;
    /// let (dy, along) = (Tensor::from([1.0]), Tensor::from([10.0]));
    /// let second = kept.second(&[Some(dy.into())], &[], &[Some(along.into())])?;
    /// // Backward is `2 x dy`: its derivatives are `2 dy` by the saved `x`, and `2 x` by `dy`.
    /// assert_eq!(second.saved[0].as_ref().unwrap().norm(), 20.0);
    /// assert_eq!(second.grads[0].as_ref().unwrap().norm(), 60.0);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::SavedIntermediate`] if backward reads a saved tensor that is neither an argument nor an output, an
    /// error for an op that is `once_differentiable`, and those of [`backward`](Self::backward).
    pub fn second(
        &self,
        grads: &[Option<AnyTensor>],
        needs: &[bool],
        along: &[Option<AnyTensor>],
    ) -> Result<Second> {
        self.check_grads(grads)?;
        check_count(
            self.op,
            "gradients, one for each tensor among the arguments",
            self.inputs.len(),
            along.len(),
        )?;
        let none =
            || Second { saved: vec![None; self.saved().len()], grads: vec![None; grads.len()] };
        let Some(record) = &self.record else { return Ok(none()) };
        let leaf = |tensor: &AnyTensor| wanting(tensor.alias());
        let mut entries = record.node.entries.clone();
        let mut saved = Vec::new();
        for entry in &mut entries {
            let Saved::Tensor(entry) = entry else { continue };
            let is_leaf = match record.saved[saved.len()].0 {
                Origin::Input(i) => record.edges.contains(&Some(i)),
                Origin::Output(_) => true,
                Origin::Intermediate => false,
            };
            entry.tensor = if is_leaf { leaf(&entry.tensor) } else { entry.tensor.alias() };
            entry.version = 0;
            if let Role::Output(_) | Role::OutputValue(_) = entry.role {
                entry.role = Role::Constant;
            }
            saved.push(entry.tensor.clone());
        }
        let leaves = self.leaves(record, needs, &saved);
        let grads: Vec<Option<AnyTensor>> =
            grads.iter().map(|grad| grad.as_ref().map(leaf)).collect();
        let options = BackwardOptions::new().create_graph(true);
        let found = self.walk(record, (entries, &leaves), &grads, options)?;
        let (mut outputs, mut seeds) = (Vec::new(), Vec::new());
        for (found, along) in found.into_iter().zip(along) {
            if let (Some(found), Some(along)) = (found, along)
                && !found.stop_gradient()
            {
                check_form(self.op, "a gradient of a gradient", &Form::of(&found), along)?;
                outputs.push(found);
                seeds.push(Some(along.clone()));
            }
        }
        let mut all = none();
        let places = all.saved.iter_mut().zip(saved.into_iter().map(Some));
        let places = places.chain(all.grads.iter_mut().zip(grads));
        let wanted = places.filter_map(|(place, tensor)| Some((place, tensor?)));
        let (places, inputs): (Vec<_>, Vec<AnyTensor>) =
            wanted.filter(|(_, tensor)| !tensor.stop_gradient()).unzip();
        if !outputs.is_empty() && !inputs.is_empty() {
            let options = BackwardOptions::new();
            let found =
                caught(self.op, "backward", || grad_any(&outputs, &inputs, &seeds, options))?;
            places.into_iter().zip(found).for_each(|(place, grad)| *place = grad);
        }
        Ok(all)
    }

    fn check_grads(&self, grads: &[Option<AnyTensor>]) -> Result<()> {
        check_count(self.op, "gradients, one for each output", self.outputs.len(), grads.len())?;
        let mut all = self.outputs.iter().zip(grads);
        all.try_for_each(|(output, grad)| match (grad, output.slot) {
            (Some(grad), Some(_)) => {
                check_form(self.op, "the gradient of an output", &output.form, grad)
            }
            _ => Ok(()),
        })
    }
}

fn check_count(op: &'static str, what: &str, expected: usize, found: usize) -> Result<()> {
    match expected == found {
        true => Ok(()),
        false => Err(Error::Count { op, what: what.to_owned(), expected, found }),
    }
}

fn check_form(op: &'static str, what: &'static str, form: &Form, tensor: &AnyTensor) -> Result<()> {
    match form.fits(tensor) {
        true => Ok(()),
        false => Err(Error::value(op, what, format!("of {form}"), Form::of(tensor))),
    }
}

impl Recorded {
    fn of(
        node: &NodeRef,
        inputs: &[AnyTensor],
        outputs: &[AnyTensor],
        forms: &[OutputForm],
    ) -> Self {
        let place =
            |of: &[AnyTensor], tensor: &AnyTensor| of.iter().position(|it| it.is_same(tensor));
        let edges = node.edges().iter().map(|edge| match edge {
            Edge::Leaf(leaf) => place(inputs, leaf),
            _ => None,
        });
        let edges = edges.collect();
        let node = node.take_record();
        let of_slot = |slot: u16| forms.iter().position(|form| form.slot == Some(slot.into()));
        let saved = node.entries.iter().filter_map(|entry| {
            let Saved::Tensor(saved) = entry else { return None };
            let found = match saved.role {
                Role::Input(_) => place(inputs, &saved.tensor).map(Origin::Input),
                Role::Output(slot) | Role::OutputValue(slot) => of_slot(slot).map(Origin::Output),
                Role::Intermediate | Role::Constant => {
                    place(outputs, &saved.tensor).map(Origin::Output)
                }
            };
            Some((found.unwrap_or(Origin::Intermediate), Form::of(&saved.tensor)))
        });
        let saved = saved.collect();
        Self { node, edges, saved }
    }
}
