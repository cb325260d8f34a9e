"""Which mistakes in a gradient are caught, and when. Writes the table of README.md in this folder.

    python3 benches/evidence/run.py ours candle burn
    PYTHON_WITH_THE_LIBRARY benches/evidence/run.py jax paddle torch

A library's file has the right ops, and below each its mistakes: `name: piece -> other`. The first place of
`piece` after the word "backward" (or in forward, if it is not there) is changed, whatever white space it
has. Each changed program is run by itself:

- compiler: it does not compile
- call: the call or its backward is an error
- test: the test that the library generates or ships fails; candle, burn and Paddle have none
- never: none of these, and the gradient is wrong
- harmless: none of these, and the gradient is right to six digits
"""

import contextlib
import io
import multiprocessing
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
WORK = HERE.parent / "target" / "evidence"
KINDS = ["compiler", "call", "test", "never", "harmless"]
LIBRARIES = {
    "ours": "autograd", "torch": "PyTorch", "jax": "JAX", "burn": "burn", "candle": "candle", "paddle": "Paddle",
}

CARGO = {
    "ours": 'autograd-core = { path = "%s" }' % (ROOT / "autograd-core"),
    "candle": 'candle-core = "=0.11.1"',
    "burn": 'burn = { version = "=0.22.1", default-features = false, features = ["std", "autodiff", "extension", "flex"] }',
}

JAX = """
from jax.test_util import check_grads
try:
    grads = jax.grad(lambda *a: (op(*a) ** 3).sum(), tuple(range(len(args))))(*args)
except Exception as e:
    print("call", repr(e)[:200]); raise SystemExit
try:
    check_grads(op, args, order=1, modes=["rev"])
except Exception as e:
    print("test", repr(e)[:200]); raise SystemExit
print("never", *[n for g in grads for n in [*g.shape, *g.flatten().tolist()]])
"""

TORCH = """
leaves = [x for x in args if isinstance(x, torch.Tensor) and x.requires_grad]
try:
    (Op.apply(*args) ** 3).sum().backward()
except Exception as e:
    print("call", repr(e)[:200]); raise SystemExit
try:
    torch.autograd.gradcheck(Op.apply, args)
except Exception as e:
    print("test", repr(e)[:200]); raise SystemExit
print("never", *[n for x in leaves for n in [*x.grad.shape, *x.grad.flatten().tolist()]])
"""

PADDLE = """
leaves = [x for x in args if isinstance(x, paddle.Tensor) and not x.stop_gradient]
try:
    (Op.apply(*args) ** 3).sum().backward()
    paddle.optimizer.SGD(0.1, leaves).step()
except Exception as e:
    print("call", repr(e)[:200]); raise SystemExit
print("never", *[n for x in leaves for n in [*x.grad.shape, *x.grad.flatten().tolist()]])
"""

PYTHON = {"jax": JAX, "torch": TORCH, "paddle": PADDLE}


def sections(name):
    """The header, and of each op its name, its program and its mistakes."""
    path = next(HERE.glob(f"{name}*.[rp][sy]"))
    comment = "//" if path.suffix == ".rs" else "#"
    header, *ops = re.split(rf"(?m)^{comment} == ", path.read_text())
    for op in ops:
        title, text = op.split("\n", 1)
        found = re.findall(rf"(?m)^{comment} ([\w', ]+): (.+) -> (.+)$", text)
        yield title, header + re.sub(rf"(?m)^{comment} [\w', ]+: .+$", "", text), found


def changed(program, piece, other):
    start = max(program.find(word) for word in ("fn backward", "fn bwd", "def backward"))
    piece = re.compile(r"\s+".join(map(re.escape, piece.split())))
    at = piece.search(program, start) or piece.search(program)
    assert at, piece
    return program[:at.start()] + other + program[at.end():]


