//! Layers with their kept variables, and ops of several variables. Each method adds operators.

use smallvec::smallvec;

use super::ir::{Kind, Op, Phase, Role, Site, Var};
use super::program::{Change, Program, Variable};
use super::table;
use super::updates::Init;
use crate::array::DType;
use crate::error::Result;
use crate::ops::table::{Attr, Form};
use crate::ops::{Binary, Comparison, Reduce, of_logits, options};

/// Names and initial values of the parameters of a fully connected layer: [`Program::fc_with`].
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
    /// Creates the default: a generated name, [`Init::Xavier`] for the weights and zeros for the bias.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{FcOptions, Program};
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 4], DType::Float32)?;
    /// program.fc_with(&x, 3, &FcOptions::new())?;
    /// assert_eq!(program.parameters()[0].name(), "fc_0.weight");
    /// assert_eq!(program.parameters()[1].name(), "fc_0.bias");
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    options! {
        /// The layer's name: its parameters are `name.weight` and `name.bias`.
        ///
        /// ```
        /// use autograd_core::DType;
        /// use autograd_core::static_graph::{FcOptions, Program};
        ///
        /// let program = Program::new();
        /// let x = program.data("x", [-1, 4], DType::Float32)?;
        /// program.fc_with(&x, 3, &FcOptions::new().name("head"))?;
        /// assert_eq!(program.parameters()[0].name(), "head.weight");
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn name(name: &str).to_owned().into();

        /// The initial value of the weights.
        ///
        /// ```
        /// use autograd_core::DType;
        /// use autograd_core::static_graph::{Executor, FcOptions, Init, Program};
        ///
        /// let program = Program::new();
        /// let x = program.data("x", [-1, 2], DType::Float64)?;
        /// program.fc_with(&x, 1, &FcOptions::new().name("head").weight(Init::Constant(0.5)))?;
        /// let executor = Executor::new();
        /// executor.run(&program.startup(), &[], &[])?;
        /// let weight = executor.parameter("head.weight").unwrap();
        /// assert_eq!(weight.downcast::<f64>().unwrap().to_vec(), [0.5, 0.5]);
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn weight(init: Init);

        /// The initial value of the bias; `None` for no bias.
        ///
        /// ```
        /// use autograd_core::DType;
        /// use autograd_core::static_graph::{FcOptions, Program};
        ///
        /// let program = Program::new();
        /// let x = program.data("x", [-1, 4], DType::Float32)?;
        /// program.fc_with(&x, 3, &FcOptions::new().bias(None))?;
        /// assert_eq!(program.parameters().len(), 1);
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn bias(init: impl Into<Option<Init>>).into();
    }
}

/// # Layers
impl Program {
    /// A layer with new parameters, `x · weight + bias`: from `[n, ..]`, flattened, to `[n, size]`.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::Program;
    ///
    /// let program = Program::new();
    /// let images = program.data("images", [-1, 28, 28], DType::Float32)?;
    /// assert_eq!(program.fc(&images, 10)?.shape(), [None, Some(10)]);
    /// assert_eq!(program.parameters()[0].shape(), [Some(784), Some(10)]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if `x` has fewer than two axes or is not of a float
    /// type, an axis after its first is free, or `size` is 0.
    #[track_caller]
    pub fn fc(&self, x: &Variable, size: usize) -> Result<Variable> {
        self.fc_with(x, size, &FcOptions::new())
    }

