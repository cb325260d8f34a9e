//! Lengths for the tests of an op: the least that differ wherever the line's expressions differ.

use std::fmt;

use super::lengths::{Bound, Shown, TensorShapes, UNKNOWN};
use super::{Axis, Form, Length, Shapes, TensorShape};
use crate::array::Shape;

/// No length that a test chooses is greater.
const GREATEST: usize = 64;

/// The lengths of a test.
#[derive(Debug)]
pub struct Chosen {
    line: &'static Shapes,
    bound: Bound,
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, bound } = self;
        let groups = line.groups.iter().zip(&bound.groups);
        let groups =
            groups.filter_map(|(name, dims)| Some(format!("{name}.. = {}", Shown(dims.as_ref()?))));
        let names = line.names.iter().zip(&bound.names).filter(|(_, n)| **n != UNKNOWN);
        let names = names.map(|(name, n)| format!("{name} = {n}"));
        f.write_str(&groups.chain(names).collect::<Vec<_>>().join(", "))
    }
}

/// Calls `f` with lengths for 0, 1 and 2 axes of each `b..` that the given inputs do not fix.
///
/// # Panics
///
/// If no lengths fit, or those that are given do not.
#[track_caller]
pub fn each_lengths(
    line: &'static Shapes,
    given: &[Option<&dyn TensorShapes>],
    names: &[(&'static str, Option<usize>)],
    f: &dyn Fn(&Chosen),
) {
    let slot = |name: &str| line.names.iter().position(|of| *of == name);
    let names = names.iter().filter_map(|(name, n)| Some((slot(name)?, (*n)?)));
    let bound = match line.bind(&|input| given[input], names) {
        Ok(bound) => bound,
        Err((_, why)) => panic!("check(..): {}: {why}", line.op),
    };
    let fixed = Chosen { line, bound };
    for rank in 0..=2 {
        let variables = fixed.variables(rank);
        let Some(bound) = variables.chosen(&fixed) else {
            panic!("check(..): {}: no lengths up to {GREATEST} fit `{line}` with {fixed}", line.op);
        };
        f(&Chosen { line, bound });
        if variables.groups.is_empty() {
            break;
        }
    }
}

impl Chosen {
    /// The length of a name.
    #[must_use]
    pub fn of(&self, name: &str) -> usize {
        let slot = self.line.names.iter().position(|of| *of == name);
        slot.map(|slot| self.bound.names[slot]).filter(|n| *n != UNKNOWN).unwrap_or_default()
    }

    /// The shape of an input; of a list, that of each tensor.
    ///
    /// # Panics
    ///
    /// If the line says nothing of the input.
    #[track_caller]
    #[must_use]
    pub fn shape(&self, input: &str) -> Vec<usize> {
        let dims = self.input(input).axes.map(|axes| self.bound.dims(axes));
        match dims {
            Some(Ok(dims)) => dims.into_iter().map(|n| if n == UNKNOWN { 2 } else { n }).collect(),
            _ => {
                panic!("check(..): `shapes(..)` does not say the shape of `{input}`; give it here")
            }
        }
    }

    /// How many tensors a list has.
    #[must_use]
    pub fn count(&self, input: &str) -> usize {
        let count = self.bound.value(&self.input(input).count);
        count.ok().filter(|n| *n != UNKNOWN).unwrap_or(2)
    }

    fn input(&self, name: &str) -> TensorShape {
        let any = TensorShape { form: Form::One, axes: None, count: Length::Any };
        self.line.inputs.iter().find(|(of, _)| *of == name).map_or(any, |(_, shape)| *shape)
    }

    fn variables(&self, rank: usize) -> Variables {
        let Self { line, bound } = self;
        let names = (0..line.names.len()).filter(|slot| bound.names[*slot] == UNKNOWN);
        let groups = (0..line.groups.len())
            .filter(|slot| bound.groups[*slot].is_none() && self.broadcast_to(*slot).is_none());
        Variables { names: names.collect(), groups: groups.collect(), rank }
    }

    /// The other group of `a.. & b..`, if this one is not given and the other is, or this is the second: its axes
    /// are those of the other, or 1.
    fn broadcast_to(&self, group: usize) -> Option<usize> {
        let is_given = |group: usize| self.bound.groups[group].is_some();
        let mut axes = self.line.outputs.iter().flat_map(|shape| shape.axes.unwrap_or_default());
        axes.find_map(|axis| match axis {
            Axis::Broadcast((_, a), (_, b)) if a == b => None,
            Axis::Broadcast((_, a), (_, b)) if *b == group => Some(*a),
            Axis::Broadcast((_, a), (_, b)) if *a == group => {
                (is_given(*b) && !is_given(*a)).then_some(*b)
            }
            _ => None,
        })
    }

    /// Whether a length is 0, whatever is chosen.
    fn is_zero(&self, length: &Length) -> bool {
        self.bound.value(length) == Ok(0)
            || match length {
                Length::Computed(left, '*' | '/', right) => {
                    self.is_zero(left) || self.is_zero(right)
                }
                Length::Computed(left, _, right) => self.is_zero(left) && self.is_zero(right),
                _ => false,
            }
    }

    /// Whether all lengths of the line are positive, but for those that must be 0, and no division rounds; and, if
    /// they are to `differ`, whether the positive ones do wherever their expressions do.
    fn fits(&self, bound: &Bound, differ: bool) -> bool {
        let mut seen: Vec<(String, usize)> = Vec::new();
        let mut add = |text: String, n: usize| {
            let clash = differ && n > 0 && seen.iter().any(|(other, m)| *m == n && *other != text);
            seen.push((text, n));
            !clash
        };
        let line = self.line;
        let groups = line.groups.iter().zip(&bound.groups).enumerate();
        for (_, (name, dims)) in groups.filter(|(slot, _)| self.broadcast_to(*slot).is_none()) {
            let mut dims = dims.iter().flatten().enumerate();
            if !dims.all(|(i, n)| add(format!("{name}.{i}"), *n)) {
                return false;
            }
        }
        line.shapes().all(|shape| {
            let axes = shape.axes.unwrap_or_default().iter().filter_map(|axis| match axis {
                Axis::One(length) => Some(length),
                Axis::Many(..) | Axis::Broadcast(..) => None,
            });
            axes.chain([&shape.count]).all(|length| match (length, bound.value(length)) {
                (Length::Any, _) => true,
                (_, Ok(n)) => {
                    n != UNKNOWN
                        && (n > 0 || self.is_zero(length))
                        && is_exact(length, bound)
                        && add(length.to_string(), n)
                }
                _ => false,
            })
        })
    }
}

/// A chosen length as the type of its parameter.
///
/// # Panics
///
/// If the type cannot hold it.
#[must_use]
pub fn integer<I: TryFrom<usize>>(length: usize) -> I {
    I::try_from(length).unwrap_or_else(|_| panic!("a length of {length} does not fit its type"))
}

/// The names and the groups whose lengths are to be chosen.
struct Variables {
    names: Vec<usize>,
    groups: Vec<usize>,
    rank: usize,
}

impl Shapes {
    fn shapes(&self) -> impl Iterator<Item = &'static TensorShape> {
        self.inputs.iter().map(|(_, shape)| shape).chain(self.outputs)
    }
}

impl Variables {
    fn chosen(&self, fixed: &Chosen) -> Option<Bound> {
        let count = self.names.len() + self.groups.len() * self.rank;
        // Given lengths may force two expressions to be equal.
        [true, false].into_iter().find_map(|differ| {
            (2..=GREATEST).take_while(|_| count > 0).chain([2]).find_map(|greatest| {
                let fits = |values: &[usize]| {
                    let bound = self.bound(fixed, values);
                    fixed.fits(&bound, differ).then_some(bound)
                };
                search(&mut Vec::new(), count, greatest, &mut 200_000, &fits)
            })
        })
    }

    fn bound(&self, fixed: &Chosen, values: &[usize]) -> Bound {
        let mut bound = fixed.bound.clone();
        let (names, axes) = values.split_at(self.names.len());
        self.names.iter().zip(names).for_each(|(slot, n)| bound.names[*slot] = *n);
        for (i, slot) in self.groups.iter().enumerate() {
            let dims = &axes[i * self.rank..(i + 1) * self.rank];
            bound.groups[*slot] = Some(Shape::from_slice(dims));
        }
        for slot in 0..bound.groups.len() {
            if bound.groups[slot].is_none() {
                let other = fixed.broadcast_to(slot);
                let mut dims = other.and_then(|of| bound.groups[of].clone()).unwrap_or_default();
                dims.iter_mut().take(1).for_each(|first| *first = 1);
                bound.groups[slot] = Some(dims);
            }
        }
        bound
    }
}

/// Distinct values from 2 to `greatest`, tried in order.
fn search(
    values: &mut Vec<usize>,
    count: usize,
    greatest: usize,
    tries: &mut usize,
    fits: &impl Fn(&[usize]) -> Option<Bound>,
) -> Option<Bound> {
    if values.len() == count {
        *tries = tries.checked_sub(1)?;
        return fits(values);
    }
    for value in 2..=greatest {
        if !values.contains(&value) {
            values.push(value);
            let found = search(values, count, greatest, tries, fits);
            values.pop();
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

fn is_exact(length: &Length, bound: &Bound) -> bool {
    match length {
        Length::Computed(left, sign, right) => {
            let divides = || match (bound.value(left), bound.value(right)) {
                (Ok(a), Ok(b)) => b > 0 && a % b == 0,
                _ => false,
            };
            (*sign != '/' || divides()) && is_exact(left, bound) && is_exact(right, bound)
        }
        _ => true,
    }
}
