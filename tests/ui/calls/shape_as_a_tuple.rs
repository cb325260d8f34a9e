// a shape written as a tuple
use autograd_core::static_graph::Program;
use autograd_core::{Conv2dOptions, DType, PoolOptions, Tensor, nn};

fn main() {
    Tensor::<f32>::zeros((2, 3));
    Tensor::<f32>::ones((2, 3, 4));
    Tensor::<f32>::full((2,), 1.0);
    Tensor::<f32>::randn((2, 3));
    Tensor::<f32>::rand((2_usize, 3_usize));
    Tensor::<f64>::normal((2, 3), 0.0, 1.0);
    Tensor::<f64>::uniform((2, 3), 0.0, 1.0);
    Tensor::randint((2, 3), 0, 9);
    let x = Tensor::<f32>::from_vec((2, 3), vec![0.0; 6]).unwrap();
    x.reshape((3, 2));
    x.try_reshape((3, 2)).unwrap();
    x.broadcast_to((3, 2));
    x.try_broadcast_to((3, 2)).unwrap();
    nn::init::zeros::<f32>((2, 3));
    nn::LayerNorm::<f32>::new((2, 3));
    Program::new().data("x", (2, 3), DType::Float32).unwrap();
    // Nor are these shapes.
    Tensor::<f32>::zeros([2, 3_i64]);
    Tensor::<f32>::zeros([2.0, 3.0]);
    Conv2dOptions::new().stride((1, 2));
    PoolOptions::new((2, 2));
}
