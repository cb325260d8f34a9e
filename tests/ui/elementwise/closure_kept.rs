// a closure among the plain parameters of a formula is shared by its copies and by threads
use std::rc::Rc;
use std::sync::Arc;

use autograd_core::prelude::*;

#[py_layer(elementwise)]
impl Boxed {
    fn forward(x: Real, f: Box<dyn Fn(f64) -> f64 + Send + Sync>) -> Real {
        x * f(2.0)
    }
}

#[py_layer(elementwise)]
impl Counted {
    fn forward(x: Real, f: Rc<dyn Fn(f64) -> f64>) -> Real {
        x * f(2.0)
    }
}

#[py_layer(elementwise)]
impl Shared {
    fn forward(x: Real, f: Arc<dyn Fn(f64) -> f64 + Sync>) -> Real {
        x * f(2.0)
    }
}

fn main() {}
