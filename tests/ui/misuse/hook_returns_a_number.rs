// a hook that returns a number
use autograd_core::prelude::*;

fn main() -> autograd_core::Result<()> {
    let x = Tensor::from([1.0_f64]);
    x.set_stop_gradient(false);
    let handle = x.register_hook(|_| Ok(Some(2.0)))?;
    handle.remove();
    Ok(())
}
