//! What the tests call that `#[py_layer(check(..))]` generates.
#![allow(missing_docs, reason = "hidden from users")]

use std::fmt::Debug;
use std::marker::PhantomData;

use super::point::Subject;
use super::{check_first, check_second};
use crate::error::Result;
use crate::graph::{AnyTensor, Element, Tensor, for_any};
use crate::ops::Float;
use crate::random::Generator;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    First,
    Second,
}

/// A tensor type, as it stands in the signature of an op.
pub trait CheckedTensor: Sized {
    /// Numbers between `low` and `high`: whole ones, less than `high`, where the elements are no
    /// floats.
    fn sample(seed: u64, shape: &[usize], low: f64, high: f64) -> Self;
    fn of(tensor: &AnyTensor) -> Self;
    fn erased(self) -> AnyTensor;
}

#[diagnostic::do_not_recommend]
impl<T: Element> CheckedTensor for Tensor<T> {
    fn sample(seed: u64, shape: &[usize], low: f64, high: f64) -> Self {
        let mut data = vec![0.0; shape.iter().product()];
        Generator::new(seed).fill_uniform(&mut data, low, high);
        if !T::DTYPE.is_float() {
            data.iter_mut().for_each(|x| *x = x.floor());
        }
        match Tensor::<f64>::from_vec(shape, data) {
            Ok(tensor) => tensor.cast(),
            Err(_) => unreachable!("as many as the shape has"),
        }
    }

    fn of(tensor: &AnyTensor) -> Self {
        match tensor.downcast_ref() {
            Some(tensor) => tensor.clone(),
            None => unreachable!("a place holds what was put there"),
        }
    }

    fn erased(self) -> AnyTensor {
        self.into()
    }
}

/// A tensor of random numbers, the same in every run.
pub fn sample<X: CheckedTensor>(seed: u64, shape: &[usize], low: f64, high: f64) -> X {
    X::sample(seed, shape, low, high)
}

/// The inputs of an op that is checked, in order.
#[derive(Default)]
pub struct Inputs {
    names: Vec<String>,
    tensors: Vec<AnyTensor>,
    differentiable: Vec<bool>,
}

/// Where an input of tensor type `X` stands.
pub struct Place<X>(usize, PhantomData<X>);

impl Inputs {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn add<X: CheckedTensor>(
        &mut self,
        name: impl Into<String>,
        differentiable: bool,
        tensor: X,
    ) -> Place<X> {
        self.names.push(name.into());
        // A tensor that a user made may have a graph, which is none of the op's.
        self.tensors.push(tensor.erased().alias());
        self.differentiable.push(differentiable);
        Place(self.tensors.len() - 1, PhantomData)
    }

    pub fn list<X: CheckedTensor>(
        &mut self,
        name: &str,
        differentiable: bool,
        tensors: impl IntoIterator<Item = X>,
    ) -> Vec<Place<X>> {
        let tensors = tensors.into_iter().enumerate();
        tensors.map(|(i, x)| self.add(format!("{name}[{i}]"), differentiable, x)).collect()
    }
}

/// The inputs of one call.
pub struct At(Vec<AnyTensor>);

impl At {
    pub fn one<X: CheckedTensor>(&self, place: &Place<X>) -> X {
        X::of(&self.0[place.0])
    }

    pub fn optional<X: CheckedTensor>(&self, place: &Option<Place<X>>) -> Option<X> {
        place.as_ref().map(|place| self.one(place))
    }

    pub fn list<X: CheckedTensor>(&self, places: &[Place<X>]) -> Vec<X> {
        places.iter().map(|place| self.one(place)).collect()
    }
}

/// A list of a length that the op's signature says.
#[track_caller]
pub fn array<X, const N: usize>(name: &str, tensors: Vec<X>) -> [X; N] {
    let found = tensors.len();
    match tensors.try_into() {
        Ok(array) => array,
        Err(_) => panic!("`{name}` is a list of {N} tensors, and check(..) gives {found}"),
    }
}

/// What a forward returned that may fail.
#[track_caller]
pub fn succeeded<O, E: Debug>(returned: std::result::Result<O, E>) -> O {
    match returned {
        Ok(outputs) => outputs,
        Err(error) => panic!("forward failed: {error:?}"),
    }
}

/// An output of an op: a tensor or several.
pub trait Output {
    fn into_tensors(self, to: &mut Vec<AnyTensor>);
}

#[diagnostic::do_not_recommend]
impl<T: Float> Output for Tensor<T> {
    fn into_tensors(self, to: &mut Vec<AnyTensor>) {
        to.push(self.into());
    }
}

macro_rules! lists {
    ($([$($n:tt)*] $list:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Float, $($n)*> Output for $list {
            fn into_tensors(self, to: &mut Vec<AnyTensor>) {
                to.extend(self.into_iter().map(AnyTensor::from));
            }
        }
    )*};
}

lists! { [] Vec<Tensor<T>>; [const N: usize] [Tensor<T>; N]; }

/// Holds the derivatives of an op against finite differences: with the inputs as they are and laid
/// out otherwise, with the gradient of each output alone, and with a gradient wanted for each input
/// alone; in the second order with respect to the gradients that backward gets too.
///
/// # Panics
///
/// With what is wrong, at the caller's line.
#[track_caller]
pub fn run(
    op: &'static str,
    given: &str,
    order: Order,
    inputs: &Inputs,
    f: impl Fn(&At) -> Vec<AnyTensor>,
) {
    if let Err(wrong) = checked(op, order, inputs, &f) {
        panic!("check({given}){wrong}");
    }
}

