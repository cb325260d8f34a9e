//! Loading by name: all or nothing, with all differences reported at once.

use std::collections::BTreeMap;

use crate::array::{Value, shape::same};
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Element, Tensor, for_any};

/// Tensors by name.
///
/// ```
/// use autograd_core::nn::{Linear, Module, StateDict};
///
/// /// A copy of all values, to return to.
/// fn copied(module: &impl Module) -> StateDict {
///     module.state_dict().into_iter().map(|(name, tensor)| (name, tensor.copy())).collect()
/// }
///
/// let layer = Linear::<f32>::new(2, 1);
/// let (before, weight) = (copied(&layer), layer.weight.to_vec());
/// autograd_core::no_grad().run(|| layer.weight.fill(0.0))?;
/// layer.load_state_dict(&before)?;
/// assert_eq!(layer.weight.to_vec(), weight);
/// # Ok::<(), autograd_core::Error>(())
/// ```
pub type StateDict = BTreeMap<String, AnyTensor>;

pub(crate) fn load(into: &StateDict, from: &StateDict) -> Result<()> {
    check(into, from)?;
    for tensor in into.values() {
        for_any!(tensor, tensor => tensor.check_write("load_state_dict"))?;
    }
    into.iter().try_for_each(|(name, tensor)| for_any!(tensor, tensor => copy(tensor, &from[name])))
}

pub(crate) fn check(into: &StateDict, from: &StateDict) -> Result<()> {
    let absent = |of: &StateDict, from: &StateDict| -> Vec<String> {
        of.keys().filter(|name| !from.contains_key(*name)).cloned().collect()
    };
    let (missing, unexpected) = (absent(into, from), absent(from, into));
    let both = into.iter().filter_map(|(name, tensor)| Some((name, tensor, from.get(name)?)));
    let differ =
        |a: &AnyTensor, b: &AnyTensor| a.dtype() != b.dtype() || !same(a.shape(), b.shape());
    let mut different: Vec<String> = both
        .filter(|(_, needed, found)| differ(needed, found))
        .map(|(name, needed, found)| {
            let what = |t: &AnyTensor| format!("{:?} of {}", t.shape(), t.dtype());
            format!("`{name}` must be {}, found {}", what(needed), what(found))
        })
        .collect();
    if different.is_empty() {
        different = shared_conflicts(into, from);
    }
    if missing.is_empty() && unexpected.is_empty() && different.is_empty() {
        return Ok(());
    }
    Err(Error::StateDict { op: "load_state_dict", missing, unexpected, different })
}

/// Returns errors for tensors with two names in `into` and two values in `from`, of one shape and type.
fn shared_conflicts(into: &StateDict, from: &StateDict) -> Vec<String> {
    fn same_bits<T: Element>(a: &Tensor<T>, b: &AnyTensor) -> bool {
        // NaN equals NaN: the value after loading would be the same.
        let bits = |t: &Tensor<T>| format!("{:?}", t.to_vec());
        b.downcast_ref::<T>().is_some_and(|b| a.to_vec() == b.to_vec() || bits(a) == bits(b))
    }
    let mut first: BTreeMap<*const (), &String> = BTreeMap::new();
    let mut all = Vec::new();
    for (name, tensor) in into {
        let before = *first.entry(tensor.address()).or_insert(name);
        if let (Some(a), Some(b)) = (from.get(before), from.get(name))
            && before != name
            && !for_any!(a, a => same_bits(a, b))
        {
            all.push(format!("`{before}` and `{name}` are one tensor, but have different values"));
        }
    }
    all
}

fn copy<T: Element>(into: &Tensor<T>, from: &AnyTensor) -> Result<()> {
    let Some(from) = from.downcast_ref::<T>() else { unreachable!("the types were compared") };
    let new: Value<T> = from.read().contiguous().into_owned();
    into.write("load_state_dict", |value| match (value.as_mut_slice(), new.as_slice()) {
        (Some(data), Some(new)) => data.copy_from_slice(new),
        _ => *value = new,
    })
}
