// says: the macro makes the struct `Op`, and there is a type alias `Op` in this scope
type Op = u8;
autograd_core::scalar_op!(Op: y = x * 2.0, dx = dy * 2.0);
fn main() {}
