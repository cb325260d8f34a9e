//! A program as lines of text.

use std::fmt::Write;

use super::{HEAD, file_name};
use crate::static_graph::attr::{dims_text, list, written};
use crate::static_graph::ir::{Grad, Graph, Kind, PHASES, ROLES, name_of};
use crate::static_graph::layer::{Given, LAYER, TracedLayer};
use crate::static_graph::py_func::{Foreign, PY_FUNC};
use crate::static_graph::table;

/// A line a variable and a line an operator, with tabs between fields.
pub(super) fn write(graph: &Graph) -> Result<String, String> {
    let mut text = format!("{HEAD}\n");
    for var in &graph.vars {
        let role = name_of(ROLES, var.role);
        let (name, place) = (quoted(&var.name), quoted(&var.place.to_string()));
        let stop = if var.stop_gradient { "stop" } else { "flow" };
        let (dtype, dims) = (var.form.dtype, dims_text(&var.form.dims));
        let _ = writeln!(text, "var\t{name}\t{dtype}\t{dims}\t{role}\t{stop}\t{place}");
    }
    for op in &graph.ops {
        let phase = name_of(PHASES, op.phase);
        let (kind, place) = (kind_text(&op.kind)?, quoted(&op.place.to_string()));
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
    let op = match kind {
        Kind::Op(op) => op,
        Kind::Grad(Grad { of, name, wants, seeds, .. }) => {
            return Ok(format!("grad;{of};{};{};{}", quoted(name), list(wants), list(seeds)));
        }
    };
    let fields: Vec<String> = if op.is(&PY_FUNC) {
        let Foreign { args, picks, results, skipped, is_gradient, backward, .. } = op.user();
        let skipped: Vec<u8> = skipped.iter().map(|&s| u8::from(s)).collect();
        let mut fields =
            vec!["py_func".to_owned(), quoted(op.name()), dims_text(args), list(picks)];
        fields.extend([results.to_string(), list(&skipped), is_gradient.to_string()]);
        fields.extend(backward.iter().map(|next| quoted(&next.name)));
        fields
    } else if op.is(&LAYER) {
        let TracedLayer { name, forward, results, backward, given, found } = op.user();
        let given = given.iter().map(|given| match given {
            Given::Input(at) => format!("i{at}"),
            Given::Result(at) => format!("r{at}"),
            Given::Grad(at) => format!("g{at}"),
        });
        let given = given.collect::<Vec<_>>().join(",");
        let [forward, backward] = [write(forward)?, write(backward)?].map(|text| quoted(&text));
        vec![
            "layer".to_owned(),
            quoted(name),
            list(results),
            given,
            dims_text(found),
            forward,
            backward,
        ]
    } else if op.is(&table::INIT) {
        return Err("it holds a startup program".to_owned());
    } else if op.user.is_some() {
        vec!["eager".to_owned(), quoted(op.name())]
    } else {
        let named = [op.def.family, file_name(op.def)];
        let named = named.into_iter().filter(|part| !part.is_empty()).map(str::to_owned);
        named.chain(op.attrs.iter().map(written)).collect()
    };
    Ok(fields.join(";"))
}
