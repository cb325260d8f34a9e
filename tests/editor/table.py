"""Prints what an editor offers in ops, against the same text without the attribute:

    python3 tests/editor/table.py [rust-analyzer]

Needs a rust-analyzer and the standard library's sources (`rustup component add rust-analyzer rust-src`). Takes some
minutes. The exit code is 1 if a row is worse than plain Rust.
"""

import re
import sys

from lsp import Editor

HEAD = "use autograd_core::prelude::*;\n"
MAIN = "\nfn main() {}\n"

OP = """#[py_layer]
impl Op {
    type Saved = (Tensor<f64>, Tensor<f64>);
    type Attrs = f64;

    pub fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        w: &Tensor<f64>,
        #[default(2.0)] by: f64,
    ) -> Tensor<f64> {
        let y = x.tanh();
        ctx.save_for_backward((&y, w));
        ctx.set_attrs(by);
        FORWARD
        y * w * by
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Grads {
        let (y, w) = ctx.saved_tensor();
        let by = *ctx.attrs();
        BACKWARD
        Grads { x: dy * w * by, w: dy * y }
    }
}
"""

FORMULA = """#[py_layer(elementwise)]
impl Op {
    fn forward<L: Lane>(x: Real<L>, #[stop_gradient] keep: Mask<L>, #[default(2.0)] k: f64) -> Real<L> {
        FORWARD
        keep.select(x * k, x)
    }

    fn backward<L: Lane>(x: Real<L>, k: f64, dy: Real<L>) -> Grads {
        BACKWARD
        Grads { x: dy * k * x }
    }
}
"""

ARRAYS = """use autograd_core::static_graph::py_func;
use ndarray::{ArrayD, ArrayViewD};
#[py_func]
impl Op {
    fn forward(x: ArrayViewD<f64>) -> ArrayD<f64> {
        FORWARD
        x.mapv(f64::tanh)
    }

    fn backward(y: ArrayViewD<f64>, dy: ArrayViewD<f64>) -> ArrayD<f64> {
        BACKWARD
        &dy * (1.0 - &y * &y)
    }
}
"""

TENSOR, REAL, ARRAY = ["tanh", "matmul", "sum"], ["tanh", "exp", "gt"], ["mapv", "shape"]
FORWARD = ["save_for_backward", "set_attrs", "needs_input_grad"]
BACKWARD = ["saved_tensor", "attrs", "needs_input_grad"]


def text(op=OP, main=MAIN, replace=(), **parts):
    """A program. `replace`: pairs of texts; `parts`: what stands at the places of the op."""
    for place in ("FORWARD", "BACKWARD"):
        op = op.replace(place, parts.get(place, ""))
    for old, new in replace:
        assert old in op, old
        op = op.replace(old, new)
    return HEAD + op + main


def plain(program):
    """The program without the attribute."""
    program = re.sub(r"#\[py_\w+[^\]]*\]\nimpl (\w+)", r"struct \1;\nimpl \1", program)
    program = re.sub(r"#\[(st\w*|default\([^)]*\))\] ", "", program)
    return re.sub(r"type (Saved|Attrs) = .*;\n", "", program)


def calls(call):
    return f"\nfn main() {{\n    let x = Tensor::from(1.0);\n    {call}\n}}\n"


FEWER = [("-> Grads", "-> Tensor<f64>"), ("Grads { x: dy * w * by, w: dy * y }", "dy * y")]
UNSET = [("ctx.set_attrs(by);", "")]
NO_BACKWARD = [(OP[OP.index("\n    fn backward") : OP.rindex("}")].replace("BACKWARD", ""), "")]
MORE = [("-> ArrayD<f64> {\n        dy", "-> (ArrayD<f64>, ArrayD<f64>) {\n        dy")]

