//! After a panic, in user code too, all objects of the library are usable, and their types say so:
//! `catch_unwind` accepts them without `AssertUnwindSafe`.

use std::panic::{RefUnwindSafe, UnwindSafe, catch_unwind};

use autograd_core::nn::{
    AttentionMasks, BatchNorm1d, BatchNorm2d, Buffer, Conv1d, Conv2d, Dropout, Embedding,
    GroupNorm, LayerNorm, Linear, Module, MultiheadAttention, RmsNorm, Sequential,
};
use autograd_core::optim::{Adam, AdamW, Optimizer, RmsProp, Sgd};
use autograd_core::prelude::*;
use autograd_core::safetensors::{SafeTensors, StateDict};
use autograd_core::static_graph::{Executor, Functions, Program, Variable};
use autograd_core::{
    BackwardOptions, DType, Error, Explanation, Generator, GradOptions, Graph, GraphNode,
    HookHandle, OrderedBackward, is_grad_enabled,
};
use support::leaf;

fn both<T: UnwindSafe + RefUnwindSafe>() {}

/// `T` has no further bounds, as in generic user code.
fn all_of<T: Float>() {
    both::<Tensor<T>>();
    both::<GradOptions<T>>();
    both::<Buffer<T>>();
    both::<Linear<T>>();
    both::<Embedding<T>>();
    both::<LayerNorm<T>>();
    both::<Conv2d<T>>();
    both::<BatchNorm1d<T>>();
    both::<BatchNorm2d<T>>();
    both::<Conv1d<T>>();
    both::<GroupNorm<T>>();
    both::<RmsNorm<T>>();
    both::<MultiheadAttention<T>>();
    both::<Sequential<T>>();
}

#[derive(Module)]
struct Net {
    first: Linear,
    dropout: Dropout,
    rest: Vec<Linear>,
}

#[test]
fn types_say_that_they_are_usable_after_a_panic() {
    all_of::<f32>();
    all_of::<f64>();
    both::<Tensor<i32>>();
    both::<Tensor<i64>>();
    both::<Tensor<u8>>();
    both::<Tensor<bool>>();
    both::<AnyTensor>();
    both::<Net>();
    both::<StateDict>();
    both::<SafeTensors>();
    both::<AttentionMasks<'_>>();
    both::<Optimizer<Sgd>>();
    both::<Optimizer<Adam>>();
    both::<Optimizer<AdamW>>();
    both::<Optimizer<RmsProp>>();
    both::<Error>();
    both::<Explanation>();
    both::<Generator>();
    both::<Graph>();
    both::<GraphNode>();
    both::<HookHandle>();
    both::<OrderedBackward>();
    both::<BackwardOptions>();
    both::<Program>();
    both::<Variable>();
    both::<Executor>();
    both::<Functions>();
}

/// All methods of a tensor work, and return the same as before.
fn assert_usable(x: &Tensor<f64>) {
    assert!(is_grad_enabled());
    assert!(x.grad().is_none());
    x.square().sum().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec(), [2.0, 4.0]);
    x.clear_grad();
    no_grad().run(|| x.copy_from(&x.copy())).unwrap();
    assert_eq!(x.to_vec(), [1.0, 2.0]);
}

/// Panics at the given point.
#[py_layer]
impl Fails {
    type Saved = Tensor<f64>;
    type Attrs = bool;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<f64>, at: &'static str) -> Tensor<f64> {
        ctx.save_for_backward(x);
        ctx.set_attrs(at == "backward");
        assert_ne!(at, "forward", "on purpose");
        x * 2.0
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        // Borrowed tensors may be used inside `catch_unwind` too.
        let scaled = catch_unwind(|| ctx.saved_tensor() * 0.0 + dy * 2.0);
        assert!(!ctx.attrs(), "on purpose");
        scaled.unwrap_or_else(|_| dy.clone())
    }

    fn jvp(ctx: &JvpContext<Self>, _x: &Tensor<f64>, dx: &Tensor<f64>) -> Tensor<f64> {
        catch_unwind(|| ctx.saved_tensor() * 0.0 + dx * 2.0).unwrap_or_else(|_| dx.clone())
    }
}

#[test]
fn tensors_go_into_catch_unwind_and_come_out() {
    let x = leaf(&[1.0, 2.0]);
    let sum = catch_unwind(|| x.sum()).unwrap();
    assert_eq!(sum.item(), 3.0);
    let moved = catch_unwind(move || sum).unwrap();
    moved.backward().unwrap();
    x.clear_grad();
    assert_usable(&x);
}

#[test]
fn a_panic_leaves_every_tensor_usable() {
    let x = leaf(&[1.0, 2.0]);
    let other = Tensor::from([1.0, 2.0, 3.0]);
    // An op of the library, user ops, hooks, and a closure.
    let y = Fails::apply(&x, "backward");
    let hooked = &x * 1.0;
    let _ = hooked.register_hook(|_| panic!("on purpose")).unwrap();
    let failing: [&(dyn Fn() -> Tensor<f64> + RefUnwindSafe); 6] = [
        &|| &x + &other,
        &|| x.reshape([3]),
        &|| Fails::apply(&x, "forward"),
        &|| {
            y.sum().backward().unwrap();
            y.clone()
        },
        &|| {
            hooked.sum().backward().unwrap();
            y.clone()
        },
        &|| no_grad().run(|| panic!("on purpose with {}", x.sum())),
    ];
    for (i, f) in failing.into_iter().enumerate() {
        assert!(catch_unwind(f).is_err(), "{i}");
        assert_usable(&x);
        assert_eq!(other.to_vec(), [1.0, 2.0, 3.0]);
    }
    // An in-place change that is refused.
    let change = || {
        let mut y = x.clone();
        y += 1.0;
    };
    assert!(catch_unwind(change).is_err());
    assert_usable(&x);
    let (value, tangent) =
        autograd_core::jvp(|t| Fails::apply(&t[0], "nowhere"), &[x.copy()], &[x.detach()]).unwrap();
    assert_eq!((value.to_vec(), tangent.to_vec()), (vec![2.0, 4.0], vec![2.0, 4.0]));
}

#[test]
fn modules_and_programs_are_usable_after_a_panic() {
    let net =
        Net { first: Linear::new(2, 3), dropout: Dropout::new(0.5), rest: vec![Linear::new(3, 1)] };
    let forward = |x: &Tensor| {
        let h = net.dropout.forward(&net.first.forward(x));
        net.rest[0].forward(&h)
    };
    let x = Tensor::<f32>::ones([4, 2]);
    assert!(catch_unwind(|| forward(&Tensor::ones([4, 5]))).is_err());
    let y = catch_unwind(|| forward(&x)).unwrap();
    y.sum().backward().unwrap();
    assert!(net.parameters().iter().all(|p| p.downcast_ref::<f32>().unwrap().grad().is_some()));

    let program = Program::new();
    let data = program.data("x", [-1], DType::Float64).unwrap();
    let op = |x: &Tensor<f64>| {
        assert!(x.len() < 3, "on purpose");
        x * 2.0
    };
    let out = program.current_block().create_var("y", DType::Float64, [-1]).unwrap();
    let y = program.py_func(op).x(&data).out(&out).call().unwrap();
    let executor = Executor::new();
    let run = |n: usize| {
        let x = Tensor::<f64>::ones([n]);
        let run = executor.run(&program, &[("x", &x)], &[&y]).unwrap();
        run[0].downcast_ref::<f64>().unwrap().to_vec()
    };
    assert!(catch_unwind(|| run(3)).is_err());
    assert_eq!(catch_unwind(|| run(2)).unwrap(), [2.0, 2.0]);
}
