"""Which mistakes in a gradient are caught, and when. Writes the table of README.md in this folder.

    python3 benches/evidence/run.py ours candle jax paddle

A library's file has the right ops, and below each its mistakes: `name: piece -> other`. The first place of
`piece` after the word "backward" (or in forward, if it is not there) is changed. Each changed program is
compiled and run by itself:

- compiler: it does not compile
- call: the call or its backward is an error
- test: the test that the library generates or ships fails; candle and Paddle have none
- never: none of these
"""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
WORK = HERE.parent / "target" / "evidence"
KINDS = ["compiler", "call", "test", "never"]

CARGO = {
    "ours": 'autograd-core = { path = "%s" }' % (ROOT / "autograd-core"),
    "candle": 'candle-core = "0.11.1"',
}

JAX = """
from jax.test_util import check_grads
try:
    jax.grad(lambda *a: op(*a).sum(), tuple(range(len(args))))(*args)
except Exception as e:
    print("call", repr(e)[:200]); raise SystemExit
try:
    check_grads(op, args, order=1, modes=["rev"])
except Exception as e:
    print("test", repr(e)[:200]); raise SystemExit
print("never")
"""

PADDLE = """
try:
    call().sum().backward()
except Exception as e:
    print("call", repr(e)[:200]); raise SystemExit
print("never")
"""


def sections(name):
    """The header, and of each op its name, its program and its mistakes."""
    path = next(HERE.glob(f"{name}*.[rp][sy]"))
    comment = "//" if path.suffix == ".rs" else "#"
    header, *ops = re.split(rf"(?m)^{comment} == ", path.read_text())
    for op in ops:
        title, text = op.split("\n", 1)
        found = re.findall(rf"(?m)^{comment} ([\w', ]+): (.+) -> (.+)$", text)
        yield title, header + re.sub(rf"(?m)^{comment} .+ -> .+$", "", text), found


def changed(program, piece, other):
    start = max(program.find(word) for word in ("fn backward", "fn bwd", "def backward"))
    at = program.find(piece, start)
    at = program.find(piece) if at < 0 else at
    assert at >= 0, piece
    return program[:at] + other + program[at + len(piece):]


def cargo(name, *command):
    folder = WORK / name
    run = subprocess.run(["cargo", *command], cwd=folder, capture_output=True, text=True)
    return run.returncode == 0, run.stdout + run.stderr


def outcome(name, program):
    if name in ("jax", "paddle"):
        code = program + (JAX if name == "jax" else PADDLE)
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        return run.stdout.split("\n")[0] or "call " + run.stderr[-300:]
    folder = WORK / name
    (folder / "src").mkdir(parents=True, exist_ok=True)
    manifest = f'[package]\nname = "evidence-{name}"\nversion = "0.1.0"\nedition = "2024"\n'
    manifest += f"[workspace]\n[dependencies]\n{CARGO[name]}\n[profile.dev]\ndebug = false\n"
    (folder / "Cargo.toml").write_text(manifest)
    if name == "candle":
        (folder / "src/main.rs").write_text(program)
        built, text = cargo(name, "build", "--offline")
        if not built:
            return "compiler " + text[text.find("error"):][:200]
        done, text = cargo(name, "run")
        return "never" if done else "call " + text[-200:]
    (folder / "src/lib.rs").write_text(program)
    built, text = cargo(name, "test", "--lib", "--no-run", "--offline")
    if not built:
        return "compiler " + text[text.find("error"):][:200]
    done, text = cargo(name, "test", "--lib")
    failed = re.search(r"(?m)^test call \.\.\. FAILED", text)
    return "never" if done else ("call " if failed else "test ") + text[-200:]


def main():
    for name in sys.argv[1:]:
        lines = []
        for title, program, mistakes in sections(name):
            right = outcome(name, program)
            assert right.startswith("never"), f"{name} {title}: {right}"
            assert len(mistakes) == 5, f"{name} {title}: {len(mistakes)} mistakes"
            for mistake, piece, other in mistakes:
                found = outcome(name, changed(program, piece, other))
                kind, _, why = found.partition(" ")
                lines.append(f"{title}\t{mistake}\t{kind}")
                print(name, title, mistake, kind, why.replace("\n", " ")[:150], sep=" | ", flush=True)
        (HERE / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    page = HERE / "README.md"
    text = page.read_text().split("<!-- table -->")[0] + "<!-- table -->\n\n"
    text += f"|of 40 mistakes|{'|'.join(KINDS)}|\n|---|{'---:|' * len(KINDS)}\n"
    for name in ("ours", "jax", "candle", "paddle"):
        lines = (HERE / f"{name}.tsv").read_text().splitlines()
        counts = [sum(line.endswith("\t" + kind) for line in lines) for kind in KINDS]
        text += f"|[{name}]({name}.tsv)|{'|'.join(map(str, counts))}|\n"
    page.write_text(text)


if __name__ == "__main__":
    main()
