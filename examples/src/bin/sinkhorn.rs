//! Entropic optimal transport (M. Cuturi, 2013): Sinkhorn's iteration is a fixed point, so its gradient comes
//! from the implicit function theorem, and not from the rounds, of which nothing is kept.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::solvers::{FixedPointOptions, fixed_point};
use autograd_core::{Result, Tensor, assert_close, grad, gradcheck};

const EPS: f64 = 0.1;

/// The potential of the rows for that of the columns, `g`.
fn rows(g: &Tensor<f64>, cost: &Tensor<f64>, a: &Tensor<f64>) -> Tensor<f64> {
    a.ln() - (g - cost / EPS).logsumexp(1)
}

/// One round. A constant that moves from one potential to the other changes nothing, so it is fixed.
fn round(g: &Tensor<f64>, cost: &Tensor<f64>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
    let f = rows(g, cost, a).unsqueeze(1);
    let g = b.ln() - (f - cost / EPS).logsumexp(0);
    &g - g.mean()
}

fn plan(g: &Tensor<f64>, cost: &Tensor<f64>, a: &Tensor<f64>) -> Tensor<f64> {
    (rows(g, cost, a).unsqueeze(1) + g - cost / EPS).exp()
}

/// The transport plan `[n, m]` for a `cost` `[n, m]` from `a` `[n]` to `b` `[m]`.
fn sinkhorn(cost: &Tensor<f64>, a: &Tensor<f64>, b: &Tensor<f64>) -> Result<Tensor<f64>> {
    let step = |g: &Tensor<f64>, p: &[Tensor<f64>]| Ok(round(g, &p[0], &p[1], &p[2]));
    let params = [cost, a, b].map(Tensor::clone);
    let options = FixedPointOptions::new().tolerance(1e-13).max_steps(10_000);
    let g = fixed_point(step, &Tensor::zeros([b.len()]), &params, options)?;
    Ok(plan(&g, cost, a))
}

/// The same, with every round recorded.
fn unrolled(cost: &Tensor<f64>, a: &Tensor<f64>, b: &Tensor<f64>) -> Tensor<f64> {
    let g = (0..400).fold(Tensor::zeros([b.len()]), |g, _| round(&g, cost, a, b));
    plan(&g, cost, a)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    autograd_core::seed(4);
    let cost = Tensor::<f64>::rand([4, 3]);
    let (a, b) = (Tensor::<f64>::randn([4]).softmax(0), Tensor::<f64>::randn([3]).softmax(0));
    for x in [&cost, &a, &b] {
        x.set_stop_gradient(false);
    }
    let [ours, theirs] = [sinkhorn(&cost, &a, &b)?, unrolled(&cost, &a, &b)];
    assert_close!(ours, theirs, rtol = 1e-9, atol = 1e-12);
    assert_close!(ours.sum_axes(1), a, rtol = 1e-9, atol = 1e-12);
    println!("the plan has the given sums of rows and columns");

    let weight = Tensor::<f64>::randn([4, 3]);
    let ours = grad(&[&(ours * &weight).sum()], &[&cost, &a, &b])?;
    let theirs = grad(&[&(theirs * &weight).sum()], &[&cost, &a, &b])?;
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_close!(ours, theirs, rtol = 1e-7, atol = 1e-9);
    }
    println!("its gradients are those of 400 recorded rounds");
    let normal = |x: &Tensor<f64>| x.softmax(0);
    gradcheck(
        |x| sinkhorn(&x[0], &normal(&x[1]), &normal(&x[2])).expect("it converges"),
        &[cost.detach(), Tensor::randn([4]), Tensor::randn([3])],
    )?;
    println!("gradcheck passes");

    // Two heaps of earth on a line; the plan moves mass to where it is near.
    let at = Tensor::<f64>::linspace(0.0, 1.0, 24);
    let heap =
        |centre: f64, width: f64| ((&at - centre).square() / (-2.0 * width * width)).softmax(0);
    let (a, b) = (heap(0.25, 0.08), (heap(0.55, 0.05) + heap(0.85, 0.06)) / 2.0);
    let cost = (at.unsqueeze(1) - &at).square();
    let plan = sinkhorn(&cost, &a, &b)?;
    println!("cost of transport {:.3}", (&plan * &cost).sum().item());
    examples::draw_image(&[("cost", &cost), ("transport plan", &plan)])
}
