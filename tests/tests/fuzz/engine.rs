//! Calls of the engine in any order: ops, in-place changes, hooks that fail, backward in all its
//! forms. Only the test's own code panics, and nothing is half done after an error.

use std::panic::{AssertUnwindSafe, catch_unwind};

use autograd_core::prelude::*;
use autograd_core::{
    BackwardOptions, Error, GradOptions, HookHandle, Result, backward, backward_to, checkpoint,
    detect_anomaly, explain, grad_with, is_grad_enabled, jvp, no_grad, saved_tensors_hooks,
};

use crate::choices::Choices;

/// The message of a panic in the test's own user code.
const ON_PURPOSE: &str = "on purpose";

/// Multiplies; saves an input and its output, and fails on request.
#[py_layer]
impl Fragile {
    type Saved = (Tensor<f64>, Tensor<f64>);
    type Attrs = usize;

    fn forward(
        ctx: &mut ForwardContext<Self>,
        x: &Tensor<f64>,
        fails: usize,
    ) -> Result<Tensor<f64>, String> {
        match fails {
            1 => return Err("forward fails".into()),
            2 => panic!("{ON_PURPOSE}"),
            _ => {}
        }
        let y = x * 3.0;
        ctx.save_for_backward((x, &y));
        ctx.set_attrs(fails);
        Ok(y)
    }

    fn backward(
        ctx: &BackwardContext<Self>,
        dy: &Tensor<f64>,
    ) -> Result<Option<Tensor<f64>>, String> {
        match ctx.attrs() {
            3 => Err("backward fails".into()),
            4 => panic!("{ON_PURPOSE}"),
            5 => Ok(Some(Tensor::zeros([7, 7, 7]))),
            6 => Ok(None),
            _ => {
                let (x, y) = ctx.saved_tensor();
                Ok(Some(dy * 3.0 + (x + y) * 0.0))
            }
        }
    }
}

/// The effect of a hook on the gradient.
fn hook(kind: usize, grad: &Tensor<f64>) -> Result<Option<Tensor<f64>>> {
    match kind {
        0 => Ok(None),
        1 => Ok(Some(grad * 0.5)),
        2 => Ok(Some(Tensor::zeros([5, 5, 5]))),
        3 => Err(Tensor::<f64>::from_vec([3], vec![1.0]).unwrap_err()),
        4 => panic!("{ON_PURPOSE}"),
        5 => grad.fill(0.25).map(|()| None),
        _ => {
            let x = Tensor::from(2.0);
            x.set_stop_gradient(false);
            enable_grad().run(|| x.square()).backward()?;
            Ok(x.grad().map(|dx| grad + dx))
        }
    }
}

/// Larger results are not kept: two of this size, broadcast together, have their product.
const MAX_ELEMENTS: usize = 1 << 9;

struct Machine {
    tensors: Vec<Tensor<f64>>,
    handles: Vec<HookHandle>,
}

/// The current gradient of each tensor.
type Grads = Vec<Option<Vec<u64>>>;

impl Machine {
    fn new() -> Self {
        let shapes: [&[usize]; 6] = [&[], &[1], &[3], &[2, 3], &[3, 1], &[0]];
        let leaf = |shape: &&[usize]| {
            let x = Tensor::<f64>::full(*shape, 0.5);
            x.set_stop_gradient(false);
            x
        };
        Self { tensors: shapes.iter().map(leaf).collect(), handles: Vec::new() }
    }

    fn pick(&self, choices: &mut Choices<'_>) -> Tensor<f64> {
        choices.pick(&self.tensors).clone()
    }

    fn grads(&self) -> Grads {
        let bits = |x: Tensor<f64>| x.to_vec().into_iter().map(f64::to_bits).collect();
        self.tensors.iter().map(|x| x.grad().map(bits)).collect()
    }

    /// A new tensor, or an error.
    fn op(&self, choices: &mut Choices<'_>) -> Result<Tensor<f64>> {
        let (x, y) = (self.pick(choices), self.pick(choices));
        Ok(match choices.below(22) {
            0 => x.try_add(&y)?,
            1 => x.try_mul(&y)?,
            2 => x.try_sub(y)?,
            3 => x.try_div(&(y.square() + 1.0))?,
            4 => x.try_matmul(&y)?,
            5 => x.tanh(),
            6 => x.sum(),
            7 => x.mean(),
            8 => x.try_reshape([x.len()])?,
            9 => x.try_broadcast_to([2, 3])?,
            10 => Tensor::try_concat(&[&x, &y], 0)?,
            11 => x.try_slice_axis(0, 0, 1, 1)?,
            12 => x.try_index_select(0, &Tensor::from([0, 0]))?,
            13 => x.gt_scalar(0.4).try_where_else(&x, &y)?,
            14 => x.detach(),
            15 => no_grad().run(|| &x * 2.0),
            16 => Fragile::try_apply(&x, choices.below(9))?.map_err(|_| missing())?,
            17 => {
                let fails = choices.below(12);
                let z = y.clone();
                checkpoint(move || {
                    assert!(fails != 9, "{ON_PURPOSE}");
                    Fragile::apply(&(&x * z.sum()), fails * 3).unwrap_or_else(|_| x.clone())
                })
            }
            18 => {
                let kind = choices.below(6);
                let hooks = saved_tensors_hooks(
                    move |saved| match kind {
                        1 => Err("pack fails".into()),
                        2 => panic!("{ON_PURPOSE}"),
                        _ => Ok(saved.clone()),
                    },
                    move |saved| match kind {
                        3 => Err("unpack fails".into()),
                        4 => panic!("{ON_PURPOSE}"),
                        5 => Ok(Tensor::<f64>::zeros([9]).into()),
                        _ => Ok(saved.clone()),
                    },
                );
                hooks.run(|| &x * x.exp())
            }
            19 => x + 1.0,
            20 => x.sin() * 0.5,
            _ => x.cast::<f32>().cast::<f64>(),
        })
    }

