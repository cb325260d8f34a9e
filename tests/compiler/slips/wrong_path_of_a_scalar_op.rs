// says: unresolved import `nope`
autograd_core::scalar_op!(Op: y = x * 2.0, dx = dy * 2.0, crate = nope);
fn main() {}
