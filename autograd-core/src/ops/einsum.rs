//! Sums of products over labelled axes, computed by batched matrix products.

use std::panic::Location;

use super::binary::BINARY;
use super::call::call_any;
use super::matmul::MATMUL;
use super::reduce::{REDUCTIONS, grouping};
use super::shape::{PERMUTE, RESHAPE, signed};
use super::slices::SLICE;
use super::table::{Attr, OpDef};
use super::{Binary, Caller, Numeric, Reduce, pairs};
use crate::error::{Error, Result};
use crate::graph::{AnyTensor, Composite, Tensor, typed};

/// The labels of axes: letters, or private-use characters, counted from the last, for the axes of `...`.
type Labels = Vec<char>;

/// Returns the label of the `at`-th axis from the end among the axes of `...`.
fn unnamed(at: usize) -> char {
    let code = 0xE000 + at.min(0xFFF) as u32;
    char::from_u32(code).unwrap_or_else(|| unreachable!("{code:x} is in the private range"))
}

fn wrong<T>(equation: &str, expected: impl Into<String>) -> Result<T> {
    let (expected, found) = (expected.into(), format!("`{equation}`"));
    Err(Error::value("einsum", "equation", expected, found))
}

/// Returns the labels of a term in which `...` stands for `axes` axes.
fn labels(equation: &str, term: &str, axes: usize) -> Result<Labels> {
    let (before, after) = term.split_once("...").unwrap_or((term, ""));
    let letters = [before, after].concat();
    if let Some(other) = letters.chars().find(|label| !label.is_ascii_alphabetic()) {
        return wrong(equation, format!("of letters, `...`, `,` and one `->`, without `{other}`"));
    }
    let between = if term.contains("...") { axes } else { 0 };
    let between = (0..between).rev().map(unnamed);
    Ok(before.chars().chain(between).chain(after.chars()).collect())
}

struct Term {
    tensor: AnyTensor,
    labels: Labels,
}

impl Term {
    fn length(&self, label: char) -> usize {
        self.tensor.shape()[self.place(label)]
    }

    fn place(&self, label: char) -> usize {
        let place = self.labels.iter().position(|&own| own == label);
        place.unwrap_or_else(|| unreachable!("it has the label"))
    }

    fn permute(&mut self, order: &[usize], at: Caller) -> Result<()> {
        self.tensor = run(&PERMUTE, vec![Attr::Ints(signed(order))], [&self.tensor], at)?;
        self.labels = order.iter().map(|&axis| self.labels[axis]).collect();
        Ok(())
    }

    fn take_diagonals(&mut self, at: Caller) -> Result<()> {
        let twice = |labels: &Labels| {
            (1..labels.len()).find_map(|j| (0..j).find(|&i| labels[i] == labels[j]).map(|i| (i, j)))
        };
        while let Some((i, j)) = twice(&self.labels) {
            let n = self.tensor.shape()[i];
            let (order, lengths) = grouping(self.tensor.shape(), &[i, j]);
            self.permute(&order, at)?;
            self.labels.pop();
            let flat = run(&RESHAPE, reshaped(&lengths), [&self.tensor], at)?;
            let (end, step) = (Attr::Int((n * n) as isize), Attr::Int(n as isize + 1));
            self.tensor = run(&SLICE, vec![Attr::Int(-1), Attr::Int(0), end, step], [&flat], at)?;
        }
        Ok(())
    }

    /// Drops the axes of length 1 that are broadcast to a longer length.
    fn drop_broadcast(&mut self, length: impl Fn(char) -> usize, at: Caller) -> Result<()> {
        let axes = self.labels.iter().zip(self.tensor.shape());
        let kept: Vec<_> = axes.filter(|&(&label, &n)| n == length(label)).collect();
        if kept.len() < self.labels.len() {
            let (labels, shape): (_, Vec<usize>) = kept.into_iter().unzip();
            self.tensor = run(&RESHAPE, reshaped(&shape), [&self.tensor], at)?;
            self.labels = labels;
        }
        Ok(())
    }

    fn sum(&mut self, needed: impl Fn(char) -> bool, at: Caller) -> Result<()> {
        let removed: Vec<usize> =
            (0..self.labels.len()).filter(|&axis| !needed(self.labels[axis])).collect();
        if !removed.is_empty() {
            let attrs = vec![Attr::Ints(signed(&removed)), Attr::Flag(false)];
            self.tensor = run(&REDUCTIONS[Reduce::Sum as usize], attrs, [&self.tensor], at)?;
            self.labels.retain(|&label| needed(label));
        }
        Ok(())
    }

