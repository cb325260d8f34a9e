//! Loading by name: all or nothing, and everything that differs told at once.

use crate::array::{Value, shape::same};
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Element, Tensor, for_any};
use crate::safetensors::StateDict;

/// Copies the values of `from` into the tensors of `into`.
pub(crate) fn load(into: &StateDict, from: &StateDict) -> Result<()> {
    check(into, from)?;
    for (name, tensor) in into {
        for_any!(tensor, tensor => copy(tensor, &from[name]));
    }
    Ok(())
}

pub(crate) fn check(into: &StateDict, from: &StateDict) -> Result<()> {
    let absent = |of: &StateDict, from: &StateDict| -> Vec<String> {
        of.keys().filter(|name| !from.contains_key(*name)).cloned().collect()
    };
    let (missing, unexpected) = (absent(into, from), absent(from, into));
    let both = into.iter().filter_map(|(name, tensor)| Some((name, tensor, from.get(name)?)));
    let differ =
        |a: &AnyTensor, b: &AnyTensor| a.dtype() != b.dtype() || !same(a.shape(), b.shape());
    let different: Vec<String> = both
        .filter(|(_, needed, found)| differ(needed, found))
        .map(|(name, needed, found)| {
            let what = |t: &AnyTensor| format!("{:?} of {}", t.shape(), t.dtype());
            format!("`{name}` must be {}, found {}", what(needed), what(found))
        })
        .collect();
    if missing.is_empty() && unexpected.is_empty() && different.is_empty() {
        return Ok(());
    }
    Err(Error::StateDict { op: "load_state_dict", missing, unexpected, different })
}

fn copy<T: Element>(into: &Tensor<T>, from: &AnyTensor) {
    let Some(from) = from.downcast_ref::<T>() else { unreachable!("the types were compared") };
    let new: Value<T> = from.read().contiguous().into_owned();
    into.write(|value| match (value.as_mut_slice(), new.as_slice()) {
        (Some(data), Some(new)) => data.copy_from_slice(new),
        _ => *value = new,
    });
}
