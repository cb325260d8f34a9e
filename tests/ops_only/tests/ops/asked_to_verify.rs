//! `AUTOGRAD_VERIFY=1` is never ignored: without the feature `verify`, calls say what is missing.

use std::process::Command;

use autograd_core::prelude::*;

#[py_layer]
impl Twice {
    fn forward(_ctx: &mut ForwardContext<Self>, x: &Tensor<f64>) -> Tensor<f64> {
        x * 2.0
    }

    fn backward(_ctx: &BackwardContext<Self>, dy: &Tensor<f64>) -> Tensor<f64> {
        dy * 3.0
    }
}

#[test]
fn a_program_that_asks_is_reported() {
    const NAME: &str = "asked_to_verify::a_program_that_asks_is_reported";
    let x = Tensor::from([1.0]);
    if std::env::var_os("AUTOGRAD_VERIFY").is_none() {
        let program = std::env::current_exe().unwrap();
        for asked in ["1", "0"] {
            let mut again = Command::new(&program);
            let again = again.args(["--exact", NAME]).env("AUTOGRAD_VERIFY", asked);
            let again = again.output().unwrap();
            assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stdout));
        }
        return;
    }
    // Nothing to verify.
    assert!(Twice::try_apply(&x).is_ok());
    x.set_stop_gradient(false);
    // Every call that could be verified, on every thread.
    let call = || Twice::try_apply(&x).map(drop).map_err(|error| error.to_string());
    let calls = [call(), call(), std::thread::scope(|scope| scope.spawn(call).join().unwrap())];
    let asked = std::env::var("AUTOGRAD_VERIFY").is_ok_and(|asked| asked == "1");
    for message in calls {
        match message {
            Ok(()) => assert!(!asked),
            // In one build with a crate that turns the feature on.
            Err(message) if message.contains(" by backward and ") => assert!(asked, "{message}"),
            Err(message) => {
                assert!(
                    asked && message.starts_with("Twice: AUTOGRAD_VERIFY is set, but"),
                    "{message}"
                );
                assert!(message.contains("feature `verify` of autograd-core"), "{message}");
            }
        }
    }
    // Nothing is left behind.
    assert_eq!((x * 2.0).to_vec(), [2.0]);
}
