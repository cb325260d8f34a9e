use super::*;
use crate::array::DType;
use crate::graph::{AnyTensor, Tensor};
use crate::ops::{Unary, rules};

/// One pass, over the first operand where it can be.
fn run(chain: &Chain, shape: &[usize], operands: Vec<Tensor<f64>>) -> Vec<Tensor<f64>> {
    let operands = operands.into_iter().map(AnyTensor::from).collect();
    let into = chain.asked.iter().map(|_| None).collect();
    let targets = vec![None; chain.asked.len()];
    let found = chain.run((shape, 16 * 1024), operands, true, into, &targets);
    let found = found.unwrap_or_else(|_| panic!("it runs"));
    found.into_iter().map(|found| found.downcast().expect("floats")).collect()
}

fn asked(results: &[usize]) -> Vec<Ask> {
    results.iter().map(|&result| Ask { result, sums: false }).collect()
}

fn wave(shape: &[usize], by: f64) -> Tensor<f64> {
    let n: usize = shape.iter().product();
    let x = Tensor::from((0..n).map(|i| (i as f64 * by).sin()).collect::<Vec<_>>());
    x.reshape(shape)
}

#[test]
fn what_was_put_off_is_not_computed_in_each_run() {
    let mut chain = Chain::new(vec![DType::Float64]);
    let tanh = Code::Float64(Of::Forward(Unary::Tanh.handle()));
    let tanh = chain.link(tanh, &[Source::Operand(0)]);
    chain.finish(&asked(&[tanh]));
    let shape = [40, 3000];
    let x = wave(&shape, 0.37);
    let fed = &x * 2.0;
    assert!(fed.fixed().is_some_and(|value| value.in_memory().is_none()));
    for _ in 0..5 {
        let found = run(&chain, &shape, vec![fed.clone()]);
        assert_eq!(found[0].to_vec(), (&x * 2.0).tanh().to_vec());
    }
    assert!(fed.fixed().is_some_and(|value| value.in_memory().is_some()));
}

#[test]
fn a_chain_is_its_links_one_by_one() {
    use Source::{Operand, Result};
    for shape in [vec![3, 5], vec![7, 1000], vec![40, 3000], vec![0, 4]] {
        let (x, whole) = (wave(&shape, 0.37), wave(&shape, 0.11));
        let row = Tensor::<f64>::linspace(-1.0, 1.0, shape[1]);
        let column = wave(&[shape[0], 1], 0.7);
        let turned = wave(&[shape[1], shape[0]], 0.3).transpose();
        let mut chain = Chain::new(vec![DType::Float64; 5]);
        let sum = chain.link(Code::Binary(Binary::Add), &[Operand(0), Operand(1)]);
        let tanh = chain.link(Code::Float64(Of::Forward(Unary::Tanh.handle())), &[Result(sum)]);
        let times = chain.link(Code::Binary(Binary::Mul), &[Operand(2), Result(tanh)]);
        let less = Code::Scalar { op: Binary::Sub, scalar: 2.0, swapped: true };
        let less = chain.link(less, &[Result(times)]);
        let over = chain.link(Code::Binary(Binary::Div), &[Result(less), Operand(3)]);
        let square = chain.link(Code::Binary(Binary::Mul), &[Result(over), Result(over)]);
        let sub = chain.link(Code::Binary(Binary::Sub), &[Operand(4), Result(square)]);
        chain.finish(&asked(&[sub, tanh]));
        let tanh = (&x + &row).tanh();
        let over = (2.0 - &whole * &tanh) / &column;
        let expected = [&turned - &over * &over, tanh];
        let others = [row, whole, column, turned];
        // Held by others, and by nobody else.
        for x in [x.clone(), Tensor::from(x.to_vec()).reshape(shape.as_slice())] {
            let operands = std::iter::once(x).chain(others.iter().cloned()).collect();
            let found = run(&chain, &shape, operands);
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found.to_vec(), expected.to_vec());
                assert_eq!(found.shape(), shape);
            }
        }
    }
}

#[test]
fn gradients_of_two_operands_are_written_in_one_pass() {
    let shape = [33, 1001];
    let [a, b, dy] = [0.3, 0.5, 0.7].map(|by| wave(&shape, by) + 1.5);
    let mut chain = Chain::new(vec![DType::Float64; 3]);
    let all = [Source::Operand(0), Source::Operand(1), Source::Operand(2)];
    let op = rules::derived::<f64>(Binary::Pow).expect("its rule is derived");
    let first = chain.link(Code::Float64(Of::Backward(op)), &all);
    chain.finish(&asked(&[first, first + 1]));
    let found = run(&chain, &shape, vec![a.clone(), b.clone(), dy.clone()]);
    let expected = rules::binary(Binary::Pow, &a, &b, dy, [true; 2]);
    for (found, expected) in found.iter().zip(expected.expect("they fit")) {
        assert_eq!(found.to_vec(), expected.expect("it is wanted").to_vec());
    }
}
