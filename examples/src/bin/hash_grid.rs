//! An image as a function of its coordinates: features in a hashed grid (T. Müller and others, 2022), found by
//! integers and blended by weights, and an optimizer's rule that leaves unused rows alone.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::nn::parameter;
use autograd_core::optim::{AdamW, Optimizer, Rule, Step};
use autograd_core::prelude::*;
use autograd_core::{assert_close, gradcheck};

/// The rows of the corners of each point's cell, their weights, and the weights' slopes along both axes.
#[derive(Default)]
struct Corners {
    rows: Vec<i64>,
    weights: Vec<f64>,
    slopes: Vec<f64>,
}

impl Corners {
    fn of(points: &Tensor<f64>, resolution: f64, size: usize) -> Self {
        let mut found = Self::default();
        for point in points.to_vec().chunks(2) {
            let cell = [point[0], point[1]].map(|p| (p * resolution).floor());
            let inside = [0, 1].map(|axis| point[axis] * resolution - cell[axis]);
            for corner in [[0, 0], [0, 1], [1, 0], [1, 1]] {
                let [a, b] = [0, 1].map(|axis| cell[axis] as u64 + corner[axis]);
                found.rows.push(((a ^ b.wrapping_mul(2_654_435_761)) % size as u64) as i64);
                let [(u, du), (v, dv)] = [0, 1].map(|axis| match corner[axis] {
                    0 => (1.0 - inside[axis], -resolution),
                    _ => (inside[axis], resolution),
                });
                found.weights.push(u * v);
                found.slopes.extend([du * v, u * dv]);
            }
        }
        found
    }
}

/// The features of points, from a table of `size` rows.
#[py_layer(once_differentiable, shapes(table: [size, width], points: [n, 2] -> [n, width]))]
impl HashGrid {
    type Saved = (Tensor<f64>, Tensor<f64>);
    type Attrs = f64;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        table: &Tensor<f64>,
        points: &Tensor<f64>,
        resolution: f64,
    ) -> autograd_core::Result<Tensor<f64>> {
        ctx.save_for_backward((table, points));
        ctx.set_attrs(resolution);
        let (n, width) = (points.dim(0), table.dim(1));
        let corners = Corners::of(points, resolution, table.dim(0));
        let rows = table.index_select(0, &Tensor::from(corners.rows)).reshape([n, 4, width]);
        Ok((rows * Tensor::from_vec([n, 4, 1], corners.weights)?).sum_axes(1))
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> autograd_core::Result<Grads> {
        let ((table, points), resolution) = (ctx.saved_tensor(), *ctx.attrs());
        let (n, width) = (points.dim(0), table.dim(1));
        let corners = Corners::of(points, resolution, table.dim(0));
        let (index, dy) = (Tensor::from(corners.rows), dy.unsqueeze(1));
        let weights = Tensor::from_vec([n, 4, 1], corners.weights)?;
        let rows = (weights * &dy).reshape([4 * n, width]);
        let dtable = Tensor::zeros_like(table).index_add(0, &index, &rows);
        let along = (table.index_select(0, &index).reshape([n, 4, width]) * dy).sum_axes_keep(-1);
        let dpoints = (along * Tensor::from_vec([n, 4, 2], corners.slopes)?).sum_axes(1);
        Ok(Grads { table: dtable, points: dpoints })
    }
}

/// AdamW; if `lazy`, elements without a gradient keep their value and moments.
#[derive(Clone, Debug)]
struct LazyAdamW {
    rate: f64,
    decay: f64,
    lazy: bool,
}

impl Rule for LazyAdamW {
    const NAME: &'static str = "LazyAdamW";

    fn rate(&self) -> f64 {
        self.rate
    }

    fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
    }

    fn state(&self) -> &'static [&'static str] {
        &["exp_avg", "exp_avg_sq"]
    }

    fn update<T: Float>(&self, step: Step<'_, T>) {
        let [rate, decay, b1, b2, eps, one] =
            [self.rate, self.decay, 0.9, 0.999, 1e-8, 1.0].map(T::from_f64);
        let count = step.count() as i32;
        let [c1, c2] = [0.9_f64, 0.999].map(|b| T::from_f64(1.0 - b.powi(count)));
        let lazy = self.lazy;
        step.each(move |[p, m, v], g| {
            if lazy && g == T::ZERO {
                return [p, m, v];
            }
            let (m, v) = (b1 * m + (one - b1) * g, b2 * v + (one - b2) * g * g);
            [p * (one - rate * decay) - rate * m / c1 / ((v / c2).sqrt() + eps), m, v]
        });
    }
}

/// 30 steps on a small grid.
fn train_briefly(rule: impl Rule, start: &Tensor<f64>) -> autograd_core::Result<Tensor<f64>> {
    let table = parameter(start.copy());
    let mut optimizer = Optimizer::new(&table, rule);
    let points = Tensor::from([[0.2, 0.7], [0.4, 0.1]]);
    for _ in 0..30 {
        HashGrid::apply(&table, &points, 3.0)?.square().sum().backward()?;
        optimizer.step()?;
        optimizer.clear_grad();
    }
    Ok(table.detach())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    autograd_core::seed(9);
    let (start, points) = (Tensor::<f64>::randn([16, 3]), Tensor::<f64>::rand([5, 2]));
    let features = |t: &[Tensor<f64>]| HashGrid::apply(&t[0], &t[1], 7.0).expect("the shapes fit");
    gradcheck(features, &[start.clone(), points])?;
    println!("gradcheck passes for the table and the points");

    let rule = |lazy| LazyAdamW { rate: 0.01, decay: 0.1, lazy };
    let built_in = train_briefly(AdamW::new(0.01).weight_decay(0.1), &start)?;
    assert_close!(train_briefly(rule(false), &start)?, built_in, rtol = 1e-12, atol = 1e-14);
    let kept = train_briefly(rule(true), &start)?.equal(&start).cast::<i64>().sum().item() / 3;
    println!("not lazy, it is AdamW; lazy, it keeps {kept} of 16 rows");

    let image = |x: &Tensor<f64>| {
        let [u, v] = [0, 1].map(|axis| x.narrow(1, axis, 1));
        (&u * 9.0).sin() * (&v * 7.0).cos() + (u - 0.5).square() + (v - 0.5).square()
    };
    let table = parameter(Tensor::<f64>::randn([1024, 1]) * 0.1);
    let mut adam = Optimizer::new(&table, LazyAdamW { rate: 0.05, decay: 0.0, lazy: true });
    let mut last = 0.0;
    for _ in 0..150 {
        let x = Tensor::<f64>::rand([128, 2]);
        let loss = HashGrid::apply(&table, &x, 12.0)?.mse_loss(&image(&x));
        loss.backward()?;
        adam.step()?;
        adam.clear_grad();
        last = loss.item();
    }
    println!("mean squared error of the image below 0.02: {}", last < 0.02);

    let at = Tensor::<f64>::linspace(0.0, 0.98, 30);
    let grid = Tensor::stack(Tensor::meshgrid(&[&at, &at]), 2).reshape([-1, 2]);
    let square = |y: Tensor<f64>| y.detach().reshape([30, 30]);
    let learned = square(HashGrid::apply(&table, &grid, 12.0)?);
    examples::draw_image(&[("image", &square(image(&grid))), ("hash grid", &learned)])
}
