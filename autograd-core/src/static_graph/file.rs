//! Programs in files: the program as lines of text in a safetensors file, beside what the executor
//! keeps for it. Functions are bound by name again when it is loaded.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use super::eager::Eager;
use super::executor::Executor;
use super::ir::{Dims, Form, Graph, Op, OpId, Phase, Place, Role, Var, VarId, wrong};
use super::kind::{Kind, Reduction};
use super::optim::Update;
use super::program::Program;
use super::py_func::{Foreign, Function, PyFunc};
use crate::array::DType;
use crate::error::Result;
use crate::safetensors::SafeTensors;

/// What the notes of the file call the program.
const KEY: &str = "autograd.program";
/// What the first line says.
const HEAD: &str = "autograd-core program 1";

/// Functions by name, for a program that is loaded: those of its py_funcs, their backward
/// functions, `#[py_layer]` ops and eager closures.
#[derive(Clone, Debug, Default)]
pub struct Functions(HashMap<String, Function>);

impl Functions {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a function under the name that the program's text shows.
    pub fn with<F, Marker, const M: usize, const N: usize>(mut self, name: &str, func: F) -> Self
    where
        F: PyFunc<Marker, M, N>,
    {
        let function = Function { name: name.into(), ..Function::new(func) };
        self.0.insert(name.to_owned(), function);
        self
    }
}

impl Program {
    /// Saves the program with what an executor keeps for it: parameters and an optimizer's state.
    /// The file is a [safetensors](crate::safetensors) file; it is replaced whole or not at all.
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
    /// [`Error::File`](crate::Error::File) if the file cannot be written,
    /// [`Error::Program`](crate::Error::Program) for a startup program, which has nothing to save.
    pub fn save(&self, path: impl AsRef<Path>, executor: &Executor) -> Result<()> {
        let path = path.as_ref();
        let mut file = SafeTensors::new();
        let graph = self.graph().clone();
        for var in graph.vars.iter().filter(|var| matches!(var.role, Role::Kept { .. })) {
            if let Some(value) = executor.parameter(&var.name) {
                file.insert(var.name.clone(), value);
            }
        }
        let text = write(&graph).map_err(|why| wrong("save", &place_of(path), why))?;
        file.metadata.insert(KEY.to_owned(), text);
        file.save(path)
    }

