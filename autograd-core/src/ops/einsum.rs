//! Sums of products by labelled axes, made of batched matrix products.

use super::reduce::grouped;
use super::{Numeric, pairs};
use crate::error::{Error, Result};
use crate::graph::Tensor;

/// The axes of a tensor by their labels: letters, and for the axes that `...` stands for, characters of a private
/// range, counted from the last.
type Labels = Vec<char>;

/// The label of the axis that is the `at`-th from the end of those that `...` stands for.
fn unnamed(at: usize) -> char {
    let code = 0xE000 + at.min(0xFFF) as u32;
    char::from_u32(code).unwrap_or_else(|| unreachable!("{code:x} is in the private range"))
}

fn wrong<T>(equation: &str, expected: impl Into<String>) -> Result<T> {
    let (expected, found) = (expected.into(), format!("`{equation}`"));
    Err(Error::value("einsum", "equation", expected, found))
}

/// The labels of a term, in which `...` stands for `axes` axes.
fn labels(equation: &str, term: &str, axes: usize) -> Result<Labels> {
    let (before, after) = match term.split_once("...") {
        Some((before, after)) => (before, Some(after)),
        None => (term, None),
    };
    let letters = [before, after.unwrap_or("")].concat();
    if let Some(other) = letters.chars().find(|label| !label.is_ascii_alphabetic()) {
        return wrong(equation, format!("of letters, `...`, `,` and one `->`, without `{other}`"));
    }
    let between = if after.is_some() { axes } else { 0 };
    let between = (0..between).rev().map(unnamed);
    Ok(before.chars().chain(between).chain(after.unwrap_or("").chars()).collect())
}

/// A tensor and the labels of its axes.
#[derive(Clone)]
struct Term<T: Numeric> {
    tensor: Tensor<T>,
    labels: Labels,
}

impl<T: Numeric> Term<T> {
    fn length(&self, label: char) -> usize {
        self.tensor.shape()[self.place(label)]
    }

    fn place(&self, label: char) -> usize {
        let place = self.labels.iter().position(|&own| own == label);
        place.unwrap_or_else(|| unreachable!("it has the label"))
    }

    /// Takes the diagonal of each label that occurs twice.
    #[track_caller]
    fn diagonal(mut self) -> Self {
        let twice = |labels: &Labels| {
            (1..labels.len()).find_map(|j| (0..j).find(|&i| labels[i] == labels[j]).map(|i| (i, j)))
        };
        while let Some((i, j)) = twice(&self.labels) {
            let n = self.tensor.shape()[i];
            let (flat, mut order) = grouped(&self.tensor, &[i, j]);
            self.tensor = flat.slice_axis(-1, 0, n * n, n + 1);
            order.pop();
            self.labels = order.iter().map(|&at| self.labels[at]).collect();
        }
        self
    }

    /// Summed along the axes that nobody needs.
    #[track_caller]
    fn summed(mut self, needed: impl Fn(char) -> bool) -> Self {
        let gone = |&(_, &label): &(usize, &char)| !needed(label);
        let gone: Vec<isize> =
            self.labels.iter().enumerate().filter(gone).map(|(at, _)| at as isize).collect();
        if !gone.is_empty() {
            self.tensor = self.tensor.sum_axes(&gone);
            self.labels.retain(|&label| needed(label));
        }
        self
    }

    #[track_caller]
    fn permuted(&self, labels: impl Iterator<Item = char>) -> Tensor<T> {
        let order: Vec<isize> = labels.map(|label| self.place(label) as isize).collect();
        self.tensor.permute(&order)
    }

    /// With its axes in the order of these labels, in a shape.
    #[track_caller]
    fn shaped(&self, labels: [&Labels; 3], shape: Vec<usize>) -> Tensor<T> {
        shaped(self.permuted(labels.into_iter().flatten().copied()), shape)
    }

    /// The product with another one, summed along the axes that both have and nobody needs.
    #[track_caller]
    fn times(self, right: Self, needed: impl Fn(char) -> bool) -> Self {
        let left = self.summed(|label| needed(label) || right.labels.contains(&label));
        let right = right.summed(|label| needed(label) || left.labels.contains(&label));
        let (both, rows): (Labels, Labels) =
            left.labels.iter().partition(|label| right.labels.contains(label));
        let (batch, inner): (Labels, Labels) = both.iter().partition(|&&label| needed(label));
        let columns: Labels =
            right.labels.iter().copied().filter(|label| !left.labels.contains(label)).collect();
        let lengths = |of: &Self, labels: &Labels| -> Vec<usize> {
            labels.iter().map(|&label| of.length(label)).collect()
        };
        let (stacks, heights) = (lengths(&left, &batch), lengths(&left, &rows));
        let widths = lengths(&right, &columns);
        let labels = [&batch[..], &rows, &columns].concat();
        let product = if inner.is_empty() {
            // Each element of one with each of the other.
            let a = [&stacks[..], &heights, &vec![1; widths.len()]].concat();
            let b = [&stacks[..], &vec![1; heights.len()], &widths].concat();
            left.shaped([&batch, &rows, &inner], a) * right.shaped([&batch, &inner, &columns], b)
        } else {
            let [m, k, n] = [&heights, &lengths(&left, &inner), &widths]
                .map(|lengths| lengths.iter().product::<usize>());
            let a = left.shaped([&batch, &rows, &inner], [&stacks[..], &[m, k]].concat());
            a.matmul(&right.shaped([&batch, &inner, &columns], [&stacks[..], &[k, n]].concat()))
        };
        Self { tensor: shaped(product, [stacks, heights, widths].concat()), labels }
    }
}

