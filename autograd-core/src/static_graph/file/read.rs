//! A program from lines of text: believed in nothing.

use std::sync::Arc;

use super::{Functions, HEAD};
use crate::array::DType;
use crate::graph::{AnyTensor, Element, Tensor};
use crate::ops::{Conv2dOptions, PoolOptions};
use crate::static_graph::formula::eager_kind;
use crate::static_graph::ir::{Dims, Form, Graph, Op, OpId, Phase, Place, Role, Var, VarId};
use crate::static_graph::kind::{Kind, Pool, Reduction};
use crate::static_graph::layer::{Given, TracedLayer};
use crate::static_graph::optim::Rule;
use crate::static_graph::py_func::{Foreign, Function};

pub(super) fn read(text: &str, functions: &Functions) -> Result<Graph, String> {
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
    if name.is_empty() {
        return Err("a variable needs a name".to_owned());
    }
    let trained = role == Role::Kept { parameter: true };
    if matches!(role, Role::Kept { .. }) && form.dims.contains(&None)
        || trained && !form.dtype.is_float()
    {
        return Err(format!("`{name}` cannot be kept: {form}"));
    }
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
        ["eager", name] => {
            let given: Vec<Form> = inputs.iter().map(|&id| graph.vars[id].form.clone()).collect();
            let kind = bind(name).map(|function| eager_kind(function, &given, forms));
            // Told together with the other functions that are missing.
            kind.unwrap_or(Kind::Matmul)
        }
        ["py_func", ..] => match read_function(&parts, forms, inputs.len(), &mut bind)? {
            Some(kind) => kind,
            // Told together with the other functions that are missing.
            None => Kind::Matmul,
        },
        ["layer", name, results, given, found, forward, backward] => {
            let graph = |text: &str| read(&unquoted(text), functions);
            let given = given.split(',').filter(|part| !part.is_empty()).map(|part| {
                let (kind, at) = part.split_at(1);
                Ok(match kind {
                    "i" => Given::Input(parse(at)?),
                    "r" => Given::Result(parse(at)?),
                    "g" => Given::Grad(parse(at)?),
                    _ => return Err(format!("`{part}` is nothing that a backward reads")),
                })
            });
            let layer = TracedLayer {
                name: unquoted(name).into(),
                forward: graph(forward)?,
                results: list(results)?,
                backward: graph(backward)?,
                given: given.collect::<Result<_, String>>()?,
                found: read_dims(found)?.into_vec(),
            };
            layer.check(inputs.len())?;
            Kind::Layer(Arc::new(layer))
        }
        ["grad", of, name, wants, seeds] => {
            let of: OpId = parse(of)?;
            let Some(forward) = graph.ops.get(of) else { return Err(format!("no operator {of}")) };
            let (wants, seeds): (Vec<usize>, Vec<usize>) = (list(wants)?, list(seeds)?);
            let (known, given) = (forward.inputs.len(), forward.outputs.len());
            let float = |&id: &VarId| graph.vars[id].form.dtype.is_float();
            let fits = wants.iter().all(|&at| at < known && float(&forward.inputs[at]))
                && seeds.iter().all(|&at| at < given && float(&forward.outputs[at]))
                && !seeds.is_empty()
                && wants.len() == outputs.len()
                && inputs.len() == known + given + seeds.len()
                && inputs[..known] == forward.inputs
                && inputs[known..known + given] == forward.outputs
                && !forward.kind.writes();
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
        ["normalize", axes, eps] => Kind::Normalize { axes: list(axes)?, eps: parse(eps)? },
        ["cross_entropy"] => Kind::CrossEntropy,
        ["reshape", dims] => Kind::Reshape(read_dims(dims)?),
        ["permute", order] => Kind::Permute(list(order)?),
        ["concat", axis] => Kind::Concat { axis: parse(axis)? },
        ["cast", dtype] => Kind::Cast(read_dtype(dtype)?),
        ["broadcast_to", dims] => Kind::BroadcastTo(read_dims(dims)?),
        ["slice", axis, start, end, step] => Kind::Slice {
            axis: parse(axis)?,
            start: parse(start)?,
            end: read_dims(end)?.first().copied().flatten(),
            step: parse(step)?,
        },
        ["argmax", axis] => Kind::ArgMax { axis: parse(axis)? },
        ["where"] => Kind::Where,
        ["compare", name] => {
            let found = Kind::COMPARISONS.iter().find(|known| *known == name);
            Kind::Compare(found.ok_or_else(|| format!("no comparison `{name}`"))?)
        }
        ["index_select", axis] => Kind::IndexSelect { axis: parse(axis)? },
        ["gather", axis] => Kind::Gather { axis: parse(axis)? },
        ["conv2d", parts] => Kind::Conv2d(Conv2dOptions::of_parts(pairs(parts)?)),
        ["max_pool2d", parts] => Kind::Pool2d(Pool::Max, PoolOptions::of_parts(pairs(parts)?)),
        ["avg_pool2d", parts] => Kind::Pool2d(Pool::Average, PoolOptions::of_parts(pairs(parts)?)),
        ["constant", dtype, dims, bits] => {
            Kind::Constant(constant(read_dtype(dtype)?, dims, bits)?)
        }
        ["dropout", p, training] => Kind::Dropout { p: parse(p)?, training: parse(training)? },
        ["batch_norm", momentum, eps, training] => Kind::BatchNorm {
            momentum: parse(momentum)?,
            eps: parse(eps)?,
            training: parse(training)?,
        },
        ["sum"] => Kind::Sum,
        ["fill_like", value] => Kind::FillLike(parse(value)?),
        [name @ ("sgd" | "adam" | "adamw"), options @ ..] => {
            let options: Vec<f64> = options.iter().copied().map(parse).collect::<Result<_, _>>()?;
            let update = Rule::named(name, &options);
            Kind::Update(update.ok_or_else(|| format!("{name} has other options"))?)
        }
        _ => return Err(format!("no operator `{}`", parts.join(" "))),
    })
}

fn constant(dtype: DType, dims: &str, values: &str) -> Result<AnyTensor, String> {
    fn typed<T: Element + std::str::FromStr>(
        shape: Vec<usize>,
        values: &str,
    ) -> Result<AnyTensor, String> {
        let values: Vec<T> = list(values)?;
        let tensor = Tensor::from(values).try_reshape(shape);
        tensor.map(AnyTensor::from).map_err(|error| error.to_string())
    }
    let shape: Vec<usize> = list(dims)?;
    match dtype {
        DType::Float32 => typed::<f32>(shape, values),
        DType::Float64 => typed::<f64>(shape, values),
        DType::Int32 => typed::<i32>(shape, values),
        DType::Int64 => typed::<i64>(shape, values),
        DType::UInt8 => typed::<u8>(shape, values),
        DType::Bool => typed::<bool>(shape, values),
    }
}

/// Numbers two by two.
fn pairs<const N: usize>(text: &str) -> Result<[[usize; 2]; N], String> {
    let numbers: Vec<usize> = list(text)?;
    let pairs: Vec<[usize; 2]> = numbers.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
    pairs.try_into().map_err(|_| format!("`{text}` is not {} numbers", 2 * N))
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
