//! Programs in files: the program as lines of text in a safetensors file, with the executor's values.
//! Functions are bound by name when the program is loaded. All file contents are checked.

#[cfg(feature = "safetensors")]
mod program;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use super::ir::{
    BackwardInput, Eager, Grad, Graph, Kind, Named, Op, OpId, PHASES, PyFuncOp, ROLES,
    TracedCustomOp, Var, VarId, name_of,
};
use super::py_func::Function;
use super::table;
use crate::error::Plural;
use crate::ops::table::attr::{
    self, Param, dims_text, list, parse, read_dims, read_form, read_list, written,
};
use crate::ops::table::{Dims, Form};

const HEAD: &str = "autograd-core program 1";

/// The functions of a program to load, by name: py_funcs, backwards, closures, `#[py_layer]` ops, and the formulas
/// of traces (`#[py_layer(elementwise)]`, and `fuse!` by the name `fuse`); all else in a trace is data. Examples are at
/// [`Program::save`](super::Program::save) and [`Program::load`](super::Program::load).
#[derive(Clone, Debug, Default)]
pub struct Functions {
    by_name: HashMap<String, Function>,
    duplicates: Vec<String>,
}

impl Functions {
    fn add(&mut self, function: Function) {
        let name = function.name.to_string();
        if self.by_name.insert(name.clone(), function).is_some() {
            self.duplicates.push(name);
        }
    }
}

/// Writes a line for each variable and each operator, with tabs between fields.
fn write(graph: &Graph) -> Result<String, String> {
    let mut text = format!("{HEAD}\n");
    for var in &graph.vars {
        let role = name_of(ROLES, var.role);
        let (name, place) = (quoted(&var.name), quoted(&var.place));
        let stop = if var.stop_gradient { "stop" } else { "flow" };
        let (dtype, dims) = (var.form.dtype, dims_text(&var.form.dims));
        let _ = writeln!(text, "var\t{name}\t{dtype}\t{dims}\t{role}\t{stop}\t{place}");
    }
    for op in &graph.ops {
        let phase = name_of(PHASES, op.phase);
        let (kind, place) = (kind_text(&op.kind)?, quoted(&op.place));
        let [inputs, outputs, writes] = [&op.inputs, &op.outputs, &op.writes].map(|ids| list(ids));
        let _ = writeln!(text, "op\t{kind}\t{inputs}\t{outputs}\t{writes}\t{phase}\t{place}");
    }
    Ok(text)
}

/// An error if two different functions have one name: loading binds functions by name.
fn check_names(graph: &Graph) -> Result<(), String> {
    let functions = graph.ops.iter().flat_map(|op| match &op.kind {
        Kind::Eager(eager) => vec![(op, &eager.function)],
        Kind::PyFunc(func) => {
            let all = std::iter::once(&func.function).chain(func.backward.iter());
            all.map(|function| (op, function)).collect()
        }
        _ => Vec::new(),
    });
    let mut known: HashMap<&str, &Function> = HashMap::new();
    for (op, function) in functions {
        let first = known.entry(&function.name).or_insert(function);
        if !first.is_same(function) {
            return Err(format!(
                "two functions are called `{}`, the second in the operator built at {}: `name` gives a function \
                 one of its own",
                function.name, op.place
            ));
        }
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace(';', "\\s")
}

fn kind_text(kind: &Kind) -> Result<String, String> {
    let fields: Vec<String> = match kind {
        Kind::Op(op) => {
            let named = [op.def.family, op.def.name];
            let named = named.into_iter().filter(|part| !part.is_empty()).map(str::to_owned);
            named.chain(op.attrs.iter().map(written)).collect()
        }
        Kind::Eager(eager) => vec!["eager".to_owned(), quoted(&eager.function.name)],
        Kind::PyFunc(func) => {
            let PyFuncOp { function, args, picks, results, skipped, is_gradient, backward, .. } =
                &**func;
            let skipped: Vec<u8> = skipped.iter().map(|&s| u8::from(s)).collect();
            let mut fields = vec!["py_func".to_owned(), quoted(&function.name), dims_text(args)];
            fields.extend([list(picks), results.to_string(), list(&skipped)]);
            fields.push(is_gradient.to_string());
            fields.extend(backward.iter().map(|next| quoted(&next.name)));
            fields
        }
        Kind::CustomOp(op) => {
            let TracedCustomOp { name, forward, results, backward, given, found } = &**op;
            let given = given.iter().map(|given| match given {
                BackwardInput::Input(at) => format!("i{at}"),
                BackwardInput::Result(at) => format!("r{at}"),
                BackwardInput::Grad(at) => format!("g{at}"),
            });
            let given = given.collect::<Vec<_>>().join(",");
            let mut fields = vec!["layer".to_owned(), quoted(name), list(results), given];
            fields.extend([dims_text(found), quoted(&write(forward)?), quoted(&write(backward)?)]);
            fields
        }
        Kind::Grad(Grad { of, name, wants, seeds, .. }) => {
            vec!["grad".to_owned(), of.to_string(), quoted(name), list(wants), list(seeds)]
        }
        Kind::Init(..) => return Err("it holds a startup program".to_owned()),
    };
    Ok(fields.join(";"))
}

fn read(text: &str, functions: &Functions) -> Result<Graph, String> {
    if let Some(name) = functions.duplicates.first() {
        return Err(format!("two functions were given as `{name}`"));
    }
    let mut lines = text.lines().enumerate();
    if lines.next().is_none_or(|(_, line)| line != HEAD) {
        return Err(format!("the program does not start with `{HEAD}`"));
    }
    let mut reader = Reader { graph: Graph::default(), functions, missing: Vec::new() };
    for (number, line) in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        let done = match fields[..] {
            ["var", name, dtype, dims, role, stop, place] => {
                reader.var([name, dtype, dims, role, stop, place])
            }
            ["op", kind, inputs, outputs, writes, phase, place] => {
                reader.op(kind, [inputs, outputs, writes], [phase, place])
            }
            _ => Err("is neither a variable nor an operator".to_owned()),
        };
        done.map_err(|why| format!("line {} of the program: {why}", number + 1))?;
    }
    let Reader { graph, mut missing, .. } = reader;
    if missing.is_empty() {
        return Ok(graph);
    }
    missing.sort();
    missing.dedup();
    Err(format!("these functions were not given: {}", missing.join(", ")))
}

