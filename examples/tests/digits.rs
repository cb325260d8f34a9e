//! The main program from the outside: its output, its picture, and its errors.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use autograd_core::AnyTensor;
use autograd_core::safetensors::SafeTensors;

/// A folder for this test, removed if the test passes.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("digits-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn run(&self, arguments: &str) -> Run {
        let mut command = Command::new(env!("CARGO_BIN_EXE_digits"));
        command.args(arguments.split_whitespace()).current_dir(&self.0);
        Run::of(command.env_remove("CARGO_MANIFEST_DIR").output().unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

#[derive(Debug, PartialEq)]
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Run {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The output without what differs between runs: times and paths.
    fn figures(&self) -> Vec<&str> {
        let varies = |line: &&str| line.starts_with("time") || line.starts_with("picture");
        self.stdout.lines().filter(|line| !varies(line)).collect()
    }

    /// One line on stderr, nothing on stdout.
    fn refuses(&self, code: i32, line: &str) {
        assert_eq!((self.code, self.stdout.as_str()), (Some(code), ""), "{self:?}");
        assert_eq!(self.stderr, format!("{line}\n"));
    }
}

/// The same words, and figures that differ at most by rounding: another processor may sum in another
/// order, and a borderline image may be classified differently.
fn assert_alike(found: &[&str], expected: &[&str]) {
    for (found, expected) in found.iter().zip(expected) {
        let counts = expected.starts_with("errors");
        let alike = |a: &str, b: &str| match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(a), Ok(b)) if counts => (a - b).abs() <= 2.0,
            (Ok(a), Ok(b)) if b.fract() != 0.0 => (a - b).abs() <= 0.01 * b.abs(),
            _ => a == b,
        };
        let (a, b) = (found.split_whitespace(), expected.split_whitespace());
        assert!(
            a.clone().count() == b.clone().count() && a.zip(b).all(|(a, b)| alike(a, b)),
            "expected: {expected}\nfound:    {found}"
        );
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

fn golden(name: &str, found: &[&str]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("expected/{name}.txt"));
    if env::var_os("UPDATE_EXPECTED").is_some() {
        return fs::write(path, found.join("\n") + "\n").unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_alike(found, &expected.lines().collect::<Vec<_>>());
}

#[test]
fn two_epochs_print_the_same_figures_in_every_run() {
    let folder = Folder::new("figures");
    let run = folder.run("--epochs 2");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    golden("digits_two_epochs", &run.figures());
    assert_eq!(folder.run("--epochs 2").figures(), run.figures());
    assert_ne!(folder.run("--epochs 2 --seed 1").figures(), run.figures());
}

#[test]
fn the_picture_is_where_the_last_line_says() {
    let folder = Folder::new("picture");
    let run = folder.run("--epochs 1 --out deep/er/a.svg");
    let path = run.stdout.lines().last().unwrap().split_whitespace().last().unwrap();
    assert_eq!(Path::new(path), folder.0.join("deep/er/a.svg").canonicalize().unwrap());
    let svg = fs::read_to_string(path).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    for words in ["Loss", "Accuracy", "What is taken for what", "held back"] {
        assert!(svg.contains(words), "{words} is missing");
    }
    // Without `--out` the picture is in this folder.
    folder.run("--epochs 1");
    assert!(folder.0.join("digits.svg").exists());
}

#[test]
fn what_is_learned_can_be_saved() {
    let folder = Folder::new("saved");
    let run = folder.run("--epochs 2 --save deep/er/model.safetensors");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let path = folder.0.join("deep/er/model.safetensors").canonicalize().unwrap();
    assert!(run.stdout.contains(&format!("\nmodel         {}\n", path.display())), "{run:?}");
    let file = SafeTensors::load(path).unwrap();
    let names: Vec<&String> = file.tensors.keys().collect();
    let parts = ["bias", "weight"];
    let expected: Vec<String> =
        (0..3).flat_map(|i| parts.map(|part| format!("layers.{i}.{part}"))).collect();
    assert_eq!(names, expected.iter().collect::<Vec<_>>());
    assert_eq!(file.tensors["layers.2.weight"].shape(), [128, 10]);
    assert_eq!(file.metadata["epoch"], "2");
    assert_eq!(fs::read_dir(folder.0.join("deep/er")).unwrap().count(), 1, "nothing is left over");
}

/// A program that Ctrl-C stops even if these tests ignore the signal, as behind `nohup .. &`: child
/// processes inherit ignored signals from a shell.
#[cfg(unix)]
fn stoppable(program: &str) -> Command {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    if ignored & (1 << (2 - 1)) == 0 {
        return Command::new(program);
    }
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", program]);
    command
}

/// Stopped by Ctrl-C, and without a warning.
#[cfg(unix)]
#[test]
fn whenever_it_is_stopped_the_last_model_is_whole() {
    use std::os::unix::process::ExitStatusExt;
    let folder = Folder::new("stopped");
    let path = folder.0.join("model.safetensors");
    for (round, signal) in ["INT", "INT", "INT", "TERM", "KILL"].into_iter().enumerate() {
        let mut child = stoppable(env!("CARGO_BIN_EXE_digits"))
            .args(["--epochs", "10000", "--save", "model.safetensors"])
            .current_dir(&folder.0)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while !path.exists() {
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(Duration::from_millis(40 + 13 * round as u64));
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        let expected = [2, 2, 2, 15, 9][round];
        assert_eq!(child.wait().unwrap().signal(), Some(expected));
        let file = SafeTensors::load(&path).unwrap();
        assert_eq!(file.tensors.len(), 6);
        assert!(file.metadata["epoch"].parse::<usize>().unwrap() >= 1);
        for (name, tensor) in &file.tensors {
            let AnyTensor::Float32(x) = tensor else { panic!("{name} is not of f32") };
            assert!(x.to_vec().iter().all(|x| x.is_finite()), "{name}");
        }
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn help_tells_every_flag() {
    let folder = Folder::new("help");
    let run = folder.run("--help");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    golden("digits_help", &run.stdout.lines().collect::<Vec<_>>());
    assert_eq!(folder.run("--epochs 3 -h"), run);
}

#[test]
fn bad_arguments_are_one_line_and_exit_code_2() {
    let folder = Folder::new("arguments");
    folder.file("file", "");
    let range = "--epochs takes a whole number from 1 to 10000, found";
    for (arguments, line) in [
        ("--epoch 3", "unknown argument `--epoch`".to_owned()),
        ("seven", "unknown argument `seven`".to_owned()),
        ("--epochs", "--epochs needs a value".to_owned()),
        ("--epochs --seed 3", "--epochs needs a value".to_owned()),
        ("--epochs 0", format!("{range} `0`")),
        ("--epochs ten", format!("{range} `ten`")),
        ("--epochs 1e3", format!("{range} `1e3`")),
        ("--epochs 20000", format!("{range} `20000`")),
        (
            "--seed -1",
            "--seed takes a whole number from 0 to 18446744073709551615, found `-1`".to_owned(),
        ),
    ] {
        folder.run(arguments).refuses(2, &format!("digits: {line}; try --help"));
    }
    for out in [".", "file/a.svg"] {
        let run = folder.run(&format!("--out {out}"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
        let start = format!("digits: the picture cannot be written to {out}: ");
        assert!(run.stderr.starts_with(&start) && run.stderr.lines().count() == 1, "{run:?}");
        let run = folder.run(&format!("--save {out}"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
        let start = format!("digits: the model cannot be written to {out}: ");
        assert!(run.stderr.starts_with(&start) && run.stderr.lines().count() == 1, "{run:?}");
    }
}

#[test]
fn bad_data_is_one_line_and_exit_code_1() {
    let folder = Folder::new("data");
    let whole = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("data/digits.csv.gz")).unwrap();
    let image = |digit: &str| format!("{}{digit}\n", "0,16,".repeat(32));
    let sheet =
        |line_3: String| format!("{}{line_3}{}", image("1").repeat(2), image("2").repeat(20));

    let refuses = |name: &str, bytes: &[u8], why: &str| {
        folder.file(name, bytes);
        let run = folder.run(&format!("--data {name}"));
        run.refuses(1, &format!("digits: {name}: {why}"));
    };
    refuses("empty.csv", b"", "at least 10 images expected, found 0");
    refuses("binary.csv", &[0xff, 0xfe, 0x00], "neither gzip nor text");
    let short = sheet("1,2,3\n".into());
    refuses("short.csv", short.as_bytes(), "line 3: 65 numbers expected, found 3");
    let ink = sheet(image("1").replacen("16", "ink", 1));
    let why = "line 3: pixel 2 must be a whole number from 0 to 16, found `ink`";
    refuses("ink.csv", ink.as_bytes(), why);
    let dark = sheet(image("1").replacen("16", "17", 1));
    let why = "line 3: pixel 2 must be a whole number from 0 to 16, found `17`";
    refuses("dark.csv", dark.as_bytes(), why);
    let why = "line 3: digit must be a whole number from 0 to 9, found `10`";
    refuses("ten.csv", sheet(image("10")).as_bytes(), why);

    folder.file("cut.csv.gz", &whole[..20_000]);
    let run = folder.run("--data cut.csv.gz");
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    assert!(run.stderr.starts_with("digits: cut.csv.gz: not a whole gzip file: "), "{run:?}");
    assert_eq!(run.stderr.lines().count(), 1);

    let run = folder.run("--data none.csv");
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    assert!(run.stderr.starts_with("digits: none.csv: "), "{run:?}");
    assert!(!folder.0.join("digits.svg").exists(), "no picture where nothing was learned");
}

#[test]
fn other_data_can_be_learned_from() {
    let folder = Folder::new("own");
    let image = |digit: usize| format!("{}{digit}\n", "0,16,".repeat(32));
    folder.file("own.csv", (0..50).map(|i| image(i % 10)).collect::<String>());
    let run = folder.run("--data own.csv --epochs 1");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    assert!(run.stdout.contains("40 to learn from, 10 held back"), "{run:?}");
}