    /// [`Program::fc`] with names and initial values of the parameters: from `[n, ..]` to `[n, size]`.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{FcOptions, Init, Program};
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 4], DType::Float32)?;
    /// let options = FcOptions::new().name("head").weight(Init::Constant(0.5)).bias(None);
    /// assert_eq!(program.fc_with(&x, 3, &options)?.shape(), [None, Some(3)]);
    /// assert_eq!(program.parameters()[0].name(), "head.weight");
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Program::fc`]; also if a parameter's name is taken.
    #[track_caller]
    pub fn fc_with(&self, x: &Variable, size: usize, options: &FcOptions) -> Result<Variable> {
        let site = Site::here("fc");
        let mut input = self.own(&site, x)?;
        let (name, form) = (x.name(), x.form());
        let lengths = form.dims.iter().skip(1);
        let width = lengths.copied().try_fold(1, |width, length| Some(width * length?));
        let (true, Some(width)) = (form.dims.len() > 1, width) else {
            return site.refuse(format!("`{name}` must be [n, ..] with only n free, it is {form}"));
        };
        if !form.dtype.is_float() {
            return site.refuse(format!("`{name}` must be of a float type, it is {form}"));
        }
        if size == 0 {
            return site.refuse("`size` must be 1 or more, found 0");
        }
        self.change(&site, |change| {
            if form.dims.len() > 2 {
                let flat = Attr::Dims(smallvec![form.dims[0], Some(width)]);
                input = change.add(&table::RESHAPE, [flat, Attr::NONE_KEPT], &[input])?;
            }
            let name = change.layer_name(&options.name);
            let weight = Form::new(form.dtype, smallvec![Some(width), Some(size)]);
            let weight = change.keep(&format!("{name}.weight"), weight, true, options.weight)?;
            let product = change.add(&table::MATMUL, [], &[input, weight])?;
            let Some(init) = options.bias else { return Ok(product) };
            let bias = Form::new(form.dtype, smallvec![Some(size)]);
            let bias = change.keep(&format!("{name}.bias"), bias, true, init)?;
            change.add(&table::BINARY[Binary::Add as usize], [], &[product, bias])
        })
        .map(|output| self.variable(output))
    }

    /// The mean of all elements, a scalar.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::Program;
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 4], DType::Float32)?;
    /// assert!(program.mean(&x)?.shape().is_empty());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if the variable is of another program or not of a number type.
    #[track_caller]
    pub fn mean(&self, x: &Variable) -> Result<Variable> {
        self.one(&table::REDUCTIONS[Reduce::Mean as usize], over_all(), &[x])
    }

    /// The mean cross entropy of logits `[n, classes]` and `n` classes of type int64, as
    /// [`Tensor::cross_entropy`](crate::Tensor::cross_entropy).
    ///
    /// ```
    /// use autograd_core::static_graph::{Executor, Program};
    /// use autograd_core::{DType, Tensor};
    ///
    /// let program = Program::new();
    /// let logits = program.data("x", [-1, 2], DType::Float64)?;
    /// let classes = program.data("y", [-1], DType::Int64)?;
    /// let loss = program.cross_entropy(&logits, &classes)?;
    /// let (equal, first) = (Tensor::from([[3.0, 3.0]]), Tensor::from([0_i64]));
    /// let run = Executor::new().run(&program, &[("x", &equal), ("y", &first)], &[&loss])?;
    /// assert!((run[0].downcast_ref::<f64>().unwrap().item() - 2_f64.ln()).abs() < 1e-12);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if the shapes or element types do not fit.
    #[track_caller]
    pub fn cross_entropy(&self, logits: &Variable, classes: &Variable) -> Result<Variable> {
        self.one(&table::CROSS_ENTROPY, [], &[logits, classes])
    }

    /// The share of rows of logits `[n, classes]` whose greatest element is at their class, of `n` int64
    /// classes: a float32 scalar without a gradient.
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
        let site = Site::here("accuracy");
        if let Err(why) = of_logits(&[&logits.form(), &classes.form()]) {
            return site.refuse(format!("{why}; given `{logits}`, `{classes}`"));
        }
        let (logits, classes) = (self.own(&site, logits)?, self.own(&site, classes)?);
        self.change(&site, |change| {
            let found = change.add(&table::ARGMAX, [Attr::Int(1)], &[logits])?;
            let equal = &table::COMPARISONS[Comparison::Equal as usize];
            let right = change.add(equal, [], &[found, classes])?;
            let right = change.add(&table::CAST, [Attr::Type(DType::Float32)], &[right])?;
            change.add(&table::REDUCTIONS[Reduce::Mean as usize], over_all(), &[right])
        })
        .map(|output| self.variable(output))
    }

    /// Joins several variables along an axis.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::Program;
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 4], DType::Float32)?;
    /// assert_eq!(program.concat(&[&x, &x], 1)?.shape(), [None, Some(8)]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if there are none, or they differ in another axis.
    #[track_caller]
    pub fn concat(&self, variables: &[&Variable], axis: isize) -> Result<Variable> {
        self.one(&table::CONCAT, [Attr::Int(axis)], variables)
    }

    /// Rows of a new parameter `[rows, width]`, selected by `ids`: from int64 `[..]` to `[.., width]`. At
    /// most one axis of `ids` may be free, unless it is a vector.
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
    /// vectors are not of a float type. An id out of range is an error of the run.
    #[track_caller]
    pub fn embedding(
        &self,
        ids: &Variable,
        rows: usize,
        width: usize,
        dtype: DType,
    ) -> Result<Variable> {
        let site = Site::here("embedding");
        let mut index = self.own(&site, ids)?;
        let form = ids.form();
        if form.dtype != DType::Int64 {
            return site
                .refuse(format!("`{}` must be ids of type int64, it is {form}", ids.name()));
        }
        self.change(&site, |change| {
            let name = format!("{}.weight", change.layer_name(&None));
            let table = Form::new(dtype, smallvec![Some(rows), Some(width)]);
            let table = change.keep(&name, table, true, Init::Normal(0.0, 1.0))?;
            let is_vector = form.dims.len() == 1;
            if !is_vector {
                index = change.add(
                    &table::RESHAPE,
                    [Attr::Dims(smallvec![None]), Attr::NONE_KEPT],
                    &[index],
                )?;
            }
            let picked = change.add(&table::INDEX_SELECT, [Attr::Int(0)], &[table, index])?;
            if is_vector {
                return Ok(picked);
            }
            let dims = form.dims.iter().copied().chain([Some(width)]).collect();
            change.add(&table::RESHAPE, [Attr::Dims(dims), Attr::NONE_KEPT], &[picked])
        })
        .map(|output| self.variable(output))
    }
}