# The state, the program with a cursor, the names that must be offered.
COMPLETIONS = [
    ("forward: `x.`", text(FORWARD="x.$0;"), TENSOR),
    ("forward: `ctx.`", text(FORWARD="ctx.$0;"), FORWARD),
    ("forward: `ctx.se`", text(FORWARD="ctx.se$0;"), FORWARD[:2]),
    ("forward: a local name", text(FORWARD="let q = b$0;"), ["by"]),
    ("backward: `ctx.`", text(BACKWARD="ctx.$0;"), BACKWARD),
    ("backward: `let k = ctx.`", text(BACKWARD="let k = ctx.$0;"), BACKWARD),
    ("backward: `ctx.needs_input_grad().`", text(BACKWARD="ctx.needs_input_grad().$0;"), ["x", "w"]),
    ("backward: a saved `y.`", text(BACKWARD="y.$0;"), TENSOR),
    ("backward: `dy.`", text(BACKWARD="dy.$0;"), TENSOR),
    ("`Grads { `", text(replace=[("x: dy * w * by, w: dy * y", "$0")]), ["x", "w"]),
    ("`Grads { x: dy. }`", text(replace=[("x: dy * w * by", "x: dy.$0")]), TENSOR),
    ("`-> Gra`", text(replace=[("-> Grads", "-> Gra$0")]), ["Grads"]),
    ("`x: &Ten`", text(replace=[("x: &Tensor<f64>", "x: &Ten$0")]), ["Tensor"]),
    ("`ctx: &mut For`", text(replace=[("&mut ForwardContext<Self>", "&mut For$0")]), ["ForwardContext"]),
    ("`ctx: &Ba`", text(replace=[("&BackwardContext<Self>", "&Ba$0")]), ["BackwardContext"]),
    ("no backward yet: `x.`", text(FORWARD="x.$0;", replace=NO_BACKWARD), TENSOR),
    ("no backward yet: `ctx.`", text(FORWARD="ctx.$0;", replace=NO_BACKWARD), FORWARD),
    ("attributes not set yet: `x.`", text(FORWARD="x.$0;", replace=UNSET), TENSOR),
    ("attributes not set yet: `ctx.`", text(FORWARD="ctx.$0;", replace=UNSET), FORWARD),
    ("too few gradients: forward, `x.`", text(FORWARD="x.$0;", replace=FEWER), TENSOR),
    ("too few gradients: backward, `dy.`", text(BACKWARD="dy.$0;", replace=FEWER), TENSOR),
    ("too few gradients: backward, `ctx.`", text(BACKWARD="ctx.$0;", replace=FEWER), BACKWARD),
    ("too few gradients: `Op::apply(..).`", text(main=calls("Op::apply(&x, &x, 2.0).$0;"), replace=FEWER), TENSOR),
    ("`Op::`", text(main=calls("Op::$0;")), ["apply", "try_apply", "with"]),
    ("`Op::with().`", text(main=calls("Op::with().$0;")), ["x", "w", "by", "apply"]),
    ("`Op::apply(..).`", text(main=calls("Op::apply(&x, &x, 2.0).$0;")), TENSOR),
    ("`#[py_layer()]`", text(replace=[("#[py_layer]", "#[py_layer($0)]")]), ["elementwise", "no_grad", "check"]),
    ("`#[st] w`", text(replace=[("w: &Tensor", "#[st$0] w: &Tensor")]), ["stop_gradient"]),
    ("formula: `x.`", text(FORMULA, FORWARD="x.$0;"), REAL),
    ("formula: `keep.`", text(FORMULA, FORWARD="keep.$0;"), ["select"]),
    ("formula: `k.`", text(FORMULA, FORWARD="k.$0;"), ["sqrt"]),
    ("formula with an error: `x.`", text(FORMULA, FORWARD="x.$0; if x > 0.0 { x } else { -x };"), REAL),
    ("formula: backward, `dy.`", text(FORMULA, BACKWARD="dy.$0;"), REAL),
    ("scalar_op!: `x.`", HEAD + "scalar_op!(Op: y = x.$0, dx = 2.0 * x * dy);" + MAIN, REAL),
    ("scalar_op!: `x.ex`", HEAD + "scalar_op!(Op: y = x.ex$0, dx = 2.0 * x * dy);" + MAIN, REAL),
    ("scalar_op!: `dy.`", HEAD + "scalar_op!(Op: y = x * x, dx = dy.$0);" + MAIN, REAL),
    ("py_func: forward, `x.`", text(ARRAYS, FORWARD="x.$0;"), ARRAY),
    ("py_func: backward, `dy.`", text(ARRAYS, BACKWARD="dy.$0;"), ARRAY),
    ("py_func, a gradient too many: `dy.`", text(ARRAYS, BACKWARD="dy.$0;", replace=MORE), ARRAY),
]

RIGHT = text(
    main=calls("let y = Op::with().x(&x).w(&x).by(3.0).apply();\n    println!(\"{y} {}\", Op::apply(&x, &x, 1.0));"),
    replace=[("#[py_layer]", "#[py_layer(check(x = [2], w = [2]))]")],
)

# The place of the cursor, and the places that its rename must change: each a text, and an offset in it.
RENAMES = [
    (("x: &Tensor", 0), [("x = [2]", 0), ("x.tanh", 0), ("x: dy", 0), (".x(&x)", 1)]),
    (("by: f64", 0), [("set_attrs(by", 10), (".by(", 1)]),
]

# The place of the cursor, and that of the definition.
DEFINITIONS = [
    (("Op::with", 4), ("forward(\n", 0)),
    (("Op::apply", 4), ("forward(\n", 0)),
    ((".x(&x)", 1), ("x: &Tensor", 0)),
    (("Grads { x", 1), ("Grads {\n", 0)),
    (("x: dy", 0), ("x: &Tensor", 0)),
]


def main():
    editor = Editor(sys.argv[1] if len(sys.argv) > 1 else "rust-analyzer")
    wrong = 0

    def row(what, found, missing):
        nonlocal wrong
        wrong += bool(missing)
        print(f"{what:45} {found:28} {'wrong: ' + str(missing) if missing else ''}", flush=True)

    for what, program, names in COMPLETIONS:
        found = editor.completions(program)
        without = plain(program)
        beside = editor.completions(without) if "$0" in without else set()
        lost = [name for name in names if name not in found]
        row(what, f"{len(found)} names, plain {len(beside)}", lost)
    place = lambda at: RIGHT.index(at[0]) + at[1]
    for cursor, targets in RENAMES:
        for private in (False, True):
            program = RIGHT.replace("pub fn", "fn") if private else RIGHT
            editor.write(program)
            where = lambda at: program.index(at[0]) + at[1]
            changed = editor.rename(where(cursor))
            lost = [target for target, _ in targets if where((target, _)) not in changed]
            row(f"rename `{cursor[0]}`{', private' * private}", f"{len(changed)} places", lost)
    editor.write(RIGHT)
    for cursor, target in DEFINITIONS:
        found = editor.definition(place(cursor))
        row(f"definition of `{cursor[0]}`", str(found), [] if found == place(target) else [target[0]])
    hover = editor.hover(place(("x: &Tensor", 0)))
    row("hover of an input", hover.strip().split("\n")[1], [] if "x: &Tensor<f64>" in hover[:40] else [hover[:200]])
    for what, program, count in [
        ("diagnostics of right code", RIGHT, 0),
        ("diagnostics of a right formula", text(FORMULA), 0),
        ("diagnostics after an error", text(replace=FEWER), 1),
    ]:
        editor.write(program)
        found = editor.diagnostics()
        row(what, str(len(found)), [] if len(found) == count else found)
    editor.close()
    print(f"{wrong} rows are wrong")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