struct Reader<'f> {
    graph: Graph,
    functions: &'f Functions,
    missing: Vec<String>,
}

impl Reader<'_> {
    fn var(&mut self, [name, dtype, dims, role, stop, place]: [&str; 6]) -> Result<(), String> {
        let name = unquoted(name);
        if self.graph.find(&name).is_some() {
            return Err(format!("a second variable `{name}`"));
        }
        let (role, form) = (named(ROLES, "role", role)?, read_form(dtype, dims)?);
        if name.is_empty() {
            return Err("a variable needs a name".to_owned());
        }
        let mut var = Var::new(name, form, role, &unquoted(place).into());
        let Form { dtype, dims } = &var.form;
        if var.is_kept() && dims.contains(&None) || var.is_parameter() && !dtype.is_float() {
            return Err(format!("`{}` cannot be kept: {}", var.name, var.form));
        }
        var.stop_gradient = stop == "stop";
        self.graph.add_var(var);
        Ok(())
    }

    fn op(&mut self, kind: &str, ids: [&str; 3], [phase, place]: [&str; 2]) -> Result<(), String> {
        let [inputs, outputs, writes] = ids.map(|text| {
            let ids: Vec<VarId> = read_list(text)?;
            match ids.iter().find(|&&id| id >= self.graph.vars.len()) {
                Some(id) => Err(format!("there is no variable {id}")),
                None => Ok(ids),
            }
        });
        let (inputs, outputs, writes) = (inputs?, outputs?, writes?);
        let kind = self.kind(kind, &inputs, &outputs)?;
        let phase = named(PHASES, "phase", phase)?;
        let place = unquoted(place).into();
        let op = Op { kind, inputs, outputs, writes, phase, place };
        self.graph.push_op(op).map_err(|error| error.to_string())
    }

    fn kind(&mut self, text: &str, inputs: &[VarId], outputs: &[VarId]) -> Result<Kind, String> {
        let forms = outputs.iter().map(|&id| self.graph.vars[id].form.clone()).collect();
        let parts: Vec<&str> = text.split(';').collect();
        Ok(match parts[..] {
            ["eager", name] => {
                Kind::Eager(Arc::new(Eager { function: self.function(name), outputs: forms }))
            }
            ["py_func", name, args, picks, results, skipped, gradient, ref backward @ ..] => {
                let (args, picks): (Dims, Vec<usize>) = (read_dims(args)?, read_list(picks)?);
                let (results, skipped): (usize, Vec<usize>) =
                    (parse(results)?, read_list(skipped)?);
                let fits = args.iter().flatten().all(|&at| at < inputs.len())
                    && picks.iter().all(|&at| at < results)
                    && picks.len() == outputs.len();
                if !fits {
                    return Err("its arguments or results do not fit".to_owned());
                }
                let function = self.function(name);
                let signature = function.signature.as_ref();
                if signature.is_some_and(|signature| signature.params.len() != args.len()) {
                    let (name, takes) = (&function.name, Plural(args.len(), "value", "values"));
                    return Err(format!("`{name}` must take {takes}"));
                }
                Kind::PyFunc(Arc::new(PyFuncOp {
                    function,
                    args: args.into_vec(),
                    picks,
                    results,
                    outputs: forms,
                    backward: backward.iter().map(|name| self.function(name)).collect(),
                    skipped: skipped.into_iter().map(|s| s != 0).collect(),
                    is_gradient: parse(gradient)?,
                }))
            }
            ["layer", name, results, given, found, forward, backward] => {
                let graph = |text: &str| read(&unquoted(text), self.functions);
                let given = given.split(',').filter(|part| !part.is_empty()).map(|part| {
                    let (kind, at) = part.split_at_checked(1).unwrap_or_default();
                    Ok(match kind {
                        "i" => BackwardInput::Input(parse(at)?),
                        "r" => BackwardInput::Result(parse(at)?),
                        "g" => BackwardInput::Grad(parse(at)?),
                        _ => return Err(format!("`{part}` is nothing that a backward reads")),
                    })
                });
                let op = TracedCustomOp {
                    name: unquoted(name).into(),
                    forward: graph(forward)?,
                    results: read_list(results)?,
                    backward: graph(backward)?,
                    given: given.collect::<Result<_, String>>()?,
                    found: read_dims(found)?.into_vec(),
                };
                op.check(inputs.len())?;
                Kind::CustomOp(Arc::new(op))
            }
            ["grad", of, name, wants, seeds] => {
                let (of, name): (OpId, _) = (parse(of)?, unquoted(name).into());
                let (wants, seeds) = (read_list(wants)?, read_list(seeds)?);
                let grad = Grad { of, name, wants, seeds };
                if !self.is_gradient(&grad, inputs)? {
                    return Err(format!("is no gradient of operator {of}"));
                }
                Kind::Grad(grad)
            }
            _ => read_table(&parts)?,
        })
    }

    fn is_gradient(&self, grad: &Grad, inputs: &[VarId]) -> Result<bool, String> {
        let Grad { of, wants, seeds, .. } = grad;
        let Some(forward) = self.graph.ops.get(*of) else {
            return Err(format!("no operator {of}"));
        };
        let are_floats = |vars: &[VarId], places: &[usize]| {
            let mut floats = places.iter().map(|&at| vars.get(at));
            floats.all(|var| var.is_some_and(|&var| self.graph.vars[var].form.dtype.is_float()))
        };
        let known = [&forward.inputs[..], &forward.outputs].concat();
        Ok(are_floats(&forward.inputs, wants)
            && are_floats(&forward.outputs, seeds)
            && !seeds.is_empty()
            && inputs.len() == known.len() + seeds.len()
            && inputs.starts_with(&known)
            && !forward.kind.writes())
    }

    /// Finds a function by its name; a placeholder replaces a missing one until everything is read.
    fn function(&mut self, name: &str) -> Function {
        let name = unquoted(name);
        self.functions.by_name.get(&name).cloned().unwrap_or_else(|| {
            self.missing.push(name.clone());
            Function { name: name.into(), ..Function::of_list(|_| Err("is missing".to_owned())) }
        })
    }
}

fn read_table(parts: &[&str]) -> Result<Kind, String> {
    let unknown = || format!("no operator `{}`", parts.join(" "));
    // The name of a family comes before the operator's.
    let of_family = |parts: &[&str]| table::find(parts.first()?, parts.get(1)?);
    let alone = |parts: &[&str]| match *parts.first()? {
        // The operator's name in files of earlier versions.
        "sum" => Some(&table::ADD_N),
        name => table::find("", name),
    };
    let found = of_family(parts).map(|def| (def, 2)).or_else(|| Some((alone(parts)?, 1)));
    let (def, taken) = found.ok_or_else(unknown)?;
    let mut fields = parts[taken..].iter().copied();
    let read = |(_, kind): &Param| attr::read(*kind, &mut fields);
    let attrs = def.attrs.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    match fields.next() {
        Some(_) => Err(unknown()),
        None => Ok(Kind::of(def, attrs)),
    }
}

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
