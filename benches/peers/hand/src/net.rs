//! W6 by hand: a training step of the net, with explicit derivatives.

use kit::{BATCH, RATE, WIDTHS, Work, classes, input_f32, weights};
use ndarray::ArrayView2;

use crate::limit::{tanh_grads, tanhs};
use crate::matrix::{Strided, multiply};

/// `out = a b` of m x k and k x n; either factor may be stored transposed.
pub type Product = fn((usize, usize, usize), &[f32], bool, &[f32], bool, &mut [f32]);

/// Strides by rows, or by columns if the matrix is stored transposed.
fn strided(data: &[f32], transposed: bool, rows: usize, columns: usize) -> Strided<f32> {
    if transposed { Strided::rows(data, rows).t() } else { Strided::rows(data, columns) }
}

pub fn by_gemm(
    (m, k, n): (usize, usize, usize),
    a: &[f32],
    a_t: bool,
    b: &[f32],
    b_t: bool,
    out: &mut [f32],
) {
    multiply((m, k, n), strided(a, a_t, m, k), strided(b, b_t, k, n), out);
}

pub fn by_ndarray(
    (m, k, n): (usize, usize, usize),
    a: &[f32],
    a_t: bool,
    b: &[f32],
    b_t: bool,
    out: &mut [f32],
) {
    let view = |data, transposed, rows, columns| {
        let shape = if transposed { (columns, rows) } else { (rows, columns) };
        let view = ArrayView2::from_shape(shape, data).expect("the shape fits");
        if transposed { view.reversed_axes() } else { view }
    };
    let mut out = ndarray::ArrayViewMut2::from_shape((m, n), out).expect("the shape fits");
    ndarray::linalg::general_mat_mul(1.0, &view(a, a_t, m, k), &view(b, b_t, k, n), 0.0, &mut out);
}

struct Layer {
    inputs: usize,
    outputs: usize,
    w: Vec<f32>,
    b: Vec<f32>,
    dw: Vec<f32>,
    /// The output, and the gradient of the value before the activation.
    y: Vec<f32>,
    dy: Vec<f32>,
}

impl Layer {
    fn forward(&mut self, product: Product, x: &[f32]) {
        product((BATCH, self.inputs, self.outputs), x, false, &self.w, false, &mut self.y);
        for row in self.y.chunks_exact_mut(self.outputs) {
            for (y, b) in row.iter_mut().zip(&self.b) {
                *y += b;
            }
        }
    }

    /// Updates weights and bias. `x` is the input of forward.
    fn update(&mut self, product: Product, x: &[f32]) {
        product((self.inputs, BATCH, self.outputs), x, true, &self.dy, false, &mut self.dw);
        for (w, dw) in self.w.iter_mut().zip(&self.dw) {
            *w -= RATE as f32 * dw;
        }
        for row in self.dy.chunks_exact(self.outputs) {
            for (b, db) in self.b.iter_mut().zip(row) {
                *b -= RATE as f32 * db;
            }
        }
    }
}

pub fn step(product: Product) -> Option<Work> {
    let mut layers: Vec<Layer> = (weights(&WIDTHS).into_iter().zip(WIDTHS.windows(2)))
        .map(|((w, b), widths)| Layer {
            inputs: widths[0],
            outputs: widths[1],
            dw: vec![0.0; w.len()],
            w,
            b,
            y: vec![0.0; BATCH * widths[1]],
            dy: vec![0.0; BATCH * widths[1]],
        })
        .collect();
    let x = input_f32(BATCH * WIDTHS[0]);
    let classes = classes(BATCH, WIDTHS[3]);
    let mut scratch = vec![0.0; BATCH * WIDTHS[1]];
    let mut work = move || {
        let [first, second, last] = &mut layers[..] else { unreachable!("three layers") };
        first.forward(product, &x);
        activate(first, &mut scratch);
        second.forward(product, &first.y);
        activate(second, &mut scratch);
        last.forward(product, &second.y);
        let loss = softmax_cross_entropy(last, &classes);
        back(product, last, second, &mut scratch);
        last.update(product, &second.y);
        back(product, second, first, &mut scratch);
        second.update(product, &first.y);
        first.update(product, &x);
        f64::from(loss)
    };
    let losses = [work(), work()];
    Work::new(work, move |third| vec![losses[0], losses[1], third])
}

fn activate(layer: &mut Layer, scratch: &mut Vec<f32>) {
    scratch.resize(layer.y.len(), 0.0);
    tanhs(&layer.y, scratch);
    std::mem::swap(&mut layer.y, scratch);
}

/// Returns the loss, and writes the gradient to `layer.dy`.
fn softmax_cross_entropy(layer: &mut Layer, classes: &[usize]) -> f32 {
    let rows = layer.y.chunks_exact(layer.outputs);
    let mut loss = 0.0;
    for ((y, dy), &class) in rows.zip(layer.dy.chunks_exact_mut(layer.outputs)).zip(classes) {
        let largest = y.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut sum = 0.0;
        for (dy, y) in dy.iter_mut().zip(y) {
            *dy = (y - largest).exp();
            sum += *dy;
        }
        loss += sum.ln() + largest - y[class];
        for dy in dy.iter_mut() {
            *dy /= sum * BATCH as f32;
        }
        dy[class] -= 1.0 / BATCH as f32;
    }
    loss / BATCH as f32
}

/// Computes the gradient of the value before the activation of `before`.
fn back(product: Product, after: &Layer, before: &mut Layer, scratch: &mut Vec<f32>) {
    scratch.resize(before.y.len(), 0.0);
    let shape = (BATCH, after.outputs, after.inputs);
    product(shape, &after.dy, false, &after.w, true, scratch);
    tanh_grads(&before.y, scratch, &mut before.dy);
}
