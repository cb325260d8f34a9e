//! The import cycles among a crate's files, and the file names in ARCHITECTURE.md.
//!
//! An import is a path in a `use` or in code, resolved through re-exports to the file that defines the
//! name. Unit tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The allowed cycles, by their number of files, the largest first; they may only become fewer.
const CIRCLES: &[(&str, &[usize])] =
    &[("autograd-kernels", &[]), ("autograd-core", &[4]), ("autograd-macros", &[])];

/// A module's path below the crate's root.
type Module = Vec<String>;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn files_of(name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    rust_files(&workspace().join(name).join("src"), &mut found);
    found
}

/// A token of a file; groups are flattened.
#[derive(Clone, PartialEq)]
enum Token {
    Word(String),
    Sign(char),
    Open(Delimiter),
    Close,
}

impl Token {
    fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            _ => None,
        }
    }
}

/// All tokens, except those of unit tests and of items that only the docs use.
fn tokens(stream: TokenStream, found: &mut Vec<Token>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    while at < trees.len() {
        if let [TokenTree::Punct(hash), TokenTree::Group(attribute), ..] = &trees[at..]
            && hash.as_char() == '#'
            && matches!(
                &attribute.to_string()[..],
                "[cfg (test)]" | "[cfg(test)]" | "[cfg (doc)]" | "[cfg(doc)]"
            )
        {
            at += 2;
            // The item ends at its block or its semicolon.
            while at < trees.len() {
                at += 1;
                match &trees[at - 1] {
                    TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
                    TokenTree::Punct(sign) if sign.as_char() == ';' => break,
                    _ => {}
                }
            }
            continue;
        }
        match &trees[at] {
            TokenTree::Ident(word) => found.push(Token::Word(word.to_string())),
            TokenTree::Punct(sign) => found.push(Token::Sign(sign.as_char())),
            TokenTree::Literal(_) => found.push(Token::Sign('"')),
            TokenTree::Group(group) => {
                found.push(Token::Open(group.delimiter()));
                tokens(group.stream(), found);
                found.push(Token::Close);
            }
        }
        at += 1;
    }
}

/// The paths of a use tree that starts here, each with its local name; and the end of the tree.
fn use_tree(tokens: &[Token], prefix: &[String], found: &mut Vec<(String, Module)>) -> usize {
    let (mut path, mut at) = (prefix.to_vec(), 0);
    loop {
        match tokens.get(at) {
            Some(Token::Word(word)) if word == "as" => {
                let name = tokens.get(at + 1).and_then(Token::word).unwrap_or("_").to_owned();
                found.push((name, path));
                return at + 2;
            }
            Some(Token::Word(word)) => path.push(word.clone()),
            Some(Token::Sign(':')) => {}
            Some(Token::Sign('*')) => {
                found.push(("*".to_owned(), path));
                return at + 1;
            }
            Some(Token::Open(_)) => {
                at += 1;
                while tokens.get(at).is_some_and(|token| *token != Token::Close) {
                    match &tokens[at] {
                        Token::Sign(',') => at += 1,
                        _ => at += use_tree(&tokens[at..], &path, found),
                    }
                }
                return at + 1;
            }
            _ => {
                if path.last().is_some_and(|last| last == "self") {
                    path.pop();
                }
                let name = path.last().cloned().unwrap_or_default();
                found.push((name, path));
                return at;
            }
        }
        at += 1;
    }
}

/// The parts of a file that the import graph needs.
#[derive(Default)]
struct File {
    defined: BTreeSet<String>,
    /// The names that the file re-exports.
    exported: BTreeMap<String, Module>,
    paths: Vec<Module>,
}

