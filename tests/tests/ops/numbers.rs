//! Numbers as operands of tensors: by value and by reference, on either side, in every mode.

use autograd_core::prelude::*;
use autograd_core::static_graph::{Executor, Program};
use autograd_core::{DType, fuse};

/// `x op number` and `number op x` of every operator, owned and borrowed, against the number by value.
macro_rules! by_reference {
    ($x:expr, $number:expr) => { by_reference!(@ [+ - * /] $x, $number) };
    (@ [$($op:tt)*] $x:expr, $number:expr) => {{
        let (x, number) = ($x, $number);
        $(
            let expected = [(&x $op number).to_vec(), (number $op &x).to_vec()];
            assert_eq!((&x $op &number).to_vec(), expected[0]);
            assert_eq!((x.clone() $op &number).to_vec(), expected[0]);
            assert_eq!((&number $op &x).to_vec(), expected[1]);
            assert_eq!((&number $op x.clone()).to_vec(), expected[1]);
        )*
    }};
}

#[test]
fn a_number_by_reference_is_an_operand() {
    by_reference!(Tensor::from([1.5_f64, 2.0]), 3.0_f64);
    by_reference!(Tensor::from([1.5_f64, 2.0]), 3_i32);
    by_reference!(Tensor::from([1.5_f32, 2.0]), 3.0_f64);
    by_reference!(Tensor::from([1.5_f32, 2.0]), 3_i32);
    by_reference!(Tensor::from([7_i32, 2]), 3_i32);
    by_reference!(Tensor::from([7_i64, 2]), 3_i64);
    by_reference!(Tensor::from([7_u8, 2]), 1_u8);
    // A number of the element type on the right.
    let x = Tensor::from([1.5_f32, 2.0]);
    let two = &2.0_f32;
    assert_eq!((&x * two).to_vec(), [3.0, 4.0]);

    let (x, two, five) = (Tensor::from([4.0, 9.0]), &2.0, &5.0);
    assert_eq!(x.try_div(two).unwrap().to_vec(), [2.0, 4.5]);
    assert_eq!(x.pow(two).to_vec(), [16.0, 81.0]);
    assert_eq!(
        (x.maximum(five).to_vec(), x.minimum(five).to_vec()),
        (vec![5.0, 9.0], vec![4.0, 5.0])
    );
    let mut y = x.copied();
    y += two;
    y -= &1.0;
    y *= two;
    y /= &4.0;
    assert_eq!(y.to_vec(), [2.5, 5.0]);
}

trait Copied {
    fn copied(&self) -> Self;
}

impl Copied for Tensor<f64> {
    fn copied(&self) -> Self {
        self * 1.0
    }
}

/// `x * slope`, with the slope as an attribute.
#[py_layer]
impl<T: Float> Scaled<T> {
    type Attrs = f64;

    fn forward(ctx: &mut ForwardContext<Self>, x: &Tensor<T>, slope: f64) -> Tensor<T> {
        ctx.set_attrs(slope);
        x * slope
    }

    fn backward(ctx: &BackwardContext<Self>, dy: &Tensor<T>) -> Tensor<T> {
        dy * ctx.attrs()
    }
}

#[test]
fn an_attribute_is_an_operand_as_it_is_read() {
    fn slope<T: Float>() -> Vec<T> {
        let x = Tensor::<T>::ones([2]);
        x.set_stop_gradient(false);
        Scaled::apply(&x, 0.5).sum().backward().unwrap();
        x.grad().unwrap().to_vec()
    }
    assert_eq!((slope::<f64>(), slope::<f32>()), (vec![0.5; 2], vec![0.5; 2]));
}

#[test]
fn a_number_by_reference_is_an_operand_of_a_formula() {
    let (x, two) = (Tensor::from([1.0, 3.0]), &2.0);
    let y = fuse([&x], |[x]| (two * x + two - x / two) * (two - x) / two + (two / x - two));
    let z = fuse([&x], |[x]| (2.0 * x + 2.0 - x / 2.0) * (2.0 - x) / 2.0 + (2.0 / x - 2.0));
    assert_eq!(y.to_vec(), z.to_vec());
    let y = fuse([&x], |[mut x]| {
        x += two;
        x *= two;
        x
    });
    assert_eq!(y.to_vec(), [6.0, 10.0]);
}

#[test]
fn a_number_by_reference_is_an_operand_of_a_variable() {
    let program = Program::new();
    let x = program.data("x", [2], DType::Float64).unwrap();
    let two = &2.0;
    let y = (two * &x + two) / two - (two - &x) + (two / x.clone()) - x.clone() * two;
    let y = y.pow(two).unwrap();
    let given = Tensor::from([1.0, 3.0]);
    let out = Executor::new().run(&program, &[("x", &given)], &[&y]).unwrap();
    let eager =
        ((2.0 * &given + 2.0) / 2.0 - (2.0 - &given) + 2.0 / &given - &given * 2.0).pow(2.0);
    assert_eq!(out[0].downcast_ref::<f64>().unwrap().to_vec(), eager.to_vec());
}

#[test]
fn log_is_the_natural_logarithm_everywhere() {
    fn same<T: Float + PartialEq>() {
        let x = Tensor::<T>::arange(3) * 2.5 + 0.5;
        let x = x.detach();
        x.set_stop_gradient(false);
        assert_eq!(x.log().to_vec(), x.ln().to_vec());
        assert_eq!(fuse([&x], |[x]| x.log()).to_vec(), fuse([&x], |[x]| x.ln()).to_vec());
        x.log().sum().backward().unwrap();
        assert_eq!(x.grad().unwrap().to_vec(), x.recip().to_vec());
    }
    same::<f32>();
    same::<f64>();
    let program = Program::new();
    let x = program.data("x", [1], DType::Float32).unwrap();
    let (log, ln) = (x.log().unwrap(), x.ln().unwrap());
    let given = Tensor::from([3.0_f32]);
    let out = Executor::new().run(&program, &[("x", &given)], &[&log, &ln]).unwrap();
    assert_eq!(
        out[0].downcast_ref::<f32>().unwrap().to_vec(),
        out[1].downcast_ref::<f32>().unwrap().to_vec()
    );
}

#[test]
fn great_angles_are_reduced_exactly() {
    for n in [3, 100] {
        let angles: Vec<f64> = (0..n).map(|i| 1e9 + 1e7 * i as f64).collect();
        let x = Tensor::from(angles.clone());
        x.set_stop_gradient(false);
        let y = x.sin();
        assert_eq!(y.to_vec(), angles.iter().map(|a| a.sin()).collect::<Vec<_>>());
        y.sum().backward().unwrap();
        let dx = x.grad().unwrap();
        assert_eq!(dx.to_vec(), angles.iter().map(|a| a.cos()).collect::<Vec<_>>());
    }
}
