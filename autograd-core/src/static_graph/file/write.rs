//! A program as lines of text.

use std::fmt::Write;

use super::HEAD;
use crate::static_graph::attr::{dims_text, list, written};
use crate::static_graph::ir::{
    Foreign, Given, Grad, Graph, Kind, PHASES, ROLES, TracedLayer, name_of,
};

/// A line a variable and a line an operator, with tabs between fields.
pub(super) fn write(graph: &Graph) -> Result<String, String> {
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

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace(';', "\\s")
}

/// The operator and its attributes, with semicolons between them.
fn kind_text(kind: &Kind) -> Result<String, String> {
    let fields: Vec<String> = match kind {
        Kind::Op(op) => {
            let named = [op.def.family, op.def.name];
            let named = named.into_iter().filter(|part| !part.is_empty()).map(str::to_owned);
            named.chain(op.attrs.iter().map(written)).collect()
        }
        Kind::Eager(eager) => vec!["eager".to_owned(), quoted(&eager.function.name)],
        Kind::PyFunc(foreign) => {
            let Foreign { function, args, picks, results, skipped, is_gradient, backward, .. } =
                &**foreign;
            let skipped: Vec<u8> = skipped.iter().map(|&s| u8::from(s)).collect();
            let mut fields = vec!["py_func".to_owned(), quoted(&function.name), dims_text(args)];
            fields.extend([list(picks), results.to_string(), list(&skipped)]);
            fields.push(is_gradient.to_string());
            fields.extend(backward.iter().map(|next| quoted(&next.name)));
            fields
        }
        Kind::Layer(layer) => {
            let TracedLayer { name, forward, results, backward, given, found } = &**layer;
            let given = given.iter().map(|given| match given {
                Given::Input(at) => format!("i{at}"),
                Given::Result(at) => format!("r{at}"),
                Given::Grad(at) => format!("g{at}"),
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
        Kind::Update(rule) => {
            let options = rule.options().into_iter().map(|(_, value)| format!("{value:?}"));
            [rule.name().to_owned()].into_iter().chain(options).collect()
        }
    };
    Ok(fields.join(";"))
}
