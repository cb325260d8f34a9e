//! Batch normalisation, whose running statistics the executor keeps.

use std::panic::Location;

use smallvec::smallvec;

use super::build::Change;
use super::form::Form;
use super::ir::{Op, Operator, Phase, Place, wrong};
use super::program::{Program, Variable};
use super::table::{self, Init};
use crate::error::Result;
use crate::ops::trace::Attr;

/// How [`Program::batch_norm_with`] normalises, and how what it keeps is named.
#[derive(Clone, Debug)]
pub struct BatchNormOptions {
    name: Option<String>,
    momentum: f64,
    eps: f64,
}

impl Default for BatchNormOptions {
    fn default() -> Self {
        Self { name: None, momentum: 0.1, eps: 1e-5 }
    }
}

impl BatchNormOptions {
    /// A generated name, a momentum of 0.1, and 1e-5 for `eps`.
    pub fn new() -> Self {
        Self::default()
    }

    /// The layer's name: what it keeps is `name.weight`, `name.bias`, `name.running_mean` and
    /// `name.running_var`.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// The part that a new batch has in the running statistics, in [0, 1]. (What Paddle calls
    /// momentum is the part of the old ones.)
    pub fn momentum(mut self, momentum: f64) -> Self {
        self.momentum = momentum;
        self
    }

    /// What is added to the variance: above 0.
    pub fn eps(mut self, eps: f64) -> Self {
        self.eps = eps;
        self
    }
}

impl Program {
    /// Normalisation of each channel of `[n, channels, ..]` with a learned scale and shift:
    /// `(x - mean) / sqrt(var + eps) * weight + bias` (Ioffe and Szegedy 2015).
    ///
    /// A run of the program takes mean and variance of the batch, and mixes them into running ones,
    /// which change as parameters do: when all else of the run has succeeded. A
    /// [copy for testing](Program::clone_program) takes the running ones and changes nothing. As in
    /// [`nn::BatchNorm2d`](crate::nn::BatchNorm2d), the running variance collects the batch's sum of
    /// squares over the number of elements less one.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{Executor, Program};
    /// use ndarray::arr2;
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 1], DType::Float64)?;
    /// let y = program.batch_norm(&x)?;
    /// let test = program.clone_program(true)?;
    ///
    /// let executor = Executor::new();
    /// executor.run(&program.startup(), &[], &[])?;
    /// let batch = arr2(&[[1.0], [3.0]]);
    /// let trained = executor.run(&program, &[("x", &batch)], &[&y, &"batch_norm_0.running_mean"])?;
    /// assert!((trained[0].downcast_ref::<f64>().unwrap().at(&[1, 0]) - 1.0).abs() < 1e-4);
    /// assert_eq!(trained[1].downcast_ref::<f64>().unwrap().to_vec(), [0.2]);
    /// // One picture is enough here: nothing of it is averaged.
    /// let tested = executor.run(&test, &[("x", &arr2(&[[0.2]]))], &[&y.name()])?;
    /// assert_eq!(tested[0].downcast_ref::<f64>().unwrap().to_vec(), [0.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if `x` has fewer than two axes, is of no float
    /// type, or its channels are a free axis. Fewer than two numbers a channel are an error of the
    /// run.
    #[track_caller]
    pub fn batch_norm(&self, x: &Variable) -> Result<Variable> {
        self.normalized(x, &BatchNormOptions::new(), Location::caller())
    }

    /// [`Program::batch_norm`] with a name and options.
    ///
    /// # Errors
    ///
    /// As [`Program::batch_norm`]; also if a name is taken, or an option out of range.
    #[track_caller]
    pub fn batch_norm_with(&self, x: &Variable, options: &BatchNormOptions) -> Result<Variable> {
        self.normalized(x, options, Location::caller())
    }

    fn normalized(
        &self,
        x: &Variable,
        options: &BatchNormOptions,
        location: &'static Location<'static>,
    ) -> Result<Variable> {
        const CALL: &str = "batch_norm";
        let place = Place::Line(location);
        let input = self.own(CALL, x, &place)?;
        let BatchNormOptions { momentum, eps, .. } = *options;
        let limits = [
            ("momentum", "in [0, 1]", momentum, (0.0..=1.0).contains(&momentum)),
            ("eps", "above 0, and finite", eps, eps > 0.0 && eps.is_finite()),
        ];
        for (option, expected, found, holds) in limits {
            if !holds {
                let why = format!("`{option}` must be {expected}, found {found}");
                return Err(wrong(CALL, &place, why));
            }
        }
        let form = x.form();
        let channels = match table::channels(&form) {
            Ok(channels) => channels,
            Err(why) => return Err(wrong(CALL, &place, format!("{why}; given `{}`", x.name()))),
        };
        let output = self.change(|change| {
            let name = match &options.name {
                Some(name) => name.clone(),
                None => change.graph.fresh_name(CALL, false),
            };
            let keep = |change: &mut Change<'_>, what: &str, parameter, start| {
                let form = Form::new(form.dtype, smallvec![Some(channels)]);
                let name = format!("{name}.{what}");
                change.keep(CALL, &name, form, parameter, Init::Constant(start), &place)
            };
            let weight = keep(change, "weight", true, 1.0)?;
            let bias = keep(change, "bias", true, 0.0)?;
            let mean = keep(change, "running_mean", false, 0.0)?;
            let var = keep(change, "running_var", false, 1.0)?;
            let name = change.graph.fresh_name(&format!("{name}.out"), true);
            let output = change.graph.add_computed(&name, true, form.clone(), &place);
            let attrs = vec![Attr::Number(momentum), Attr::Number(eps), Attr::Flag(true)];
            change.graph.push_op(Op {
                kind: Operator::new(&table::BATCH_NORM, attrs).into(),
                inputs: vec![input, weight, bias, mean, var],
                outputs: vec![output],
                writes: vec![mean, var],
                phase: Phase::Forward,
                place: place.clone(),
            })?;
            Ok(output)
        })?;
        Ok(self.variable(output))
    }
}
