//! Which lengths the names of a line have in a call, and whether its tensors fit.

use std::fmt;

use super::{Axis, Form, Length, Shapes, TensorShape};

/// The lengths of a shape; `None` for one that is not known before a run.
pub type Dims = Vec<Option<usize>>;

/// The lengths that the names of a line have.
#[derive(Clone, Debug, Default)]
pub(super) struct Lengths {
    names: Vec<(&'static str, Option<usize>, Place)>,
    groups: Vec<(&'static str, Dims, Place)>,
}

/// Where a name got its length.
#[derive(Clone, Debug)]
enum Place {
    Axis(usize, String),
    Count(String),
    Integer,
    /// A test has chosen it.
    Chosen,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Axis(axis, tensor) => write!(f, "axis {axis} of `{tensor}`"),
            Self::Count(list) => write!(f, "the number of tensors in `{list}`"),
            Self::Integer | Self::Chosen => f.write_str("a given length"),
        }
    }
}

struct Shown<'a>(&'a [Option<usize>]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.0.iter().map(|n| n.map_or_else(|| "_".to_owned(), |n| n.to_string()));
        write!(f, "[{}]", each.collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups =
            self.groups.iter().map(|(name, dims, _)| format!("{name}.. = {}", Shown(dims)));
        let names = self.names.iter().map(|(name, n, _)| match n {
            Some(n) => format!("{name} = {n}"),
            None => format!("{name} = _"),
        });
        f.write_str(&groups.chain(names).collect::<Vec<_>>().join(", "))
    }
}

/// The parameter that does not fit, and why.
pub(super) type Misfit = (String, String);

