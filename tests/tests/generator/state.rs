//! The process-wide generator's state, saved and restored.

use autograd_core::nn::Linear;
use autograd_core::prelude::*;
use autograd_core::static_graph::{Executor, Init, Program};
use autograd_core::{DType, checkpoint, rng_state, seed, set_rng_state};

use crate::turn;

fn bits(tensor: &Tensor<f64>) -> Vec<u64> {
    tensor.to_vec().into_iter().map(f64::to_bits).collect()
}

fn narrow(tensor: &Tensor<f32>) -> Vec<u64> {
    tensor.to_vec().into_iter().map(|x| u64::from(x.to_bits())).collect()
}

fn integers(tensor: &Tensor<i64>) -> Vec<u64> {
    tensor.to_vec().into_iter().map(|x| x as u64).collect()
}

fn program() -> Vec<u64> {
    let program = Program::new();
    let x = program.data("x", [40], DType::Float64).unwrap();
    let w = program.create_parameter("w", [40], DType::Float64, Init::Normal(0.0, 1.0)).unwrap();
    let y = (&x * &w).dropout(0.5).unwrap();
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[]).unwrap();
    let fed = Tensor::<f64>::ones([40]);
    let run = executor.run(&program, &[("x", &fed)], &[&y]).unwrap();
    bits(run[0].downcast_ref().unwrap())
}

fn recomputed() -> Vec<u64> {
    let x = Tensor::<f64>::ones([40]);
    x.set_stop_gradient(false);
    let inside = x.clone();
    let y = checkpoint(move || (inside.dropout(0.5, true) * Tensor::<f64>::randn([40])).sum());
    y.backward().unwrap();
    bits(&x.grad().unwrap())
}

/// All functions that draw from it.
const DRAWS: [(&str, fn() -> Vec<u64>); 12] = [
    ("randn of f64", || bits(&Tensor::randn([7]))),
    ("randn of f32", || narrow(&Tensor::randn([7]))),
    ("rand of f64", || bits(&Tensor::rand([7]))),
    ("rand of f32", || narrow(&Tensor::rand([7]))),
    ("normal", || bits(&Tensor::normal([3], 1.0, 2.0))),
    ("uniform", || narrow(&Tensor::uniform([3], -1.0, 2.0))),
    ("randint", || integers(&Tensor::<i64>::randint([9], -5, 1 << 40))),
    ("randperm", || integers(&Tensor::<i64>::randperm(20))),
    ("dropout", || bits(&Tensor::<f64>::ones([100]).dropout(0.5, true))),
    ("a layer", || bits(&Linear::<f64>::new(3, 2).weight)),
    ("a program", program),
    ("a checkpoint", recomputed),
];

#[test]
fn the_stream_goes_on_from_where_it_was_taken() {
    let _turn = turn();
    // Self-seeded, seeded, and from any position: the engine generates 312 numbers at once.
    for offset in [None, Some(0), Some(1), Some(311), Some(312), Some(1000)] {
        if let Some(offset) = offset {
            seed(2023);
            (0..offset).for_each(|_| drop(Tensor::<f64>::rand([1])));
        }
        for (name, draw) in DRAWS {
            let state = rng_state();
            let first = draw();
            assert_ne!(first, draw(), "{name}");
            for _ in 0..2 {
                set_rng_state(&state);
                assert_eq!(draw(), first, "{name} from {offset:?}");
            }
        }
        // All draws, also after other draws.
        let all = || DRAWS.map(|(_, draw)| draw());
        let state = rng_state();
        let first = all();
        seed(1);
        all();
        set_rng_state(&state);
        assert_eq!(all(), first);
        // A state is a generator with the same numbers; drawing from it does not affect the process.
        set_rng_state(&state);
        let mut own = state.clone();
        assert_eq!(own.randperm(9), Tensor::<i64>::randperm(9).to_vec());
    }
    // Paddle's numbers after its seed.
    seed(2023);
    let state = rng_state();
    Tensor::<f32>::randn([1001]);
    set_rng_state(&state);
    assert_eq!(Tensor::<f64>::randn([2, 3]).to_vec()[0], 0.06132208266916202);
    // Another thread uses the same generator.
    let there = std::thread::spawn(|| Tensor::<f64>::rand([4]).to_vec());
    let there = there.join().unwrap();
    set_rng_state(&state);
    Tensor::<f64>::randn([2, 3]);
    assert_eq!(Tensor::<f64>::rand([4]).to_vec(), there);
    in_a_checkpoint();
}

/// The second run draws from a copy, so the state there is that of the copy.
fn in_a_checkpoint() {
    let x = Tensor::from(2.0);
    x.set_stop_gradient(false);
    let inside = x.clone();
    let y = checkpoint(move || {
        let state = rng_state();
        let first = Tensor::<f64>::rand([3]);
        set_rng_state(&state);
        let again = Tensor::<f64>::rand([3]);
        assert_eq!(first.to_vec(), again.to_vec());
        &inside * again.sum()
    });
    y.backward().unwrap();
    assert_eq!((x.grad().unwrap() * &x).item(), y.item());
}
