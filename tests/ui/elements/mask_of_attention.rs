// a mask of attention is of bools or floats
use autograd_core::Tensor;
use autograd_core::nn::AttentionMasks;

fn main() {
    let ids = Tensor::<i64>::zeros([2, 2]);
    let _ = AttentionMasks::new().attention(&ids);
}
