//! Bodies under gravity, by the leapfrog method. The method is reversible: backward runs it backwards, so that
//! memory does not grow with the steps. Second derivatives come from the same backward, as it is made of ops.

#![allow(clippy::print_stdout, missing_docs, reason = "an example shows its results")]

use autograd_core::prelude::*;
use autograd_core::{assert_close, grad, gradcheck, gradgradcheck, hvp};

/// Keeps forces finite where bodies meet.
const SOFT: f64 = 0.05;

type Pair = (Tensor<f64>, Tensor<f64>);

/// The difference of each two positions, and the square of the softened distance.
fn differences(q: &Tensor<f64>) -> Pair {
    let d = q.unsqueeze(0) - q.unsqueeze(1);
    let r2 = d.square().sum_axes(-1) + SOFT;
    (d, r2)
}

fn acceleration(q: &Tensor<f64>, m: &Tensor<f64>) -> Tensor<f64> {
    let (d, r2) = differences(q);
    (d * (r2.pow(-1.5) * m).unsqueeze(-1)).sum_axes(1)
}

/// The gradients of positions and masses for the gradient `u` of the acceleration.
fn acceleration_backward(q: &Tensor<f64>, m: &Tensor<f64>, u: &Tensor<f64>) -> Pair {
    let (d, r2) = differences(q);
    let u = u.unsqueeze(1);
    let along = (&u * &d).sum_axes(-1);
    let dd =
        u * (r2.pow(-1.5) * m).unsqueeze(-1) - &d * (r2.pow(-2.5) * m * &along * 3.0).unsqueeze(-1);
    (dd.sum_axes(0) - dd.sum_axes(1), (r2.pow(-1.5) * along).sum_axes(0))
}

fn step(q: &Tensor<f64>, v: &Tensor<f64>, m: &Tensor<f64>, dt: f64) -> Pair {
    let half = v + acceleration(q, m) * (dt / 2.0);
    let q = q + &half * dt;
    let v = half + acceleration(&q, m) * (dt / 2.0);
    (q, v)
}

fn recorded(q: &Tensor<f64>, v: &Tensor<f64>, m: &Tensor<f64>, dt: f64, steps: usize) -> Pair {
    (0..steps).fold((q.clone(), v.clone()), |(q, v), _| step(&q, &v, m, dt))
}

/// Positions and velocities after `steps` steps of `dt`.
#[py_layer(shapes(q: [n, 2], v: [n, 2], m: [n] -> ([n, 2], [n, 2])))]
impl Leapfrog {
    type Saved = (Tensor<f64>, Tensor<f64>, Tensor<f64>);
    type Attrs = (f64, usize);

    fn forward(
        ctx: &mut ForwardContext<Self>,
        q: &Tensor<f64>,
        v: &Tensor<f64>,
        m: &Tensor<f64>,
        dt: f64,
        steps: usize,
    ) -> (Tensor<f64>, Tensor<f64>) {
        let (q, v) = recorded(q, v, m, dt, steps);
        ctx.save_for_backward((&q, &v, m));
        ctx.set_attrs((dt, steps));
        (q, v)
    }

    fn backward(ctx: &BackwardContext<Self>, dq: &Tensor<f64>, dv: &Tensor<f64>) -> Grads {
        let ((q, v, m), &(dt, steps)) = (ctx.saved_tensor(), ctx.attrs());
        let (mut q, mut v, mut dq, mut dv) = (q.clone(), v.clone(), dq.clone(), dv.clone());
        let mut dm = Tensor::zeros_like(m);
        for _ in 0..steps {
            let (from_q, from_m) = acceleration_backward(&q, m, &(&dv * (dt / 2.0)));
            (dq, dm) = (dq + from_q, dm + from_m);
            v = &v - acceleration(&q, m) * (dt / 2.0);
            q = &q - &v * dt;
            dv = &dv + &dq * dt;
            let (from_q, from_m) = acceleration_backward(&q, m, &(&dv * (dt / 2.0)));
            (dq, dm) = (dq + from_q, dm + from_m);
            v = &v - acceleration(&q, m) * (dt / 2.0);
        }
        Grads { q: dq, v: dv, m: dm }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A circle of radius 1 around a heavy body closes after one period, 2 pi for SOFT = 0.
    let q = Tensor::from([[0.0, 0.0], [1.0, 0.0], [0.0, 1.8]]);
    let v = Tensor::from([[0.0, 0.0], [0.0, 0.95], [-0.7, 0.0]]);
    let m = Tensor::from([1.0, 1e-3, 1e-3]);
    let (end, _) = Leapfrog::apply(&q, &v, &m, 0.01, 660);
    let radius = (end.select(0, 1) - end.select(0, 0)).norm().item();
    println!("radius after one round {radius:.2}");

    autograd_core::seed(6);
    let (q4, v4) = (Tensor::<f64>::randn([4, 2]) * 2.0, Tensor::<f64>::randn([4, 2]) * 0.3);
    let m4 = Tensor::<f64>::rand([4]) + 0.5;
    for x in [&q4, &v4, &m4] {
        x.set_stop_gradient(false);
    }
    let weight = Tensor::<f64>::randn([4, 2]);
    let loss = |(q, v): Pair| (q * &weight).sum() + v.square().sum();
    let ours = grad(&[&loss(Leapfrog::apply(&q4, &v4, &m4, 0.01, 50))], &[&q4, &v4, &m4])?;
    let theirs = grad(&[&loss(recorded(&q4, &v4, &m4, 0.01, 50))], &[&q4, &v4, &m4])?;
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_close!(ours, theirs, rtol = 1e-9, atol = 1e-10);
    }
    println!("the gradients are those of 50 recorded steps");

    let (q4, v4, m4) = (q4.detach(), v4.detach(), m4.detach());
    let direction = Tensor::<f64>::randn([4, 2]);
    let ours = hvp(|q| loss(Leapfrog::apply(q, &v4, &m4, 0.01, 30)), &q4, &direction)?;
    let theirs = hvp(|q| loss(recorded(q, &v4, &m4, 0.01, 30)), &q4, &direction)?;
    assert_close!(ours, theirs, rtol = 1e-8, atol = 1e-9);
    println!("so is the Hessian times a vector");
    let short = |x: &[Tensor<f64>]| loss(Leapfrog::apply(&x[0], &x[1], &x[2], 0.05, 5));
    let inputs = [q4, v4, m4];
    gradcheck(short, &inputs)?;
    gradgradcheck(short, &inputs)?;
    println!("gradcheck and gradgradcheck pass");

    let mut paths = vec![Vec::new(); 3];
    let (mut q, mut v) = (q, v);
    for _ in 0..160 {
        for (i, path) in paths.iter_mut().enumerate() {
            path.push((q.at(&[i, 0]), q.at(&[i, 1])));
        }
        (q, v) = Leapfrog::apply(&q, &v, &m, 0.01, 8);
    }
    let names = ["heavy body", "first planet", "second planet"];
    examples::draw_curves("Orbits by leapfrog", &names.into_iter().zip(paths).collect::<Vec<_>>())
}
