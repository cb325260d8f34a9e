// messages in the words of what was written: `scalar_op!` has no `backward`
use autograd_core::scalar_op;

scalar_op!(Constant: y = x * 2.0, dx = 2.0);

scalar_op!(Reserved: y = y0 * 2.0, dy0 = dy * 2.0);

fn main() {}
