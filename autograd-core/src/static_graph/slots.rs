//! Where the values of a run stand. A slot is a buffer that a program keeps from run to run; which
//! variable has which is worked out with the plan, and two that are never alive together share one.
//!
//! Operators that can write their result over a given buffer have slots; so have those that only read
//! their inputs, whose slots' buffers go through the pool of free ones. What views, user code and
//! walks over a record give is theirs.

use std::collections::HashMap;

use super::chain::{Chain, Origin, Sum};
use super::ir::{Form, Graph, Op, VarId};
use super::kind::Kind;
use super::plan::{Mode, Read, Step};
use crate::array::DType;
use crate::ops::Binary;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Slots {
    /// For each variable, its slot.
    pub(super) of: Vec<Option<usize>>,
    /// For each variable, the slot whose buffer it is written to: its own or, as what is fetched has
    /// none, one that is free.
    pub(super) from: Vec<Option<usize>>,
    pub(super) count: usize,
}

/// What fits one slot: an element type, the product of the known lengths, and how many are free.
type Class = (DType, usize, usize);

fn class(form: &Form) -> Class {
    let free = form.dims.iter().filter(|dim| dim.is_none()).count();
    (form.dtype, form.dims.iter().flatten().product(), free)
}

/// Where an output is written.
enum Way {
    /// Over an input that is read for the last time.
    Over(usize),
    /// To a slot.
    Slot,
    /// Where its operator says.
    Own,
}

impl Slots {
    /// For steps in their order, of which those of one wave may run at once. What is fetched leaves
    /// the run, and has none.
    pub(super) fn new(graph: &Graph, steps: &[Step], fetched: &[VarId], waves: bool) -> Self {
        let none = || vec![None; graph.vars.len()];
        let mut slots = Self { of: none(), from: none(), count: 0 };
        let mut free: HashMap<Class, Vec<usize>> = HashMap::new();
        let together = |a: &Step, b: &Step| waves && a.wave == b.wave;
        for wave in steps.chunk_by(together) {
            let mut passed = Vec::new();
            for step in wave {
                for (at, &output) in step.outputs.iter().enumerate() {
                    let class = class(&graph.vars[output].form);
                    let leaves = fetched.contains(&output);
                    let slot = match way(graph, step, at) {
                        Way::Over(input) => {
                            passed.push(input);
                            slots.of[input].filter(|_| !leaves)
                        }
                        Way::Slot if leaves => {
                            slots.from[output] =
                                free.get(&class).and_then(|free| free.last()).copied();
                            None
                        }
                        Way::Slot => {
                            let known = free.get_mut(&class).and_then(Vec::pop);
                            slots.from[output] = Some(known.unwrap_or(slots.count));
                            slots.from[output]
                        }
                        Way::Own => None,
                    };
                    if slot == Some(slots.count) {
                        slots.count += 1;
                    }
                    slots.of[output] = slot;
                }
            }
            for &(input, read) in wave.iter().flat_map(|step| &step.inputs) {
                let done = matches!(read, Read::Take | Read::Last) && !passed.contains(&input);
                if let Some(slot) = slots.of[input].filter(|_| done) {
                    free.entry(class(&graph.vars[input].form)).or_default().push(slot);
                }
            }
        }
        slots
    }
}

fn way(graph: &Graph, step: &Step, output: usize) -> Way {
    let op = &graph.ops[step.op];
    let over = |position: usize| match step.inputs.get(position) {
        Some(&(input, Read::Take))
            if class(&graph.vars[input].form) == class(&graph.vars[step.outputs[output]].form) =>
        {
            Way::Over(input)
        }
        _ => Way::Own,
    };
    match (&step.mode, &op.kind) {
        (Mode::Chain, _) => match &step.chain {
            Some(chain) => of_chain(chain, output, over),
            None => Way::Own,
        },
        (Mode::Plain, Kind::Matmul) if are_matrices(graph, op) => Way::Slot,
        (Mode::Plain, kind) if kind.reads_only() => Way::Slot,
        (Mode::Plain, Kind::Unary(_) | Kind::Scalar { .. } | Kind::Binary(_)) => over(0),
        (Mode::Bias, Kind::Grad { wants, .. }) => match wants[output] {
            0 => over(step.inputs.len() - 1),
            _ => Way::Slot,
        },
        (Mode::Direct { deferred }, Kind::Grad { of, wants, .. }) => {
            let forward = &graph.ops[*of];
            match forward.kind {
                Kind::Matmul if *deferred && wants[output] == 1 => Way::Own,
                Kind::Matmul if are_matrices(graph, forward) => Way::Slot,
                Kind::CrossEntropy => Way::Slot,
                Kind::Unary(_) | Kind::Scalar { .. } | Kind::Formula { .. } => {
                    over(step.inputs.len() - 1)
                }
                _ => Way::Own,
            }
        }
        _ => Way::Own,
    }
}

