//! Runs the compiler on one program as an editor and `cargo check` do: incrementally, with JSON output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, thread};

use serde_json::Value;

/// A message of the compiler.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Message {
    pub(crate) level: String,
    pub(crate) code: String,
    pub(crate) text: String,
    /// The first span, as byte offsets in the file.
    pub(crate) place: (u64, u64),
    /// With notes and help.
    pub(crate) rendered: String,
}

impl Message {
    pub(crate) fn is_error(&self) -> bool {
        self.level.starts_with("error")
    }
}

struct Libraries {
    deps: PathBuf,
    named: BTreeMap<String, PathBuf>,
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The library as `cargo check` leaves it, with all features but `verify` or with none; built first if
/// necessary.
fn libraries(features: bool) -> &'static Libraries {
    static LIBRARIES: [OnceLock<Libraries>; 2] = [const { OnceLock::new() }; 2];
    LIBRARIES[usize::from(features)].get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["check", "--offline", "--quiet", "--message-format=json"]);
        let output = cargo
            .args(["-p", "autograd-core"])
            .args(match features {
                true => &["--features", "linalg,npy,safetensors"][..],
                false => &["--no-default-features"],
            })
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut named = BTreeMap::new();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let message: Value = serde_json::from_str(line).unwrap();
            let name = message["target"]["name"].as_str().unwrap_or_default().replace('-', "_");
            if !matches!(&name[..], "autograd_core" | "ndarray") {
                continue;
            }
            let files = message["filenames"].as_array().into_iter().flatten();
            let mut files = files.filter_map(Value::as_str).map(PathBuf::from);
            named.extend(
                files.find(|path| path.extension() == Some("rmeta".as_ref())).map(|p| (name, p)),
            );
        }
        let deps = named["autograd_core"].parent().unwrap().to_owned();
        Libraries { deps, named }
    })
}

/// The folder with the docs of a crate called `ops`; links in them must lead somewhere.
pub(crate) fn document(text: &str) -> PathBuf {
    let libraries = libraries(true);
    let out = libraries.deps.join(format!("../docs-{}", std::process::id()));
    fs::create_dir_all(&out).unwrap();
    let program = out.join("ops.rs");
    fs::write(&program, text).unwrap();
    let mut rustdoc = Command::new(env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into()));
    rustdoc
        .arg(&program)
        .args(["--crate-name", "ops", "--edition=2024", "-Dwarnings", "-o"])
        .arg(&out);
    rustdoc.arg("-L").arg(format!("dependency={}", libraries.deps.display()));
    for (name, path) in &libraries.named {
        rustdoc.arg("--extern").arg(format!("{name}={}", path.display()));
    }
    let output = rustdoc.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    out.join("ops")
}

/// The compiler's messages for a program, without the final summary. `options`: of the command line.
pub(crate) fn check(program: &Path, options: &[String]) -> Vec<Message> {
    check_with(libraries(true), program, options)
}

/// The same with the library without its features.
pub(crate) fn check_without_features(program: &Path) -> Vec<Message> {
    check_with(libraries(false), program, &[])
}

fn check_with(libraries: &Libraries, program: &Path, options: &[String]) -> Vec<Message> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let out = libraries.deps.join(format!("../compiler-{}-{count}", std::process::id()));
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.current_dir(root()).arg(program).args(["--crate-name", "program", "--emit=metadata"]);
    // As cargo does.
    rustc.args(["--check-cfg", "cfg(docsrs,test)", "--check-cfg", "cfg(feature)"]);
    rustc.args(["--error-format=json", "--out-dir"]).arg(&out);
    if !options.iter().any(|option| option.starts_with("--edition")) {
        rustc.arg("--edition=2024");
    }
    rustc.arg("-C").arg(format!("incremental={}", out.join("incremental").display()));
    rustc.arg("-L").arg(format!("dependency={}", libraries.deps.display()));
    for (name, path) in &libraries.named {
        rustc.arg("--extern").arg(format!("{name}={}", path.display()));
    }
    let output = rustc.args(options).output().unwrap();
    let _ = fs::remove_dir_all(&out);
    let text = String::from_utf8(output.stderr).unwrap();
    let parse = |line: &str| -> Value {
        serde_json::from_str(line).unwrap_or_else(|_| panic!("{}: {text}", program.display()))
    };
    let text_of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let messages = text.lines().map(parse).map(|message| {
        let spans = message["spans"].as_array().into_iter().flatten();
        let first = spans.into_iter().find(|span| span["is_primary"] == true);
        let at = |key: &str| first.and_then(|span| span[key].as_u64()).unwrap_or_default();
        Message {
            level: text_of(&message["level"]),
            code: text_of(&message["code"]["code"]),
            text: text_of(&message["message"]),
            place: (at("byte_start"), at("byte_end")),
            rendered: text_of(&message["rendered"]),
        }
    });
    // Summaries have no span.
    messages.filter(|m| m.place != (0, 0) && !m.level.starts_with("failure")).collect()
}

/// The doc examples of a program, as rustdoc lists them.
pub(crate) fn doc_tests(program: &Path) -> String {
    let libraries = libraries(true);
    let mut rustdoc = Command::new(env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into()));
    rustdoc.current_dir(root()).arg(program).args(["--test", "--crate-name", "program"]);
    // Later editions compile the examples before they list them.
    rustdoc.args(["--edition=2021", "--test-args=--list"]);
    rustdoc.arg("-L").arg(format!("dependency={}", libraries.deps.display()));
    for (name, path) in &libraries.named {
        rustdoc.arg("--extern").arg(format!("{name}={}", path.display()));
    }
    let output = rustdoc.output().unwrap();
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The same for a text, which the messages call `program.rs`.
pub(crate) fn check_text(text: &str, options: &[String]) -> Vec<Message> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = env::temp_dir().join(format!("autograd-{}-{count}.rs", std::process::id()));
    fs::write(&path, text).unwrap();
    let mut found = check(&path, options);
    for message in &mut found {
        message.rendered = message.rendered.replace(&path.display().to_string(), "program.rs");
    }
    fs::remove_file(path).unwrap();
    found
}

/// Runs `work` on each, on as many threads as there are processors.
pub(crate) fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, threads) =
        (AtomicUsize::new(0), thread::available_parallelism().map_or(2, usize::from));
    let mut found: Vec<(usize, R)> = thread::scope(|scope| {
        let workers = (0..threads).map(|_| {
            scope.spawn(|| {
                let mut done = Vec::new();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { return done };
                    done.push((at, work(item)));
                }
            })
        });
        let workers: Vec<_> = workers.collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, result)| result).collect()
}

/// All Rust files in a folder and its subfolders, sorted.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => waiting.push(path),
                false if path.extension() == Some("rs".as_ref()) => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found
}
