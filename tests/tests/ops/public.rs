//! The ops of the public API, read from their declarations, so that no new op is forgotten.

use std::collections::BTreeSet;
use std::path::Path;

/// A table of ops: the macro, and a function that returns the method names of a line.
const TABLES: &[(&str, fn(&str) -> Vec<String>)] = &[
    // `method Name |x| ..`
    ("macro_rules! all_functions", |line| match words(line)[..] {
        [method, name, ..] if is_type(name) => vec![method.into()],
        _ => Vec::new(),
    }),
    // `Name "words" method method method try_method;`
    ("reductions", |line| match line.rsplit_once('"') {
        Some((_, methods)) => {
            methods.trim_end_matches(';').split_whitespace().map(Into::into).collect()
        }
        None => Vec::new(),
    }),
    // `method try_method method |a, b| ..`
    ("comparisons", |line| match words(line)[..] {
        [method, _, scalar, ..] => vec![method.into(), scalar.into()],
        _ => Vec::new(),
    }),
    // `try_method Name;`
    ("named", |line| vec![words(line)[0].trim_start_matches("try_").into()]),
    // `method method "words" ..`
    ("keep_forms", |line| match line.contains('"') {
        true => vec![words(line)[0].into()],
        false => Vec::new(),
    }),
    // `Trait method Name ..`
    ("assigning_operators", |line| vec![words(line)[1].into()]),
];

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn is_type(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}

/// Their names, without the `try_` forms.
pub(crate) fn ops() -> BTreeSet<String> {
    let mut ops = BTreeSet::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../autograd-core/src/ops")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                read(&std::fs::read_to_string(path).unwrap(), &mut ops);
            }
        }
    }
    // `method Name v_kernel ..`, for numbers and tensors, except one that is for numbers only.
    let functions = Path::new(env!("CARGO_MANIFEST_DIR"));
    let functions = functions.join("../autograd-kernels/src/formula/functions.rs");
    for line in std::fs::read_to_string(functions).unwrap().lines() {
        if let [method, name, kernel, ..] = words(line)[..]
            && is_type(name)
            && kernel.starts_with("v_")
            && method != "trunc"
        {
            ops.insert(method.to_owned());
        }
    }
    // Functions, not methods.
    let systems = Path::new(env!("CARGO_MANIFEST_DIR")).join("../autograd-core/src/linalg.rs");
    for line in std::fs::read_to_string(systems).unwrap().lines() {
        let name = line.strip_prefix("pub fn ").and_then(|rest| rest.split('<').next());
        ops.extend(name.map(str::to_owned));
    }
    ops.retain(|op| !op.starts_with("try_"));
    assert!(ops.len() > 120, "only {ops:?} were found");
    ops
}

fn read(source: &str, ops: &mut BTreeSet<String>) {
    // The item that was opened by the last line without indentation.
    let mut inside = "";
    for line in source.lines() {
        if line.starts_with(|c: char| c.is_ascii_alphabetic()) {
            inside = line;
        }
        if line.starts_with("#[cfg(test)]") {
            return;
        }
        let code = line.trim();
        let opens = |name: &str| inside == format!("{name}! {{") || inside == format!("{name} {{");
        if let Some((_, methods)) = TABLES.iter().find(|(name, _)| opens(name)) {
            if line != inside
                && !code.starts_with("///")
                && !code.starts_with(['}', '{', '|', ']', '+'])
                && !code.is_empty()
            {
                ops.extend(methods(code));
            }
            continue;
        }
        if !code.starts_with("pub fn ") {
            continue;
        }
        if let Some(of) = inside.strip_prefix("macro_rules! ") {
            // The arguments of these macros are read as if they stood alone.
            let read = ["unary_ops", "pairs", "losses", "options"];
            let mut tables = TABLES.iter().map(|(name, _)| *name).chain(read);
            let known = tables.any(|name| of.starts_with(name));
            assert!(known, "`{of}` declares ops; say in TABLES where their names stand");
        } else if inside.starts_with("impl") && inside.contains(" Tensor<") {
            // `pairs` gives the names of two methods, `losses` of four, perhaps on two lines.
            let start = source.find(code).unwrap() + "pub fn ".len();
            let names = source[start..].split(['(', '<']).next().unwrap();
            ops.extend(names.split(',').map(|name| name.trim().to_owned()));
        }
    }
}
