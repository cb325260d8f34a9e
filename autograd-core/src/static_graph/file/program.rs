//! `Program::save` and `Program::load`, and the functions that are given to it.

use std::path::Path;

use super::{Functions, check_names, read, write};
use crate::error::Result;
use crate::file::{failed, malformed};
use crate::safetensors::SafeTensors;
use crate::static_graph::executor::Executor;
use crate::static_graph::ir::{Kind, Site};
use crate::static_graph::program::Program;
use crate::static_graph::py_func::{Function, PyFunc, PyFuncBlock};

const KEY: &str = "autograd.program";

impl Functions {
    /// Creates an empty set of functions.
    ///
    /// ```
    /// use autograd_core::static_graph::{Executor, Functions, Program};
    ///
    /// let path = std::env::temp_dir().join(format!("empty-{}", std::process::id()));
    /// Program::new().save(&path, &Executor::new())?;
    /// let loaded = Program::load(&path, &Functions::new(), &Executor::new())?;
    /// # std::fs::remove_file(&path).ok();
    /// assert_eq!(loaded.current_block().op_count(), 0);
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a function under the name that the program's text shows. By default a closure has the name of the
    /// function around it, a `#[py_layer]` op that of the op. A name given twice is an error of the load.
    ///
    /// ```
    /// use autograd_core::static_graph::{Executor, Functions, Program};
    /// use autograd_core::{DType, Tensor};
    ///
    /// fn double(x: &Tensor<f64>) -> Tensor<f64> {
    ///     x * 2.0
    /// }
    ///
    /// let program = Program::new();
    /// program.eager(double).x(&program.data("x", [2], DType::Float64)?).call()?;
    /// let path = std::env::temp_dir().join(format!("double-{}", std::process::id()));
    /// program.save(&path, &Executor::new())?;
    /// let error = Program::load(&path, &Functions::new(), &Executor::new()).unwrap_err();
    /// assert!(error.to_string().contains("these functions were not given: double"));
    /// let functions = Functions::new().with("double", double);
    /// let loaded = Program::load(&path, &functions, &Executor::new())?;
    /// # std::fs::remove_file(&path).ok();
    /// assert_eq!(loaded.to_string(), program.to_string());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// An op for several element types is added for one of them: a formula as `Swish::apply::<f32>`, an op of
    /// tensors as `Square::<f32>::apply`. In a trace only the formula is a function; the other op is saved as the
    /// ops that it calls.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::prelude::*;
    /// use autograd_core::static_graph::{Executor, Functions, Program};
    ///
    /// #[py_layer(elementwise)]
    /// impl Swish {
    ///     fn forward(x: Real) -> Real {
    ///         x * x.sigmoid()
    ///     }
    /// }
    ///
    /// #[py_layer]
    /// impl<T: Float> Square<T> {
    ///     type Saved = Tensor<T>;
    ///     fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>) -> Tensor<T> {
    ///         ctx.save_for_backward(x);
    ///         x * x
    ///     }
    ///     fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
    ///         dy * ctx.saved_tensor() * 2.0
    ///     }
    /// }
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1], DType::Float32)?;
    /// let traced = program.trace(|x: &Tensor<f32>| Swish::apply(&Square::apply(x))).x(&x).call()?;
    /// let path = std::env::temp_dir().join(format!("generic-{}", std::process::id()));
    /// program.save(&path, &Executor::new())?;
    /// let functions = Functions::new().with("Swish", Swish::apply::<f32>);
    /// assert!(Program::load(&path, &functions, &Executor::new()).is_ok());
    ///
    /// program.py_layer(Square::<f32>::apply).x(&traced).call()?;
    /// program.save(&path, &Executor::new())?;
    /// assert!(Program::load(&path, &functions, &Executor::new()).is_err());
    /// let functions = functions.with("Square", Square::<f32>::apply);
    /// let loaded = Program::load(&path, &functions, &Executor::new())?;
    /// # std::fs::remove_file(&path).ok();
    /// assert_eq!(loaded.to_string(), program.to_string());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn with<F, Marker, const M: usize, const N: usize>(mut self, name: &str, func: F) -> Self
    where
        F: PyFunc<Marker, M, N>,
    {
        self.add(Function { name: name.into(), ..Function::new(func) });
        self
    }

    /// Adds both functions of a block of [`py_func`](macro@crate::static_graph::py_func): `.with_block::<Tanh>()`.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{Executor, Functions, Program, py_func};
    /// use ndarray::{ArrayD, ArrayViewD};
    ///
    /// #[py_func]
    /// impl Triple {
    ///     fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {
    ///         3.0 * &x
    ///     }
    /// }
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1], DType::Float64)?;
    /// Triple::call(&x, &program.current_block().create_var("y", x.dtype(), x.shape())?)?;
    /// let path = std::env::temp_dir().join(format!("triple-{}", std::process::id()));
    /// program.save(&path, &Executor::new())?;
    /// let functions = Functions::new().with_block::<Triple>();
    /// let loaded = Program::load(&path, &functions, &Executor::new())?;
    /// # std::fs::remove_file(&path).ok();
    /// assert!(loaded.to_string().ends_with("y: float64 [-1] = py_func `Triple`(x)\n"));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn with_block<B: PyFuncBlock>(mut self) -> Self {
        B::build(&Program::new()).functions().for_each(|function| self.add(function));
        self
    }
}