/// A program can leave one length of a shape open, so no shape is given that is there.
#[track_caller]
fn shaped<T: Numeric>(x: Tensor<T>, shape: Vec<usize>) -> Tensor<T> {
    if x.shape() == shape { x } else { x.reshape(shape) }
}

#[track_caller]
fn einsum<T: Numeric>(equation: &str, operands: &[&Tensor<T>]) -> Result<Tensor<T>> {
    let op = "einsum";
    let written: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (inputs, output) = match written.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (&written[..], None),
    };
    let parts: Vec<&str> = inputs.split(',').collect();
    if parts.len() != operands.len() {
        let (expected, found) = (parts.len(), operands.len());
        let what = format!("tensors, as `{inputs}` says");
        return Err(Error::Count { op, what, expected, found });
    }
    let mut terms = Vec::with_capacity(operands.len());
    let mut unnamed_axes = 0;
    for (at, (&part, &tensor)) in parts.iter().zip(operands).enumerate() {
        let named = labels(equation, part, 0)?.len();
        let axes = tensor.ndim().checked_sub(named);
        let Some(axes) = axes.filter(|&axes| axes == 0 || part.contains("...")) else {
            let plural = if named == 1 { "axis" } else { "axes" };
            let parameter = format!("operands[{at}]");
            let expected = format!("of {named} {plural}, as `{part}` says");
            return Err(Error::shape(op, parameter, expected, tensor.shape()));
        };
        unnamed_axes = unnamed_axes.max(axes);
        terms.push(Term { tensor: tensor.clone(), labels: labels(equation, part, axes)? });
    }
    let output = match output {
        Some(output) => labels(equation, output, unnamed_axes)?,
        None => {
            let all: Labels = terms.iter().flat_map(|term| &term.labels).copied().collect();
            let once = |label: &char| all.iter().filter(|other| *other == label).count() == 1;
            let mut once: Labels =
                all.iter().copied().filter(once).filter(char::is_ascii).collect();
            once.sort_unstable();
            (0..unnamed_axes).rev().map(unnamed).chain(once).collect()
        }
    };
    for (at, &label) in output.iter().enumerate() {
        if output[..at].contains(&label) {
            return wrong(equation, format!("an equation whose result has `{label}` once"));
        }
        if !terms.iter().any(|term| term.labels.contains(&label)) {
            return wrong(equation, format!("an equation with the result's `{label}` on the left"));
        }
    }
    let lengths = lengths(&terms)?;
    let of_label = |label: char| lengths.iter().find(|of| of.0 == label).map_or(1, |of| of.1);
    let mut terms = terms.into_iter().map(|term| {
        let mut term = term.diagonal();
        // An axis of length 1 is broadcast where the others are longer: it is as good as none.
        let narrow: Vec<isize> = (0..term.labels.len())
            .filter(|&at| term.tensor.shape()[at] != of_label(term.labels[at]))
            .map(|at| at as isize)
            .collect();
        term.tensor = term.tensor.squeeze_axes(&narrow);
        let mut at = 0;
        term.labels.retain(|_| (!narrow.contains(&at), at += 1).0);
        term
    });
    let Some(mut product) = terms.next() else { return wrong(equation, "of one term or more") };
    let rest: Vec<_> = terms.collect();
    for (at, term) in rest.iter().enumerate() {
        let later = |label| rest[at + 1..].iter().any(|term| term.labels.contains(&label));
        product = product.times(term.clone(), |label| output.contains(&label) || later(label));
    }
    let product = product.summed(|label| output.contains(&label));
    Ok(product.permuted(output.iter().copied()))
}

/// The length of each label, or an error where an axis has neither that length nor 1.
fn lengths<T: Numeric>(terms: &[Term<T>]) -> Result<Vec<(char, usize)>> {
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
        /// Einstein's summation: the axes of each operand are named by letters, and the products of all operands are
        /// summed along the axes that the result (after `->`) does not name. `...` stands for any axes, which
        /// broadcast. A letter that occurs twice in one operand takes its diagonal. Without `->`, the result has the
        /// letters that occur once, in alphabetical order.
        ///
        /// Operands are multiplied from left to right, by batched matrix products. A trace can follow one free length in
        /// each shape that this takes.
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
            Value | Count | Shape if "the equation cannot be read, or the operands do not fit it" {
            einsum(equation, operands)
        }
    }
}
