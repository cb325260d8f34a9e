//! The little JSON that a header may hold: objects of known depth, strings, lists of whole numbers.
//!
//! Nothing here calls itself, so no nesting can exhaust the stack, and nothing asks for more memory
//! than the text has bytes.

use std::io;

use super::malformed;

/// Reads a header from front to back.
pub(super) struct Json<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Json<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// An error at this place.
    pub(super) fn wrong<T>(&self, expected: &str) -> io::Result<T> {
        let found = match self.text[self.at..].chars().next() {
            Some(c) => format!("`{}`", c.escape_debug()),
            None => "the end".into(),
        };
        Err(malformed(format!("header, byte {}: expected {expected}, found {found}", self.at)))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Goes on behind `byte`, if it is next.
    fn has(&mut self, byte: u8) -> bool {
        self.skip_spaces();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn want(&mut self, byte: u8) -> io::Result<()> {
        if self.has(byte) { Ok(()) } else { self.wrong(&format!("`{}`", char::from(byte))) }
    }

    /// `{"name": value, ..}`: calls `value` where each value stands.
    pub(super) fn object(
        &mut self,
        mut value: impl FnMut(&mut Self, String) -> io::Result<()>,
    ) -> io::Result<()> {
        self.want(b'{')?;
        if self.has(b'}') {
            return Ok(());
        }
        loop {
            let name = self.string()?;
            self.want(b':')?;
            value(self, name)?;
            if self.has(b'}') {
                return Ok(());
            }
            if !self.has(b',') {
                return self.wrong("`,` or `}`");
            }
        }
    }

    /// `[1, 2, ..]`
    pub(super) fn numbers(&mut self) -> io::Result<Vec<u64>> {
        self.want(b'[')?;
        let mut numbers = Vec::new();
        if self.has(b']') {
            return Ok(numbers);
        }
        loop {
            numbers.push(self.number()?);
            if self.has(b']') {
                return Ok(numbers);
            }
            if !self.has(b',') {
                return self.wrong("`,` or `]`");
            }
        }
    }

    /// A whole number from 0 to 2⁶⁴ - 1.
    fn number(&mut self) -> io::Result<u64> {
        const EXPECTED: &str = "a whole number below 2^64";
        self.skip_spaces();
        let start = self.at;
        let digits = &self.text[start..];
        let len = digits.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = digits.split_at(len);
        let plain = !rest.starts_with(['.', 'e', 'E']) && (len == 1 || !digits.starts_with('0'));
        match digits.parse() {
            Ok(number) if plain => {
                self.at = start + len;
                Ok(number)
            }
            _ => self.wrong(EXPECTED),
        }
    }

    pub(super) fn string(&mut self) -> io::Result<String> {
        self.skip_spaces();
        if !self.has(b'"') {
            return self.wrong("a string");
        }
        let mut string = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.find(|c: char| matches!(c, '"' | '\\') || c < ' ');
            let plain = plain.unwrap_or(rest.len());
            string.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(string);
                }
                Some(b'\\') => string.push(self.escape()?),
                _ => return self.wrong("the end of a string, `\"`"),
            }
        }
    }

    fn escape(&mut self) -> io::Result<char> {
        const EXPECTED: &str = "an escape that JSON has";
        let escaped = match self.text.as_bytes().get(self.at + 1) {
            Some(&c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.code_point(),
            _ => return self.wrong(EXPECTED),
        };
        self.at += 2;
        Ok(escaped)
    }

    /// `\uXXXX`, or two of them that are a pair of UTF-16.
    fn code_point(&mut self) -> io::Result<char> {
        let unit = |at: usize| {
            let hex = self.text.get(at..at + 6)?.strip_prefix("\\u")?;
            let hex = Some(hex).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))?;
            u16::from_str_radix(hex, 16).ok()
        };
        let (first, second) = (unit(self.at), unit(self.at + 6));
        let decoded = char::decode_utf16([first, second].into_iter().flatten()).next();
        match (first, decoded) {
            (Some(_), Some(Ok(c))) => {
                self.at += 6 * c.len_utf16();
                Ok(c)
            }
            _ => self.wrong("an escape that is a character"),
        }
    }

    /// Nothing but spaces is left.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.skip_spaces();
        if self.at == self.text.len() { Ok(()) } else { self.wrong("the header's end") }
    }
}

