// averages are for floats
use autograd_core::prelude::*;

fn average<T: Numeric>(x: &Tensor<T>) -> Tensor<T> {
    x.mean()
}

fn main() {
    let bytes = Tensor::<u8>::full([28, 28], 100);
    let _ = bytes.mean();
    let _ = bytes.mean_axes(&[0]);
    let _ = bytes.mean_axes_keep(&[0]);
    let _ = bytes.try_mean(&[], false);
    let _ = Tensor::from([1, 2]).mean();
    let _ = Tensor::from([1_i64, 2]).var_axes(&[], 1);
    let _ = Tensor::from([1_i32, 2]).std_axes(&[], 1);
    let _ = Tensor::from([1_i32, 2]).normalize(&[], 1e-5);
    let _ = bytes.mse_loss(&bytes);
    let _ = bytes.try_avg_pool2d(2);
    let _ = Tensor::from([true, false]).mean();
    let _ = bytes.cast::<f64>().mean();
    let _ = average(&bytes);
}
