//! Drawings of the recorded graph: as text, as DOT, as SVG.

use std::cmp::Reverse;
use std::fmt::Write;

use super::traversal::{AddressMap, edges_of, target_address, topological};
use crate::array::shape::sorted;
use crate::error::Plural;
use crate::graph::{AnyTensor, Destination, Edge, Element, Tensor};

mod svg;

pub(crate) use svg::svg;

const UNNAMED: &str = "leaf";

/// The graph that was recorded to compute some tensors; keeps that graph alive.
///
/// ```
/// use autograd_core::{Graph, Tensor};
///
/// let (x, w) = (Tensor::from([1.0, 2.0]), Tensor::from([3.0, 4.0]));
/// w.set_stop_gradient(false);
/// let loss = (&x * &w).tanh().sum();
/// let graph = Graph::of(&[loss.into()]).named(&w, "w");
/// assert!(graph.summary().starts_with("3 ops from 1 leaf"));
/// assert!(graph.to_svg().contains(">w</text>"));
/// ```
pub struct Graph {
    /// Ops and leaves, each after those that it uses.
    shapes: Vec<Shape>,
    edges: Vec<Edge>,
}

/// A box of a drawing, of a recorded graph or of a program.
pub(crate) struct Shape {
    pub(crate) name: String,
    pub(crate) detail: String,
    /// Text that SVG shows after the detail.
    pub(crate) more: String,
    pub(crate) tip: String,
    pub(crate) look: Look,
    pub(crate) inputs: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// An input from outside.
    Leaf,
    Op,
    /// A requested output.
    Output,
}

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

fn describe(tensor: &AnyTensor) -> String {
    format!("{} {:?}", tensor.dtype(), tensor.shape())
}

impl Graph {
    /// The graph behind these tensors, of any shapes; empty if nothing was recorded.
    ///
    /// ```
    /// use autograd_core::{Graph, Tensor};
    ///
    /// let x = Tensor::from([1.0, 2.0]);
    /// assert_eq!(Graph::of(&[x.exp().into()]).op_count(), 0);
    /// x.set_stop_gradient(false);
    /// assert_eq!(Graph::of(&[x.exp().into(), x.ln().into()]).op_count(), 2);
    /// ```
    pub fn of(outputs: &[AnyTensor]) -> Self {
        let starts = edges_of(outputs);
        let mut known = AddressMap::default();
        let (mut shapes, mut edges): (Vec<Shape>, Vec<Edge>) = Default::default();
        let visit = |edge: &Edge| {
            let inner = edge.node().map_or(&[][..], |node| node.edges());
            let inputs = inner.iter().filter_map(|edge| known.get(&target_address(edge)?).copied());
            let inputs: Vec<usize> = inputs.collect();
            let constants = inner.len() - inputs.len();
            let more = if constants > 0 { format!(" · {constants} const") } else { String::new() };
            shapes.push(match edge.to() {
                Destination::Node(node, _) => {
                    let location = node.location;
                    let file = location.file().rsplit(['/', '\\']).next().unwrap_or_default();
                    let detail = format!("{file}:{}", location.line());
                    let (name, tip) = (node.name().to_owned(), location.to_string());
                    Shape { name, detail, more, tip, look: Look::Op, inputs }
                }
                Destination::Leaf(leaf) => {
                    let (name, detail, tip) = (UNNAMED.to_owned(), describe(leaf), describe(leaf));
                    Shape { name, detail, more, tip, look: Look::Leaf, inputs }
                }
                Destination::None(_) => return,
            });
            target_address(edge).map(|key| known.insert(key, edges.len()));
            edges.push(edge.clone());
        };
        topological(&starts, |_| true, visit);
        // Of several outputs of an op the last one is shown.
        for (output, edge) in outputs.iter().zip(&starts).rev() {
            let Some(&at) = target_address(edge).and_then(|key| known.get(&key)) else { continue };
            let shape = &mut shapes[at];
            if shape.look == Look::Op {
                shape.more.insert_str(0, &format!(" · {}", describe(output)));
            }
            shape.look = Look::Output;
        }
        Self { shapes, edges }
    }

    /// Names a tensor of the graph, a leaf or the result of an op; any other has no effect.
    ///
    /// ```
    /// use autograd_core::{Graph, Tensor};
    ///
    /// let x = Tensor::from([1.0, 2.0]);
    /// x.set_stop_gradient(false);
    /// let y = x.exp();
    /// let dot = Graph::of(&[y.sum().into()]).named(&x, "x").named(&y, "y").to_dot();
    /// assert!(dot.contains("label=\"x\\n") && dot.contains("label=\"y = exp\\n"));
    /// ```
    pub fn named<T: Element>(mut self, tensor: &Tensor<T>, name: &str) -> Self {
        let wanted = target_address(&tensor.edge());
        for (shape, edge) in self.shapes.iter_mut().zip(&self.edges) {
            if wanted.is_some() && target_address(edge) == wanted {
                shape.name = match edge.node() {
                    None => name.to_owned(),
                    Some(_) => format!("{name} = {}", shape.name),
                };
            }
        }
        self
    }