impl Shapes {
    /// The lengths that inputs of these shapes have, one list of shapes for each input. `None`: not known yet.
    pub(super) fn bind(
        &self,
        inputs: &[Option<Vec<Dims>>],
        integers: impl IntoIterator<Item = (&'static str, usize)>,
    ) -> Result<Lengths, Misfit> {
        let integers = integers.into_iter().map(|(name, n)| (name, Some(n), Place::Integer));
        let mut lengths = Lengths { names: integers.collect(), groups: Vec::new() };
        // Names in optional inputs and computed lengths are compared with what the others fix.
        let order = |optional| {
            let given = self
                .inputs
                .iter()
                .zip(inputs)
                .filter_map(|(of, shapes)| Some((of, shapes.as_ref()?)));
            given.filter(move |((_, of), _)| (of.form == Form::Optional) == optional)
        };
        let all = || order(false).chain(order(true));
        for ((name, shape), tensors) in all() {
            lengths.input(name, shape, tensors)?;
        }
        let mut computed: Vec<(Place, Length, Option<usize>)> = Vec::new();
        for ((name, shape), tensors) in all() {
            computed.extend(computed_lengths(name, shape, tensors));
        }
        while let Some((name, solved, place)) =
            computed.iter().find_map(|(place, length, found)| lengths.solved(place, length, *found))
        {
            let solved = solved?;
            lengths.names.retain(|(of, ..)| *of != name);
            lengths.names.push((name, solved, place));
        }
        for (place, length, found) in computed {
            let parameter = place.parameter();
            let misfit = |why: String| (parameter.clone(), format!("{place}: {why}"));
            if let (Some(expected), Some(found)) = (lengths.value(&length).map_err(misfit)?, found)
                && expected != found
            {
                return Err(misfit_of(&parameter, &place, found, expected, &length));
            }
        }
        Ok(lengths)
    }

    /// The shapes of the outputs, one for each value of forward; of a list, that of each tensor.
    pub(super) fn outputs_of(&self, lengths: &Lengths) -> Result<Vec<Option<Dims>>, Misfit> {
        let shape = |shape: &TensorShape| {
            lengths.value(&shape.count)?;
            shape.axes.map(|axes| lengths.dims(axes)).transpose()
        };
        let of_output = |why| ("the output".to_owned(), format!("the output of forward: {why}"));
        self.outputs.iter().map(shape).collect::<Result<_, String>>().map_err(of_output)
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
        let integers = self.integers.iter().copied().zip(integers.iter().copied());
        let inputs: Vec<_> = inputs.iter().cloned().map(Some).collect();
        let outputs = self.bind(&inputs, integers).and_then(|lengths| self.outputs_of(&lengths));
        outputs.map_err(|(_, why)| format!("{}: {why}", self.op))
    }

    /// Why an output does not fit, if it does not.
    pub(super) fn misfit_of_outputs(
        &self,
        lengths: &Lengths,
        outputs: &[Vec<Dims>],
    ) -> Result<(), Misfit> {
        let expected = self.outputs_of(lengths)?;
        for (position, ((shape, expected), found)) in
            self.outputs.iter().zip(expected).zip(outputs).enumerate()
        {
            let Some(expected) = expected else { continue };
            let which = match self.outputs.len() {
                1 => "the output".to_owned(),
                _ => format!("output {position}"),
            };
            let misfit = |why: String| Err((which.clone(), format!("{which} of forward {why}")));
            for found in found {
                let fits = found.len() == expected.len()
                    && found
                        .iter()
                        .zip(&expected)
                        .all(|(a, b)| a.is_none() || b.is_none() || a == b);
                if !fits {
                    let says = TensorShape { form: Form::One, ..*shape };
                    let (found, expected) = (Shown(found), Shown(&expected));
                    return misfit(format!(
                        "is {found}, but `shapes(..)` says {says} = {expected}"
                    ));
                }
            }
            let count = lengths.value(&shape.count).ok().flatten();
            if let Some(count) = count.filter(|n| shape.form == Form::List && *n != found.len()) {
                let found = found.len();
                return misfit(format!(
                    "has {found} tensors, but `shapes(..)` says {shape}: {count}"
                ));
            }
        }
        Ok(())
    }
}

fn misfit_of(
    parameter: &str,
    place: &Place,
    found: usize,
    expected: usize,
    length: &Length,
) -> Misfit {
    let because = match length {
        Length::Number(_) => String::new(),
        length => format!(" ({length})"),
    };
    (parameter.to_owned(), format!("{place} is {found}, must be {expected}{because}"))
}

/// The name of a tensor of an input.
fn tensor_name(name: &str, shape: &TensorShape, item: usize) -> String {
    if shape.form == Form::List { format!("{name}[{item}]") } else { name.to_owned() }
}

/// The axes with one length of a tensor's shape that fits the line, with their positions.
fn lengths_of<'a>(
    axes: &'static [Axis],
    dims: &'a [Option<usize>],
) -> impl Iterator<Item = (usize, Length, Option<usize>)> + use<'a> {
    let more = dims.len() + 1 - axes.len().min(dims.len() + 1);
    let mut position = 0;
    axes.iter().filter_map(move |axis| {
        let at = position;
        match axis {
            Axis::One(length) => {
                position += 1;
                Some((at, *length, dims[at]))
            }
            Axis::Many(_) | Axis::Broadcast(..) => {
                position += more;
                None
            }
        }
    })
}

fn is_computed(length: &Length) -> bool {
    matches!(length, Length::Computed(..) | Length::Number(_))
}

fn computed_lengths(
    name: &str,
    shape: &TensorShape,
    tensors: &[Dims],
) -> Vec<(Place, Length, Option<usize>)> {
    let mut computed = Vec::new();
    for (item, dims) in tensors.iter().enumerate() {
        for (axis, length, found) in lengths_of(shape.axes.unwrap_or_default(), dims) {
            if is_computed(&length) && shape.axes.is_some() {
                let place = Place::Axis(axis, tensor_name(name, shape, item));
                computed.push((place, length, found));
            }
        }
    }
    if shape.form == Form::List && is_computed(&shape.count) {
        computed.push((Place::Count(name.to_owned()), shape.count, Some(tensors.len())));
    }
    computed
}

impl Place {
    fn parameter(&self) -> String {
        match self {
            Self::Axis(_, name) | Self::Count(name) => name.clone(),
            Self::Integer | Self::Chosen => String::new(),
        }
    }
}

