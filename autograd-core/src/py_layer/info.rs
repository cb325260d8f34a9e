//! What is known of an op when compiling, written by the macro as plain values: what a constant
//! function reads from text, the compiler's interpreter reads for each op, which costs as much as two
//! functions.

use crate::graph::Protector;

/// The op's name, how many tensor inputs forward has, their names, a bit for each of the first 64
/// that is behind `#[stop_gradient]`, backward's parameters that are no `Option`, and whether the op
/// says `once_differentiable`.
///
/// Between names stands a space, and `~` before an input behind `#[stop_gradient]`.
#[doc(hidden)]
pub type Facts = (&'static str, usize, &'static str, u64, &'static str, bool);

/// The same by name.
#[doc(hidden)]
#[derive(Debug)]
pub struct Info {
    pub name: &'static str,
    pub(super) once_differentiable: bool,
    pub(super) inputs: usize,
    input_names: &'static str,
    bare: &'static str,
    /// A bit for each of the first inputs: whether it is behind `#[stop_gradient]`.
    stopped: u64,
}

impl Info {
    pub(super) const fn of(facts: Facts) -> Self {
        let (name, inputs, input_names, stopped, bare, once_differentiable) = facts;
        Self { name, once_differentiable, inputs, input_names, bare, stopped }
    }

    pub(super) fn input_name(&self, input: usize) -> Option<&'static str> {
        let name = self.input_names.split_ascii_whitespace().nth(input)?;
        Some(name.trim_start_matches('~'))
    }

    #[inline]
    pub(super) fn is_differentiable(&self, input: usize) -> bool {
        match u32::try_from(input).ok().and_then(|input| 1_u64.checked_shl(input)) {
            Some(bit) => self.stopped & bit == 0,
            None => {
                let mut names = self.input_names.split_ascii_whitespace();
                names.nth(input).is_some_and(|name| !name.starts_with('~'))
            }
        }
    }

    /// The first of backward's gradient parameters that are no `Option`.
    pub(super) fn first_bare(&self) -> Option<&'static str> {
        self.bare.split_ascii_whitespace().next()
    }
}

impl Protector for Info {
    fn layer(&self) -> &'static str {
        self.name
    }

    fn input(&self, position: usize) -> String {
        match self.input_name(position) {
            Some(name) => name.to_owned(),
            None => format!("input {position}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use super::Info;

    #[test]
    fn facts_are_found_by_their_names() {
        let info = Info::of(("Norm", 3, "x ~axis größe", 0b10, "dy dz", true));
        assert_eq!((info.name, info.inputs, info.once_differentiable), ("Norm", 3, true));
        let names: Vec<_> = (0..4).map(|input| info.input_name(input)).collect();
        assert_eq!(names, [Some("x"), Some("axis"), Some("größe"), None]);
        let differentiable: Vec<_> = (0..3).map(|input| info.is_differentiable(input)).collect();
        assert_eq!(differentiable, [true, false, true]);
        assert_eq!(info.first_bare(), Some("dy"));
        let info = Info::of(("Seed", 0, "", 0, "", false));
        assert_eq!((info.first_bare(), info.input_name(0)), (None, None));
    }

    #[test]
    fn inputs_beyond_the_bits_are_read_from_their_names() {
        static NAMES: OnceLock<String> = OnceLock::new();
        let name = |i| format!("{}x{i}", if i % 2 == 1 { "~" } else { "" });
        let names = NAMES.get_or_init(|| (0..70).map(name).collect::<Vec<_>>().join(" "));
        let info = Info::of(("Wide", 70, names, 0xAAAA_AAAA_AAAA_AAAA, "", false));
        for input in 0..70 {
            assert_eq!(info.is_differentiable(input), input % 2 == 0, "{input}");
        }
    }
}
