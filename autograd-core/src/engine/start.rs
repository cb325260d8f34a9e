//! Where a backward starts: outputs and the gradients they start with.

use std::collections::HashSet;

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Edge, Element, Sink, Tensor, for_any};

/// So many tensors are compared sooner than a set of them is made.
const MAX_SCANNED: usize = 8;

/// Where the gradients of outputs go. It holds the graph for a walk.
pub(super) fn ways_to(outputs: &[AnyTensor]) -> Ways {
    outputs.iter().map(|output| for_any!(output, t => t.edge())).collect()
}

/// One for each output.
pub(super) type Ways = SmallVec<[Edge; 1]>;

/// Starts gradients at the outputs, on their ways. An output without a seed has one element and
/// starts with 1.
pub(super) fn start<'g, S: Sink<'g>>(
    pass: &mut S,
    op: &'static str,
    (outputs, ways): (&[AnyTensor], &'g Ways),
    seeds: &[Option<AnyTensor>],
) -> Result<()> {
    for ((output, way), seed) in outputs.iter().zip(ways).zip(seeds) {
        if output.stop_gradient() {
            continue;
        }
        let seed = match seed {
            Some(seed) if seed.dtype() != output.dtype() => {
                return Err(Error::ElementType {
                    op,
                    parameter: "seed".into(),
                    expected: output.dtype(),
                    found: seed.dtype(),
                });
            }
            Some(seed) if seed.shape() != output.shape() => {
                return Err(Error::SeedShape {
                    op,
                    output: described(output),
                    expected: output.shape().to_vec(),
                    found: seed.shape().to_vec(),
                });
            }
            Some(seed) => seed.clone(),
            None if output.shape().iter().product::<usize>() == 1 => {
                for_any!(output, t => ones_like(t))
            }
            None => {
                return Err(Error::SeedMissing {
                    op,
                    output: described(output),
                    found: output.shape().to_vec(),
                    with: match op {
                        "backward" => Some("backward_with"),
                        "grad" => Some("GradOptions::seeds"),
                        _ => None,
                    },
                });
            }
        };
        pass.deliver(way, seed)?;
    }
    Ok(())
}

/// A tensor by the op that it came from: `the output of mul (called at src/main.rs:7:13)`.
fn described(output: &AnyTensor) -> String {
    match for_any!(output, t => t.producer()) {
        Some((node, _)) => {
            format!("the output of {} (called at {})", node.name(), node.location)
        }
        None => "a leaf tensor".into(),
    }
}

fn ones_like<T: Element>(tensor: &Tensor<T>) -> AnyTensor {
    Tensor::<T>::ones_like(tensor).into()
}

pub(super) fn check_distinct(op: &'static str, name: &str, tensors: &[AnyTensor]) -> Result<()> {
    let again = if tensors.len() <= MAX_SCANNED {
        let same = |i: &usize| tensors[..*i].iter().any(|t| t.address() == tensors[*i].address());
        (1..tensors.len()).find(same)
    } else {
        let mut seen = HashSet::new();
        tensors.iter().position(|tensor| !seen.insert(tensor.address()))
    };
    match again {
        Some(i) => Err(Error::Duplicate { op, parameter: format!("{name}[{i}]") }),
        None => Ok(()),
    }
}

pub(super) fn check_counts(op: &'static str, outputs: usize, seeds: usize) -> Result<()> {
    if outputs == 0 {
        let what = "outputs, or more".into();
        return Err(Error::Count { op, what, expected: 1, found: 0 });
    }
    if outputs != seeds {
        let what = "seeds, one for each output".into();
        return Err(Error::Count { op, what, expected: outputs, found: seeds });
    }
    Ok(())
}
