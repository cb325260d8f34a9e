//! Layers, with their parameters and what the executor keeps for them, and ops of several variables. Each
//! adds operators and gives the variable that they compute.

use std::panic::Location;

use smallvec::smallvec;

use super::form::Form;
use super::ir::{Op, Operator, Phase, Place, wrong};
use super::program::{Change, Program, Variable};
use super::table::{self, Init};
use crate::array::DType;
use crate::error::Result;
use crate::ops::Reduce;
use crate::ops::table::attr::Attr;
use crate::ops::{Binary, Comparison, of_logits};

/// How a fully connected layer's parameters are named and start.
#[derive(Clone, Debug)]
pub struct FcOptions {
    name: Option<String>,
    weight: Init,
    bias: Option<Init>,
}

impl Default for FcOptions {
    fn default() -> Self {
        Self { name: None, weight: Init::Xavier, bias: Some(Init::Constant(0.0)) }
    }
}

impl FcOptions {
    /// A generated name, [`Init::Xavier`] for the weights and zeros for the bias.
    pub fn new() -> Self {
        Self::default()
    }

    /// The layer's name: its parameters are `name.weight` and `name.bias`.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// How the weights start.
    pub fn weight(mut self, init: Init) -> Self {
        self.weight = init;
        self
    }

    /// How the bias starts; `None` for none.
    pub fn bias(mut self, init: impl Into<Option<Init>>) -> Self {
        self.bias = init.into();
        self
    }
}

/// # Layers
impl Program {
    /// A fully connected layer, `x · weight + bias`, with new parameters: from `[n, ..]` to
    /// `[n, size]`. Axes after the first are flattened.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if `x` is no float matrix, an axis after its first
    /// is free, or `size` is 0.
    #[track_caller]
    pub fn fc(&self, x: &Variable, size: usize) -> Result<Variable> {
        self.fully_connected(x, size, &FcOptions::new(), Location::caller())
    }

    /// [`Program::fc`] with names and first values of its parameters.
    ///
    /// # Errors
    ///
    /// As [`Program::fc`]; also if a parameter's name is taken.
    #[track_caller]
    pub fn fc_with(&self, x: &Variable, size: usize, options: &FcOptions) -> Result<Variable> {
        self.fully_connected(x, size, options, Location::caller())
    }

