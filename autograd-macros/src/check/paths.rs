//! The paths through a body, and what is called on the context on each, found among tokens: only what is
//! sure is reported.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

use super::calls::DIVERGING;
use super::question::{is_value, opaque};
use crate::tokens::{find_ident, is_group, is_one_of, is_punct};

pub(super) const ONCE: [&str; 5] = [
    "save_for_backward",
    "set_attrs",
    "mark_not_inplace",
    "mark_non_differentiable",
    "set_materialize_grads",
];

/// Methods of an iterator that gives every tensor of a list.
const WHOLE: &str = "iter into_iter enumerate zip cloned copied rev map";

/// Follows the paths through a body.
pub(super) struct Walk<'a> {
    context: &'a Ident,
    lists: &'a [Ident],
    /// The calls with what they are given.
    pub(super) calls: Vec<(Ident, TokenStream)>,
    /// Those on a path that surely had one before.
    pub(super) twice: Vec<Ident>,
    /// `save_for_backward` for each tensor of a list: the call, the list, and where it stands.
    pub(super) repeated: Vec<(Ident, Ident, &'static str)>,
}

/// The calls that were surely made, and whether this point cannot be reached.
#[derive(Clone, Default)]
struct Must {
    made: [bool; ONCE.len()],
    left: bool,
}

impl Must {
    /// After two branches: what both made, where both come back.
    fn join(mut self, other: Self) -> Self {
        match (self.left, other.left) {
            (true, _) => return other,
            (_, true) => return self,
            _ => self.made.iter_mut().zip(other.made).for_each(|(made, other)| *made &= other),
        }
        self
    }
}

impl<'a> Walk<'a> {
    pub(super) fn new(context: &'a Ident, lists: &'a [Ident], body: &Group) -> Self {
        let mut walk = Self::start(context, lists);
        walk.group(body, &mut Must::default());
        walk
    }

    fn start(context: &'a Ident, lists: &'a [Ident]) -> Self {
        Self { context, lists, calls: Vec::new(), twice: Vec::new(), repeated: Vec::new() }
    }

    fn group(&mut self, group: &Group, must: &mut Must) {
        self.trees(&group.stream().into_iter().collect::<Vec<_>>(), must);
    }

    fn trees(&mut self, trees: &[TokenTree], must: &mut Must) {
        let (mut at, mut leaves) = (0, false);
        while at < trees.len() {
            at = match &trees[at..] {
                [TokenTree::Ident(word), bang, ..]
                    if is_one_of(word, DIVERGING) && is_punct(Some(bang), '!') =>
                {
                    must.left = true;
                    at + 3
                }
                _ if opaque(trees, at) > at => opaque(trees, at),
                [TokenTree::Ident(word), ..] if is_one_of(word, "if match for while loop") => {
                    self.branches(trees, at, must)
                }
                [TokenTree::Ident(word), TokenTree::Group(block), ..] if word == "else" => {
                    self.group(block, &mut must.clone());
                    at + 2
                }
                [first, second, ..]
                    if at > 0 && is_value(&trees[at - 1]) && is_lazy(first, second) =>
                {
                    let ends = |at: &usize| [';', ','].iter().any(|c| is_punct(trees.get(*at), *c));
                    let end = (at..trees.len()).find(ends).unwrap_or(trees.len());
                    self.trees(&trees[at + 2..end], &mut must.clone());
                    end
                }
                [
                    TokenTree::Ident(word),
                    dot,
                    TokenTree::Ident(call),
                    TokenTree::Group(given),
                    ..,
                ] if word == self.context && is_punct(Some(dot), '.') => {
                    self.group(given, must);
                    self.call(call, given, must);
                    at + 4
                }
                [tree, ..] => {
                    match tree {
                        TokenTree::Group(group) => self.group(group, must),
                        TokenTree::Ident(word) if is_one_of(word, "return break continue") => {
                            leaves = true
                        }
                        TokenTree::Ident(word) if self.lists.contains(word) => {
                            self.closures(word, &trees[at + 1..]);
                        }
                        end if is_punct(Some(end), ';') => must.left |= leaves,
                        _ => {}
                    }
                    at + 1
                }
                [] => at,
            };
        }
        must.left |= leaves;
    }

    fn call(&mut self, call: &Ident, given: &Group, must: &mut Must) {
        let Some(position) = ONCE.iter().position(|once| call == once) else { return };
        if must.made[position] && !must.left {
            self.twice.push(call.clone());
        }
        must.made[position] = true;
        self.calls.push((call.clone(), given.stream()));
    }

