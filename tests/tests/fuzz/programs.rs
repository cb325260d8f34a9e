//! Programs in files: valid ones with a few words changed, loaded and run.

use std::path::Path;
use std::sync::OnceLock;

use autograd_core::safetensors::SafeTensors;
use autograd_core::static_graph::{
    Adam, Executor, Feed, Fetch, Functions, Program, Sgd, append_backward, gradients,
};
use autograd_core::{DType, Result, Tensor};
use ndarray::{ArrayD, ArrayViewD};

use crate::choices::Choices;

/// The key of the program in the file's metadata.
const KEY: &str = "autograd.program";

fn tanh(x: ArrayViewD<'_, f32>) -> ArrayD<f32> {
    x.mapv(f32::tanh)
}

fn tanh_grad(y: ArrayViewD<'_, f32>, dy: ArrayViewD<'_, f32>) -> ArrayD<f32> {
    &dy * (1.0 - &y * &y)
}

fn cube(x: &Tensor<f32>) -> Tensor<f32> {
    x * x * x
}

fn functions() -> Functions {
    Functions::new().with("tanh", tanh).with("tanh_grad", tanh_grad).with("cube", cube)
}

/// A classifier with every kind of layer that can be saved, and its optimizer.
fn classifier() -> Result<(Program, Executor)> {
    let program = Program::new();
    let x = program.data("x", [-1, 4], DType::Float32)?;
    let classes = program.data("classes", [-1], DType::Int64)?;
    let hidden = program.fc(&x, 3)?;
    let out = program.current_block().create_var("out", hidden.dtype(), hidden.shape())?;
    program
        .py_func(tanh)
        .x(&hidden)
        .out(&out)
        .backward_func(tanh_grad)
        .skip_vars_in_backward_input([&hidden])
        .call()?;
    let wide = program.concat(&[&out, &hidden], 1)?;
    let logits = program.fc(&wide.dropout(0.5)?, 5)?;
    let loss = logits.cross_entropy(&classes)?;
    Adam::new(0.1).minimize(&loss)?;
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[])?;
    Ok((program, executor))
}

/// Shapes, reductions, numbers of all types, gradients of gradients.
fn sums() -> Result<(Program, Executor)> {
    let program = Program::new();
    let x = program.data("x", [2, 3], DType::Float32)?;
    x.set_stop_gradient(false);
    let n = program.data("n", [-1, 3], DType::Int64)?;
    let y = x.reshape([3, -1])?.permute(&[1, 0])?.exp()?.softmax(-1)?;
    let z = (&y * 2.0).tanh()?.matmul(&x.reshape([3, 2])?)?;
    n.cast(DType::Float32)?.max_axes([0])?;
    let [cubed] = [program.current_block().create_var("cubed", z.dtype(), z.shape())?];
    program.eager(cube).x(&z).out(&cubed).call()?;
    let sum = cubed.sum()?;
    let first = gradients(&[&sum], &[&x])?;
    if let Some(Some(first)) = first.into_iter().next() {
        gradients(&[&first.square()?.mean()?], &[&x])?;
    }
    let weight = program.fc(&x, 2)?.mean()?;
    Sgd::new(0.1).minimize(&weight)?;
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[])?;
    Ok((program, executor))
}

/// The files from which all others are generated.
fn originals() -> &'static [SafeTensors] {
    static FILES: OnceLock<Vec<SafeTensors>> = OnceLock::new();
    FILES.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("programs-{}", std::process::id()));
        let files = [classifier as fn() -> Result<(Program, Executor)>, sums];
        let files = files.map(|build| {
            let (program, executor) = build().expect("a program");
            program.save(&path, &executor).expect("a file");
            SafeTensors::load(&path).expect("a file")
        });
        let _ = std::fs::remove_file(path);
        files.into()
    })
}