impl Lengths {
    /// The ranks of an input, and the names that stand alone.
    fn input(&mut self, name: &str, shape: &TensorShape, tensors: &[Dims]) -> Result<(), Misfit> {
        let Some(axes) = shape.axes else { return Ok(()) };
        let group = axes.iter().find_map(|axis| match axis {
            Axis::Many(group) => Some(*group),
            _ => None,
        });
        let single = axes.len() - usize::from(group.is_some());
        if let (Form::List, Length::Name(count)) = (shape.form, shape.count) {
            self.name(count, Some(tensors.len()), Place::Count(name.to_owned()))?;
        }
        for (item, dims) in tensors.iter().enumerate() {
            let tensor = tensor_name(name, shape, item);
            if dims.len() < single || group.is_none() && dims.len() != single {
                let says = TensorShape { form: Form::One, ..*shape };
                let dims = Shown(dims);
                let why = format!("`{tensor}` has the shape {dims}, but `shapes(..)` says {says}");
                return Err((tensor, why));
            }
            if let Some(group) = group {
                let start = axes.iter().position(|axis| matches!(axis, Axis::Many(_)));
                let start = start.unwrap_or_default();
                let found = dims[start..start + dims.len() - single].to_vec();
                self.group(group, found, Place::Axis(start, tensor.clone()))?;
            }
            for (axis, length, found) in lengths_of(axes, dims) {
                if let Length::Name(length) = length {
                    self.name(length, found, Place::Axis(axis, tensor.clone()))?;
                }
            }
        }
        Ok(())
    }

    fn name(
        &mut self,
        name: &'static str,
        found: Option<usize>,
        place: Place,
    ) -> Result<(), Misfit> {
        let Some((_, known, first)) = self.names.iter_mut().find(|(of, ..)| *of == name) else {
            self.names.push((name, found, place));
            return Ok(());
        };
        match (&known, found) {
            (Some(known), Some(found)) if *known != found => {
                let why = match first {
                    Place::Integer => format!("{place} is {found}, but `{name}` is {known}"),
                    first => format!("{place} is {found}, but {first} is {known} ({name})"),
                };
                Err((place.parameter(), why))
            }
            _ => {
                *known = known.or(found);
                Ok(())
            }
        }
    }

    fn group(&mut self, name: &'static str, found: Dims, place: Place) -> Result<(), Misfit> {
        let Some((_, known, first)) = self.groups.iter_mut().find(|(of, ..)| *of == name) else {
            self.groups.push((name, found, place));
            return Ok(());
        };
        let fits = known.len() == found.len()
            && known.iter().zip(&found).all(|(a, b)| a.is_none() || b.is_none() || a == b);
        if !fits {
            let (tensor, before) = (place.parameter(), first.parameter());
            let (found, known) = (Shown(&found), Shown(known));
            let why = format!("`{name}..` is {found} in `{tensor}`, but {known} in `{before}`");
            return Err((tensor, why));
        }
        known.iter_mut().zip(found).for_each(|(known, found)| *known = known.or(found));
        Ok(())
    }

    /// The value of a length: `None` if it is not known, an error if it is negative.
    pub(super) fn value(&self, length: &Length) -> Result<Option<usize>, String> {
        Ok(match length {
            Length::Any => None,
            Length::Number(number) => Some(*number),
            Length::Name(name) => {
                self.names.iter().find(|(of, ..)| of == name).and_then(|(_, value, _)| *value)
            }
            Length::Computed(left, sign, right) => {
                let (Some(a), Some(b)) = (self.value(left)?, self.value(right)?) else {
                    return Ok(None);
                };
                let value = match sign {
                    '+' => a.checked_add(b),
                    '-' => a.checked_sub(b),
                    '*' => a.checked_mul(b),
                    _ => a.checked_div(b),
                };
                Some(value.ok_or_else(|| {
                    let what = if *sign == '-' { "negative" } else { "no length" };
                    let sides = [(left, a), (right, b)];
                    let named = sides.iter().filter(|(side, _)| !matches!(side, Length::Number(_)));
                    let named: Vec<_> = named.map(|(side, n)| format!("{side} is {n}")).collect();
                    format!("{length} is {what}: {}", named.join(", "))
                })?)
            }
        })
    }

    /// The only name in the length that has no value yet, with the value that this axis gives it.
    #[allow(clippy::type_complexity, reason = "a name, its length, or why there is none")]
    fn solved(
        &self,
        place: &Place,
        length: &Length,
        found: Option<usize>,
    ) -> Option<(&'static str, Result<Option<usize>, Misfit>, Place)> {
        let (name, value) = self.solve(length, found)?;
        let value = value.map_err(|divisor| {
            let found = found.unwrap_or_default();
            let why = format!("{place} is {found}, must be {divisor} ({length})");
            (place.parameter(), why)
        });
        Some((name, value, place.clone()))
    }