    /// An `if` with what belongs to it, a `match` or a loop; where it ends.
    fn branches(&mut self, trees: &[TokenTree], at: usize, must: &mut Must) -> usize {
        let body = (at + 1..trees.len()).find_map(|end| Some((end, body(trees, end)?)));
        let Some((end, block)) = body else { return trees.len() };
        let head = &trees[at + 1..end];
        self.trees(head, must);
        let is = |at: usize, word: &str| matches!(trees.get(at), Some(TokenTree::Ident(is)) if is == word);
        if is(at, "match") {
            let trees: Vec<TokenTree> = block.stream().into_iter().collect();
            let ends = arms(&trees).into_iter().map(|arm| {
                let mut branch = must.clone();
                self.trees(arm, &mut branch);
                branch
            });
            *must = ends.reduce(Must::join).unwrap_or_else(|| must.clone());
            return end + 1;
        }
        let mut then = must.clone();
        self.group(block, &mut then);
        if !is(at, "if") {
            // A loop may run its body never, or often: what it calls is left to `apply`.
            if let Some(list) =
                head.iter().position(|tree| matches!(tree, TokenTree::Ident(word) if word == "in"))
                && let Some(list) = self.whole_list(&head[list + 1..])
            {
                self.each(list, block.stream(), "loop");
            }
            return end + 1;
        }
        let (mut otherwise, mut end) = (must.clone(), end + 1);
        if is(end, "else") {
            end = match trees.get(end + 1) {
                Some(TokenTree::Group(block)) => {
                    self.group(block, &mut otherwise);
                    end + 2
                }
                _ => self.branches(trees, end + 1, &mut otherwise),
            };
        }
        *must = then.join(otherwise);
        end
    }

    /// The list whose every tensor an iterator gives: `&xs`, `xs.iter().enumerate()`.
    fn whole_list(&self, iterator: &[TokenTree]) -> Option<&'a Ident> {
        let first = iterator.iter().position(|tree| !is_punct(Some(tree), '&'))?;
        let TokenTree::Ident(name) = &iterator[first] else { return None };
        let whole = iterator[first + 1..].chunks(3).all(|call| {
            matches!(call, [_, TokenTree::Ident(method), TokenTree::Group(_)] if is_one_of(method, WHOLE))
        });
        self.lists.iter().find(|list| whole && *list == name)
    }

    /// Notes what is saved in closures that run for each tensor of a list; `rest` stands behind its name.
    fn closures(&mut self, list: &Ident, mut rest: &[TokenTree]) {
        while let [dot, TokenTree::Ident(method), TokenTree::Group(given), after @ ..] = rest
            && is_punct(Some(dot), '.')
        {
            let mut closure = given.stream().into_iter();
            let bar = |tree: &TokenTree| is_punct(Some(tree), '|');
            if closure.any(|tree| bar(&tree)) && closure.any(|tree| bar(&tree)) {
                self.each(list, closure.collect(), "closure");
            }
            rest = if is_one_of(method, WHOLE) { after } else { &[] };
        }
    }

    /// Notes `save_for_backward` in code that runs for each tensor of a list.
    fn each(&mut self, list: &Ident, code: TokenStream, place: &'static str) {
        let (mut pass, mut walk) = (Must::default(), Walk::start(self.context, &[]));
        walk.trees(&code.clone().into_iter().collect::<Vec<_>>(), &mut pass);
        let leaves = find_ident(code, |word| is_one_of(word, "break return")).is_some();
        let saved = walk.calls.into_iter().find(|(call, _)| call == ONCE[0]);
        if let Some((call, _)) = saved.filter(|_| pass.made[0] && !pass.left && !leaves) {
            self.repeated.push((call, list.clone(), place));
        }
    }
}

/// `&&` and `||`
fn is_lazy(first: &TokenTree, second: &TokenTree) -> bool {
    ['&', '|'].iter().any(|c| is_punct(Some(first), *c) && is_punct(Some(second), *c))
}

/// The block at this place of an `if` or a loop; none where it is of a pattern, as in `if let A { a } = b`.
fn body(trees: &[TokenTree], at: usize) -> Option<&Group> {
    let next = trees.get(at + 1);
    let is_in = matches!(next, Some(TokenTree::Ident(word)) if word == "in");
    match &trees[at] {
        TokenTree::Group(block) if is_group(trees.get(at), Delimiter::Brace) => {
            (!is_in && !is_punct(next, '=') && !is_punct(next, '|')).then_some(block)
        }
        _ => None,
    }
}

/// What stands behind each `=>` of a `match`.
fn arms(trees: &[TokenTree]) -> Vec<&[TokenTree]> {
    let arrow = |at: &usize| is_punct(trees.get(*at), '=') && is_punct(trees.get(*at + 1), '>');
    let arm = |arrow: usize| match is_group(trees.get(arrow + 2), Delimiter::Brace) {
        true => &trees[arrow + 2..arrow + 3],
        false => {
            trees[arrow + 2..].split(|tree| is_punct(Some(tree), ',')).next().unwrap_or_default()
        }
    };
    (0..trees.len()).filter(arrow).map(arm).collect()
}
