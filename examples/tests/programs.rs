//! Every program prints the output in `expected/`. After an intended change,
//! `UPDATE_EXPECTED=1 cargo test -p examples --test programs` rewrites those files.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn check(name: &str, program: &str) {
    let output = Command::new(program).output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{name} ended with {}: {stderr}", output.status);
    assert_eq!(stderr, "", "{name} prints results only");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("expected/{name}.txt"));
    if env::var_os("UPDATE_EXPECTED").is_some() {
        return fs::write(path, stdout).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(stdout, expected, "{name} prints something else than {}", path.display());
}

macro_rules! programs {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name), env!(concat!("CARGO_BIN_EXE_", stringify!($name))));
            }
        )*

        #[test]
        fn no_program_and_no_expectation_is_forgotten() {
            let names = [$(stringify!($name)),*];
            for (folder, extension) in [("src/bin", "rs"), ("expected", "txt")] {
                let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
                for file in fs::read_dir(folder).unwrap() {
                    let path = file.unwrap().path();
                    let name = path.file_stem().unwrap().to_str().unwrap();
                    assert!(path.extension().is_some_and(|e| e == extension), "{}", path.display());
                    // `digits` has its own tests.
                    assert!(names.contains(&name) || name.starts_with("digits"), "{name}");
                }
            }
        }
    };
}

/// The README's programs and outputs are those of the examples.
#[test]
fn the_readme_shows_these_programs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(folder.join("../README.md")).unwrap();
    let code = |name: &str| {
        let program = fs::read_to_string(folder.join(format!("src/bin/{name}.rs"))).unwrap();
        format!("```rust\nuse {}```\n", program.split_once("\nuse ").unwrap().1)
    };
    let output =
        |name: &str| fs::read_to_string(folder.join(format!("expected/{name}.txt"))).unwrap();
    let tanh = format!("{}```text\n{}```\n", code("cus_tanh"), output("cus_tanh"));
    assert!(readme.contains(&tanh), "README.md must show:\n{tanh}");
    let train = code("train");
    assert!(readme.contains(&train), "README.md must show:\n{train}");
    assert!(train.contains(&format!("// {}", output("train"))), "{}", output("train"));
}

programs! {
    cus_tanh_with_func
    cus_tanh
    cus_tanh_float32
    tanh_by_name
    aux_output
    stop_gradient_input
    all_stop_gradient
    mark_not_inplace
    mark_non_differentiable
    materialize_grads
    scaled_tanh
    data_loader
    custom_jvp
    gradient_penalty
    checkpoint
    clip_by_hook
    saved_on_disk
    explain
    conv_net
    py_func_add
    py_func_net
    py_func_tanh
    gelu
    losses
    fused_adam
    train
    ops_user
    ctc_loss
    flash_attention
    gpt
    hash_grid
    n_body
    neural_ode
    opt_net
    quantized
    sinkhorn
    spiking_net
    vq_codebook
}