    /// The number of recorded ops.
    ///
    /// ```
    /// use autograd_core::{Graph, Tensor};
    ///
    /// let x = Tensor::from([1.0, 2.0]);
    /// x.set_stop_gradient(false);
    /// let graph = Graph::of(&[(&x * &x).sum().into()]);
    /// assert_eq!(graph.op_count(), 2);
    /// ```
    pub fn op_count(&self) -> usize {
        self.edges.iter().filter_map(Edge::node).count()
    }

    fn depth(&self) -> usize {
        let mut depths: Vec<usize> = Vec::with_capacity(self.shapes.len());
        for (shape, edge) in self.shapes.iter().zip(&self.edges) {
            let below = shape.inputs.iter().map(|&input| depths[input]).max().unwrap_or(0);
            depths.push(below + usize::from(edge.node().is_some()));
        }
        depths.into_iter().max().unwrap_or(0)
    }

    /// Returns counts as text: the number of each op, and the leaves with their numbers of uses.
    ///
    /// ```
    /// use autograd_core::{Graph, Tensor};
    ///
    /// let x = Tensor::from([1.0, 2.0]);
    /// x.set_stop_gradient(false);
    /// let graph = Graph::of(&[(&x * &x).sum().into()]);
    /// let text = "\
    /// 2 ops from 1 leaf, at most 2 ops one after the other
    ///        1  mul
    ///        1  sum
    ///     leaf: float64 [2], used 2 times
    /// ";
    /// assert_eq!(graph.summary(), text);
    /// ```
    pub fn summary(&self) -> String {
        let (ops, depth) = (self.op_count(), self.depth());
        let mut text = format!(
            "{} from {}, at most {} one after the other\n",
            Plural(ops, "op", "ops"),
            Plural(self.edges.len() - ops, "leaf", "leaves"),
            Plural(depth, "op", "ops"),
        );
        let nodes = self.edges.iter().filter_map(Edge::node);
        let names: Vec<&str> = nodes.map(|node| node.name()).collect();
        let order = sorted(names.len(), &|a, b| names[a].cmp(names[b]));
        let same = order.chunk_by(|&a, &b| names[a] == names[b]);
        let counts: Vec<_> = same.map(|same| (Reverse(same.len()), names[same[0]])).collect();
        for at in sorted(counts.len(), &|a, b| counts[a].cmp(&counts[b])) {
            let (Reverse(count), name) = counts[at];
            let _ = writeln!(text, "{count:>8}  {name}");
        }
        let mut uses = vec![0; self.shapes.len()];
        self.shapes.iter().flat_map(|shape| &shape.inputs).for_each(|&input| uses[input] += 1);
        for ((Shape { name, detail, .. }, edge), uses) in
            self.shapes.iter().zip(&self.edges).zip(uses)
        {
            if edge.node().is_none() {
                let name = if name == UNNAMED { String::new() } else { format!(" {name}") };
                let times = Plural(uses, "time", "times");
                let _ = writeln!(text, "    leaf{name}: {detail}, used {times}");
            }
        }
        text
    }

    /// Returns the graph in the DOT language, for `dot -Tsvg`.
    ///
    /// ```
    /// use autograd_core::{Graph, Tensor};
    ///
    /// let x = Tensor::from([1.0, 2.0]);
    /// x.set_stop_gradient(false);
    /// let graph = Graph::of(&[(&x * &x).sum().into()]);
    /// assert!(graph.to_dot().starts_with("digraph {"));
    /// assert!(graph.to_dot().ends_with("  n1 -> n2;\n}\n"));
    /// ```
    pub fn to_dot(&self) -> String {
        dot(&self.shapes)
    }

    /// Returns a drawing: data flows from top to bottom, leaves are green, outputs blue. Each op has the line
    /// of its call. Of a graph with more than 250 ops and leaves, the part next to the outputs is drawn.
    ///
    /// ```
    /// use autograd_core::{Graph, Tensor};
    ///
    /// let x = Tensor::from([1.0, 2.0]);
    /// x.set_stop_gradient(false);
    /// let graph = Graph::of(&[(&x * &x).sum().into()]);
    /// let svg = graph.to_svg();
    /// assert!(svg.starts_with("<svg") && svg.contains(">mul</text>"));
    /// ```
    pub fn to_svg(&self) -> String {
        svg(&self.shapes, "green: leaves · blue: outputs · data flows down, gradients flow up")
    }
}
