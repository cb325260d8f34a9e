//! The random masks of dropout, which its gradient reads too, as variables of a plan. A program does
//! not show them.

use super::ir::{Graph, Kind, OpId};

/// A graph in which every dropout whose gradient runs, and is not differentiated itself, has its mask
/// as a second output, which the gradient reads.
pub(super) fn with_masks(graph: &Graph, runs: &[bool]) -> Graph {
    let mut graph = graph.clone();
    for id in (0..graph.ops.len()).filter(|&id| runs[id]) {
        if !graph.ops[id].kind.draws() {
            continue;
        }
        let gradients = gradients_of(&graph, runs, id);
        let twice = |&gradient: &OpId| !gradients_of(&graph, runs, gradient).is_empty();
        if gradients.is_empty() || gradients.iter().any(twice) {
            continue;
        }
        let (output, place) = (graph.ops[id].outputs[0], graph.ops[id].place.clone());
        let (stem, form) =
            (format!("{}@MASK", graph.vars[output].name), graph.vars[output].form.clone());
        let mask = graph.add_computed(&stem, true, form, &place);
        graph.vars[mask].stop_gradient = true;
        graph.vars[mask].producer = Some(id);
        graph.ops[id].outputs.push(mask);
        for gradient in gradients {
            // After the input and the output.
            graph.ops[gradient].inputs.insert(2, mask);
        }
    }
    graph
}

fn gradients_of(graph: &Graph, runs: &[bool], id: OpId) -> Vec<OpId> {
    let is_of = |op: &OpId| matches!(&graph.ops[*op].kind, Kind::Grad(grad) if grad.of == id);
    (id + 1..graph.ops.len()).filter(|&op| runs[op]).filter(is_of).collect()
}
