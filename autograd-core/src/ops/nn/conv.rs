//! Convolution.

use std::panic::Location;

use super::super::call::call;
use super::super::table::{Attr, Form, Inferred, OpDef, Type, entries, for_programs, message};
use super::super::{Caller, Float, pairs};
use super::convolve::{convolve, convolve_back, convolve_weights};
use super::floats;
use super::linear::{check_bias, with_bias};
use super::window::{Conv2dOptions, Convolution, Plan, Window, images, open_batch};
use crate::array::shape::element_count;
use crate::array::{Shape, Value};
use crate::error::{Error, Plural, RECEIVER, Result};
use crate::graph::{Rule, Saved, Tensor, finish};

fn check(
    input: &[usize],
    weight: &[usize],
    bias: Option<&[usize]>,
    options: Conv2dOptions,
) -> Result<Plan> {
    let op = "conv2d";
    let wrong = |parameter: &str, expected: String, found: &[usize]| {
        Err(Error::shape(op, parameter, expected, found))
    };
    let groups = options.groups;
    if groups == 0 {
        return Err(Error::value(op, "groups", "at least 1", 0));
    }
    let &[_, channels, _, _] = input else {
        return wrong(RECEIVER, "images of shape [n, channels, height, width]".into(), input);
    };
    let &[outputs, inputs, kernel_height, kernel_width] = weight else {
        let expected = "of shape [outputs, channels / groups, height, width]".into();
        return wrong("weight", expected, weight);
    };
    let divisible =
        |what| format!("of a number of {what} that is a multiple of `groups`, {groups}");
    if !channels.is_multiple_of(groups) {
        return wrong(RECEIVER, divisible("channels"), input);
    }
    if inputs != channels / groups {
        let expected = format!(
            "of shape [outputs, {}, height, width], for {} in {}",
            channels / groups,
            Plural(channels, "channel", "channels"),
            Plural(groups, "group", "groups")
        );
        return wrong("weight", expected, weight);
    }
    if !outputs.is_multiple_of(groups) {
        return wrong("weight", divisible("outputs"), weight);
    }
    check_bias(op, outputs, bias)?;
    let Conv2dOptions { stride, padding, dilation, .. } = options;
    let kernel = [kernel_height, kernel_width];
    let plan = Plan::new(op, Window { kernel, stride, padding, dilation }, input)?;
    element_count(op, &[input[0], outputs, plan.output[0], plan.output[1]])?;
    Ok(plan)
}

entries! {
    CONVOLUTIONS:

    CONV2D = OpDef {
        attrs: &[("stride padding dilation groups", Type::Pairs)],
        show: for_programs(|op| {
            let Conv2dOptions { stride, padding, dilation, groups } =
                Conv2dOptions::of(op).unwrap_or_default();
            format!("stride={stride:?}, padding={padding:?}, dilation={dilation:?}, groups={groups}")
        }),
        infer: for_programs(|op, inputs| convolved(inputs, Conv2dOptions::of(op)?)),
        run: |op, values, at| {
            let options = Conv2dOptions::of(op)?;
            floats!(values, |x| conv2d(x[0], x[1], x.get(2).copied(), options, at))
        },
        ..OpDef::new("conv2d")
    };
}

fn convolved(inputs: &[&Form], options: Conv2dOptions) -> Inferred {
    let (x, weight, bias) = with_bias(inputs, "images, weights and perhaps a bias")?;
    let known = |form: &Form| -> Result<Vec<usize>, String> {
        let lengths: Option<Vec<usize>> = form.dims.iter().copied().collect();
        lengths.ok_or_else(|| format!("its weights and bias have no free axis, found {form}"))
    };
    let bias = bias.map(known).transpose()?;
    let (input, weight) = (images(x)?, known(weight)?);
    let plan = check(&input, &weight, bias.as_deref(), options).map_err(message)?;
    let [height, width] = plan.output;
    Ok(vec![open_batch(x, [input[0], weight[0], height, width])])
}

fn conv2d<T: Float>(
    x: &Tensor<T>,
    weight: &Tensor<T>,
    bias: Option<&Tensor<T>>,
    options: Conv2dOptions,
    caller: Caller,
) -> Result<Tensor<T>> {
    let plan = check(x.shape(), weight.shape(), bias.map(Tensor::shape), options)?;
    let groups = options.groups;
    let of = Convolution {
        plan,
        units: x.shape()[0] * groups,
        groups,
        channels: weight.shape()[1],
        outputs: weight.shape()[0] / groups,
    };
    let product = compute_part(of, ConvPart::Output, [x, weight], caller);
    match bias {
        Some(bias) => product.try_add(bias.reshape([bias.len(), 1, 1])),
        None => Ok(product),
    }
}

