//! Lengths for the tests of an op: the least that differ wherever the line's expressions differ.

use std::fmt;

use super::bind::{Dims, Lengths};
use super::{Axis, Form, Length, Shapes, TensorShape};

/// No length that a test chooses is greater.
const GREATEST: usize = 64;

/// The lengths of a test.
#[derive(Debug)]
pub struct Chosen {
    line: &'static Shapes,
    lengths: Lengths,
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lengths.fmt(f)
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
    given: &[Option<Vec<Dims>>],
    names: &[(&'static str, Option<usize>)],
    mut f: impl FnMut(&Chosen),
) {
    let names = names.iter().filter_map(|(name, n)| Some((*name, (*n)?)));
    let fixed = match line.bind(given, names) {
        Ok(fixed) => fixed,
        Err((_, why)) => panic!("check(..): {}: {why}", line.op),
    };
    for rank in 0..=2 {
        let variables = line.variables(&fixed, rank);
        let Some(lengths) = variables.chosen(line, &fixed) else {
            panic!("check(..): {}: no lengths up to {GREATEST} fit `{line}` with {fixed}", line.op);
        };
        f(&Chosen { line, lengths });
        if variables.groups.is_empty() {
            break;
        }
    }
}

impl Chosen {
    /// The length of a name.
    #[must_use]
    pub fn of(&self, name: &'static str) -> usize {
        self.lengths.value(&Length::Name(name)).ok().flatten().unwrap_or_default()
    }

    /// The shape of an input; of a list, that of each tensor.
    ///
    /// # Panics
    ///
    /// If the line says nothing of the input.
    #[track_caller]
    #[must_use]
    pub fn shape(&self, input: &str) -> Vec<usize> {
        let dims = self.input(input).axes.map(|axes| self.lengths.dims(axes));
        match dims {
            Some(Ok(dims)) => dims.into_iter().map(|n| n.unwrap_or(2)).collect(),
            _ => {
                panic!("check(..): `shapes(..)` does not say the shape of `{input}`; give it here")
            }
        }
    }

    /// How many tensors a list has.
    #[must_use]
    pub fn count(&self, input: &str) -> usize {
        self.lengths.value(&self.input(input).count).ok().flatten().unwrap_or(2)
    }

    fn input(&self, name: &str) -> TensorShape {
        let any = TensorShape { form: Form::One, axes: None, count: Length::Any };
        self.line.inputs.iter().find(|(of, _)| *of == name).map_or(any, |(_, shape)| *shape)
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
    names: Vec<&'static str>,
    groups: Vec<&'static str>,
    rank: usize,
}

impl Shapes {
    fn shapes(&self) -> impl Iterator<Item = &'static TensorShape> {
        self.inputs.iter().map(|(_, shape)| shape).chain(self.outputs)
    }

    /// The names of groups, each once for each shape that has it.
    fn groups(&self) -> impl Iterator<Item = &'static str> {
        self.shapes().flat_map(|shape| shape.axes.unwrap_or_default()).flat_map(|axis| match axis {
            Axis::Many(name) => vec![*name],
            Axis::Broadcast(a, b) => vec![*a, *b],
            Axis::One(_) => Vec::new(),
        })
    }

    fn variables(&self, fixed: &Lengths, rank: usize) -> Variables {
        let (mut names, groups) = (Vec::new(), self.groups().collect());
        for shape in self.shapes() {
            let mut lengths = vec![shape.count];
            for axis in shape.axes.unwrap_or_default() {
                if let Axis::One(length) = axis {
                    lengths.push(*length);
                }
            }
            for length in lengths {
                length.all(&mut |name| {
                    names.push(name);
                    true
                });
            }
        }
        let distinct = |list: Vec<&'static str>, is_fixed: &dyn Fn(&str) -> bool| {
            let mut seen: Vec<&str> = Vec::new();
            for name in list {
                if !is_fixed(name) && !seen.contains(&name) {
                    seen.push(name);
                }
            }
            seen
        };
        let names = distinct(names, &|name| fixed.has_name(name));
        let groups =
            distinct(groups, &|name| fixed.has_group(name) || self.broadcast_to(name).is_some());
        Variables { names, groups, rank }
    }

