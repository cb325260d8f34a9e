//! The op of `docs/porting.md`: compiled, compared with the page, and its gradient checked.

use burn::Tensor;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, unary};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension};
use burn::tensor::{DType, Device, TensorData};

// From the page
#[backend_extension(Flex, Autodiff)]
pub trait ScaledTanh: Backend {
    fn scaled_tanh(x: FloatTensor<Self>, scale: f32) -> FloatTensor<Self> {
        Self::float_mul_scalar(Self::float_tanh(x), scale.into())
    }
}

impl ScaledTanh for Flex {}

impl<B: ScaledTanh, C: CheckpointStrategy> ScaledTanh for Autodiff<B, C> {
    fn scaled_tanh(x: FloatTensor<Self>, scale: f32) -> FloatTensor<Self> {
        match Rule.prepare::<C>([x.node()]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let t = B::float_tanh(x.into_primitive());
                prep.finish((t.clone(), scale), B::float_mul_scalar(t, scale.into()))
            }
            OpsKind::UnTracked(prep) => prep.finish(B::scaled_tanh(x.into_primitive(), scale)),
        }
    }
}

#[derive(Debug)]
struct Rule;

impl<B: Backend> Backward<B, 1> for Rule {
    type State = (FloatTensor<B>, f32);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (t, scale) = ops.state;
        unary::<B, _>(ops.parents, ops.node, grads, |dy| {
            let square = B::float_mul(t.clone(), t);
            let slope = B::float_add_scalar(B::float_neg(square), 1.0_f32.into());
            B::float_mul_scalar(B::float_mul(dy, slope), scale.into())
        });
    }
}

const PAGE: &str = include_str!("../../../../docs/porting.md");

#[test]
fn the_page_has_this_op() {
    let (_, rest) = include_str!("porting.rs").split_once("// From the page\n").unwrap();
    let (op, _) = rest.split_once("\nconst PAGE").unwrap();
    assert!(PAGE.contains(op), "docs/porting.md has another op");
}

const SLOPE: f64 = 3.0 * 0.786_447_732_965_927_4;

#[test]
fn its_gradient_is_right() {
    let data = TensorData::new(vec![0.5_f64], [1]);
    let x = Tensor::<1>::from_data(data, (&Device::flex().autodiff(), DType::F64)).require_grad();
    let y = Dispatch::scaled_tanh(x.clone().into_dispatch(), 3.0);
    let grads = Tensor::<1>::from_dispatch(y).backward();
    let dx: f64 = x.grad(&grads).unwrap().into_data().iter::<f64>().next().unwrap();
    assert!((dx - SLOPE).abs() < 1e-12, "{dx}");
}
