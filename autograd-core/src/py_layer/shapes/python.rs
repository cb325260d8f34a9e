//! The text of a function for hosts that follow shapes without numbers.

use std::fmt::Write;

use super::{Axis, Form, Length, Shapes, TensorShape};

impl Shapes {
    /// A function in Python that computes the shapes of the outputs from the inputs, for
    /// `torch.library.register_fake` or `jax.eval_shape`: it reads `.shape` of its arguments and calls
    /// `new(shape)` for each output, where `shape` is a tuple, or `None` if the line says `_`. Lengths may be
    /// symbols: only `+ - * //` and equality are used, and `/` of a line is `//`. A mismatch raises `ValueError`.
    ///
    /// An absent optional input is `None`, a list of tensors is a list. An output that is a list is a list of
    /// calls, if the line gives its number of tensors; otherwise it is `None`.
    ///
    /// ```
    /// use autograd_core::prelude::*;
    ///
    /// #[py_layer(no_grad, shapes(x: [b.., n], w: [n, m] -> [b.., m]))]
    /// impl Product {
    ///     fn forward(
    ///         _: &mut ForwardContext<Self>,
    ///         x: &Tensor<f64>,
    ///         w: &Tensor<f64>,
    ///     ) -> Tensor<f64> {
    ///         x.matmul(w)
    ///     }
    /// }
    ///
    /// assert_eq!(Product::SHAPES.python("product_fake"), "\
    /// def product_fake(new, x, w):
    ///     def same(a, b, what):
    ///         if a != b:
    ///             raise ValueError(f'Product: {what}: {a} and {b} differ')
    ///     same(len(x.shape) >= 1, True, 'x: [b.., n]')
    ///     b_axes = tuple(x.shape[0:len(x.shape) - 1])
    ///     n = x.shape[len(x.shape) - 1]
    ///     same(len(w.shape) == 2, True, 'w: [n, m]')
    ///     same(w.shape[0], n, 'axis 0 of w (n)')
    ///     m = w.shape[1]
    ///     return new(b_axes + (m,))
    /// ");
    /// ```
    #[must_use]
    pub fn python(&self, name: &str) -> String {
        let mut code = Code::default();
        let integers = &self.names[..self.integers];
        code.known.extend(integers);
        let uses_broadcast = self.outputs.iter().any(|shape| {
            shape
                .axes
                .is_some_and(|axes| axes.iter().any(|axis| matches!(axis, Axis::Broadcast(..))))
        });
        let arguments = self.inputs.iter().map(|(name, _)| *name);
        let arguments: Vec<String> = arguments.chain(integers.iter().copied()).map(word).collect();
        let op = self.op;
        let mut head = format!(
            "def {name}(new, {}):\n    def same(a, b, what):\n        if a != b:\n            raise ValueError(f'{op}: {{what}}: {{a}} and {{b}} differ')\n",
            arguments.join(", ")
        );
        if uses_broadcast {
            head.push_str(BROADCAST);
        }
        let of = |form| self.inputs.iter().filter(move |(_, shape)| shape.form == form);
        for (input, shape) in of(Form::One) {
            code.tensor(1, &word(input), input, shape);
        }
        for (input, shape) in of(Form::List) {
            let list = word(input);
            let what = format!("number of tensors in {input}");
            code.length(1, &format!("len({list})"), shape.count, &what);
            if !code.knows(shape) {
                code.line(
                    1,
                    &format!("same(len({list}) > 0, True, '{input}: at least one tensor')"),
                );
                code.tensor(1, &format!("{list}[0]"), &format!("{input}[0]"), shape);
            }
        }
        code.solve(1);
        for (input, shape) in of(Form::List).filter(|(_, shape)| shape.axes.is_some()) {
            code.line(1, &format!("for item in {}:", word(input)));
            code.tensor(2, "item", input, shape);
        }
        for (input, shape) in of(Form::Optional).filter(|(_, shape)| shape.axes.is_some()) {
            code.line(1, &format!("if {} is not None:", word(input)));
            let (known, groups) = (code.known.clone(), code.groups.clone());
            code.tensor(2, &word(input), input, shape);
            code.solve(2);
            // What only an optional input has is not known elsewhere.
            (code.known, code.groups) = (known, groups);
        }
        let outputs: Vec<String> = self.outputs.iter().map(|shape| code.output(shape)).collect();
        code.line(1, &format!("return {}", outputs.join(", ")));
        head + &code.text
    }
}