    #[allow(clippy::type_complexity, reason = "as of `solved`")]
    fn solve(
        &self,
        length: &Length,
        found: Option<usize>,
    ) -> Option<(&'static str, Result<Option<usize>, String>)> {
        match length {
            Length::Name(name) => {
                let lacks = !self.has_name(name) || found.is_some() && !self.has_value(name);
                lacks.then_some((*name, Ok(found)))
            }
            Length::Computed(left, sign, right) => {
                let is_known = |of: &Length| of.all(&mut |name| self.has_value(name));
                let (side, other) = match (is_known(left), is_known(right)) {
                    (false, true) => (left, right),
                    (true, false) => (right, left),
                    _ => return None,
                };
                let (Some(other), Some(found)) = (self.value(other).ok()?, found) else {
                    return self.solve(side, None);
                };
                let value = match (sign, std::ptr::eq(side, left)) {
                    ('+', _) => found.checked_sub(other).ok_or(format!("at least {other}")),
                    ('-', true) => Ok(found + other),
                    ('-', false) => other.checked_sub(found).ok_or(format!("at most {other}")),
                    ('*', _) if other == 0 => Ok(0),
                    ('*', _) if !found.is_multiple_of(other) => {
                        Err(format!("a multiple of {other}"))
                    }
                    ('*', _) => Ok(found / other),
                    _ => return None,
                };
                match value {
                    Ok(value) => self.solve(side, Some(value)),
                    Err(why) => self.solve(side, None).map(|(name, _)| (name, Err(why))),
                }
            }
            Length::Any | Length::Number(_) => None,
        }
    }

    fn has_value(&self, name: &str) -> bool {
        self.names.iter().any(|(of, n, _)| *of == name && n.is_some())
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        self.names.iter().any(|(of, ..)| *of == name)
    }

    pub(super) fn has_group(&self, name: &str) -> bool {
        self.groups.iter().any(|(of, ..)| *of == name)
    }

    /// With a chosen length of a name, and chosen lengths of a group.
    pub(super) fn with(
        &self,
        names: impl Iterator<Item = (&'static str, usize)>,
        groups: impl Iterator<Item = (&'static str, Vec<usize>)>,
    ) -> Self {
        let mut lengths = self.clone();
        lengths.names.extend(names.map(|(name, n)| (name, Some(n), Place::Chosen)));
        let known = |(name, dims): (_, Vec<usize>)| {
            (name, dims.into_iter().map(Some).collect(), Place::Chosen)
        };
        lengths.groups.extend(groups.map(known));
        lengths
    }

    pub(super) fn dims(&self, axes: &[Axis]) -> Result<Dims, String> {
        let group = |name: &str| {
            self.groups.iter().find(|(of, ..)| *of == name).map_or(&[][..], |(_, dims, _)| dims)
        };
        let mut dims = Dims::new();
        for axis in axes {
            match axis {
                Axis::One(length) => dims.push(self.value(length)?),
                Axis::Many(name) => dims.extend(group(name)),
                Axis::Broadcast(a, b) => dims.extend(broadcast(group(a), group(b))?),
            }
        }
        Ok(dims)
    }
}

impl Length {
    /// Whether all names are so.
    pub(super) fn all(&self, is: &mut dyn FnMut(&'static str) -> bool) -> bool {
        match self {
            Self::Name(name) => is(name),
            Self::Computed(left, _, right) => left.all(is) && right.all(is),
            Self::Any | Self::Number(_) => true,
        }
    }
}

fn broadcast(a: &[Option<usize>], b: &[Option<usize>]) -> Result<Dims, String> {
    let rank = a.len().max(b.len());
    let at = |dims: &[Option<usize>], i: usize| {
        (i + dims.len()).checked_sub(rank).map_or(Some(1), |position| dims[position])
    };
    let each = (0..rank).map(|i| match (at(a, i), at(b, i)) {
        (x, y) if x == y => Ok(x),
        (Some(1), other) | (other, Some(1)) => Ok(other),
        // One that is longer than 1 is the result, whatever the other is.
        (None, known) | (known, None) => Ok(known),
        _ => Err(format!("{} and {} cannot be broadcast together", Shown(a), Shown(b))),
    });
    each.collect()
}