/// Appends a string as JSON.
pub(super) fn write_string(to: &mut String, string: &str) {
    to.push('"');
    for c in string.chars() {
        match c {
            '"' => to.push_str("\\\""),
            '\\' => to.push_str("\\\\"),
            '\u{8}' => to.push_str("\\b"),
            '\u{c}' => to.push_str("\\f"),
            '\n' => to.push_str("\\n"),
            '\r' => to.push_str("\\r"),
            '\t' => to.push_str("\\t"),
            c if c < ' ' => to.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => to.push(c),
        }
    }
    to.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Result<String, String> {
        let mut json = Json::new(text);
        json.string().and_then(|s| json.end().map(|()| s)).map_err(|e| e.to_string())
    }

    #[test]
    fn strings_are_read_as_they_are_written() {
        for s in ["", "a.b", "\"\\/\u{8}\u{c}\n\r\t\u{1}\u{7f}", "Gewicht ω 𝄞 \u{2028}"] {
            let mut written = String::new();
            write_string(&mut written, s);
            assert_eq!(string(&written).as_deref(), Ok(s), "{written}");
        }
        assert_eq!(string(r#"  "\u0041\ud834\udd1e\/" "#).as_deref(), Ok("A𝄞/"));
    }

    #[test]
    fn bad_strings_are_told_with_their_place() {
        for (text, words) in [
            ("x", "byte 0: expected a string, found `x`"),
            ("\"ab", "byte 3: expected the end of a string, `\"`, found the end"),
            ("\"a\nb\"", "byte 2: expected the end of a string, `\"`, found `\\n`"),
            ("\"\\x\"", "byte 1: expected an escape that JSON has, found `\\\\`"),
            ("\"\\u12\"", "byte 1: expected an escape that is a character, found `\\\\`"),
            ("\"\\u+123\"", "byte 1: expected an escape that is a character, found `\\\\`"),
            ("\"\\ud834\"", "byte 1: expected an escape that is a character, found `\\\\`"),
            ("\"\\ud834\\u0041\"", "byte 1: expected an escape that is a character, found `\\\\`"),
            ("\"\\u123é\"", "byte 1: expected an escape that is a character, found `\\\\`"),
            ("\"a\" b", "byte 4: expected the header's end, found `b`"),
        ] {
            assert_eq!(string(text), Err(format!("header, {words}")), "{text}");
        }
    }

    #[test]
    fn numbers_are_whole_and_fit() {
        let numbers = |text: &str| Json::new(text).numbers().map_err(|e| e.to_string());
        assert_eq!(numbers("[ ]"), Ok(vec![]));
        assert_eq!(numbers("[0,18446744073709551615 , 7]"), Ok(vec![0, u64::MAX, 7]));
        let below = "expected a whole number below 2^64, found";
        for (text, words) in [
            ("[-1]", format!("byte 1: {below} `-`")),
            ("[1.0]", format!("byte 1: {below} `1`")),
            ("[1e3]", format!("byte 1: {below} `1`")),
            ("[01]", format!("byte 1: {below} `0`")),
            ("[18446744073709551616]", format!("byte 1: {below} `1`")),
            ("[1,]", format!("byte 3: {below} `]`")),
            ("[1 2]", "byte 3: expected `,` or `]`, found `2`".into()),
            ("[[1]]", format!("byte 1: {below} `[`")),
            ("[", format!("byte 1: {below} the end")),
            ("null", "byte 0: expected `[`, found `n`".into()),
        ] {
            assert_eq!(numbers(text), Err(format!("header, {words}")), "{text}");
        }
    }
}
