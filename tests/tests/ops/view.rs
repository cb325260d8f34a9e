//! `view`: reading copies nothing, and a view keeps what it showed.

use autograd_core::Tensor;
use autograd_core::nn::{Linear, Module, parameter};
use autograd_core::optim::{Adam, Optimizer, Sgd};
use autograd_core::prelude::*;
use ndarray::ArrayViewD;

/// The address of the elements, twice the same.
#[track_caller]
fn place(x: &Tensor<f32>) -> usize {
    let place = x.view().as_ptr().addr();
    assert_eq!(x.view().as_ptr().addr(), place, "a view copied the elements");
    place
}

#[test]
fn a_view_of_shared_data_is_the_buffer() {
    let x = Tensor::<f32>::ones([100]);
    let buffer = place(&x);
    let detached = x.detach();
    assert_eq!((place(&x), place(&detached), place(&detached.detach())), (buffer, buffer, buffer));
    assert_eq!(place(&x.reshape([10, 10])), buffer);
    let transposed = x.reshape([10, 10]).transpose();
    let turned = transposed.detach();
    assert_eq!((place(&transposed), place(&turned)), (buffer, buffer));
}

#[test]
fn a_view_after_a_change_in_place_is_the_buffer() {
    let mut x = Tensor::<f32>::ones([100]);
    let detached = x.detach();
    let changes: [fn(&mut Tensor<f32>); 4] = [
        |x| *x += 1.0,
        |x| x.fill(7.0).unwrap(),
        |x| x.copy_from(&Tensor::arange(100)).unwrap(),
        |x| x.set_item(&[3], 5.0).unwrap(),
    ];
    for change in changes {
        change(&mut x);
        assert_eq!(place(&x), place(&detached));
        assert_eq!(x.view().iter().copied().collect::<Vec<_>>(), detached.to_vec());
    }
    // Nobody sees the old elements, so they are overwritten.
    let before = place(&x);
    x.fill(1.0).unwrap();
    assert_eq!(place(&x), before);
}

#[test]
fn a_view_of_a_parameter_is_the_buffer_from_step_to_step() {
    let w = parameter(Tensor::<f32>::ones([100]));
    let buffer = place(&w);
    let mut adam = Optimizer::new(&w, Adam::new(0.1));
    for _ in 0..3 {
        w.square().sum().backward().unwrap();
        adam.step().unwrap();
        adam.clear_grad();
        assert_eq!(place(&w), buffer);
    }
    let layer = Linear::<f32>::new(20, 30);
    let before = place(&layer.weight);
    let mut sgd = Optimizer::new(&layer, Sgd::new(0.1));
    layer.forward(&Tensor::ones([2, 20])).sum().backward().unwrap();
    sgd.step().unwrap();
    assert_eq!(place(&layer.weight), before);
    assert_eq!(layer.named_parameters().len(), 2);
}

#[test]
fn a_view_keeps_its_elements() {
    let w = parameter(Tensor::<f32>::ones([100]));
    let first = w.view();
    no_grad().run(|| w.fill(2.0)).unwrap();
    let second = w.view();
    no_grad().run(|| w.fill(3.0)).unwrap();
    let third = w.detach();
    let views = [&first, &second, &w.view(), &third.view()];
    let seen: Vec<f32> = views.into_iter().map(|view| view.sum()).collect();
    assert_eq!(seen, [100.0, 200.0, 300.0, 300.0]);
    drop((first, second));
    assert_eq!(w.to_vec(), [3.0; 100]);
    // From here on the data is alone again, in any number of threads.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert!((0..100).all(|_| w.view().sum() == 300.0)));
        }
    });
}

#[test]
fn a_view_is_an_array() {
    fn total(view: ArrayViewD<'_, f64>) -> f64 {
        view.sum()
    }
    let mut x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    for _ in 0..2 {
        let view = x.view();
        assert_eq!((view[[1, 0]], view.shape(), total(view.view())), (3.0, &[2, 2][..], 10.0));
        assert_eq!(view, ndarray::arr2(&[[1.0, 2.0], [3.0, 4.0]]).into_dyn());
        assert_eq!((&view).into_iter().sum::<f64>(), 10.0);
        assert_eq!(format!("{:?}", view), format!("{:?}", view.view()));
        assert_eq!(Tensor::from(view.view()).to_vec(), x.to_vec());
        // The second time, of data that was changed in place.
        drop(view);
        x += 0.0;
    }
    assert!(Tensor::<f64>::zeros([2, 0]).detach().view().is_empty());
    let wide = Tensor::from(1.0).broadcast_to([30, 30]);
    assert_eq!(wide.detach().view().sum(), 900.0);
    wide.fill(2.0).unwrap();
    assert_eq!(wide.view().sum(), 1800.0);
}