    /// The other group, if `name` is the second of `a.. & b..`: its axes are those of the first, or 1.
    fn broadcast_to(&self, name: &str) -> Option<&'static str> {
        let mut axes = self.outputs.iter().flat_map(|shape| shape.axes.unwrap_or_default());
        axes.find_map(|axis| match axis {
            Axis::Broadcast(a, b) if *b == name && a != b => Some(*a),
            _ => None,
        })
    }
}

impl Variables {
    fn chosen(&self, line: &Shapes, fixed: &Lengths) -> Option<Lengths> {
        let count = self.names.len() + self.groups.len() * self.rank;
        // Given lengths may force two expressions to be equal.
        [true, false].into_iter().find_map(|differ| {
            (2..=GREATEST).take_while(|_| count > 0).chain([2]).find_map(|greatest| {
                let fits = |values: &[usize]| {
                    let lengths = self.lengths(line, fixed, values);
                    line.fits(&lengths, differ).then_some(lengths)
                };
                search(&mut Vec::new(), count, greatest, &mut 200_000, &fits)
            })
        })
    }

    fn lengths(&self, line: &Shapes, fixed: &Lengths, values: &[usize]) -> Lengths {
        let (names, axes) = values.split_at(self.names.len());
        let group = |i: usize| axes[i * self.rank..(i + 1) * self.rank].to_vec();
        let groups = self.groups.iter().enumerate().map(|(i, name)| (*name, group(i)));
        let names = self.names.iter().copied().zip(names.iter().copied());
        let lengths = fixed.with(names, groups);
        let broadcast = line.groups().filter(|name| !lengths.has_group(name)).map(|name| {
            let other = line.broadcast_to(name).map(|other| lengths.dims(&[Axis::Many(other)]));
            let mut dims: Vec<usize> = other.into_iter().flatten().flatten().flatten().collect();
            dims.iter_mut().take(1).for_each(|first| *first = 1);
            (name, dims)
        });
        let broadcast: Vec<_> = broadcast.collect();
        lengths.with([].into_iter(), broadcast.into_iter())
    }
}

/// Distinct values from 2 to `greatest`, tried in order.
fn search(
    values: &mut Vec<usize>,
    count: usize,
    greatest: usize,
    tries: &mut usize,
    fits: &impl Fn(&[usize]) -> Option<Lengths>,
) -> Option<Lengths> {
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

impl Shapes {
    /// Whether all lengths of the line are positive and no division rounds; and, if they are to `differ`, whether
    /// they do wherever their expressions do.
    fn fits(&self, lengths: &Lengths, differ: bool) -> bool {
        let mut seen: Vec<(String, usize)> = Vec::new();
        let mut add = |text: String, n: usize| {
            let clash = differ && seen.iter().any(|(other, m)| *m == n && *other != text);
            seen.push((text, n));
            !clash
        };
        let mut group = |name: &'static str| {
            if self.broadcast_to(name).is_some() {
                return true;
            }
            let dims = lengths.dims(&[Axis::Many(name)]).unwrap_or_default();
            dims.into_iter().enumerate().all(|(i, n)| add(format!("{name}.{i}"), n.unwrap_or(1)))
        };
        for shape in self.shapes() {
            for axis in shape.axes.unwrap_or_default() {
                let fit = match axis {
                    Axis::Many(name) => group(name),
                    Axis::One(_) | Axis::Broadcast(..) => true,
                };
                if !fit {
                    return false;
                }
            }
        }
        self.shapes().all(|shape| {
            let axes = shape.axes.unwrap_or_default().iter().filter_map(|axis| match axis {
                Axis::One(length) => Some(*length),
                Axis::Many(_) | Axis::Broadcast(..) => None,
            });
            axes.chain([shape.count]).all(|length| match (length, lengths.value(&length)) {
                (Length::Any, _) => true,
                (_, Ok(Some(n))) => {
                    n > 0 && is_exact(&length, lengths) && add(length.to_string(), n)
                }
                _ => false,
            })
        })
    }
}

fn is_exact(length: &Length, lengths: &Lengths) -> bool {
    match length {
        Length::Computed(left, sign, right) => {
            let divides = || match (lengths.value(left), lengths.value(right)) {
                (Ok(Some(a)), Ok(Some(b))) => b > 0 && a % b == 0,
                _ => false,
            };
            (*sign != '/' || divides()) && is_exact(left, lengths) && is_exact(right, lengths)
        }
        _ => true,
    }
}