    /// Changes an existing tensor.
    fn change(&mut self, choices: &mut Choices<'_>) -> Result<()> {
        let at = choices.below(self.tensors.len());
        let other = self.pick(choices);
        let x = &mut self.tensors[at];
        match choices.below(12) {
            0 => x.try_add_assign(&other),
            1 => x.try_mul_assign(&other),
            2 => x.fill(0.75),
            3 => x.copy_from(&other),
            4 => x.set_item(&[0], 0.1),
            5 => no_grad().run(|| x.fill(0.25)),
            6 => {
                x.set_stop_gradient(choices.one_in(2));
                Ok(())
            }
            7 => x.set_grad(Some(&other)),
            8 => {
                x.clear_grad();
                Ok(())
            }
            9 => x.retain_grads(),
            10 => {
                let kind = choices.below(12);
                self.handles.push(x.register_hook(move |grad| Ok(hook(kind, grad)?))?);
                Ok(())
            }
            _ => {
                let kind = choices.below(6);
                if let Some(node) = x.graph_node() {
                    self.handles.push(node.register_before(move |grads| match kind {
                        1 => Ok(Some(vec![])),
                        2 => panic!("{ON_PURPOSE}"),
                        _ => Ok(Some(grads.to_vec())),
                    }));
                    self.handles.push(node.register_after(move |inputs, _| match kind {
                        3 => Ok(Some(vec![None; 9])),
                        4 => panic!("{ON_PURPOSE}"),
                        _ => Ok(Some(inputs.to_vec())),
                    }));
                }
                Ok(())
            }
        }
    }

    /// Walks the graph.
    fn walk(&self, choices: &mut Choices<'_>) -> Result<()> {
        let (y, x) = (self.pick(choices), self.pick(choices));
        let options =
            BackwardOptions::new().retain_graph(choices.one_in(2)).create_graph(choices.one_in(4));
        let scope = choices.one_in(8).then(detect_anomaly);
        let done = match choices.below(8) {
            0 | 1 => y.sum().backward_options(options),
            2 => y.backward_with(&x),
            3 => backward(&[y.into(), x.into()], &[None, None], options),
            4 => backward_to(&[y.sum().into()], &[None], &[x.into()], options),
            5 => {
                let options = GradOptions::new()
                    .allow_unused(true)
                    .retain_graph(choices.one_in(2))
                    .create_graph(choices.one_in(2));
                grad_with(&[&y.sum()], &[&x], options).map(drop)
            }
            6 => jvp(|x| &x[0] * 2.0, &[x], &[y]).map(drop),
            _ => {
                assert!(!explain(&y, &x).to_string().is_empty());
                Ok(())
            }
        };
        drop(scope);
        done
    }
}

fn missing() -> Error {
    Tensor::<f64>::from_vec([3], vec![1.0]).unwrap_err()
}

/// Runs calls until the bytes are used up.
pub(crate) fn run(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let mut machine = Machine::new();
    while !choices.is_used_up() {
        let before = machine.grads();
        let what = choices.below(8);
        let call = AssertUnwindSafe(|| match what {
            0 | 1 => machine.walk(&mut choices),
            2 | 3 => machine.change(&mut choices),
            _ => {
                let new = machine.op(&mut choices)?;
                // Joined with itself again and again, a tensor would fill the memory.
                if new.len() > MAX_ELEMENTS {
                    return Ok(());
                }
                if machine.tensors.len() < 24 {
                    machine.tensors.push(new);
                } else {
                    let at = 6 + choices.below(18);
                    // A kept gradient that refers to its tensor must be cleared explicitly.
                    machine.tensors[at].clear_grad();
                    machine.tensors[at] = new;
                }
                Ok(())
            }
        });
        let failed = match catch_unwind(call) {
            Ok(done) => done.is_err(),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("");
                // A hook on packed tensors cannot return a `Result` here, so its error is a panic.
                assert!(text.contains(ON_PURPOSE), "nobody asked for this panic: {text}");
                true
            }
        };
        assert!(is_grad_enabled(), "the mode is what it was");
        if failed && what < 2 {
            assert_eq!(machine.grads(), before, "a walk that failed left gradients behind");
        }
    }
    for x in &machine.tensors {
        // In any case, a tensor can be read, used and differentiated.
        let y = x.detach();
        y.set_stop_gradient(false);
        (&y * 2.0).sum().backward().expect("a tensor stays usable");
        assert_eq!(y.grad().expect("a gradient").to_vec(), vec![2.0; x.len()]);
    }
    for handle in &machine.handles {
        let _ = handle.remove();
    }
    machine.tensors.iter().for_each(Tensor::clear_grad);
}
