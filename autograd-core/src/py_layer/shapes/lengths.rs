//! Which lengths the names of a line have in a call, and whether its tensors fit.

use std::fmt;

use smallvec::{SmallVec, smallvec};

use super::{Axis, Form, Length, Shapes, TensorShape};
use crate::array::Shape;

/// The lengths of a shape; `None` for one that is not known before a run.
///
/// ```
/// use autograd_core::prelude::*;
/// use autograd_core::shapes::Dims;
///
/// #[py_layer(no_grad, shapes(x: [n, m] -> [n]))]
/// impl RowSums {
///     fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
///         x.sum_axes(1)
///     }
/// }
///
/// let sums_of = |x: Dims| RowSums::SHAPES.infer(&[vec![x]], &[]).unwrap().remove(0);
/// assert_eq!(sums_of(vec![Some(2), Some(3)]), Some(vec![Some(2)]));
/// assert_eq!(sums_of(vec![None, Some(3)]), Some(vec![None]));
/// ```
pub type Dims = Vec<Option<usize>>;

/// A length that is not known.
pub(super) const UNKNOWN: usize = usize::MAX;

/// The parameter that does not fit, and why.
pub(super) type Misfit = (String, String);

/// The shapes of the tensors of an input or output.
#[doc(hidden)]
pub trait TensorShapes {
    fn count(&self) -> usize;
    fn shape(&self, item: usize) -> &[usize];
}

/// The shapes of an input, by its position; `None` for one that is not given.
pub(super) type Given<'g> = dyn Fn(usize) -> Option<&'g dyn TensorShapes> + 'g;

/// The lengths that the names and groups of a line have, by their numbers.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Bound {
    pub(super) names: SmallVec<[usize; 8]>,
    pub(super) groups: SmallVec<[Option<Shape>; 2]>,
}

#[derive(Clone, Copy)]
enum Place {
    Axis { input: usize, item: usize, axis: usize },
    Count { input: usize },
}

/// What an input has: a length at a place, or the lengths of a group.
enum Part<'g> {
    Length(Place, &'static Length, usize),
    Group(Place, usize, &'g [usize]),
}

/// A shape with `_` for lengths that are not known.
pub(super) struct Shown<'a>(pub(super) &'a [usize]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.0.iter().map(|n| match *n {
            UNKNOWN => "_".to_owned(),
            n => n.to_string(),
        });
        write!(f, "[{}]", each.collect::<Vec<_>>().join(", "))
    }
}

fn fits(found: &[usize], expected: &[usize]) -> bool {
    let both = || found.iter().zip(expected);
    found.len() == expected.len() && both().all(|(a, b)| a == b || *a == UNKNOWN || *b == UNKNOWN)
}

impl Shapes {
    /// The lengths that these inputs have. `integers` are the lengths of the first names.
    pub(super) fn bind(
        &self,
        given: &Given<'_>,
        integers: impl Iterator<Item = (usize, usize)>,
    ) -> Result<Bound, Misfit> {
        let mut bound = Bound {
            names: smallvec![UNKNOWN; self.names.len()],
            groups: smallvec![None; self.groups.len()],
        };
        integers.for_each(|(slot, n)| bound.names[slot] = n);
        let (fixed, mut is_computed) = (bound.names.clone(), false);
        self.each_part(given, &mut |part| match part {
            Part::Length(place, &Length::Name(name, slot), found) => {
                let known = &mut bound.names[slot];
                if *known == UNKNOWN {
                    *known = found;
                }
                match *known == found || found == UNKNOWN {
                    true => Ok(()),
                    false => {
                        Err(self.other_length(given, &fixed, (name, slot), place, found, *known))
                    }
                }
            }
            Part::Group(place, slot, found) => match &mut bound.groups[slot] {
                Some(known) if !fits(found, known) => {
                    Err(self.other_group(given, slot, place, found, known))
                }
                Some(known) => {
                    let merge =
                        |(known, found): (&mut usize, &usize)| *known = (*known).min(*found);
                    known.iter_mut().zip(found).for_each(merge);
                    Ok(())
                }
                free => {
                    *free = Some(Shape::from_slice(found));
                    Ok(())
                }
            },
            Part::Length(_, length, _) => {
                is_computed |= !matches!(length, Length::Any);
                Ok(())
            }
        })?;
        if !is_computed {
            return Ok(bound);
        }
        // Names in computed lengths, and these, are compared with what the others fix.
        let mut is_solving = true;
        while is_solving {
            is_solving = false;
            self.each_part(given, &mut |part| match part {
                Part::Length(place, length @ Length::Computed(..), found) => {
                    is_solving |= bound.solve(length, found).map_err(|divisor| {
                        let place_text = self.text_of(place);
                        let why = format!("{place_text} is {found}, must be {divisor} ({length})");
                        (self.parameter(place), why)
                    })?;
                    Ok(())
                }
                _ => Ok(()),
            })?;
        }
        self.each_part(given, &mut |part| match part {
            Part::Length(place, length @ (Length::Computed(..) | Length::Number(_)), found) => {
                let misfit = |why| (self.parameter(place), format!("{}{why}", self.text_of(place)));
                let expected = bound.value(length).map_err(|why| misfit(format!(": {why}")))?;
                if expected == found || expected == UNKNOWN || found == UNKNOWN {
                    return Ok(());
                }
                let because = match length {
                    Length::Number(_) => String::new(),
                    length => format!(" ({length})"),
                };
                Err(misfit(format!(" is {found}, must be {expected}{because}")))
            }
            _ => Ok(()),
        })?;
        Ok(bound)
    }