/// Or what was tried, and what was wrong.
fn checked(
    op: &'static str,
    order: Order,
    inputs: &Inputs,
    f: &impl Fn(&At) -> Vec<AnyTensor>,
) -> std::result::Result<(), String> {
    let (all, is_first) = (Case::new(op, inputs, f), order == Order::First);
    let of_order = if is_first { "" } else { ", second order" };
    let check = |what: &str, case: &Case<'_>, tensors: &[AnyTensor]| {
        let (mut subject, given) = case.subject(tensors);
        let call = |given: &[AnyTensor]| case.call(f, tensors, given);
        let checked: Result<()> = if is_first {
            check_first(&subject, call, &given)
        } else {
            subject.names.extend(case.outputs.iter().map(|k| match all.outputs.len() {
                1 => "the gradient of the output".to_owned(),
                _ => format!("the gradient of tensor output {k}"),
            }));
            check_second(&subject, call, &given)
        };
        checked.map_err(|error| format!("{of_order}{what}: {error}"))
    };
    check("", &all, &inputs.tensors)?;
    if is_first && inputs.tensors.iter().any(|x| x.shape().len() > 1) {
        // The same numbers, with the axes the other way round in memory.
        let transposed = |tensor: &AnyTensor| {
            for_any!(tensor, t => {
                let order: Vec<isize> = (0..t.shape().len() as isize).rev().collect();
                t.permute(&order).contiguous().permute(&order).into()
            })
        };
        let transposed: Vec<_> = inputs.tensors.iter().map(transposed).collect();
        check(", with inputs that are not contiguous", &all, &transposed)?;
    }
    let of_one_input = is_first.then(|| all.of_one_input()).into_iter().flatten();
    for (what, case) in all.of_one_output().chain(of_one_input) {
        check(&what, &case, &inputs.tensors)?;
    }
    Ok(())
}

/// Which inputs want a gradient, and which outputs give one.
#[derive(Clone)]
struct Case<'a> {
    op: &'static str,
    inputs: &'a Inputs,
    wanted: Vec<bool>,
    /// By position among the tensor outputs.
    outputs: Vec<usize>,
}

impl<'a> Case<'a> {
    /// All of them: an output that is marked not to have a gradient has none.
    fn new(op: &'static str, inputs: &'a Inputs, f: &impl Fn(&At) -> Vec<AnyTensor>) -> Self {
        let wanted = inputs.differentiable.clone();
        let mut case = Self { op, inputs, wanted, outputs: Vec::new() };
        let (_, given) = case.subject(&inputs.tensors);
        let outputs = f(&case.at(&inputs.tensors, &super::leaves(&given)));
        let has_gradient =
            |k: &usize| outputs[*k].dtype().is_float() && !outputs[*k].stop_gradient();
        case.outputs = (0..outputs.len()).filter(has_gradient).collect();
        assert!(
            !case.outputs.is_empty(),
            "no output of `{op}` has a gradient, so check(..) proves nothing"
        );
        case
    }

    /// Each output alone, where there are several.
    fn of_one_output(&self) -> impl Iterator<Item = (String, Self)> {
        let several = self.outputs.len() > 1;
        self.outputs.iter().filter(move |_| several).map(|&output| {
            let what = format!(", with a gradient of tensor output {output} alone");
            (what, Self { outputs: vec![output], ..self.clone() })
        })
    }

    /// Each input alone, where there are several.
    fn of_one_input(&self) -> impl Iterator<Item = (String, Self)> {
        let wanted: Vec<usize> = (0..self.wanted.len()).filter(|&i| self.wanted[i]).collect();
        let several = wanted.len() > 1;
        wanted.into_iter().filter(move |_| several).map(|input| {
            let what = format!(", where only `{}` wants a gradient", self.inputs.names[input]);
            let wanted = (0..self.wanted.len()).map(|i| i == input).collect();
            (what, Self { wanted, ..self.clone() })
        })
    }

    /// What is checked, and the inputs that are moved.
    fn subject(&self, tensors: &[AnyTensor]) -> (Subject, Vec<AnyTensor>) {
        let wanted = || (0..tensors.len()).filter(|&i| self.wanted[i]);
        let names = wanted().map(|i| format!("`{}`", self.inputs.names[i])).collect();
        let given = wanted().map(|i| tensors[i].clone()).collect();
        (Subject { op: self.op, names }, given)
    }

    /// The inputs of a call: those that are given where they want a gradient, else the tensors.
    fn at(&self, tensors: &[AnyTensor], given: &[AnyTensor]) -> At {
        let mut given = given.iter();
        let all = tensors.iter().zip(&self.wanted).map(|(tensor, wanted)| match wanted {
            true => given.next().unwrap_or(tensor).clone(),
            false => tensor.clone(),
        });
        At(all.collect())
    }

    /// The outputs of a call that are checked.
    fn call(
        &self,
        f: &impl Fn(&At) -> Vec<AnyTensor>,
        tensors: &[AnyTensor],
        given: &[AnyTensor],
    ) -> Vec<AnyTensor> {
        let outputs = f(&self.at(tensors, given));
        self.outputs.iter().map(|&k| outputs[k].clone()).collect()
    }
}
