// Arguments beside `elementwise`.
use autograd_core::prelude::*;

#[py_layer(elementwise, CASE)]
impl Op {
    fn forward<L: Lane>(x: Real<L>) -> Real<L> {
        x * x
    }

}

fn main() {
    let x = Tensor::<f64>::from(1.0);
    let _ = Op::apply(&x);
}

//= an argument that cannot be read
reduce = 3

//= `surrogate` speaks of a backward that is absent
surrogate

//= an argument that does not exist, near one that does
reduse = sum

//= an argument that does not exist
fused

//= a reduction that does not exist
reduce = max

//= `verify` compares a backward that is absent
verify