    /// Calls `see` with all parts of the inputs whose shapes the line says; those of optional inputs are last. An
    /// error if a tensor has another number of axes.
    fn each_part<'g>(
        &self,
        given: &Given<'g>,
        see: &mut dyn FnMut(Part<'g>) -> Result<(), Misfit>,
    ) -> Result<(), Misfit> {
        let of = |optional| {
            let inputs = self.inputs.iter().enumerate();
            inputs.filter(move |(_, (_, shape))| (shape.form == Form::Optional) == optional)
        };
        for (input, (_, shape)) in of(false).chain(of(true)) {
            let (Some(axes), Some(tensors)) = (shape.axes, given(input)) else { continue };
            if shape.form == Form::List {
                see(Part::Length(Place::Count { input }, &shape.count, tensors.count()))?;
            }
            let is_group = |axis: &Axis| !matches!(axis, Axis::One(_));
            let (groups, single) = match axes.iter().any(is_group) {
                true => (true, axes.len() - 1),
                false => (false, axes.len()),
            };
            for item in 0..tensors.count() {
                let (dims, mut axis) = (tensors.shape(item), 0);
                let more = dims.len().checked_sub(single).filter(|more| groups || *more == 0);
                let Some(more) = more else {
                    let says = TensorShape { form: Form::One, ..*shape };
                    let (tensor, dims) = (self.tensor(input, item), Shown(dims));
                    let why =
                        format!("`{tensor}` has the shape {dims}, but `shapes(..)` says {says}");
                    return Err((tensor, why));
                };
                for of in axes {
                    let place = Place::Axis { input, item, axis };
                    match of {
                        Axis::One(length) => {
                            see(Part::Length(place, length, dims[axis]))?;
                            axis += 1;
                        }
                        Axis::Many(_, slot) => {
                            see(Part::Group(place, *slot, &dims[axis..axis + more]))?;
                            axis += more;
                        }
                        // An input has no such axes.
                        Axis::Broadcast(..) => {}
                    }
                }
            }
        }
        Ok(())
    }

    fn tensor(&self, input: usize, item: usize) -> String {
        let (name, shape) = self.inputs[input];
        if shape.form == Form::List { format!("{name}[{item}]") } else { name.to_owned() }
    }

    fn parameter(&self, place: Place) -> String {
        match place {
            Place::Axis { input, item, .. } => self.tensor(input, item),
            Place::Count { input } => self.inputs[input].0.to_owned(),
        }
    }

    fn text_of(&self, place: Place) -> String {
        let of = self.parameter(place);
        match place {
            Place::Axis { axis, .. } => format!("axis {axis} of `{of}`"),
            Place::Count { .. } => format!("the number of tensors in `{of}`"),
        }
    }