    fn ordered(mut self, labels: &[char], at: Caller) -> Result<AnyTensor> {
        let order: Vec<usize> = labels.iter().map(|&label| self.place(label)).collect();
        self.permute(&order, at)?;
        Ok(self.tensor)
    }

    /// Returns the product with another term, summed along the common axes that are not needed.
    fn times(mut self, mut right: Self, needed: impl Fn(char) -> bool, at: Caller) -> Result<Self> {
        self.sum(|label| needed(label) || right.labels.contains(&label), at)?;
        right.sum(|label| needed(label) || self.labels.contains(&label), at)?;
        let (both, rows): (Labels, Labels) =
            self.labels.iter().partition(|label| right.labels.contains(label));
        let (batch, inner): (Labels, Labels) = both.iter().partition(|&&label| needed(label));
        let columns: Labels =
            right.labels.iter().copied().filter(|label| !self.labels.contains(label)).collect();
        let lengths = |of: &Self, labels: &Labels| -> Vec<usize> {
            labels.iter().map(|&label| of.length(label)).collect()
        };
        let (stacks, heights) = (lengths(&self, &batch), lengths(&self, &rows));
        let (widths, depths) = (lengths(&right, &columns), lengths(&self, &inner));
        let labels = [&batch[..], &rows, &columns].concat();
        // Whether a tensor has its shape already is a matter of labels. Lengths that are 1 by chance must not decide:
        // a trace has the same ops for all lengths.
        let are_single = |rows: &Labels, columns: &Labels| rows.len() == 1 && columns.len() == 1;
        let (op, a, b, fit) = if inner.is_empty() {
            // Nothing is summed: an outer product.
            let a = [&stacks[..], &heights, &vec![1; widths.len()]].concat();
            let b = [&stacks[..], &vec![1; heights.len()], &widths].concat();
            (&BINARY[Binary::Mul as usize], a, b, [columns.is_empty(), rows.is_empty(), true])
        } else {
            let [m, k, n] = [&heights, &depths, &widths].map(|all| all.iter().product::<usize>());
            let fit = [(&rows, &inner), (&inner, &columns), (&rows, &columns)];
            let [a, b] = [[m, k], [k, n]].map(|sides| [&stacks[..], &sides].concat());
            (&MATMUL, a, b, fit.map(|(rows, columns)| are_single(rows, columns)))
        };
        let shaped = |x: AnyTensor, fits: bool, shape: &[usize]| match fits {
            true => Ok(x),
            false => run(&RESHAPE, reshaped(shape), [&x], at),
        };
        let left = self.ordered(&[&batch[..], &rows, &inner].concat(), at)?;
        let right = right.ordered(&[&batch[..], &inner, &columns].concat(), at)?;
        let product =
            run(op, vec![], [&shaped(left, fit[0], &a)?, &shaped(right, fit[1], &b)?], at)?;
        let tensor = shaped(product, fit[2], &[stacks, heights, widths].concat())?;
        Ok(Self { tensor, labels })
    }
}

fn run<const N: usize>(
    def: &'static OpDef,
    attrs: Vec<Attr>,
    inputs: [&AnyTensor; N],
    at: Caller,
) -> Result<AnyTensor> {
    call_any(def, attrs, inputs.into_iter().cloned().collect(), at)
}

fn reshaped(shape: &[usize]) -> Vec<Attr> {
    vec![Attr::shape(shape), Attr::NONE_KEPT]
}