/// Changes a word, a field or a line of a program's text.
fn change(text: &str, choices: &mut Choices<'_>) -> String {
    const WORDS: [&str; 30] = [
        "0",
        "1",
        "2",
        "3",
        "-1",
        "7",
        "40",
        "1099511627776",
        "9223372036854775807",
        "18446744073709551615",
        "-9223372036854775808",
        "",
        "float32",
        "int64",
        "bool",
        "data",
        "parameter",
        "state",
        "computed",
        "stop",
        "forward",
        "update",
        "true",
        "NaN",
        "1e400",
        "matmul",
        "sum",
        "tanh",
        "sgd",
        "grad",
    ];
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // The head is rarely changed, because the rest is then refused at once.
    let first = usize::from(!choices.one_in(64)).min(lines.len() - 1);
    let at = first + choices.below(lines.len() - first);
    let other = first + choices.below(lines.len() - first);
    match choices.below(12) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[other].clone()),
        2 => lines.swap(at, other),
        3 => {
            let fields: Vec<&str> = lines[at].split('\t').collect();
            let mut fields: Vec<String> = fields.into_iter().map(str::to_owned).collect();
            let field = choices.below(fields.len());
            if let Some(theirs) = lines[other].split('\t').nth(field) {
                fields[field] = theirs.to_owned();
            }
            lines[at] = fields.join("\t");
        }
        _ => {
            let separators = |c: char| matches!(c, '\t' | ',' | ';');
            let line = &lines[at];
            let mut starts = vec![0];
            starts.extend(line.match_indices(separators).map(|(at, _)| at + 1));
            let start = *choices.pick(&starts);
            let end = line[start..].find(separators).map_or(line.len(), |len| start + len);
            let word = choices.pick(&WORDS);
            let joined = if choices.one_in(4) { "," } else { "" };
            let kept = if joined.is_empty() { "" } else { &line[start..end] };
            lines[at] = format!("{}{kept}{joined}{word}{}", &line[..start], &line[end..]);
        }
    }
    if lines.is_empty() { String::new() } else { lines.join("\n") + "\n" }
}

/// A file whose program is nearly correct.
pub(crate) fn nearly_right(choices: &mut Choices<'_>) -> SafeTensors {
    let mut file = choices.pick(originals()).clone();
    let mut text = file.metadata[KEY].clone();
    for _ in 0..=choices.below(4) {
        text = change(&text, choices);
    }
    file.metadata.insert(KEY.into(), text);
    file
}

/// Checks that an error does not report a panic of the library; a user's function may panic, and so
/// may an op if memory is exhausted.
#[track_caller]
fn checked<T>(done: Result<T>) -> Option<T> {
    match done {
        Ok(done) => Some(done),
        Err(error) => {
            let words = error.to_string();
            let allowed = words.starts_with("py_func") || words.contains("out of memory");
            assert!(!words.contains("panicked") || allowed, "{words}");
            None
        }
    }
}

/// Loads a program, and uses it in all ways.
pub(crate) fn load_and_run(path: &Path) {
    let executor = Executor::new();
    let Some(program) = checked(Program::load(path, &functions(), &executor)) else { return };
    assert!(!program.to_string().is_empty());
    assert!(program.to_dot().starts_with("digraph"));
    run(&program, &executor);
    run(&program, &executor.with_threads(2));
    if let Some(test) = checked(program.clone_program(true)) {
        run(&test, &executor);
    }
    let _ = program.save(path, &executor);
    let text = program.to_string();
    let mut vars = text.lines().filter_map(|line| program.var(line.split([':', ' ']).next()?));
    if let Some(loss) = vars.next_back() {
        let again = program.clone_program(false);
        if checked(append_backward(&loss)).is_some() && again.is_ok() {
            run(&program, &executor);
        }
    }
}

fn run(program: &Program, executor: &Executor) {
    let text = program.to_string();
    let mut feeds: Vec<(String, Box<dyn Feed>)> = Vec::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("data ")) {
        let Some(var) = line.rsplit_once(": ").and_then(|(name, _)| program.var(name)) else {
            continue;
        };
        let shape: Vec<usize> = var.shape().iter().map(|n| n.unwrap_or(2)).collect();
        if shape.iter().try_fold(1_usize, |count, &n| count.checked_mul(n)).is_none_or(|n| n > 4096)
        {
            return;
        }
        let value: Box<dyn Feed> = match var.dtype() {
            DType::Float32 => Box::new(Tensor::<f32>::full(shape, 0.5)),
            DType::Float64 => Box::new(Tensor::<f64>::full(shape, 0.5)),
            DType::Int32 => Box::new(Tensor::<i32>::ones(shape)),
            DType::Int64 => Box::new(Tensor::<i64>::ones(shape)),
            DType::UInt8 => Box::new(Tensor::<u8>::ones(shape)),
            _ => Box::new(Tensor::<bool>::ones(shape)),
        };
        feeds.push((var.name(), value));
    }
    let feed: Vec<(&str, &dyn Feed)> =
        feeds.iter().map(|(name, value)| (name.as_str(), &**value)).collect();
    let words = text.split(|c: char| " :,()".contains(c));
    let names: Vec<String> =
        words.filter(|word| program.var(word).is_some()).map(str::to_owned).collect();
    let fetch: Vec<&dyn Fetch> = names.iter().map(|name| name as &dyn Fetch).collect();
    checked(executor.run(program, &feed, &fetch));
    for fetch in fetch.into_iter().rev().take(3) {
        checked(executor.run(program, &feed, &[fetch]));
    }
}
