//! Programs that draw: dropout and initial parameters, with any number of threads.

use autograd_core::DType;
use autograd_core::prelude::*;
use autograd_core::static_graph::{Executor, Feed, Program, gradients};
use support::leaf_like;
use support::programs::{asked, batch, classifier, floats, run, train, wanting, wave};

use crate::turn;

#[test]
fn dropout_draws_what_it_draws_in_eager_mode() {
    let _turn = turn();
    let program = Program::new();
    let x = wanting(&program, "x", &[-1, 8]);
    let y = x.relu().unwrap().dropout(0.4).unwrap();
    let z = (&y * 2.0).tanh().unwrap().dropout(0.25).unwrap().square().unwrap();
    let dx = gradients(&[&z], &[&x]).unwrap().remove(0).unwrap();
    let fed = wave(&[3000, 8], 0.3);
    autograd_core::seed(7);
    let leaf_like = leaf_like(&fed);
    let dropped = leaf_like.relu().dropout(0.4, true);
    let eager = (&dropped * 2.0).tanh().dropout(0.25, true).square();
    eager.sum().backward().unwrap();
    for threads in [1, 3] {
        autograd_core::seed(7);
        let executor = Executor::new().with_threads(threads);
        let found = executor.run(&program, &[("x", &fed)], &asked(&[&y, &z, &dx])).unwrap();
        assert_eq!(floats(&found[0]), dropped.to_vec());
        assert_eq!(floats(&found[1]), eager.to_vec());
        assert_eq!(floats(&found[2]), leaf_like.grad().unwrap().to_vec());
    }
    // A copy for testing drops nothing.
    let test = program.clone_program(true).unwrap();
    let found = Executor::new().run(&test, &[("x", &fed)], &asked(&[&z])).unwrap();
    assert_eq!(floats(&found[0]), (fed.relu() * 2.0).tanh().square().to_vec());
}

#[test]
fn dropouts_and_user_code_draw_in_their_order() {
    let _turn = turn();
    let program = Program::new();
    let x = wanting(&program, "x", &[-1, 4]);
    let out = program.current_block().create_var("out", DType::Float32, [-1, 4]).unwrap();
    let first = x.dropout(0.5).unwrap();
    let drawn = |x: &Tensor<f32>| x + Tensor::<f32>::rand(x.shape());
    let noise = program.py_func(drawn).x(&x).out(&out).call().unwrap();
    // Before the function's operator in order, and independent of it.
    let second = (&first * 3.0).dropout(0.5).unwrap();
    let both = second.try_add(&noise).unwrap().try_add(&first).unwrap();
    let fed = wave(&[50, 4], 0.3);
    autograd_core::seed(11);
    let first = fed.dropout(0.5, true);
    let noise = &fed + Tensor::<f32>::rand([50, 4]);
    let second = (&first * 3.0).dropout(0.5, true);
    let expected = second + noise + first;
    for threads in [1, 2] {
        autograd_core::seed(11);
        let executor = Executor::new().with_threads(threads);
        let found = executor.run(&program, &[("x", &fed)], &asked(&[&both])).unwrap();
        assert_eq!(floats(&found[0]), expected.to_vec());
    }
}

#[test]
fn the_gradient_of_a_dropouts_gradient_runs() {
    let _turn = turn();
    let program = Program::new();
    let x = wanting(&program, "x", &[-1]);
    let y = x.square().unwrap().dropout(0.5).unwrap();
    let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
    let d2x = gradients(&[&dx], &[&x]).unwrap().remove(0).unwrap();
    let fed = wave(&[64], 0.3);
    autograd_core::seed(3);
    let found = run(&program, &[("x", &fed)], &[&y, &dx, &d2x]);
    autograd_core::seed(3);
    let mask = Tensor::<f32>::ones([64]).dropout(0.5, true);
    assert_eq!(floats(&found[0]), (fed.square() * &mask).to_vec());
    assert_eq!(floats(&found[1]), (&mask * &fed * 2.0).to_vec());
    assert_eq!(floats(&found[2]), (&mask * 2.0).to_vec());
}

#[test]
fn threads_change_no_figure_and_a_copy_for_testing_drops_nothing() {
    let _turn = turn();
    let (program, loss) = classifier();
    let mut all = Vec::new();
    for threads in [1, 2, 3] {
        autograd_core::seed(7);
        let executor = Executor::new().with_threads(threads);
        executor.run(&program.startup(), &[], &[]).unwrap();
        let losses = train(&executor, &program, &loss);
        all.push((losses, executor.parameter("left.weight").unwrap().to_string()));
    }
    assert!(all[0].0[3] < all[0].0[0], "{:?}", all[0].0);
    assert_eq!(all[0], all[1]);
    assert_eq!(all[0], all[2]);

    let test = program.clone_program(true).unwrap();
    let text = test.to_string();
    assert!(text.contains("training=false") && !text.contains("adam"), "{text}");
    let executor = Executor::new();
    executor.run(&program.startup(), &[], &[]).unwrap();
    let (x, label) = batch();
    let feed: [(&str, &dyn Feed); 2] = [("x", &x), ("label", &label)];
    let once = executor.run(&test, &feed, &[&loss]).unwrap();
    let before = executor.parameter("left.weight").unwrap().to_string();
    let twice = executor.run(&test, &feed, &[&loss]).unwrap();
    assert_eq!(once[0].to_string(), twice[0].to_string());
    assert_eq!(before, executor.parameter("left.weight").unwrap().to_string());
}
