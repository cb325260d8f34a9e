//! The recorded graph for people: as text, as DOT, as SVG.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::reach::{AddressMap, place, topological, ways_to};
use crate::error::Plural;
use crate::graph::{AnyTensor, Edge, Element, Tensor, To};

mod layout;
mod svg;

/// What a leaf is called that nobody has named.
const UNNAMED: &str = "leaf";

/// What was recorded to compute some tensors; it keeps that graph alive.
///
/// ```
/// use autograd_core::{Graph, Tensor};
///
/// let (x, w) = (Tensor::from([1.0, 2.0]), Tensor::from([3.0, 4.0]));
/// w.set_stop_gradient(false);
/// let loss = (&x * &w).tanh().sum();
/// let graph = Graph::of(&[loss.into()]).named(&w, "w");
/// assert_eq!(
///     graph.summary().lines().next(),
///     Some("3 ops from 1 leaf, at most 3 ops one after the other")
/// );
/// assert!(graph.to_dot().starts_with("digraph"));
/// assert!(graph.to_svg().starts_with("<svg"));
/// ```
pub struct Graph {
    /// What is used stands before what uses it.
    items: Vec<Item>,
}

struct Item {
    edge: Edge,
    name: String,
    /// Items that it was computed from, one for each input that wants a gradient.
    inputs: Vec<usize>,
    /// Whether the graph was asked for by this one, and the shape it has then.
    output: Option<String>,
}

/// A box of a drawing, of a recorded graph or of a program.
pub(crate) struct Shape {
    pub(crate) name: String,
    pub(crate) detail: String,
    /// What SVG shows after the detail.
    pub(crate) more: String,
    pub(crate) tip: String,
    pub(crate) look: Look,
    /// Boxes before this one that lines come from.
    pub(crate) inputs: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// What comes from outside.
    Leaf,
    Op,
    /// What was asked for.
    Output,
}

/// Most boxes that are drawn as SVG.
const MOST: usize = 250;

/// In Graphviz' language.
pub(crate) fn dot(shapes: &[Shape]) -> String {
    let mut dot = String::from("digraph {\n  node [shape=box, fontname=\"sans-serif\"];\n");
    let quote = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    for (i, shape) in shapes.iter().enumerate() {
        let style = match shape.look {
            Look::Output => ", style=filled, fillcolor=\"#e3f2fd\"",
            Look::Leaf => ", style=\"filled,rounded\", fillcolor=\"#e6f4ea\"",
            Look::Op => "",
        };
        let (name, detail) = (quote(&shape.name), quote(&shape.detail));
        let _ = writeln!(
            dot,
            "  n{i} [label=\"{name}\\n{detail}\", tooltip=\"{}\"{style}];",
            quote(&shape.tip)
        );
        for input in &shape.inputs {
            let _ = writeln!(dot, "  n{input} -> n{i};");
        }
    }
    dot.push_str("}\n");
    dot
}

/// As SVG; of many boxes the last ones.
pub(crate) fn svg(shapes: &[Shape], legend: &str) -> String {
    let first = shapes.len().saturating_sub(MOST);
    svg::draw(&shapes[first..], first, legend)
}

impl Item {
    fn shape(&self) -> Shape {
        let (detail, node) = (self.detail(), self.edge.node());
        let mut more = String::new();
        if let (Some(shape), Some(_)) = (&self.output, node) {
            let _ = write!(more, " · {shape}");
        }
        let constants = node.map_or(0, |node| node.edges().len() - self.inputs.len());
        if constants > 0 {
            let _ = write!(more, " · {constants} const");
        }
        Shape {
            name: self.name.clone(),
            tip: node.map_or_else(|| detail.clone(), |node| node.location.to_string()),
            detail,
            more,
            look: match (&self.output, node) {
                (Some(_), _) => Look::Output,
                (None, None) => Look::Leaf,
                (None, Some(_)) => Look::Op,
            },
            inputs: self.inputs.clone(),
        }
    }

    fn is_leaf(&self) -> bool {
        self.edge.node().is_none()
    }

