//! Drawings of a program, as DOT and SVG, in the style of those of the recorded graph.

use super::ir::{Graph, Role};
use super::program::Program;
use crate::engine::draw::{Look, Shape, dot, svg};

impl Program {
    /// Returns the program in the language of Graphviz, for `dot -Tsvg`.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::Program;
    ///
    /// let program = Program::new();
    /// program.data("x", [-1, 4], DType::Float32)?.tanh()?;
    /// assert!(program.to_dot().contains("label=\"tanh\\ntanh_0: float32 [-1, 4]\""));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn to_dot(&self) -> String {
        dot(&shapes(&self.graph()))
    }

    /// Returns an SVG drawing, from top to bottom: data and parameters are green, variables that no
    /// operator reads blue. Only the last 250 boxes are drawn.
    ///
    /// ```
    /// use autograd_core::DType;
    /// use autograd_core::static_graph::Program;
    ///
    /// let program = Program::new();
    /// program.data("x", [-1, 4], DType::Float32)?.tanh()?;
    /// let svg = program.to_svg();
    /// assert!(svg.starts_with("<svg") && svg.contains("tanh_0: float32 [-1, 4]"));
    /// # Ok::<(), autograd_core::Error>(())
    /// ```
    pub fn to_svg(&self) -> String {
        svg(&shapes(&self.graph()), "green: data and parameters · blue: read by no operator")
    }
}

fn shapes(graph: &Graph) -> Vec<Shape> {
    let mut is_read = vec![false; graph.vars.len()];
    graph.ops.iter().flat_map(|op| &op.inputs).for_each(|&input| is_read[input] = true);
    let mut shapes = Vec::new();
    let mut boxes: Vec<Option<usize>> = vec![None; graph.vars.len()];
    for (id, var) in graph.vars.iter().enumerate() {
        if var.role != Role::Computed && is_read[id] {
            boxes[id] = Some(shapes.len());
            shapes.push(Shape {
                name: var.name.clone(),
                detail: var.form.to_string(),
                more: String::new(),
                tip: var.place.to_string(),
                look: Look::Leaf,
                inputs: Vec::new(),
            });
        }
    }
    for op in &graph.ops {
        let results = op.results().map(|id| graph.vars[id].to_string());
        let unread = !op.outputs.iter().any(|&output| is_read[output]);
        let inputs = op.inputs.iter().filter_map(|&input| boxes[input]).collect();
        op.outputs.iter().for_each(|&output| boxes[output] = Some(shapes.len()));
        shapes.push(Shape {
            name: op.kind.to_string(),
            detail: results.collect::<Vec<_>>().join(", "),
            more: String::new(),
            tip: op.place.to_string(),
            look: if unread { Look::Output } else { Look::Op },
            inputs,
        });
    }
    shapes
}