    fn fully_connected(
        &self,
        x: &Variable,
        size: usize,
        options: &FcOptions,
        location: &'static Location<'static>,
    ) -> Result<Variable> {
        let place = Place::Line(location);
        let mut input = self.own("fc", x, &place)?;
        let form = x.form();
        let mut width = Some(1);
        for dim in form.dims.iter().skip(1) {
            width = width.zip(*dim).map(|(a, b)| a * b);
        }
        let (true, Some(width)) = (form.dims.len() > 1, width) else {
            let why = format!("`{}` must be [n, ..] with only n free, it is {form}", x.name());
            return Err(wrong("fc", &place, why));
        };
        if !form.dtype.is_float() {
            let why = format!("`{}` must be of a float type, it is {form}", x.name());
            return Err(wrong("fc", &place, why));
        }
        if size == 0 {
            return Err(wrong("fc", &place, "`size` must be 1 or more, found 0"));
        }
        let output = self.change(|change| {
            if form.dims.len() > 2 {
                let flat = Attr::Dims([form.dims[0], Some(width)].into_iter().collect());
                input = change.add(&table::RESHAPE, [flat], &[input], &place)?;
            }
            let name = match &options.name {
                Some(name) => name.clone(),
                None => change.graph.fresh_name("fc", false),
            };
            let parameter = |change: &mut Change<'_>, what: &str, dims: &[usize], init| {
                let form = Form::new(form.dtype, dims.iter().map(|&n| Some(n)).collect());
                change.keep("fc", &format!("{name}.{what}"), form, true, init, &place)
            };
            let weight = parameter(change, "weight", &[width, size], options.weight)?;
            let product = change.add(&table::MATMUL, [], &[input, weight], &place)?;
            let Some(init) = options.bias else { return Ok(product) };
            let bias = parameter(change, "bias", &[size], init)?;
            change.add(table::binary(Binary::Add), [], &[product, bias], &place)
        })?;
        Ok(self.variable(output))
    }

    /// The mean of all elements, a scalar.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if the variable is of another program or no
    /// number.
    #[track_caller]
    pub fn mean(&self, x: &Variable) -> Result<Variable> {
        self.one(table::reduction(Reduce::Mean), over_all(), &[x], Location::caller())
    }

    /// The mean cross entropy of logits `[n, classes]` and `n` classes of type int64.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if the shapes or element types do not fit.
    #[track_caller]
    pub fn cross_entropy(&self, logits: &Variable, classes: &Variable) -> Result<Variable> {
        self.one(&table::CROSS_ENTROPY, [], &[logits, classes], Location::caller())
    }

    /// Which part of `n` classes of type int64 the greatest of each row of logits `[n, classes]`
    /// stands at: a float32 scalar without a gradient, to be fetched beside the loss.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{Executor, Program};
    /// use ndarray::{arr1, arr2};
    ///
    /// let program = Program::new();
    /// let logits = program.data("logits", [-1, 2], DType::Float32)?;
    /// let classes = program.data("classes", [-1], DType::Int64)?;
    /// let accuracy = program.accuracy(&logits, &classes)?;
    /// let (rows, right) = (arr2(&[[0.5_f32, 2.0], [1.0, -1.0]]), arr1(&[1_i64, 1]));
    /// let feed: [(&str, &dyn autograd_core::static_graph::Feed); 2] =
    ///     [("logits", &rows), ("classes", &right)];
    /// let run = Executor::new().run(&program, &feed, &[&accuracy])?;
    /// assert_eq!(run[0].downcast_ref::<f32>().unwrap().item(), 0.5);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Program::cross_entropy`].
    #[track_caller]
    pub fn accuracy(&self, logits: &Variable, classes: &Variable) -> Result<Variable> {
        let place = Place::Line(Location::caller());
        // They must fit as for the loss.
        if let Err(why) = of_logits(&[&logits.form(), &classes.form()]) {
            let why = format!("{why}; given `{logits}`, `{classes}`");
            return Err(wrong("accuracy", &place, why));
        }
        let of = [logits, classes].map(|variable| self.own("accuracy", variable, &place));
        let [logits, classes] = of;
        let (logits, classes) = (logits?, classes?);
        let output = self.change(|change| {
            let found = change.add(&table::ARGMAX, [Attr::Int(1)], &[logits], &place)?;
            let equal = table::comparison(Comparison::Equal);
            let right = change.add(equal, [], &[found, classes], &place)?;
            let float = Attr::Type(DType::Float32);
            let right = change.add(&table::CAST, [float], &[right], &place)?;
            change.add(table::reduction(Reduce::Mean), over_all(), &[right], &place)
        })?;
        Ok(self.variable(output))
    }

    /// Several variables joined along an axis.
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if there are none, or they differ beside this
    /// axis.
    #[track_caller]
    pub fn concat(&self, variables: &[&Variable], axis: isize) -> Result<Variable> {
        self.one(&table::CONCAT, [Attr::Int(axis)], variables, Location::caller())
    }

    /// A table of `rows` vectors, a new parameter, of which `ids` picks: from int64 `[..]` to
    /// `[.., width]`. At most one axis of `ids` may be free, unless it is a vector.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{Executor, Program};
    /// use ndarray::arr2;
    ///
    /// let program = Program::new();
    /// let words = program.data("words", [-1, 3], DType::Int64)?;
    /// let vectors = program.embedding(&words, 100, 8, DType::Float32)?;
    /// assert_eq!(vectors.shape(), [None, Some(3), Some(8)]);
    /// let executor = Executor::new();
    /// executor.run(&program.startup(), &[], &[])?;
    /// let run = executor.run(&program, &[("words", &arr2(&[[7_i64, 7, 99]]))], &[&vectors])?;
    /// assert_eq!(run[0].shape(), [1, 3, 8]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if `ids` is not int64 or has two free axes, or the
    /// vectors are of no float type. An id that the table does not have is an error of the run.
    #[track_caller]
    pub fn embedding(
        &self,
        ids: &Variable,
        rows: usize,
        width: usize,
        dtype: DType,
    ) -> Result<Variable> {
        let place = Place::Line(Location::caller());
        let mut index = self.own("embedding", ids, &place)?;
        let form = ids.form();
        if form.dtype != DType::Int64 {
            let why = format!("`{}` must be ids of type int64, it is {form}", ids.name());
            return Err(wrong("embedding", &place, why));
        }
        let output = self.change(|change| {
            let name = change.graph.fresh_name("embedding", false);
            let table = Form::new(dtype, [Some(rows), Some(width)].into_iter().collect());
            let name = format!("{name}.weight");
            let table =
                change.keep("embedding", &name, table, true, Init::Normal(0.0, 1.0), &place)?;
            if form.dims.len() != 1 {
                let flat = Attr::Dims([None].into_iter().collect());
                index = change.add(&table::RESHAPE, [flat], &[index], &place)?;
            }
            let rows = [Attr::Int(0)];
            let picked = change.add(&table::INDEX_SELECT, rows, &[table, index], &place)?;
            if form.dims.len() == 1 {
                return Ok(picked);
            }
            let dims = form.dims.iter().copied().chain([Some(width)]).collect();
            change.add(&table::RESHAPE, [Attr::Dims(dims)], &[picked], &place)
        })?;
        Ok(self.variable(output))
    }
}

/// The attributes of a reduction of all axes.
fn over_all() -> [Attr; 2] {
    [Attr::Ints(Vec::new()), Attr::Flag(false)]
}

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
            let op = Operator::new(&table::BATCH_NORM, attrs);
            let inputs = vec![input, weight, bias, mean, var];
            let op = Op::new(op, inputs, &[output], Phase::Forward, &place);
            change.graph.push_op(Op { writes: vec![mean, var], ..op })?;
            Ok(output)
        })?;
        Ok(self.variable(output))
    }
}