    /// Loads a program, and gives the executor what was kept for it. Nothing is changed where this
    /// fails.
    ///
    /// # Errors
    ///
    /// [`Error::File`](crate::Error::File) if the file cannot be read,
    /// [`Error::Program`](crate::Error::Program) if it holds no program, a function that it names
    /// is not given or has another number of parameters, or a rule of programs is broken.
    pub fn load(
        path: impl AsRef<Path>,
        functions: &Functions,
        executor: &Executor,
    ) -> Result<Program> {
        let path = path.as_ref();
        let file = SafeTensors::load(path)?;
        let place = place_of(path);
        let Some(text) = file.metadata.get(KEY) else {
            return Err(wrong("load", &place, "the file holds no program"));
        };
        let graph = read(text, functions).map_err(|why| wrong("load", &place, why))?;
        graph.verify()?;
        for (name, value) in &file.tensors {
            let var = graph.find(name).map(|id| &graph.vars[id]);
            let Some(var) = var.filter(|var| matches!(var.role, Role::Kept { .. })) else {
                return Err(wrong("load", &place, format!("the program keeps no `{name}`")));
            };
            if let Some(misfit) = var.form.misfit(value.dtype(), value.shape()) {
                return Err(wrong("load", &place, format!("`{name}` {misfit}")));
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

fn place_of(path: &Path) -> Place {
    Place::Loaded(path.display().to_string().into())
}

/// A line a variable and a line an operator, with tabs between fields.
fn write(graph: &Graph) -> Result<String, String> {
    let mut text = format!("{HEAD}\n");
    for var in &graph.vars {
        let role = match var.role {
            Role::Data => "data",
            Role::Kept { parameter: true } => "parameter",
            Role::Kept { parameter: false } => "state",
            Role::Computed => "computed",
        };
        let (name, place) = (quoted(&var.name), quoted(&var.place.to_string()));
        let stop = if var.stop_gradient { "stop" } else { "flow" };
        let (dtype, dims) = (var.form.dtype, dims_text(&var.form.dims));
        let _ = writeln!(text, "var\t{name}\t{dtype}\t{dims}\t{role}\t{stop}\t{place}");
    }
    for op in &graph.ops {
        let phase = match op.phase {
            Phase::Forward => "forward",
            Phase::Backward => "backward",
            Phase::Update => "update",
        };
        let (kind, place) = (kind_text(&op.kind)?, quoted(&op.place.to_string()));
        let [inputs, outputs, writes] =
            [&op.inputs, &op.outputs, &op.writes].map(|ids| numbers(ids));
        let _ = writeln!(text, "op\t{kind}\t{inputs}\t{outputs}\t{writes}\t{phase}\t{place}");
    }
    Ok(text)
}

fn numbers(ids: &[usize]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn dims_text(dims: &[Option<usize>]) -> String {
    let each = dims.iter().map(|dim| dim.map_or("-1".to_owned(), |n| n.to_string()));
    each.collect::<Vec<_>>().join(",")
}

fn signed(numbers: &[isize]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn optional(args: &[Option<usize>]) -> String {
    dims_text(args)
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace(';', "\\s")
}

fn unquoted(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('s') => ';',
                Some(other) => other,
                None => '\\',
            },
            c => c,
        });
    }
    out
}

/// The kind and its attributes, with semicolons between them.
fn kind_text(kind: &Kind) -> Result<String, String> {
    Ok(match kind {
        Kind::Unary(op) => format!("unary;{}", op.name()),
        Kind::Binary(op) => format!("binary;{}", op.name()),
        Kind::Scalar { op, scalar, swapped } => {
            format!("scalar;{};{scalar:?};{swapped}", op.name())
        }
        Kind::Matmul => "matmul".to_owned(),
        Kind::Reduce { op, axes, keep } => format!("reduce;{};{};{keep}", op.name(), signed(axes)),
        Kind::Softmax { axis } => format!("softmax;{axis}"),
        Kind::LogSoftmax { axis } => format!("log_softmax;{axis}"),
        Kind::CrossEntropy => "cross_entropy".to_owned(),
        Kind::Reshape(dims) => format!("reshape;{}", dims_text(dims)),
        Kind::Permute(order) => format!("permute;{}", signed(order)),
        Kind::Concat { axis } => format!("concat;{axis}"),
        Kind::Cast(dtype) => format!("cast;{dtype}"),
        Kind::Dropout { p, training } => format!("dropout;{p:?};{training}"),
        Kind::Sum => "sum".to_owned(),
        Kind::FillLike(value) => format!("fill_like;{value:?}"),
        Kind::Init { .. } => {
            return Err(
                "a startup program is not saved; save the program that it starts".to_owned()
            );
        }
        Kind::Update(update) => {
            let options = update.options().into_iter().map(|(_, value)| format!(";{value:?}"));
            format!("{}{}", update.name(), options.collect::<String>())
        }
        Kind::PyFunc(function) => {
            let Foreign { args, picks, results, skipped, gradient, backward, .. } = &**function;
            let skipped = skipped.iter().map(|&s| usize::from(s)).collect::<Vec<_>>();
            let mut text = format!(
                "py_func;{};{};{};{results};{};{gradient}",
                quoted(function.name()),
                optional(args),
                numbers(picks),
                numbers(&skipped),
            );
            backward.iter().for_each(|next| {
                let _ = write!(text, ";{}", quoted(&next.name));
            });
            text
        }
        Kind::Eager(eager) => format!("eager;{}", quoted(eager.name())),
        Kind::Grad { of, name, wants, seeds, .. } => {
            format!("grad;{of};{};{};{}", quoted(name), numbers(wants), numbers(seeds))
        }
    })
}

fn read(text: &str, functions: &Functions) -> Result<Graph, String> {
    let mut lines = text.lines().enumerate();
    if lines.next().is_none_or(|(_, line)| line != HEAD) {
        return Err(format!("the program does not start with `{HEAD}`"));
    }
    let mut graph = Graph::default();
    let mut missing = Vec::new();
    for (number, line) in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        let done = match &fields[..] {
            ["var", name, dtype, dims, role, stop, place] => {
                read_var(&mut graph, [name, dtype, dims, role, stop, place])
            }
            ["op", kind, inputs, outputs, writes, phase, place] => read_op(
                &mut graph,
                [kind, inputs, outputs, writes, phase, place],
                functions,
                &mut missing,
            ),
            _ => Err("is neither a variable nor an operator".to_owned()),
        };
        done.map_err(|why| format!("line {} of the program: {why}", number + 1))?;
    }
    if missing.is_empty() {
        return Ok(graph);
    }
    missing.sort();
    missing.dedup();
    Err(format!("these functions were not given: {}", missing.join(", ")))
}

fn read_var(graph: &mut Graph, fields: [&str; 6]) -> Result<(), String> {
    let [name, dtype, dims, role, stop, place] = fields;
    let name = unquoted(name);
    if graph.find(&name).is_some() {
        return Err(format!("a second variable `{name}`"));
    }
    let role = match role {
        "data" => Role::Data,
        "parameter" => Role::Kept { parameter: true },
        "state" => Role::Kept { parameter: false },
        "computed" => Role::Computed,
        other => return Err(format!("no role `{other}`")),
    };
    let form = Form::new(read_dtype(dtype)?, read_dims(dims)?);
    let place = Place::Loaded(unquoted(place).into());
    let stop_gradient = stop == "stop";
    graph.add_var(Var { name, form, role, stop_gradient, producer: None, writer: None, place });
    Ok(())
}

fn read_op(
    graph: &mut Graph,
    fields: [&str; 6],
    functions: &Functions,
    missing: &mut Vec<String>,
) -> Result<(), String> {
    let [kind, inputs, outputs, writes, phase, place] = fields;
    let ids = |text: &str| -> Result<Vec<VarId>, String> {
        let ids: Vec<VarId> = list(text)?;
        match ids.iter().find(|&&id| id >= graph.vars.len()) {
            Some(id) => Err(format!("there is no variable {id}")),
            None => Ok(ids),
        }
    };
    let (inputs, outputs, writes) = (ids(inputs)?, ids(outputs)?, ids(writes)?);
    let forms: Vec<Form> = outputs.iter().map(|&id| graph.vars[id].form.clone()).collect();
    let parts: Vec<&str> = kind.split(';').collect();
    let mut bind = |name: &str| -> Option<Function> {
        let name = unquoted(name);
        let found = functions.0.get(&name).cloned();
        if found.is_none() {
            missing.push(name);
        }
        found
    };
    let kind = match &parts[..] {
        ["py_func" | "eager", ..] => match read_function(&parts, forms, inputs.len(), &mut bind)? {
            Some(kind) => kind,
            // Told together with the other functions that are missing.
            None => Kind::Matmul,
        },
        ["grad", of, name, wants, seeds] => {
            let of: OpId = parse(of)?;
            let Some(forward) = graph.ops.get(of) else { return Err(format!("no operator {of}")) };
            let (wants, seeds): (Vec<usize>, Vec<usize>) = (list(wants)?, list(seeds)?);
            let fits = wants.iter().all(|&at| at < forward.inputs.len())
                && seeds.iter().all(|&at| at < forward.outputs.len())
                && inputs.len() == forward.inputs.len() + forward.outputs.len() + seeds.len()
                && inputs.starts_with(&forward.inputs);
            if !fits {
                return Err(format!("is no gradient of operator {of}"));
            }
            Kind::Grad { of, name: unquoted(name).into(), wants, seeds, forms }
        }
        _ => read_kind(&parts)?,
    };
    let phase = match phase {
        "forward" => Phase::Forward,
        "backward" => Phase::Backward,
        "update" => Phase::Update,
        other => return Err(format!("no phase `{other}`")),
    };
    let place = Place::Loaded(unquoted(place).into());
    let op = Op { kind, inputs, outputs, writes, phase, place };
    if missing.is_empty() {
        return graph.push_op(op).map(|_| ()).map_err(|error| error.to_string());
    }
    // The rest is read for the names of functions only.
    graph.ops.push(op);
    Ok(())
}

fn read_function(
    parts: &[&str],
    outputs: Vec<Form>,
    inputs: usize,
    bind: &mut impl FnMut(&str) -> Option<Function>,
) -> Result<Option<Kind>, String> {
    if let ["eager", name] = parts {
        let function = bind(name);
        return Ok(function.map(|function| Kind::Eager(Arc::new(Eager::new(function, outputs)))));
    }
    let ["py_func", name, args, picks, results, skipped, gradient, rest @ ..] = parts else {
        return Err("has not the parts of a function".to_owned());
    };
    let function = bind(name);
    let backward: Vec<Option<Function>> = rest.iter().map(|name| bind(name)).collect();
    let (args, picks): (Dims, Vec<usize>) = (read_dims(args)?, list(picks)?);
    let results: usize = parse(results)?;
    let skipped: Vec<usize> = list(skipped)?;
    let fits = args.iter().flatten().all(|&at| at < inputs)
        && picks.iter().all(|&at| at < results)
        && picks.len() == outputs.len();
    if !fits {
        return Err("its arguments or results do not fit".to_owned());
    }
    let (Some(function), Some(backward)) =
        (function, backward.into_iter().collect::<Option<Vec<_>>>())
    else {
        return Ok(None);
    };
    if function.signature.params.as_ref().is_some_and(|params| params.len() != args.len()) {
        return Err(format!("`{}` takes another number of values", function.name));
    }
    Ok(Some(Kind::PyFunc(Arc::new(Foreign {
        function,
        args: args.into_vec(),
        picks,
        results,
        outputs,
        backward: backward.into(),
        skipped: skipped.into_iter().map(|s| s != 0).collect(),
        gradient: parse(gradient)?,
    }))))
}

fn read_kind(parts: &[&str]) -> Result<Kind, String> {
    let unary = |name: &str| {
        let found = Kind::UNARY.iter().find(|op| op.name() == name);
        found.copied().ok_or_else(|| format!("no function `{name}`"))
    };
    let binary = |name: &str| {
        let found = Kind::BINARY.iter().find(|op| op.name() == name);
        found.copied().ok_or_else(|| format!("no function `{name}`"))
    };
    Ok(match parts {
        ["unary", op] => Kind::Unary(unary(op)?),
        ["binary", op] => Kind::Binary(binary(op)?),
        ["scalar", op, scalar, swapped] => {
            Kind::Scalar { op: binary(op)?, scalar: parse(scalar)?, swapped: parse(swapped)? }
        }
        ["matmul"] => Kind::Matmul,
        ["reduce", op, axes, keep] => {
            let found = Reduction::ALL.into_iter().find(|known| known.name() == *op);
            let op = found.ok_or_else(|| format!("no reduction `{op}`"))?;
            Kind::Reduce { op, axes: list(axes)?, keep: parse(keep)? }
        }
        ["softmax", axis] => Kind::Softmax { axis: parse(axis)? },
        ["log_softmax", axis] => Kind::LogSoftmax { axis: parse(axis)? },
        ["cross_entropy"] => Kind::CrossEntropy,
        ["reshape", dims] => Kind::Reshape(read_dims(dims)?),
        ["permute", order] => Kind::Permute(list(order)?),
        ["concat", axis] => Kind::Concat { axis: parse(axis)? },
        ["cast", dtype] => Kind::Cast(read_dtype(dtype)?),
        ["dropout", p, training] => Kind::Dropout { p: parse(p)?, training: parse(training)? },
        ["sum"] => Kind::Sum,
        ["fill_like", value] => Kind::FillLike(parse(value)?),
        [name @ ("sgd" | "adam" | "adamw"), options @ ..] => {
            let options: Vec<f64> = options.iter().copied().map(parse).collect::<Result<_, _>>()?;
            let update = Update::named(name, &options);
            Kind::Update(update.ok_or_else(|| format!("{name} has other options"))?)
        }
        _ => return Err(format!("no operator `{}`", parts.join(" "))),
    })
}

fn parse<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("`{text}` is not what stands here"))
}

fn list<N: std::str::FromStr>(text: &str) -> Result<Vec<N>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    text.split(',').map(parse).collect()
}

fn read_dims(text: &str) -> Result<Dims, String> {
    let lengths: Vec<i64> = list(text)?;
    let dim = |n: i64| match n {
        -1 => Ok(None),
        n => usize::try_from(n).map(Some).map_err(|_| format!("{n} is no length")),
    };
    lengths.into_iter().map(dim).collect()
}

fn read_dtype(name: &str) -> Result<DType, String> {
    let known =
        [DType::Float32, DType::Float64, DType::Int32, DType::Int64, DType::UInt8, DType::Bool];
    known.into_iter().find(|dtype| dtype.name() == name).ok_or_else(|| format!("no type `{name}`"))
}