fn parse(path: &Path) -> File {
    let text = fs::read_to_string(path).unwrap();
    let stream: TokenStream = text.parse().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut all = Vec::new();
    tokens(stream, &mut all);
    let mut file = File::default();
    let mut at = 0;
    while at < all.len() {
        let Some(word) = all[at].word() else {
            at += 1;
            continue;
        };
        match word {
            "use" => {
                let mut found = Vec::new();
                let len = use_tree(&all[at + 1..], &[], &mut found);
                // Whether the `use` is public: `pub use`, `pub(crate) use`.
                let public = at > 0
                    && match &all[at - 1] {
                        Token::Word(word) => word == "pub",
                        Token::Close => {
                            let from = at.saturating_sub(5);
                            all[from..at].contains(&Token::Word("pub".to_owned()))
                        }
                        _ => false,
                    };
                match public {
                    true => file.exported.extend(found),
                    false => file.paths.extend(found.into_iter().map(|(_, path)| path)),
                }
                at += 1 + len;
                continue;
            }
            "fn" | "struct" | "enum" | "trait" | "const" | "static" | "type" | "mod" | "union" => {
                file.defined.extend(all.get(at + 1).and_then(Token::word).map(str::to_owned));
            }
            "macro_rules" => {
                file.defined.extend(all.get(at + 2).and_then(Token::word).map(str::to_owned));
            }
            "crate" | "super" => {
                let mut path = vec![word.to_owned()];
                let mut next = at + 1;
                while let [Token::Sign(':'), Token::Sign(':'), Token::Word(word), ..] = &all[next..]
                {
                    path.push(word.clone());
                    next += 3;
                }
                if path.len() > 1 {
                    file.paths.push(path);
                    at = next;
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
    }
    file
}

struct Crate {
    files: BTreeMap<Module, File>,
    names: BTreeMap<Module, String>,
}

impl Crate {
    fn read(name: &str) -> Self {
        let root = workspace().join(name).join("src");
        let (mut files, mut names) = (BTreeMap::new(), BTreeMap::new());
        for path in files_of(name) {
            let below = path.strip_prefix(&root).unwrap().with_extension("");
            let mut module: Module =
                below.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
            if module.iter().any(|part| part == "tests") {
                continue;
            }
            if matches!(&module[module.len() - 1][..], "mod" | "lib") {
                module.pop();
            }
            names.insert(module.clone(), below.display().to_string());
            files.insert(module, parse(&path));
        }
        Self { files, names }
    }

    /// The file that defines the item of a path, as seen from `module`; `None` for other crates.
    fn resolve(&self, module: &Module, path: &[String], depth: usize) -> Option<Module> {
        let mut names = path;
        let mut at = match names.first()?.as_str() {
            "crate" => {
                names = &names[1..];
                Vec::new()
            }
            "self" => {
                names = &names[1..];
                module.clone()
            }
            "super" => module.clone(),
            first => {
                let below: Module = module.iter().cloned().chain([first.to_owned()]).collect();
                self.files.contains_key(&below).then(|| module.clone())?
            }
        };
        while names.first().is_some_and(|name| name == "super") {
            at.pop();
            names = &names[1..];
        }
        while let Some(name) = names.first() {
            at.push(name.clone());
            if !self.files.contains_key(&at) {
                at.pop();
                break;
            }
            names = &names[1..];
        }
        let file = self.files.get(&at)?;
        match names.first() {
            Some(name) if depth < 6 && !file.defined.contains(name) => {
                let again = file.exported.get(name);
                let again = again.and_then(|path| self.resolve(&at, path, depth + 1));
                Some(again.unwrap_or(at))
            }
            _ => Some(at),
        }
    }

    fn imports(&self) -> BTreeMap<&Module, BTreeSet<&Module>> {
        let of = |module: &Module, file: &File| {
            let found = file.paths.iter().filter_map(|path| self.resolve(module, path, 0));
            let known = found.filter_map(|found| Some(self.files.get_key_value(&found)?.0));
            known.filter(|found| *found != module).collect()
        };
        self.files.iter().map(|(module, file)| (module, of(module, file))).collect()
    }

    /// The sets of files that depend on each other, the largest first.
    fn circles(&self) -> Vec<Vec<&str>> {
        let imports = self.imports();
        fn reached<'a>(
            imports: &BTreeMap<&'a Module, BTreeSet<&'a Module>>,
            from: &'a Module,
        ) -> BTreeSet<&'a Module> {
            let (mut seen, mut waiting) = (BTreeSet::new(), vec![from]);
            while let Some(module) = waiting.pop() {
                waiting.extend(imports[module].iter().filter(|next| seen.insert(**next)));
            }
            seen
        }
        let all: BTreeMap<_, _> =
            imports.keys().map(|module| (*module, reached(&imports, module))).collect();
        let mut found: Vec<Vec<&str>> = Vec::new();
        let mut done = BTreeSet::new();
        for (module, reaches) in &all {
            if !reaches.contains(*module) || !done.insert(*module) {
                continue;
            }
            let circle: Vec<_> =
                reaches.iter().filter(|other| all[**other].contains(*module)).collect();
            done.extend(circle.iter().copied());
            found.push(circle.into_iter().map(|module| &self.names[*module][..]).collect());
        }
        found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        found
    }
}

#[test]
fn imports_go_one_way() {
    for (name, allowed) in CIRCLES {
        let read = Crate::read(name);
        let found = read.circles();
        let sizes: Vec<usize> = found.iter().map(Vec::len).collect();
        let list: Vec<String> = found.iter().map(|circle| circle.join(" ")).collect();
        let fits = sizes.len() <= allowed.len()
            && sizes.iter().zip(*allowed).all(|(found, allowed)| found <= allowed);
        assert!(
            fits,
            "{name} has circles of {sizes:?} files, allowed {allowed:?}:\n{}",
            list.join("\n")
        );
        assert!(
            sizes == *allowed,
            "{name} has fewer circles: {sizes:?}; lower `CIRCLES`\n{}",
            list.join("\n")
        );
    }
}

#[test]
fn architecture_names_files_that_exist() {
    let text = fs::read_to_string(workspace().join("ARCHITECTURE.md")).unwrap();
    let mut names = 0;
    for name in text.split('`').skip(1).step_by(2) {
        if !name.contains('/') && !name.ends_with(".rs") || name.contains(' ') {
            continue;
        }
        names += 1;
        let roots = [
            "",
            "autograd-core/src",
            "autograd-kernels/src",
            "autograd-macros/src",
            "autograd-core/src/ops/elementwise",
        ];
        let exists = roots.iter().any(|root| workspace().join(root).join(name).exists());
        assert!(exists, "ARCHITECTURE.md names `{name}`, which does not exist");
    }
    assert!(names > 30, "{names} names");
}