    /// The first place among the inputs that is so.
    fn first(&self, given: &Given<'_>, is: impl Fn(&Part<'_>) -> bool) -> Option<Place> {
        let mut found = None;
        // An error ends the search: a tensor behind the place may have another number of axes.
        let _ = self.each_part(given, &mut |part| {
            if found.is_none() && is(&part) {
                let (Part::Length(place, ..) | Part::Group(place, ..)) = part;
                found = Some(place);
            }
            Ok(())
        });
        found
    }

    #[cold]
    fn other_length(
        &self,
        given: &Given<'_>,
        fixed: &[usize],
        (name, slot): (&str, usize),
        place: Place,
        found: usize,
        known: usize,
    ) -> Misfit {
        let is = |part: &Part<'_>| matches!(part, Part::Length(_, Length::Name(_, of), n) if *of == slot && *n != UNKNOWN);
        let first = self.first(given, is).filter(|_| fixed[slot] == UNKNOWN);
        let here = self.text_of(place);
        let why = match first {
            Some(first) => {
                format!("{here} is {found}, but {} is {known} ({name})", self.text_of(first))
            }
            None => format!("{here} is {found}, but `{name}` is {known}"),
        };
        (self.parameter(place), why)
    }

    #[cold]
    fn other_group(
        &self,
        given: &Given<'_>,
        slot: usize,
        place: Place,
        found: &[usize],
        known: &[usize],
    ) -> Misfit {
        let first = self.first(given, |part| matches!(part, Part::Group(_, of, _) if *of == slot));
        let before = first.map(|first| self.parameter(first)).unwrap_or_default();
        let (tensor, name) = (self.parameter(place), self.groups[slot]);
        let (found, known) = (Shown(found), Shown(known));
        let why = format!("`{name}..` is {found} in `{tensor}`, but {known} in `{before}`");
        (tensor, why)
    }

    /// Calls `see` with the shape of each output, and its number of tensors if it is a list; `None` where the line
    /// says `_`.
    pub(super) fn each_output(
        &self,
        bound: &Bound,
        mut see: impl FnMut(usize, Option<(Shape, usize)>) -> Result<(), Misfit>,
    ) -> Result<(), Misfit> {
        for (position, shape) in self.outputs.iter().enumerate() {
            let expected = || {
                let count = bound.value(&shape.count)?;
                shape.axes.map(|axes| Ok((bound.dims(axes)?, count))).transpose()
            };
            let of_output =
                |why: String| ("the output".to_owned(), format!("the output of forward: {why}"));
            see(position, expected().map_err(of_output)?)?;
        }
        Ok(())
    }

    /// The shapes of the outputs of a call, one for each value of forward: `None` where the line says `_`.
    /// `inputs` has one list of shapes for each tensor input: one shape, or none for an absent input, or one
    /// for each tensor of a list. A length that is not known is `None`, and so are those computed from it.
    ///
    /// # Errors
    ///
    /// The reason, if the inputs do not fit the line.
    ///
    /// ```
    /// use autograd_core::prelude::*;
    ///
    /// #[py_layer(no_grad, shapes(x: [n, m] -> [m, n]))]
    /// impl Transposed {
    ///     fn forward(_: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
    ///         x.t()
    ///     }
    /// }
    ///
    /// let outputs = Transposed::SHAPES.infer(&[vec![vec![None, Some(3)]]], &[]);
    /// assert_eq!(outputs, Ok(vec![Some(vec![Some(3), None])]));
    /// let error = Transposed::SHAPES.infer(&[vec![vec![Some(3)]]], &[]).unwrap_err();
    /// assert_eq!(error, "Transposed: `x` has the shape [3], but `shapes(..)` says [n, m]");
    /// ```
    pub fn infer(
        &self,
        inputs: &[Vec<Dims>],
        integers: &[usize],
    ) -> Result<Vec<Option<Dims>>, String> {
        let lengths = |dims: &Dims| dims.iter().map(|n| n.unwrap_or(UNKNOWN)).collect();
        let inputs: Vec<Vec<Vec<usize>>> =
            inputs.iter().map(|input| input.iter().map(lengths).collect()).collect();
        let given = |input: usize| Some(inputs.get(input)? as &dyn TensorShapes);
        let mut outputs = Vec::new();
        let found = self.bind(&given, integers.iter().copied().enumerate()).and_then(|bound| {
            self.each_output(&bound, |_, output| {
                let known = |n: usize| (n != UNKNOWN).then_some(n);
                outputs.push(output.map(|(dims, _)| dims.into_iter().map(known).collect()));
                Ok(())
            })
        });
        found.map(|()| outputs).map_err(|(_, why)| format!("{}: {why}", self.op))
    }

    /// Returns why an output does not fit, if it does not.
    pub(super) fn check_outputs(
        &self,
        bound: &Bound,
        outputs: &[&dyn TensorShapes],
    ) -> Result<(), Misfit> {
        self.each_output(bound, |position, expected| {
            let (Some((expected, count)), shape) = (expected, &self.outputs[position]) else {
                return Ok(());
            };
            let misfit = |why: String| {
                let which = match self.outputs.len() {
                    1 => "the output".to_owned(),
                    _ => format!("output {position}"),
                };
                Err((which.clone(), format!("{which} of forward {why}")))
            };
            let Some(found) = outputs.get(position) else { return Ok(()) };
            let mut shapes = (0..found.count()).map(|item| found.shape(item));
            if let Some(other) = shapes.find(|dims| !fits(dims, &expected)) {
                let says = TensorShape { form: Form::One, ..*shape };
                let (other, expected) = (Shown(other), Shown(&expected));
                return misfit(format!("is {other}, but `shapes(..)` says {says} = {expected}"));
            }
            if shape.form == Form::List && count != UNKNOWN && count != found.count() {
                let found = found.count();
                return misfit(format!(
                    "has {found} tensors, but `shapes(..)` says {shape}: {count}"
                ));
            }
            Ok(())
        })
    }
}