/// The first result is written over the first input, where a chain says that it may be.
fn of_chain(chain: &Chain, output: usize, over: impl Fn(usize) -> Way) -> Way {
    let out = &chain.outs[output];
    // A result, or what is handed on, has one slot however many variables it is.
    if chain.outs[..output].iter().any(|other| other.from == out.from && out.sum.is_none()) {
        return Way::Own;
    }
    let handed_on = chain.outs.iter().any(|out| out.from == Origin::Operand(0));
    match (out.from, &out.sum) {
        (Origin::Operand(0), None) if chain.over => over(0),
        (Origin::Result(0), None) if chain.over && !handed_on => match over(0) {
            Way::Own => Way::Slot,
            over => over,
        },
        (Origin::Result(_), None) | (_, Some(Sum::Row)) => Way::Slot,
        // What the head computes.
        (Origin::Operand(0), None) if chain.head.is_some() => Way::Slot,
        _ => Way::Own,
    }
}

fn are_matrices(graph: &Graph, op: &Op) -> bool {
    op.inputs.iter().all(|&input| graph.vars[input].form.dims.len() == 2)
}

/// Whether an operator adds a row to a matrix which has the sum's shape whatever is fed.
pub(super) fn adds_row(graph: &Graph, op: &Op) -> bool {
    let (Kind::Binary(Binary::Add), &[a, b]) = (&op.kind, &op.inputs[..]) else { return false };
    let dims = |var: VarId| &graph.vars[var].form.dims[..];
    matches!((dims(a), dims(b)), (&[_, Some(columns)], &[Some(row)]) if columns == row && row > 1)
}

#[cfg(test)]
mod tests {
    use super::super::plan::Plan;
    use super::super::{Init, Program, Sgd, Variable};
    use crate::array::DType;

    fn matrix(program: &Program, name: &str) -> Variable {
        let init = Init::Uniform(-1.0, 1.0);
        program.create_parameter(name, [8, 8], DType::Float32, init).expect("a new name")
    }

    fn slots(program: &Program, fetched: &Variable, waves: bool) -> usize {
        Plan::new(&program.graph(), &[fetched.id], waves).slots.count
    }

    #[test]
    fn variables_that_are_never_alive_together_share_a_slot() {
        let program = Program::new();
        let x = program.data("x", [-1, 8], DType::Float32).expect("a new name");
        let w = matrix(&program, "w");
        let layers = |mut y: Variable, count| {
            for _ in 0..count {
                y = y.matmul(&w).and_then(|y| y.tanh()).expect("matrices");
            }
            y
        };
        // A product is written to one while the one before stands in the other; the last is fetched.
        for (count, expected) in [(2, 1), (3, 2), (20, 2)] {
            assert_eq!(slots(&program, &layers(x.clone(), count), false), expected, "{count}");
        }
        // Two branches that may run at once.
        let (a, b) = (layers(x.clone(), 2), layers(x, 2));
        let joined = a.matmul(&w).and_then(|a| a.try_add(&b)).expect("matrices");
        assert!(slots(&program, &joined, true) > slots(&program, &joined, false));
    }

    #[test]
    fn what_backward_reads_keeps_its_slot() {
        let program = Program::new();
        let x = program.data("x", [-1, 8], DType::Float32).expect("a new name");
        let mut y = x;
        for layer in 0..4 {
            let w = matrix(&program, &format!("w{layer}"));
            y = y.matmul(&w).and_then(|y| y.tanh()).expect("matrices");
        }
        let loss = y.mean(&[]).expect("a number");
        assert_eq!(slots(&program, &loss, false), 2);
        Sgd::new(0.1).minimize(&loss).expect("a loss");
        assert!(slots(&program, &loss, false) > 4);
    }
}