fn einsum(equation: &str, operands: &[AnyTensor], at: Caller) -> Result<AnyTensor> {
    let op = "einsum";
    let written: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let cut = written.split_once("->");
    let inputs = cut.map_or(&written[..], |(inputs, _)| inputs);
    let parts: Vec<&str> = inputs.split(',').collect();
    if parts.len() != operands.len() {
        let (expected, found) = (parts.len(), operands.len());
        let what = format!("tensors, as `{inputs}` says");
        return Err(Error::Count { op, what, expected, found });
    }
    let mut terms = Vec::with_capacity(operands.len());
    let mut unnamed_axes = 0;
    for (position, (&part, tensor)) in parts.iter().zip(operands).enumerate() {
        let named = labels(equation, part, 0)?.len();
        let axes = tensor.shape().len().checked_sub(named);
        let Some(axes) = axes.filter(|&axes| axes == 0 || part.contains("...")) else {
            let plural = if named == 1 { "axis" } else { "axes" };
            let parameter = format!("operands[{position}]");
            let expected = format!("of {named} {plural}, as `{part}` says");
            return Err(Error::shape(op, parameter, expected, tensor.shape()));
        };
        unnamed_axes = unnamed_axes.max(axes);
        terms.push(Term { tensor: tensor.clone(), labels: labels(equation, part, axes)? });
    }
    let output = match cut {
        Some((_, output)) => labels(equation, output, unnamed_axes)?,
        None => {
            let all: Labels = terms.iter().flat_map(|term| &term.labels).copied().collect();
            let once = |label: &char| all.iter().filter(|other| *other == label).count() == 1;
            (0..unnamed_axes).rev().map(unnamed).chain(('A'..='z').filter(once)).collect()
        }
    };
    for (place, &label) in output.iter().enumerate() {
        if output[..place].contains(&label) {
            return wrong(equation, format!("an equation whose result has `{label}` once"));
        }
        if !terms.iter().any(|term| term.labels.contains(&label)) {
            return wrong(equation, format!("an equation with the result's `{label}` on the left"));
        }
    }
    let lengths = lengths(&terms)?;
    let of_label = |label: char| lengths.iter().find(|of| of.0 == label).map_or(1, |of| of.1);
    for term in &mut terms {
        term.take_diagonals(at)?;
        term.drop_broadcast(of_label, at)?;
    }
    let mut rest = terms.into_iter();
    let Some(mut product) = rest.next() else { return wrong(equation, "of one term or more") };
    while let Some(term) = rest.next() {
        let later = |label| rest.as_slice().iter().any(|term| term.labels.contains(&label));
        product = product.times(term, |label| output.contains(&label) || later(label), at)?;
    }
    product.sum(|label| output.contains(&label), at)?;
    product.ordered(&output, at)
}

/// Returns the length of each label, or an error if an axis has neither that length nor 1.
fn lengths(terms: &[Term]) -> Result<Vec<(char, usize)>> {
    let mut lengths: Vec<(char, usize)> = Vec::new();
    for (at, term) in terms.iter().enumerate() {
        for (axis, (&label, &n)) in term.labels.iter().zip(term.tensor.shape()).enumerate() {
            let twice = term.labels[..axis].contains(&label);
            match lengths.iter_mut().find(|of| of.0 == label) {
                None => lengths.push((label, n)),
                Some(of) if of.1 == n || (n == 1 && !twice) => {}
                Some(of) if of.1 == 1 && !twice => of.1 = n,
                Some((_, expected)) => {
                    let name = if label.is_ascii() { format!("`{label}`") } else { "`...`".into() };
                    let parameter = format!("operands[{at}]");
                    let expected =
                        format!("of length {expected} along axis {axis}, as another {name} is");
                    return Err(Error::shape("einsum", parameter, expected, term.tensor.shape()));
                }
            }
        }
    }
    Ok(lengths)
}

/// # Sums of products
impl<T: Numeric> Tensor<T> {
    pairs! {
        /// Einstein summation, as in NumPy: letters name the axes of each operand, and products are summed
        /// along the axes that the result (after `->`) does not name; without `->` it has those that occur
        /// once, in alphabetical order. `...` stands for any axes, which broadcast; a letter twice in one
        /// operand takes its diagonal. Operands are multiplied from left to right.
        ///
        /// ```
        /// use autograd_core::Tensor;
        ///
        /// let (a, b) = (Tensor::from([[1.0, 2.0], [3.0, 4.0]]), Tensor::from([[0.0, 1.0], [1.0, 0.0]]));
        /// assert_eq!(Tensor::einsum("ij,jk->ik", &[&a, &b]).to_vec(), a.matmul(&b).to_vec());
        /// assert_eq!(Tensor::einsum("ij,ij->i", &[&a, &b]).to_vec(), [2.0, 3.0]);
        /// assert_eq!(Tensor::einsum("ii->", &[&a]).item(), 5.0);
        /// ```
        pub fn einsum, try_einsum(equation: &str, operands: &[&Tensor<T>]) -> Tensor<T>,
            Value | Count | Shape | Overflow if "the equation cannot be read, the operands do not fit it, or an integer \
                sum is outside of the element type",
            r#"Tensor::try_einsum("ij,jk->ik", &[&Tensor::<f64>::ones([2, 2])])"# => Count {
            let _composite = Composite::here("einsum");
            let any: Vec<_> = operands.iter().map(|x| x.untyped()).collect();
            let sum = einsum(equation, &any, Location::caller()).map_err(|error| error.called("einsum"))?;
            Ok(operands.iter().fold(typed(sum), |sum, x| sum.apart_from(x)))
        }
    }
}