    /// `model.rs:12` for an op, element type and shape for a leaf.
    fn detail(&self) -> String {
        match self.edge.to() {
            To::Leaf(leaf) => describe(leaf),
            To::Node(node, _) => {
                let file = node.location.file().rsplit(['/', '\\']).next().unwrap_or_default();
                format!("{file}:{}", node.location.line())
            }
            To::None(_) => String::new(),
        }
    }
}

fn describe(tensor: &AnyTensor) -> String {
    format!("{} {:?}", tensor.dtype(), tensor.shape())
}

impl Graph {
    /// The graph behind these tensors; empty where nothing was recorded.
    pub fn of(outputs: &[AnyTensor]) -> Self {
        let ways = ways_to(outputs);
        let mut known = AddressMap::default();
        let mut items: Vec<Item> = Vec::new();
        for edge in topological(&ways, |_| true) {
            let (name, edges) =
                edge.node().map_or((UNNAMED, &[][..]), |node| (node.name(), node.edges()));
            let inputs =
                edges.iter().filter_map(|edge| known.get(&place(edge)?).copied()).collect();
            known.extend(place(edge).map(|place| (place, items.len())));
            items.push(Item { edge: edge.clone(), name: name.to_owned(), inputs, output: None });
        }
        for (output, edge) in outputs.iter().zip(&ways) {
            if let Some(&item) = place(edge).and_then(|place| known.get(&place)) {
                items[item].output = Some(describe(output));
            }
        }
        Self { items }
    }

    /// Gives a tensor of the graph, a leaf or the result of an op, a name to be drawn with; one
    /// that is not in the graph changes nothing.
    pub fn named<T: Element>(mut self, tensor: &Tensor<T>, name: &str) -> Self {
        let wanted = place(&tensor.edge());
        for item in &mut self.items {
            if wanted.is_some() && place(&item.edge) == wanted {
                item.name = match item.is_leaf() {
                    true => name.to_owned(),
                    false => format!("{name} = {}", item.name),
                };
            }
        }
        self
    }

    /// How many ops were recorded.
    pub fn op_count(&self) -> usize {
        self.items.iter().filter(|item| !item.is_leaf()).count()
    }

    /// How many ops stand in the longest chain.
    fn depth(&self) -> usize {
        let mut depths: Vec<usize> = Vec::with_capacity(self.items.len());
        for item in &self.items {
            let below = item.inputs.iter().map(|&input| depths[input]).max().unwrap_or(0);
            depths.push(below + usize::from(!item.is_leaf()));
        }
        depths.into_iter().max().unwrap_or(0)
    }

    /// Counts as text: how many of each op, and the leaves with how often each is used.
    pub fn summary(&self) -> String {
        let (ops, depth) = (self.op_count(), self.depth());
        let mut text = format!(
            "{} from {}, at most {} one after the other\n",
            Plural(ops, "op", "ops"),
            Plural(self.items.len() - ops, "leaf", "leaves"),
            Plural(depth, "op", "ops"),
        );
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut uses = vec![0; self.items.len()];
        for item in &self.items {
            if let Some(node) = item.edge.node() {
                *counts.entry(node.name()).or_default() += 1;
            }
            item.inputs.iter().for_each(|&input| uses[input] += 1);
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
        for (name, count) in counts {
            let _ = writeln!(text, "{count:>8}  {name}");
        }
        for (item, uses) in self.items.iter().zip(uses).filter(|(item, _)| item.is_leaf()) {
            let name = if item.name == UNNAMED { String::new() } else { format!(" {}", item.name) };
            let times = Plural(uses, "time", "times");
            let _ = writeln!(text, "    leaf{name}: {}, used {times}", item.detail());
        }
        text
    }

    fn shapes(&self) -> Vec<Shape> {
        self.items.iter().map(Item::shape).collect()
    }

    /// In Graphviz' language, for `dot -Tsvg`.
    pub fn to_dot(&self) -> String {
        dot(&self.shapes())
    }

    /// A drawing: data flows from top to bottom, leaves are green, the outputs blue. Each op has
    /// the line it was called at. Of a graph with more than 250 ops and leaves the part next to
    /// the outputs is drawn.
    pub fn to_svg(&self) -> String {
        svg(&self.shapes(), "green: leaves · blue: outputs · data flows down, gradients flow up")
    }
}
