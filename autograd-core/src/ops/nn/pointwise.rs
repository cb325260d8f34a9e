//! Losses of each prediction and its target, and their means, each in one pass over both.

use std::borrow::Cow;

use super::super::elementwise::{Handle, Info, Pair, Reduction, formulas, one_output};
use super::super::table::{Dims, Form, Inferred, OpDef, entries, exactly, float, for_programs};
use super::super::{Caller, Float};
use super::check_same_shape;
use crate::error::Result;
use crate::formula::{Compiled, Lane, Program, Real};
use crate::graph::Tensor;

const REDUCTIONS: [Reduction; 2] = [Reduction::Mean(Cow::Borrowed(&[])), Reduction::None];

/// Defines losses: name, target, entries of the mean and of single losses, formula, gradients of both inputs.
macro_rules! losses {
    ($(
        $name:ident($target:literal) $mean:ident $each:ident $each_name:literal
            |$x:ident, $t:ident| $loss:expr, |$dy:ident| $dx:expr, $dt:expr;
    )*) => {
        entries! {
            POINTWISE:
            $(
                $mean = OpDef {
                    infer: for_programs(|_, inputs| of_pair(inputs, true)),
                    run: |_, values, at| float!(values, (x, t) => $name::<_, 0>(&x, &t, at)),
                    ..OpDef::new(stringify!($name))
                };
                $each = OpDef {
                    infer: for_programs(|_, inputs| of_pair(inputs, false)),
                    run: |_, values, at| float!(values, (x, t) => $name::<_, 1>(&x, &t, at)),
                    ..OpDef::new($each_name)
                };
            )*
        }
        $(
            fn $name<T: Float, const REDUCTION: usize>(
                x: &Tensor<T>,
                target: &Tensor<T>,
                caller: Caller,
            ) -> Result<Tensor<T>> {
                formulas! {
                    Forward |$x, $t| [$loss];
                    Backward |$x, $t, $dy| [$dx, $dt];
                }
                type Op = Pair<Compiled<Forward, 2, 0, 1>, Compiled<Backward, 3, 0, 2>, Program>;
                static INFOS: [Info; 2] = infos(stringify!($name), &["self", $target]);
                static OPS: [Op; 2] = [
                    Pair::new(&INFOS[0], Compiled(Forward), Compiled(Backward), None),
                    Pair::new(&INFOS[1], Compiled(Forward), Compiled(Backward), None),
                ];
                check_same_shape(stringify!($name), x.shape(), $target, target.shape())?;
                one_output(T::elementwise(Handle::Static(&OPS[REDUCTION]), &[x, target], &[], caller))
            }
        )*
    };
}

losses! {
    smooth_l1_loss("target") SMOOTH_L1 SMOOTH_L1_EACH "smooth_l1_loss_each"
        |x, t| {
            let distance = (x - t).abs();
            distance.lt(1.0).select(distance.square() * 0.5, distance - 0.5)
        },
        |dy| dy * (x - t).clamp(-1.0, 1.0), -(dy * (x - t).clamp(-1.0, 1.0));

    // `(1 - t) softplus(x) + t softplus(-x)`. A term with a weight of 0 is 0, even if it is infinite.
    binary_cross_entropy_with_logits("targets") OF_LOGITS OF_LOGITS_EACH "binary_cross_entropy_with_logits_each"
        |x, t| {
            let yes = t.eq(1.0).select(0.0, (1.0 - t) * x.max(0.0));
            let no = t.eq(0.0).select(0.0, t * (-x).max(0.0));
            (-x.abs()).exp().ln_1p() + yes + no
        },
        |dy| dy * (x.sigmoid() - t), -(dy * x);

    // A term with a factor of 0 is 0, even if its logarithm is infinite.
    binary_cross_entropy("targets") OF_PROBABILITIES OF_PROBABILITIES_EACH "binary_cross_entropy_each"
        |x, t| {
            let [yes, no] = logarithms(x);
            -(t.eq(0.0).select(0.0, t * yes) + t.eq(1.0).select(0.0, (1.0 - t) * no))
        },
        |dy| dy * ((x - t) / (x * (1.0 - x)).max(1e-12)), {
            let [yes, no] = logarithms(x);
            dy * (no - yes)
        };
}

/// Returns the logarithms of a probability and its complement, at least -100, as in PyTorch.
#[inline(always)]
fn logarithms<L: Lane>(x: Real<L>) -> [Real<L>; 2] {
    [x.ln().max(-100.0), (-x).ln_1p().max(-100.0)]
}

const fn infos(name: &'static str, inputs: &'static [&'static str]) -> [Info; 2] {
    let [mean, each] = REDUCTIONS;
    let keeps: [&'static [usize]; 2] = [&[0, 1], &[]];
    [
        Info::new(name, inputs, &[true, true], keeps, mean),
        Info::new(name, inputs, &[true, true], keeps, each),
    ]
}

fn of_pair(inputs: &[&Form], mean: bool) -> Inferred {
    let [x, target] = exactly(inputs)?;
    if !float(x)?.agrees(target) {
        return Err(format!("the target is {target}, the predictions {x}"));
    }
    Ok(vec![Form::new(x.dtype, if mean { Dims::new() } else { x.dims.clone() })])
}