#[cfg_attr(docsrs, doc(cfg(feature = "safetensors")))]
impl Program {
    /// Saves the program and the values that an executor keeps for it, in a [safetensors](crate::safetensors)
    /// file, which is replaced as a whole or not at all.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{Executor, Functions, Program};
    /// use ndarray::{ArrayD, ArrayViewD, arr2};
    ///
    /// fn double(x: ArrayViewD<f32>) -> ArrayD<f32> {
    ///     2.0 * &x
    /// }
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1, 2], DType::Float32)?;
    /// let hidden = program.fc(&x, 3)?;
    /// let out = program.current_block().create_var("out", hidden.dtype(), hidden.shape())?;
    /// program.py_func(double).x(&hidden).out(&out).call()?;
    /// let executor = Executor::new();
    /// executor.run(&program.startup(), &[], &[])?;
    ///
    /// let path = std::env::temp_dir().join(format!("program-{}", std::process::id()));
    /// program.save(&path, &executor)?;
    /// let again = Executor::new();
    /// let loaded = Program::load(&path, &Functions::new().with("double", double), &again)?;
    /// # std::fs::remove_file(&path).ok();
    ///
    /// let input = arr2(&[[1.0_f32, 2.0]]);
    /// let before = executor.run(&program, &[("x", &input)], &[&out])?;
    /// let after = again.run(&loaded, &[("x", &input)], &[&"out"])?;
    /// assert_eq!(before[0].to_string(), after[0].to_string());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::File`](crate::Error::File) if the file cannot be written or two different functions have
    /// one name, [`Error::Program`](crate::Error::Program) for a startup program, which has nothing to save.
    pub fn save(&self, path: impl AsRef<Path>, executor: &Executor) -> Result<()> {
        let path = path.as_ref();
        let mut file = SafeTensors::new();
        let graph = self.graph().clone();
        for var in graph.vars.iter().filter(|var| var.is_kept()) {
            if let Some(value) = executor.parameter(&var.name) {
                file.insert(var.name.clone(), value);
            }
        }
        if let Some(op) = graph.ops.iter().find(|op| matches!(op.kind, Kind::Init(..))) {
            let name = &graph.vars[op.writes[0]].name;
            let why = format!(
                "it sets `{name}`: a startup program is not saved; save the program that it starts"
            );
            return Err(Site { call: "save", place: op.place.clone() }.wrong(why));
        }
        let text = check_names(&graph).and_then(|()| write(&graph));
        let text = text.map_err(|why| failed("save", Some(path), &malformed(why)))?;
        file.metadata.insert(KEY.to_owned(), text);
        file.save(path)
    }

    /// Loads a program, and sets the saved values in the executor. Changes nothing if an error occurs.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::{Executor, Functions, Program, py_func};
    /// use ndarray::{ArrayD, ArrayViewD};
    ///
    /// #[py_func]
    /// impl Double {
    ///     fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {
    ///         2.0 * &x
    ///     }
    ///     fn backward(dy: ArrayViewD<f64>) -> ArrayD<f64> {
    ///         2.0 * &dy
    ///     }
    /// }
    ///
    /// let program = Program::new();
    /// let x = program.data("x", [-1], DType::Float64)?;
    /// Double::call(&x, &program.current_block().create_var("y", x.dtype(), x.shape())?)?;
    /// let path = std::env::temp_dir().join(format!("blocks-{}", std::process::id()));
    /// program.save(&path, &Executor::new())?;
    ///
    /// let functions = Functions::new().with_block::<Double>();
    /// let loaded = Program::load(&path, &functions, &Executor::new())?;
    /// # std::fs::remove_file(&path).ok();
    /// assert_eq!(loaded.to_string(), program.to_string());
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::File`](crate::Error::File) if the file cannot be read, does not contain a valid program, or
    /// names a function that is not given or has another number of parameters.
    pub fn load(
        path: impl AsRef<Path>,
        functions: &Functions,
        executor: &Executor,
    ) -> Result<Program> {
        let path = path.as_ref();
        let file = SafeTensors::load(path)?;
        let wrong = |why: String| failed("load", Some(path), &malformed(why));
        let Some(text) = file.metadata.get(KEY) else {
            return Err(wrong("it holds no program".to_owned()));
        };
        let graph = read(text, functions).map_err(wrong)?;
        for (name, value) in &file.tensors {
            let var = graph.find(name).map(|id| &graph.vars[id]);
            let Some(var) = var.filter(|var| var.is_kept()) else {
                return Err(wrong(format!("the program keeps no `{name}`")));
            };
            if let Some(misfit) = var.form.misfit(value.dtype(), value.shape()) {
                return Err(wrong(format!("`{name}` {misfit}")));
            }
        }
        for (name, value) in &file.tensors {
            executor.set_parameter(name, value);
        }
        let program = Program::new();
        *program.graph() = graph;
        Ok(program)
    }
}