/// The operands and the result of a convolution; it and its gradients each compute one from the two others.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) enum ConvPart {
    Input,
    Weight,
    Output,
}

impl ConvPart {
    fn operands(self) -> [ConvPart; 2] {
        match self {
            ConvPart::Input => [ConvPart::Weight, ConvPart::Output],
            ConvPart::Weight => [ConvPart::Input, ConvPart::Output],
            ConvPart::Output => [ConvPart::Input, ConvPart::Weight],
        }
    }
}

pub(super) fn compute_part<T: Float>(
    of: Convolution,
    part: ConvPart,
    [a, b]: [&Tensor<T>; 2],
    caller: Caller,
) -> Tensor<T> {
    let [images, group] = [of.units / of.groups, of.groups];
    let ([height, width], [k, l], [rows, columns]) =
        (of.plan.input, of.plan.window.kernel, of.plan.output);
    let (name, kernel, shape): (_, fn(&Convolution, &[T], &[T], &mut [T]), _) = match part {
        ConvPart::Input => {
            ("conv2d_input", convolve_back, [images, group * of.channels, height, width])
        }
        ConvPart::Weight => {
            ("conv2d_weight", convolve_weights, [group * of.outputs, of.channels, k, l])
        }
        ConvPart::Output => ("conv2d", convolve, [images, group * of.outputs, rows, columns]),
    };
    let value = {
        let (x, y) = (a.read(), b.read());
        let (x, y) = (x.contiguous(), y.contiguous());
        let (x, y) = (x.as_slice().unwrap_or(&[]), y.as_slice().unwrap_or(&[]));
        Value::written(Shape::from_slice(&shape), &mut |out| kernel(&of, x, y, out))
    };
    finish(name, caller, &[a, b], value, || {
        // The gradient of an operand is that part, from the other operand and the result's gradient.
        Rule::new([Saved::input(0, a), Saved::input(1, b)], move |saved, dy: Tensor<T>, wants| {
            let [a, b] = [saved.tensor()?, saved.tensor()?];
            let of_operand = |index: usize, beside: &Tensor<T>| {
                let [operand, other_operand] = [part.operands()[index], part.operands()[1 - index]];
                let both = if other_operand < part { [beside, &dy] } else { [&dy, beside] };
                wants[index].then(|| compute_part(of, operand, both, Location::caller()))
            };
            Ok([of_operand(0, &b), of_operand(1, &a)])
        })
    })
}

/// # Convolution
impl<T: Float> Tensor<T> {
    pairs! {
        /// Returns the cross-correlation of images `[n, channels, height, width]` with weights
        /// `[outputs, channels / groups, kernel height, kernel width]`, plus a bias for each output:
        /// `[n, outputs, ..]`. With stride 1, no padding and one group,
        /// `y[n, o, i, j] = sum(x[n, c, i + k, j + l] * weight[o, c, k, l]) + bias[o]`. The length in each direction is
        /// `(l + 2 padding - dilation (kernel - 1) - 1) / stride + 1`, rounded down, as in PyTorch and Paddle.
        ///
        /// ```
        /// use autograd_core::{Conv2dOptions, Tensor};
        ///
        /// let x = Tensor::<f64>::arange(9).reshape([1, 1, 3, 3]);
        /// let w = Tensor::<f64>::ones([1, 1, 2, 2]);
        /// let y = x.conv2d(&w, None, Conv2dOptions::new());
        /// assert_eq!(y.to_vec(), [8.0, 12.0, 20.0, 24.0]);
        /// let y = x.conv2d(&w, None, Conv2dOptions::new().stride(2).padding(1));
        /// assert_eq!(y.to_vec(), [0.0, 3.0, 9.0, 24.0]);
        /// ```
        pub fn conv2d, try_conv2d(
            &self,
            weight: &Tensor<T>,
            bias: Option<&Tensor<T>>,
            options: Conv2dOptions,
        ) -> Tensor<T>, Shape | Value | TooLarge if
            "the shapes do not fit each other, not one window fits, or an option is out of range",
            use "Conv2dOptions";
            "Tensor::from([1.0]).try_conv2d(&Tensor::from([1.0]), None, Conv2dOptions::new())" => Shape
        {
            let inputs = [Some(self), Some(weight), bias].into_iter().flatten();
            call(&CONV2D, [Attr::Pairs(options.parts().to_vec())], inputs.map(Tensor::untyped))
        }
    }
}