const BROADCAST: &str = "    def broadcast(a, b):
        n = max(len(a), len(b))
        a, b = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
        for x, y in zip(a, b):
            if not (x == y or x == 1 or y == 1):
                raise ValueError(f'shapes {a} and {b} cannot be broadcast together')
        return tuple(y if x == 1 else x for x, y in zip(a, b))
";

#[derive(Default)]
struct Code {
    known: Vec<&'static str>,
    groups: Vec<&'static str>,
    /// Lengths to be compared when all names are known, each with the expression of the axis.
    computed: Vec<(String, Length, String)>,
    text: String,
}

impl Code {
    fn line(&mut self, depth: usize, line: &str) {
        let _ = writeln!(self.text, "{}{line}", "    ".repeat(depth));
    }

    /// Whether each name in the shape of a list's tensors is known.
    fn knows(&self, shape: &TensorShape) -> bool {
        shape.axes.unwrap_or_default().iter().all(|axis| match axis {
            Axis::One(length) => self.has(length),
            Axis::Many(group, _) => self.groups.contains(group),
            Axis::Broadcast(..) => true,
        })
    }

    fn has(&self, length: &Length) -> bool {
        length.all(&mut |name| self.known.contains(&name))
    }

    fn tensor(&mut self, depth: usize, tensor: &str, name: &str, shape: &TensorShape) {
        let Some(axes) = shape.axes else { return };
        let many = axes.iter().position(|axis| matches!(axis, Axis::Many(..)));
        let count = axes.len() - usize::from(many.is_some());
        let sign = if many.is_some() { ">=" } else { "==" };
        let says = TensorShape { form: Form::One, ..*shape };
        self.line(
            depth,
            &format!("same(len({tensor}.shape) {sign} {count}, True, '{name}: {says}')"),
        );
        for (at, axis) in axes.iter().enumerate() {
            let after = axes.len() - at;
            let is_after = many.is_some_and(|many| at > many);
            match axis {
                Axis::One(length) => {
                    let index = match is_after {
                        true => format!("len({tensor}.shape) - {after}"),
                        false => at.to_string(),
                    };
                    let what = if is_after {
                        format!("axis -{after} of {name}")
                    } else {
                        format!("axis {at} of {name}")
                    };
                    self.length(depth, &format!("{tensor}.shape[{index}]"), *length, &what);
                }
                Axis::Many(group, _) => {
                    let end = format!("len({tensor}.shape) - {}", after - 1);
                    let found = format!("tuple({tensor}.shape[{at}:{end}])");
                    if self.groups.contains(group) {
                        self.line(
                            depth,
                            &format!("same({found}, {group}_axes, '{group}.. of {name}')"),
                        );
                    } else {
                        self.line(depth, &format!("{group}_axes = {found}"));
                        self.groups.push(group);
                    }
                }
                Axis::Broadcast(..) => {}
            }
        }
    }

    fn length(&mut self, depth: usize, found: &str, length: Length, what: &str) {
        match length {
            Length::Any => {}
            Length::Name(name, _) if !self.known.contains(&name) => {
                self.line(depth, &format!("{} = {found}", word(name)));
                self.known.push(name);
            }
            length if self.has(&length) => {
                let value = expression(&length);
                self.line(depth, &format!("same({found}, {value}, '{what} ({length})')"));
            }
            length => {
                self.computed.push((found.to_owned(), length, format!("{what} ({length})")));
            }
        }
    }

