//! A program as lines of text.

use std::fmt::Write;

use super::HEAD;
use crate::graph::{Element, Tensor, for_any};
use crate::static_graph::ir::{Graph, Phase, Role};
use crate::static_graph::kind::Kind;
use crate::static_graph::layer::{Given, TracedLayer};
use crate::static_graph::py_func::Foreign;

/// A line a variable and a line an operator, with tabs between fields.
pub(super) fn write(graph: &Graph) -> Result<String, String> {
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
        Kind::Normalize { axes, eps } => format!("normalize;{};{eps:?}", signed(axes)),
        Kind::CrossEntropy => "cross_entropy".to_owned(),
        Kind::Reshape(dims) => format!("reshape;{}", dims_text(dims)),
        Kind::Permute(order) => format!("permute;{}", signed(order)),
        Kind::Concat { axis } => format!("concat;{axis}"),
        Kind::Cast(dtype) => format!("cast;{dtype}"),
        Kind::BroadcastTo(dims) => format!("broadcast_to;{}", dims_text(dims)),
        Kind::Slice { axis, start, end, step } => {
            format!("slice;{axis};{start};{};{step}", dims_text(&[*end]))
        }
        Kind::ArgMax { axis } => format!("argmax;{axis}"),
        Kind::Where => "where".to_owned(),
        Kind::Compare(name) => format!("compare;{name}"),
        Kind::IndexSelect { axis } => format!("index_select;{axis}"),
        Kind::Gather { axis } => format!("gather;{axis}"),
        Kind::Conv2d(options) => format!("conv2d;{}", numbers(options.parts().as_flattened())),
        Kind::Pool2d(pool, options) => {
            format!("{};{}", pool.name(), numbers(options.parts().as_flattened()))
        }
        Kind::Constant(tensor) => {
            let dims: Vec<usize> = tensor.shape().to_vec();
            let bits = for_any!(tensor, t => bits(t));
            format!("constant;{};{};{bits}", tensor.dtype(), numbers(&dims))
        }
        Kind::Formula { name, .. } => format!("eager;{}", quoted(name)),
        Kind::Layer(layer) => {
            let TracedLayer { name, forward, results, backward, given, found } = &**layer;
            let given = given.iter().map(|given| match given {
                Given::Input(at) => format!("i{at}"),
                Given::Result(at) => format!("r{at}"),
                Given::Grad(at) => format!("g{at}"),
            });
            format!(
                "layer;{};{};{};{};{};{}",
                quoted(name),
                numbers(results),
                given.collect::<Vec<_>>().join(","),
                dims_text(found),
                quoted(&write(forward)?),
                quoted(&write(backward)?),
            )
        }
        Kind::Dropout { p, training } => format!("dropout;{p:?};{training}"),
        Kind::BatchNorm { momentum, eps, training } => {
            format!("batch_norm;{momentum:?};{eps:?};{training}")
        }
        Kind::Sum => "sum".to_owned(),
        Kind::FillLike(value) => format!("fill_like;{value:?}"),
        Kind::Init { .. } => return Err("it holds a startup program".to_owned()),
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

/// Elements as the bits that they are, so that what is read is what was written.
fn bits<T: Element>(tensor: &Tensor<T>) -> String {
    let values = tensor.to_vec();
    values.iter().map(|value| format!("{value:?}")).collect::<Vec<_>>().join(",")
}
