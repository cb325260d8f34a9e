//! A net as the right side of a differential equation (R. T. Q. Chen and others, 2018). `odeint` differentiates
//! by the adjoint equation: memory does not grow with the solver's steps.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::nn::{init, parameter};
use autograd_core::optim::{Adam, Optimizer};
use autograd_core::solvers::{OdeOptions, odeint};
use autograd_core::{Result, Tensor, assert_close, gradcheck};

/// The velocity at `y`, by a net of one hidden layer whose weights are `params`.
fn net(y: &Tensor<f64>, params: &[Tensor<f64>]) -> Tensor<f64> {
    let [w1, b1, w2] = params else { unreachable!("three parameters") };
    (y.pow(3.0).matmul(w1) + b1).tanh().matmul(w2)
}

fn solve(params: &[Tensor<f64>], y0: &Tensor<f64>, times: &Tensor<f64>) -> Result<Tensor<f64>> {
    let options = OdeOptions::new().rtol(1e-6).atol(1e-6);
    odeint(|_t, y, params| Ok(net(y, params)), y0, times, params, options)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    autograd_core::seed(7);
    // Closed form: y' = A y with y(0) = y0 has the gradient exp(Aᵀ t) dy for y0. A is a turn, so its
    // exponential is one too.
    let turn = Tensor::from([[0.0, 1.0], [-1.0, 0.0]]);
    let y0 = parameter(Tensor::from([[2.0, 0.0]]));
    let times = Tensor::from([0.0, 0.5]);
    let field = |_: &Tensor<f64>, y: &Tensor<f64>, p: &[Tensor<f64>]| Ok(y.matmul(&p[0]));
    let end = odeint(field, &y0, &times, &[turn], OdeOptions::new())?.select(0, 1);
    end.narrow(-1, 0, 1).sum().backward()?;
    let (sin, cos) = 0.5_f64.sin_cos();
    assert_close!(end.detach(), Tensor::from([[2.0 * cos, 2.0 * sin]]), rtol = 0.0, atol = 1e-7);
    assert_close!(y0.try_grad()?, Tensor::from([[cos, -sin]]), rtol = 0.0, atol = 1e-7);
    println!("the gradient by the adjoint equation is the closed form");

    let params = [
        init::normal::<f64>([2, 12], 0.0, 0.3),
        init::zeros([12]),
        init::normal([12, 2], 0.0, 0.3),
    ];
    let exact = OdeOptions::new().rtol(1e-10).atol(1e-10);
    let loss = |p: &[Tensor<f64>]| {
        let y = odeint(|_t, y, p| Ok(net(y, p)), &Tensor::from([[1.0, 0.5]]), &times, p, exact);
        y.expect("it is not stiff").square().sum()
    };
    gradcheck(loss, &params.each_ref().map(Tensor::detach))?;
    println!("gradcheck passes for the weights");

    // A spiral of cubes, seen at 24 times, is learned from short pieces of it.
    let spiral = Tensor::from([[-0.1, 2.0], [-2.0, -0.1]]);
    let cubic = |_: &Tensor<f64>, y: &Tensor<f64>, p: &[Tensor<f64>]| Ok(y.pow(3.0).matmul(&p[0]));
    let (start, times) = (Tensor::from([2.0, 0.0]), Tensor::linspace(0.0, 3.6, 25));
    let path = odeint(cubic, &start, &times, &[spiral], OdeOptions::new())?;
    let mut adam = Optimizer::new(&params, Adam::new(0.03));
    let (starts, ends) = (path.narrow(0, 0, 24), path.narrow(0, 1, 24));
    let piece = times.narrow(0, 0, 2);
    let (mut first, mut last) = (None, 0.0);
    for _ in 0..120 {
        // All pieces at once: the equation does not depend on time.
        let loss = solve(&params, &starts, &piece)?.select(0, 1).mse_loss(&ends);
        loss.backward()?;
        adam.step()?;
        adam.clear_grad();
        last = loss.item();
        first.get_or_insert(last);
    }
    let ratio = first.unwrap_or_default() / last;
    println!("the loss has become less than a tenth: {}", ratio > 10.0);
    let learned = solve(&params, &start, &times)?;
    let curve = |y: &Tensor<f64>| y.to_vec().chunks(2).map(|p| (p[0], p[1])).collect::<Vec<_>>();
    examples::draw_curves(
        "A spiral",
        &[("truth", curve(&path)), ("neural equation", curve(&learned))],
    )
}
