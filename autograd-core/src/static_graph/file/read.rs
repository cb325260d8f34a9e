//! A program from lines of text: believed in nothing.

use super::{Functions, HEAD, table_name};
use crate::static_graph::attr::{self, Param, parse, read_dims, read_form, read_list};
use crate::static_graph::eager::eager_op;
use crate::static_graph::form::{Dims, Form};
use crate::static_graph::ir::{
    Grad, Graph, Kind, Named, Op, OpId, Operator, PHASES, Place, ROLES, Role, Var, VarId,
};
use crate::static_graph::layer::{Given, LAYER, TracedLayer};
use crate::static_graph::py_func::{Foreign, Function, PY_FUNC};
use crate::static_graph::table;

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
    let role = named(ROLES, "role", role)?;
    let form = read_form(dtype, dims)?;
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
    graph.add_var(Var::new(name, form, role, stop_gradient, place));
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
        let ids: Vec<VarId> = read_list(text)?;
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
            let op = bind(name).map(|function| eager_op(function, &given, forms));
            // Reported together with the other functions that are missing.
            op.unwrap_or_else(|| Operator::new(&table::MATMUL, Vec::new())).into()
        }
        ["py_func", ..] => match read_function(&parts, forms, inputs.len(), &mut bind)? {
            Some(foreign) => Operator::of_user(&PY_FUNC, foreign).into(),
            // Reported together with the other functions that are missing.
            None => Operator::new(&table::MATMUL, Vec::new()).into(),
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
                results: read_list(results)?,
                backward: graph(backward)?,
                given: given.collect::<Result<_, String>>()?,
                found: read_dims(found)?.into_vec(),
            };
            layer.check(inputs.len())?;
            Operator::of_user(&LAYER, layer).into()
        }
        ["grad", of, name, wants, seeds] => {
            let of: OpId = parse(of)?;
            let Some(forward) = graph.ops.get(of) else { return Err(format!("no operator {of}")) };
            let (wants, seeds): (Vec<usize>, Vec<usize>) = (read_list(wants)?, read_list(seeds)?);
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
            Kind::Grad(Grad { of, name: unquoted(name).into(), wants, seeds, forms })
        }
        _ => read_table(&parts)?.into(),
    };
    let phase = named(PHASES, "phase", phase)?;
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
) -> Result<Option<Foreign>, String> {
    let ["py_func", name, args, picks, results, skipped, gradient, rest @ ..] = parts else {
        return Err("has not the parts of a function".to_owned());
    };
    let function = bind(name);
    let backward: Vec<Option<Function>> = rest.iter().map(|name| bind(name)).collect();
    let (args, picks): (Dims, Vec<usize>) = (read_dims(args)?, read_list(picks)?);
    let results: usize = parse(results)?;
    let skipped: Vec<usize> = read_list(skipped)?;
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
    Ok(Some(Foreign {
        function,
        args: args.into_vec(),
        picks,
        results,
        outputs,
        backward: backward.into(),
        skipped: skipped.into_iter().map(|s| s != 0).collect(),
        is_gradient: parse(gradient)?,
    }))
}

/// An operator of the table.
fn read_table(parts: &[&str]) -> Result<Operator, String> {
    let unknown = || format!("no operator `{}`", parts.join(" "));
    // Those of a family have its name first.
    let of_family = |parts: &[&str]| table::find(parts.first()?, parts.get(1)?);
    let alone = |parts: &[&str]| table::find("", table_name(parts.first()?));
    let found = of_family(parts).map(|def| (def, 2)).or_else(|| Some((alone(parts)?, 1)));
    let (def, taken) = found.ok_or_else(unknown)?;
    let mut fields = parts[taken..].iter().copied();
    let read = |(_, kind): &Param| attr::read(*kind, &mut fields);
    let attrs = def.attrs.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    match fields.next() {
        Some(_) => Err(unknown()),
        None => Ok(Operator::new(def, attrs)),
    }
}

/// The value of this name.
fn named<T: Copy>(all: &Named<T>, what: &str, name: &str) -> Result<T, String> {
    let found = all.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| format!("no {what} `{name}`"))
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