    /// Finds names that stand only in computed lengths, then compares these.
    fn solve(&mut self, depth: usize) {
        while let Some((name, value)) =
            self.computed.iter().find_map(|(found, length, _)| self.solved(length, found))
        {
            self.line(depth, &format!("{} = {value}", word(name)));
            self.known.push(name);
        }
        for (found, length, what) in std::mem::take(&mut self.computed) {
            self.line(depth, &format!("same({found}, {}, '{what}')", expression(&length)));
        }
    }

    fn solved(&self, length: &Length, found: &str) -> Option<(&'static str, String)> {
        match length {
            Length::Name(name, _) => {
                (!self.known.contains(name)).then(|| (*name, found.to_owned()))
            }
            Length::Computed(left, sign, right) => {
                let of_left = match (self.has(left), self.has(right)) {
                    (false, true) => true,
                    (true, false) => false,
                    _ => return None,
                };
                let (side, other) = if of_left { (left, right) } else { (right, left) };
                let other = expression(other);
                let value = match (sign, of_left) {
                    ('+', _) => format!("({found} - {other})"),
                    ('-', true) => format!("({found} + {other})"),
                    ('-', false) => format!("({other} - {found})"),
                    ('*', _) => format!("({found} // {other})"),
                    _ => return None,
                };
                self.solved(side, &value)
            }
            Length::Any | Length::Number(_) => None,
        }
    }

    fn output(&self, shape: &TensorShape) -> String {
        let Some(axes) = shape.axes else { return "None".to_owned() };
        let mut parts: Vec<String> = Vec::new();
        let mut single: Vec<String> = Vec::new();
        let close = |single: &mut Vec<String>, parts: &mut Vec<String>| {
            if !single.is_empty() {
                parts.push(format!("({},)", std::mem::take(single).join(", ")));
            }
        };
        for axis in axes {
            match axis {
                Axis::One(length) => single.push(match length {
                    Length::Any => "None".to_owned(),
                    length => expression(length),
                }),
                Axis::Many(group, _) => {
                    close(&mut single, &mut parts);
                    parts.push(format!("{group}_axes"));
                }
                Axis::Broadcast((a, _), (b, _)) => {
                    close(&mut single, &mut parts);
                    parts.push(format!("broadcast({a}_axes, {b}_axes)"));
                }
            }
        }
        close(&mut single, &mut parts);
        let one = if parts.is_empty() {
            "new(())".to_owned()
        } else {
            format!("new({})", parts.join(" + "))
        };
        match (shape.form, shape.count) {
            (Form::List, Length::Any) => "None".to_owned(),
            (Form::List, count) => format!("[{one} for _ in range({})]", expression(&count)),
            (Form::One | Form::Optional, _) => one,
        }
    }
}

impl Length {
    /// Whether all names are so.
    fn all(&self, is: &mut dyn FnMut(&'static str) -> bool) -> bool {
        match self {
            Self::Name(name, _) => is(name),
            Self::Computed(left, _, right) => left.all(is) && right.all(is),
            Self::Any | Self::Number(_) => true,
        }
    }
}

fn expression(length: &Length) -> String {
    match length {
        Length::Computed(left, sign, right) => {
            let sign = if *sign == '/' { "//".to_owned() } else { sign.to_string() };
            format!("({} {sign} {})", expression(left), expression(right))
        }
        Length::Name(name, _) => word(name),
        length => length.to_string(),
    }
}

/// A name that Python does not read otherwise, nor this function's text.
fn word(name: &str) -> String {
    const TAKEN: &str = "False None True and assert class def del elif except finally from global import is item lambda \
        len max new nonlocal not or pass raise range same broadcast tuple with zip";
    let is_taken = TAKEN.split_ascii_whitespace().any(|taken| taken == name);
    if is_taken { format!("{name}_") } else { name.to_owned() }
}
