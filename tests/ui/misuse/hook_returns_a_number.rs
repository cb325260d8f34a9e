// a hook that returns a number
use autograd_core::HookResult;
use autograd_core::prelude::*;

fn hook(_: &Tensor<f64>) -> HookResult<Option<f64>> {
    Ok(Some(2.0))
}

fn main() -> autograd_core::Result<()> {
    let x = Tensor::from([1.0_f64]);
    x.set_stop_gradient(false);
    let handle = x.register_hook(hook)?;
    handle.remove();
    Ok(())
}