impl Bound {
    /// The value of a length, which may be unknown, or why it has none.
    pub(super) fn value(&self, length: &Length) -> Result<usize, String> {
        Ok(match length {
            Length::Any => UNKNOWN,
            Length::Number(number) => *number,
            Length::Name(_, slot) => self.names[*slot],
            Length::Computed(left, sign, right) => {
                let (a, b) = (self.value(left)?, self.value(right)?);
                if a == UNKNOWN || b == UNKNOWN {
                    return Ok(UNKNOWN);
                }
                let value = match sign {
                    '+' => a.checked_add(b),
                    '-' => a.checked_sub(b),
                    '*' => a.checked_mul(b),
                    _ => a.checked_div(b),
                };
                value.filter(|n| *n != UNKNOWN).ok_or_else(|| {
                    let what = if *sign == '-' { "negative" } else { "no length" };
                    let sides = [(left, a), (right, b)];
                    let named = sides.iter().filter(|(side, _)| !matches!(side, Length::Number(_)));
                    let named: Vec<_> = named.map(|(side, n)| format!("{side} is {n}")).collect();
                    format!("{length} is {what}: {}", named.join(", "))
                })?
            }
        })
    }

    /// Gives the only name without a value the one that it has if the length is `found`; whether there is such a
    /// name. An error says what the length must be.
    fn solve(&mut self, length: &Length, found: usize) -> Result<bool, String> {
        match length {
            Length::Name(_, slot) if found != UNKNOWN && self.names[*slot] == UNKNOWN => {
                self.names[*slot] = found;
                Ok(true)
            }
            Length::Computed(left, sign, right) => {
                // A length that has no value is reported when it is compared.
                let value = |of| self.value(of).unwrap_or(UNKNOWN);
                let (side, other, of_left) = match (value(left), value(right)) {
                    (UNKNOWN, UNKNOWN) => return Ok(false),
                    (UNKNOWN, other) => (left, other, true),
                    (other, UNKNOWN) => (right, other, false),
                    _ => return Ok(false),
                };
                if found == UNKNOWN {
                    return Ok(false);
                }
                let value = match (sign, of_left) {
                    ('+', _) => found.checked_sub(other).ok_or_else(|| format!("at least {other}")),
                    ('-', true) => found
                        .checked_add(other)
                        .ok_or_else(|| format!("at most {}", UNKNOWN - other)),
                    ('-', false) => {
                        other.checked_sub(found).ok_or_else(|| format!("at most {other}"))
                    }
                    ('*', _) if other == 0 => Ok(0),
                    ('*', _) if !found.is_multiple_of(other) => {
                        Err(format!("a multiple of {other}"))
                    }
                    ('*', _) => Ok(found / other),
                    _ => return Ok(false),
                };
                self.solve(side, value?)
            }
            _ => Ok(false),
        }
    }

    /// The lengths of these axes, which may be unknown, or why there are none.
    pub(super) fn dims(&self, axes: &[Axis]) -> Result<Shape, String> {
        let group = |slot: usize| self.groups[slot].as_deref().unwrap_or_default();
        let mut dims = Shape::new();
        for axis in axes {
            match axis {
                Axis::One(length) => dims.push(self.value(length)?),
                Axis::Many(_, slot) => dims.extend_from_slice(group(*slot)),
                Axis::Broadcast((_, a), (_, b)) => broadcast(group(*a), group(*b), &mut dims)?,
            }
        }
        Ok(dims)
    }
}

/// Adds what broadcasting makes of two groups.
fn broadcast(a: &[usize], b: &[usize], dims: &mut Shape) -> Result<(), String> {
    let rank = a.len().max(b.len());
    let at = |dims: &[usize], i: usize| {
        (i + dims.len()).checked_sub(rank).map_or(1, |position| dims[position])
    };
    for i in 0..rank {
        dims.push(match (at(a, i), at(b, i)) {
            (x, y) if x == y => x,
            (1, other) | (other, 1) => other,
            // One that is longer than 1 is the result, whatever the other is.
            (UNKNOWN, known) | (known, UNKNOWN) => known,
            _ => return Err(format!("{} and {} cannot be broadcast together", Shown(a), Shown(b))),
        });
    }
    Ok(())
}
