//! The affine map.

use std::panic::Location;

use super::super::call::call;
use super::super::matmul::unrecorded_product;
use super::super::table::{Dims, Form, OpDef, entries, float, for_programs, same_dtype};
use super::super::{Caller, Float, add_parts, pairs};
use super::floats;
use crate::error::{Error, RECEIVER, Result};
use crate::graph::{GradMode, Rule, Saved, SavedReader, Tensor, finish};

fn check(x: &[usize], weight: &[usize], bias: Option<&[usize]>) -> Result<()> {
    let &[outputs, inputs] = weight else {
        return Err(Error::shape("linear", "weight", "of shape [outputs, inputs]", weight));
    };
    if x.last() != Some(&inputs) {
        let expected = format!("of shape [.., {inputs}], for `weight` of shape {weight:?}");
        return Err(Error::shape("linear", RECEIVER, expected, x));
    }
    check_bias("linear", outputs, bias)
}

pub(super) fn check_bias(op: &'static str, outputs: usize, bias: Option<&[usize]>) -> Result<()> {
    match bias {
        Some(bias) if bias != [outputs] => {
            let expected = format!("of shape {:?}, one for each output", [outputs]);
            Err(Error::shape(op, "bias", expected, bias))
        }
        _ => Ok(()),
    }
}

pub(super) fn with_bias<'a>(
    inputs: &[&'a Form],
    expected: &str,
) -> Result<(&'a Form, &'a Form, Option<&'a Form>), String> {
    let (x, weight, bias) = match *inputs {
        [x, weight] => (x, weight, None),
        [x, weight, bias] => (x, weight, Some(bias)),
        _ => return Err(format!("takes {expected}, found {}", inputs.len())),
    };
    same_dtype(float(x)?, weight)?;
    bias.map_or(Ok(()), |bias| same_dtype(x, bias))?;
    Ok((x, weight, bias))
}

entries! {
    LINEARS:

    /// Inputs: `x`, weights and an optional bias.
    LINEAR = OpDef {
        infer: for_programs(|_, inputs| {
            let (x, weight, bias) = with_bias(inputs, "2 or 3 inputs")?;
            let (Some((last, lead)), &[outputs, inputs]) = (x.dims.split_last(), &weight.dims[..]) else {
                return Err(format!("takes [.., inputs] and [outputs, inputs], found {x} and {weight}"));
            };
            if last.is_some() && inputs.is_some() && *last != inputs {
                return Err(format!("the weights are {weight}, the input {x}"));
            }
            if let Some(bias) = bias
                && !bias.agrees(&Form::new(x.dtype, Dims::from_slice(&[outputs])))
            {
                return Err(format!("the bias is {bias}, the weights {weight}"));
            }
            Ok(vec![Form::new(x.dtype, lead.iter().copied().chain([outputs]).collect())])
        }),
        run: |_, values, at| floats!(values, |x| linear(x[0], x[1], x.get(2).copied(), at)),
        ..OpDef::new("linear")
    };
}

fn linear<T: Float>(
    x: &Tensor<T>,
    weight: &Tensor<T>,
    bias: Option<&Tensor<T>>,
    caller: Caller,
) -> Result<Tensor<T>> {
    check(x.shape(), weight.shape(), bias.map(Tensor::shape))?;
    let product = GradMode::of(false, || {
        let rows = rows(x)?;
        let product = match unrecorded_product([&rows, weight], [false, true]) {
            Some(product) => product,
            None => rows.try_matmul(&weight.transpose())?,
        };
        match x.shape() {
            [_, _] => Ok(product),
            [lead @ .., _] => product.try_reshape([lead, &weight.shape()[..1]].concat()),
            [] => unreachable!("its last axis was checked"),
        }
    })?;
    let product = finish(LINEAR.name, caller, &[x, weight], product.read().into_owned(), || {
        Rule::new([Saved::input(0, x), Saved::input(1, weight)], pull::<T>).with_push(push::<T>)
    });
    match bias {
        Some(bias) => product.try_add(bias),
        None => Ok(product),
    }
}

fn rows<T: Float>(t: &Tensor<T>) -> Result<Tensor<T>> {
    match *t.shape() {
        [_, _] => Ok(t.clone()),
        [ref lead @ .., columns] => t.try_reshape([lead.iter().product(), columns]),
        [] => t.try_reshape([1, 1]),
    }
}

/// `y = x wᵀ`: `dx = dy w`, and `dw = dyᵀ x` with all leading axes merged into one.
fn pull<T: Float>(
    saved: &mut SavedReader<'_>,
    dy: Tensor<T>,
    wants: &[bool],
) -> Result<[Option<Tensor<T>>; 2]> {
    let (x, weight) = (saved.tensor()?, saved.tensor()?);
    let dy = rows(&dy)?;
    let dx = || match dy.try_matmul(&weight)? {
        dx if x.ndim() == 2 => Ok(dx),
        dx => dx.try_reshape(x.shape_owned()),
    };
    let dw = || {
        let x = rows(&x)?;
        unrecorded_product([&dy, &x], [true, false])
            .map_or_else(|| dy.transpose().try_matmul(&x), Ok)
    };
    Ok([wants[0].then(dx).transpose()?, wants[1].then(dw).transpose()?])
}

/// `dy = dx wᵀ + x dwᵀ`.
fn push<T: Float>(
    saved: &mut SavedReader<'_>,
    tangents: &[Option<Tensor<T>>],
    _: &[usize],
) -> Result<Option<Tensor<T>>> {
    let (x, weight) = (saved.tensor()?, saved.tensor()?);
    let caller = Location::caller();
    let left = tangents[0].as_ref().map(|dx| linear(dx, &weight, None, caller));
    let right = tangents[1].as_ref().map(|dw| linear(&x, dw, None, caller));
    Ok(add_parts(left.transpose()?, right.transpose()?))
}

/// # The affine map
impl<T: Float> Tensor<T> {
    pairs! {
        /// Returns `x wᵀ + b`: from `[.., inputs]` by weights `[outputs, inputs]` and a bias `[outputs]` to
        /// `[.., outputs]`.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let x = Tensor::from([[1.0, 10.0]]);
        /// let w = Tensor::from([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
        /// let b = Tensor::from(vec![0.5, 0.0, 0.0]);
        /// assert_eq!(x.linear(&w, Some(&b)).to_vec(), [21.5, 43.0, 65.0]);
        /// ```
        pub fn linear, try_linear(&self, weight: &Tensor<T>, bias: Option<&Tensor<T>>) -> Tensor<T>,
            Shape if "the shapes do not fit each other",
            "Tensor::from([1.0, 2.0]).try_linear(&Tensor::from([[1.0]]), None)" => Shape
        {
            let inputs = [Some(self), Some(weight), bias].into_iter().flatten();
            call(&LINEAR, [], inputs.map(Tensor::untyped))
        }
    }
}
