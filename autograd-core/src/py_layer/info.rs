//! What is known of an op when compiling, written by the macro as one line of text: a constant that
//! costs the compiler next to nothing, read where the op is first used, by the compiler too.

/// What the line says: `Name input ~input .. | parameter .. | once`.
///
/// `~` stands before an input behind `#[stop_gradient]`; the parameters are those of backward that
/// are no `Option`; `once` stands for `once_differentiable`. A part that is empty at the end is left
/// out, with its bar.
#[doc(hidden)]
#[derive(Debug)]
pub struct Info {
    /// The op's name.
    pub name: &'static str,
    /// Whether the op says `once_differentiable`.
    pub(super) once_differentiable: bool,
    /// How many tensor inputs forward has.
    pub(super) inputs: usize,
    input_names: &'static str,
    bare: &'static str,
    /// A bit for each of the first inputs: whether it is behind `#[stop_gradient]`.
    stopped: u64,
}

impl Info {
    pub(super) const fn read(line: &'static str) -> Self {
        let (head, rest) = part(line, b'|');
        let (name, input_names) = part(head, b' ');
        let (bare, once) = part(rest, b'|');
        let (inputs, stopped) = count(input_names.as_bytes());
        Self { name, once_differentiable: !once.is_empty(), inputs, input_names, bare, stopped }
    }

    /// The name of an input.
    pub(super) fn input_name(&self, input: usize) -> Option<&'static str> {
        let name = self.input_names.split_ascii_whitespace().nth(input)?;
        Some(name.trim_start_matches('~'))
    }

    /// Whether an input is differentiated.
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

/// What stands before and after the first of these bytes.
const fn part(text: &'static str, end: u8) -> (&'static str, &'static str) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == end {
            let (before, after) = text.split_at(at);
            return (before, after.split_at(1).1);
        }
        at += 1;
    }
    (text, "")
}

/// How many names there are, and which of the first 64 begin with `~`.
const fn count(names: &[u8]) -> (usize, u64) {
    let (mut count, mut stopped) = (0, 0);
    let (mut at, mut between) = (0, true);
    while at < names.len() {
        let space = names[at] == b' ';
        if !space && between {
            if names[at] == b'~' && count < 64 {
                stopped |= 1 << count;
            }
            count += 1;
        }
        between = space;
        at += 1;
    }
    (count, stopped)
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use super::Info;

    #[test]
    fn the_line_is_read_part_by_part() {
        let info = Info::read("Norm x ~axis größe | dy | once");
        assert_eq!((info.name, info.inputs, info.once_differentiable), ("Norm", 3, true));
        let names: Vec<_> = (0..4).map(|input| info.input_name(input)).collect();
        assert_eq!(names, [Some("x"), Some("axis"), Some("größe"), None]);
        let differentiable: Vec<_> = (0..3).map(|input| info.is_differentiable(input)).collect();
        assert_eq!(differentiable, [true, false, true]);
        assert_eq!(info.first_bare(), Some("dy"));
    }

    #[test]
    fn parts_that_are_left_out_are_empty() {
        let info = Info::read("Tanh x");
        assert_eq!((info.inputs, info.first_bare(), info.once_differentiable), (1, None, false));
        let info = Info::read("Seed");
        assert_eq!((info.name, info.inputs), ("Seed", 0));
        let info = Info::read("Op x | | once");
        assert_eq!((info.inputs, info.first_bare(), info.once_differentiable), (1, None, true));
    }

    #[test]
    fn inputs_beyond_the_bits_are_read_from_the_line() {
        static LINE: OnceLock<String> = OnceLock::new();
        let name = |i| format!("{}x{i}", if i % 2 == 1 { "~" } else { "" });
        let names: Vec<_> = (0..70).map(name).collect();
        let info = Info::read(LINE.get_or_init(|| format!("Wide {}", names.join(" "))));
        assert_eq!(info.inputs, 70);
        for input in 0..70 {
            assert_eq!(info.is_differentiable(input), input % 2 == 0, "{input}");
        }
    }
}