fn over_all() -> [Attr; 2] {
    [Attr::Ints(Vec::new()), Attr::Flag(false)]
}

impl Change<'_> {
    fn layer_name(&mut self, name: &Option<String>) -> String {
        name.clone().unwrap_or_else(|| self.graph.fresh_name(self.site.call, false))
    }
}

/// Options of [`Program::batch_norm_with`]: names and numbers.
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
    /// Creates the default: a generated name, a momentum of 0.1, and 1e-5 for `eps`.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{BatchNormOptions, Program};
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 4], DType::Float32)?;
    /// program.batch_norm_with(&x, &BatchNormOptions::new())?;
    /// assert_eq!(program.parameters()[0].name(), "batch_norm_0.weight");
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    options! {
        /// The layer's name: its kept variables are `name.weight`, `name.bias`, `name.running_mean` and
        /// `name.running_var`.
        ///
        /// ```
        /// use autograd_core::DType;
        /// use autograd_core::static_graph::{BatchNormOptions, Program};
        ///
        /// let program = Program::new();
        /// let x = program.data("x", [-1, 4], DType::Float32)?;
        /// program.batch_norm_with(&x, &BatchNormOptions::new().name("norm"))?;
        /// assert!(program.var("norm.running_mean").is_some());
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn name(name: &str).to_owned().into();

        /// The weight of a new batch in running statistics, in [0, 1]; Paddle's is that of old ones.
        ///
        /// ```
        /// use autograd_core::static_graph::{BatchNormOptions, Executor, Program};
        /// use autograd_core::{DType, Tensor};
        ///
        /// let program = Program::new();
        /// let x = program.data("x", [-1, 1], DType::Float64)?;
        /// program.batch_norm_with(&x, &BatchNormOptions::new().momentum(0.5).name("norm"))?;
        /// let executor = Executor::new();
        /// executor.run(&program.startup(), &[], &[])?;
        /// let batch = Tensor::from([[1.0], [3.0]]);
        /// let run = executor.run(&program, &[("x", &batch)], &[&"norm.running_mean"])?;
        /// // Half of 0, and half of the batch's mean of 2.
        /// assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [1.0]);
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn momentum(momentum: f64);

        /// The number that is added to the variance; above 0.
        ///
        /// ```
        /// use autograd_core::static_graph::{BatchNormOptions, Executor, Program};
        /// use autograd_core::{DType, Tensor};
        ///
        /// let program = Program::new();
        /// let x = program.data("x", [-1, 1], DType::Float64)?;
        /// let y = program.batch_norm_with(&x, &BatchNormOptions::new().eps(3.0))?;
        /// let executor = Executor::new();
        /// executor.run(&program.startup(), &[], &[])?;
        /// let run = executor.run(&program, &[("x", &Tensor::from([[1.0], [3.0]]))], &[&y])?;
        /// // The mean is 2, and the variance 1: the divisor is the root of 1 + 3.
        /// assert_eq!(run[0].downcast_ref::<f64>().unwrap().to_vec(), [-0.5, 0.5]);
        /// # Ok::<(), autograd_core::Error>(())
        /// ```
        pub fn eps(eps: f64);
    }
}