def in_python(name, programs):
    """The outcomes of programs, each in a process of its own that has imported the library."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([name])
    with context.Pool(1, maxtasksperchild=1) as pool:
        yield from pool.imap(in_process, [program + PYTHON[name] for program in programs])


def in_process(program):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(program, {})
        except SystemExit:
            pass
        except Exception as error:
            return f"call {error!r}"
    return printed.getvalue().split("\n")[0]


def in_rust(name, programs):
    """The outcomes of programs. Each is a module of one crate; those that do not compile are taken out of it,
    until the others compile. Then each is run by itself: its tests, or its `main`."""
    folder = WORK / name
    shutil.rmtree(folder / "src", ignore_errors=True)
    (folder / "src").mkdir(parents=True)
    manifest = f'[package]\nname = "evidence-{name}"\nversion = "0.1.0"\nedition = "2024"\n'
    manifest += f"[workspace]\n[dependencies]\n{CARGO[name]}\n[profile.dev]\ndebug = false\n"
    (folder / "Cargo.toml").write_text(manifest)
    for i, program in enumerate(programs):
        (folder / f"src/op{i}.rs").write_text(program.replace("fn main()", "pub fn main()"))
    found, rest, failed = {}, range(len(programs)), True
    while failed:
        modules = "".join(f"mod op{i};\n" for i in rest)
        arms = "".join(f'        "op{i}" => op{i}::main(),\n' for i in rest)
        main = f"fn main() {{\n    match &*std::env::args().nth(1).unwrap() {{\n{arms}        _ => (),\n    }}\n}}\n"
        (folder / "src/main.rs").write_text(modules + ("fn main() {}\n" if name == "ours" else main))
        kind = ["test", "--no-run"] if name == "ours" else ["build"]
        text = command(folder, "cargo", *kind, "--message-format", "short").stderr
        failed = re.findall(r"(?m)^src/op(\d+)\.rs:\S+ (error.*)$", text)
        assert failed or "Finished" in text, text[-2000:]
        print(f"{name}: {len(rest)} programs, {len(set(i for i, _ in failed))} do not compile", flush=True)
        for i, error in failed:
            found.setdefault(int(i), f"compiler {error}")
        rest = [i for i in rest if i not in found]
    for i in range(len(programs)):
        if i in rest and name == "ours":
            text = command(folder, "cargo", "test", "--", f"op{i}::").stdout
            wrong = re.findall(rf"(?m)^test op{i}::(\S+) \.\.\. FAILED", text)
            assert re.search(rf"(?m)^test op{i}::call \.\.\. ", text), text
            found[i] = ("call " if "call" in wrong else "test ") + str(wrong) if wrong else "never"
        elif i in rest:
            run = command(folder, f"target/debug/evidence-{name}", f"op{i}")
            at = run.stdout.rpartition("gradients")[2]
            found[i] = f"never {at}" if run.returncode == 0 else "call " + run.stderr[-200:]
        yield found[i]


def command(folder, *words):
    return subprocess.run(words, cwd=folder, capture_output=True, text=True)


def same(a, b):
    """Whether two lists of shapes and numbers are equal to six digits."""
    a, b = ([float(n) for n in text.split()] for text in (a, b))
    return len(a) == len(b) and all(abs(m - n) <= 1e-6 * max(1.0, abs(n)) for m, n in zip(a, b))


def main():
    for name in sys.argv[1:]:
        titles, programs, lines = [], [], []
        for title, program, mistakes in sections(name):
            assert len(mistakes) == 5, f"{name} {title}: {len(mistakes)} mistakes"
            titles += [(title, "")] + [(title, mistake) for mistake, _, _ in mistakes]
            programs += [program] + [changed(program, piece, other) for _, piece, other in mistakes]
        outcomes = (in_python if name in PYTHON else in_rust)(name, programs)
        for (title, mistake), found in zip(titles, outcomes, strict=True):
            kind, _, why = found.partition(" ")
            if not mistake:
                assert kind == "never", f"{name} {title}: {found}"
                right = why
                continue
            if kind == "never" and why and same(why, right):
                kind = "harmless"
            lines.append(f"{title}\t{mistake}\t{kind}")
            print(name, title, mistake, kind, why.replace("\n", " ")[:150], sep=" | ", flush=True)
        (HERE / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    page = HERE / "README.md"
    text = page.read_text().split("<!-- table -->")[0] + "<!-- table -->\n\n"
    text += "|of 100 mistakes|compiler|call|test|never|no mistake there|\n|---|---:|---:|---:|---:|---:|\n"
    for name, title in LIBRARIES.items():
        lines = (HERE / f"{name}.tsv").read_text().splitlines()
        counts = [sum(line.endswith("\t" + kind) for line in lines) for kind in KINDS]
        text += f"|[{title}]({name}.tsv)|{'|'.join(map(str, counts))}|\n"
    page.write_text(text)


if __name__ == "__main__":
    main()
