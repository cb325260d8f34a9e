//! A block as text, which shows at a glance what surely does not stand in it.
//!
//! A user's build for development does not optimise a macro, and there a walk over tokens is dear; the
//! text is written by the compiler, which is optimised. What may stand there is then looked for in the
//! tokens.

use std::cell::RefCell;
use std::rc::Rc;

use proc_macro2::{Ident, TokenStream};

pub(crate) struct Glance {
    text: String,
    /// What was found of each context.
    known: RefCell<Vec<(String, Rc<Uses>)>>,
}

/// What may be done with a context of one name, in all functions of the block.
pub(crate) struct Uses {
    calls: Vec<String>,
    /// Whether it may be used otherwise than by calls.
    pub(crate) otherwise: bool,
}

impl Glance {
    pub(crate) fn of(block: &TokenStream) -> Self {
        Self { text: block.to_string(), known: RefCell::default() }
    }

    /// Whether a word may stand anywhere in the block.
    pub(crate) fn may_mention(&self, word: &str) -> bool {
        self.text.contains(word)
    }

    /// The same for a word that is found in many others.
    pub(crate) fn may_mention_word(&self, word: &str) -> bool {
        self.text.match_indices(word).any(|(at, _)| self.is_word(at, word.len()))
    }

    /// Whether no longer word stands there.
    fn is_word(&self, at: usize, len: usize) -> bool {
        !self.text[..at].ends_with(is_of_word) && !self.text[at + len..].starts_with(is_of_word)
    }

    /// Whether `Self` may stand otherwise than as the op of a context.
    pub(crate) fn may_mention_self(&self) -> bool {
        self.text.match_indices("Self").any(|(at, _)| {
            let before = self.text[..at].trim_end().strip_suffix('<');
            !before.is_some_and(|before| before.trim_end().ends_with("Context"))
        })
    }

    /// What stands behind each place where a word may stand.
    pub(crate) fn behind(&self, word: &str) -> impl Iterator<Item = &str> {
        self.text.match_indices(word).map(|(at, _)| self.text[at + word.len()..].trim_start())
    }

    pub(crate) fn uses(&self, context: &Ident) -> Rc<Uses> {
        let name = context.to_string();
        let mut known = self.known.borrow_mut();
        if let Some((_, uses)) = known.iter().find(|(other, _)| *other == name) {
            return uses.clone();
        }
        let uses = Rc::new(self.find_uses(&name));
        known.push((name, uses.clone()));
        uses
    }

    fn find_uses(&self, context: &str) -> Uses {
        let mut uses = Uses { calls: Vec::new(), otherwise: false };
        for (at, _) in self.text.match_indices(context) {
            let (before, after) = (&self.text[..at], &self.text[at + context.len()..]);
            if self.is_word(at, context.len()) && !before.ends_with("r#") {
                uses.see(after.trim_start());
            }
        }
        uses
    }
}

impl Uses {
    /// What stands behind the context.
    fn see(&mut self, after: &str) {
        // Its declaration.
        if after.starts_with(':') {
            return;
        }
        let Some(call) = after.strip_prefix('.') else {
            self.otherwise = true;
            return;
        };
        let call = call.trim_start();
        let end = call.find(|c| !is_of_word(c)).unwrap_or(call.len());
        if call[end..].trim_start().starts_with(['(', ':']) {
            self.calls.push(call[..end].to_owned());
        } else {
            self.otherwise = true;
        }
    }

    /// Whether this call may be made.
    pub(crate) fn may_call(&self, name: &str) -> bool {
        self.calls.iter().any(|call| call == name)
    }

    /// How often it may be made.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.calls.iter().filter(|call| *call == name).count()
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use proc_macro2::{Ident, Span, TokenStream};

    use super::Glance;

    fn glance(text: &str) -> Glance {
        Glance::of(&text.parse::<TokenStream>().unwrap())
    }

    fn ctx() -> Ident {
        Ident::new("ctx", Span::call_site())
    }

    #[test]
    fn calls_on_a_context_are_seen_whatever_stands_between() {
        let block =
            glance("fn f(ctx: &mut C) { let y = ctx . attrs (); ctx.save::<T>(&ctx_y, x); }");
        let uses = block.uses(&ctx());
        assert!(!uses.otherwise);
        assert!(uses.may_call("attrs") && uses.may_call("save") && !uses.may_call("ctx_y"));
        assert_eq!((uses.count("attrs"), uses.count("set_attrs")), (1, 0));
    }

    #[test]
    fn any_other_use_is_seen() {
        for body in
            ["f(ctx)", "f(& mut ctx)", "ctx.saved", "ctx", "let a = ctx . b + 1;", "m!(ctx)"]
        {
            assert!(glance(&format!("{{ {body} }}")).uses(&ctx()).otherwise, "{body}");
        }
        assert!(!glance("{ ctx1.b; my_ctx; r#ctx }").uses(&ctx()).otherwise);
    }

    #[test]
    fn words_are_distinguished_from_parts_of_longer_ones() {
        for block in ["let _ = a_b;", "x: &Tensor<_>", "_"] {
            assert!(glance(block).may_mention_word("_"), "{block}");
        }
        assert!(!glance("fn a_b(_ctx: C, x_: T) { 1_000 }").may_mention_word("_"));
    }

    #[test]
    fn what_follows_is_seen() {
        let behind = |text: &str, word: &str| {
            glance(text).behind(word).map(str::to_owned).collect::<Vec<_>>()
        };
        let types = behind("Self :: Saved, Context<Self>", "Self");
        assert!(matches!(types.as_slice(), [first, second]
            if first.starts_with("::") && second.starts_with('>')));
        assert!(behind("Tensor", "Self").is_empty());
        assert!(!glance("c: &mut ForwardContext<Self>").may_mention_self());
        assert!(glance("c: &mut ForwardContext<Self>, x: [f64; Self::N]").may_mention_self());
    }
}