impl Program {
    /// Normalizes each channel of `[n, channels, ..]`, with a learned scale and shift:
    /// `(x - mean) / sqrt(var + eps) * weight + bias` (Ioffe and Szegedy 2015).
    ///
    /// A run uses mean and variance of the batch, and mixes them into running statistics at its end, as
    /// [`nn::BatchNorm2d`](crate::nn::BatchNorm2d); a [test copy](Program::clone_program) uses those and
    /// changes nothing.
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
    /// // One image is enough here: nothing of it is averaged.
    /// let tested = executor.run(&test, &[("x", &arr2(&[[0.2]]))], &[&y.name()])?;
    /// assert_eq!(tested[0].downcast_ref::<f64>().unwrap().to_vec(), [0.0]);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Program`](crate::Error::Program) if `x` has fewer than two axes or is not of a float
    /// type, or its channels are a free axis. Fewer than two numbers per channel are an error of the run.
    #[track_caller]
    pub fn batch_norm(&self, x: &Variable) -> Result<Variable> {
        self.batch_norm_with(x, &BatchNormOptions::new())
    }

    /// [`Program::batch_norm`] with a name and options; the shape stays.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{BatchNormOptions, Program};
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 4], DType::Float32)?;
    /// let options = BatchNormOptions::new().name("bn").momentum(0.01).eps(1e-3);
    /// assert_eq!(program.batch_norm_with(&x, &options)?.shape(), x.shape());
    /// assert!(program.var("bn.running_mean").is_some());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Program::batch_norm`]; also if a name is taken, or an option is out of range.
    #[track_caller]
    pub fn batch_norm_with(&self, x: &Variable, options: &BatchNormOptions) -> Result<Variable> {
        let site = Site::here("batch_norm");
        let input = self.own(&site, x)?;
        let BatchNormOptions { momentum, eps, .. } = *options;
        if !(0.0..=1.0).contains(&momentum) {
            return site.refuse(format!("`momentum` must be in [0, 1], found {momentum}"));
        }
        if !(eps > 0.0 && eps.is_finite()) {
            return site.refuse(format!("`eps` must be above 0, and finite, found {eps}"));
        }
        let form = x.form();
        let channels = match table::channels(&form) {
            Ok(channels) => Form::new(form.dtype, smallvec![Some(channels)]),
            Err(why) => return site.refuse(format!("{why}; given `{}`", x.name())),
        };
        self.change(&site, |change| {
            let name = change.layer_name(&options.name);
            let mut keep = |what: &str, parameter, start| {
                let init = Init::Constant(start);
                change.keep(&format!("{name}.{what}"), channels.clone(), parameter, init)
            };
            let (weight, bias) = (keep("weight", true, 1.0)?, keep("bias", true, 0.0)?);
            let mean = keep("running_mean", false, 0.0)?;
            let var = keep("running_var", false, 1.0)?;
            let name = change.graph.fresh_name(&format!("{name}.out"), true);
            let output = Var::new(name, form, Role::Computed, &site.place);
            let output = change.graph.add_var(output);
            let attrs = [Attr::Number(momentum), Attr::Number(eps), Attr::Flag(true)];
            let kind = Kind::of(&table::BATCH_NORM, attrs);
            let inputs = [input, weight, bias, mean, var];
            let op = Op::new(kind, &inputs, &[output], Phase::Forward, &site.place);
            change.graph.push_op(Op { writes: vec![mean, var], ..op })?;
            Ok(output)
        })
        .map(|output| self.variable(output))
    }
}
