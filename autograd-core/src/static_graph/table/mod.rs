//! All entries of the table of operators: those of eager ops, which stand beside them in [`ops`](crate::ops),
//! and those that only programs have.

mod own;

use std::collections::HashMap;
use std::sync::OnceLock;

use super::ir::OpDef;

pub(super) use crate::ops::entries::*;
pub(super) use own::*;

fn all() -> impl Iterator<Item = &'static OpDef> {
    let families: [&'static [OpDef]; 5] = [&FUNCTIONS, &BINARY, &SCALAR, &COMPARISONS, &REDUCTIONS];
    let others = [
        ACTIVATIONS,
        ALONG,
        CHOICES,
        CONVOLUTIONS,
        FILLS,
        ITEMS,
        LINEARS,
        LOSSES,
        NORMALIZATIONS,
        NORMS,
        PICKS,
        POINTWISE,
        POOLS,
        POWERS,
        PRODUCTS,
        PROGRAMS,
        SHAPES,
        SLICES,
        SOFTMAXES,
    ];
    families.into_iter().flatten().chain(others.into_iter().flatten().copied())
}

pub(super) fn find(family: &str, name: &str) -> Option<&'static OpDef> {
    static KNOWN: OnceLock<HashMap<(&str, &str), &OpDef>> = OnceLock::new();
    let known = KNOWN.get_or_init(|| all().map(|def| ((def.family, def.name), def)).collect());
    known.get(&(family, name)).copied()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::attr::{Attr, Type, read, shown, written};
    use super::super::forms::same_float;
    use super::super::values::float;
    use super::super::{Executor, Program, gradients};
    use super::*;
    use crate::array::DType;
    use crate::functional::jvp;
    use crate::graph::Tensor;
    use crate::ops::call::call;

    fn example(kind: Type) -> Attr {
        match kind {
            Type::Number | Type::Plain => Attr::Number(-1.5e-9),
            Type::Flag | Type::Training => Attr::Flag(true),
            Type::Int => Attr::Int(-2),
            Type::Ints => Attr::Ints(vec![0, -1]),
            Type::Dims => Attr::Dims([None, Some(4)].into_iter().collect()),
            Type::Pairs => Attr::Pairs(vec![[1, 2], [3, 4]]),
            Type::Elements => Attr::Type(DType::UInt8),
            Type::Tensor => Attr::Tensor(Tensor::from([0.1_f32, -0.0]).into()),
        }
    }

    #[test]
    fn each_operator_is_entered_once_and_its_attributes_are_read_as_they_were_written() {
        let mut names = HashSet::new();
        for def in all() {
            assert!(names.insert((def.family, def.name)), "{} {}", def.family, def.name);
            assert!(find(def.family, def.name).is_some_and(|found| std::ptr::eq(found, def)));
            for &(name, kind) in def.attrs {
                let attr = example(kind);
                let text = written(&attr);
                let again = read(kind, &mut text.split(';')).expect("it was written");
                assert_eq!(written(&again), text, "{name} of {}", def.name);
                assert_eq!(shown((name, kind), &again), shown((name, kind), &attr));
            }
        }
        assert!(names.len() > 80, "{}", names.len());
    }

    /// The entry that CONTRIBUTING.md adds.
    static LOGIT: OpDef = OpDef {
        infer: same_float,
        run: |_, x, _| float!(x, x => Ok((&x / (1.0 - &x)).ln())),
        ..OpDef::new("logit")
    };

    fn logit(x: &Tensor<f64>) -> Tensor<f64> {
        call(&LOGIT, [], [x.untyped()]).unwrap()
    }

    #[test]
    fn an_entry_is_all_that_an_op_takes() {
        let (values, slopes) = ([(1.0_f64 / 3.0).ln(), 0.0], [1.0 / (0.25 * 0.75), 4.0]);
        let check = |y: &Tensor<f64>, dx: &Tensor<f64>| {
            assert_eq!(y.to_vec(), values);
            let (found, right) = (dx.to_vec(), slopes);
            assert!(found.iter().zip(right).all(|(dx, right)| (dx - right).abs() < 1e-12), "{dx}");
        };
        let at = Tensor::from([0.25, 0.5]);
        at.set_stop_gradient(false);
        let y = logit(&at);
        y.sum().backward().unwrap();
        check(&y, &at.grad().unwrap());
        let (y, dy) = jvp(|x| logit(&x[0]), &[at.detach()], &[Tensor::from([1.0, 1.0])]).unwrap();
        check(&y, &dy);

        let program = Program::new();
        let x = program.data("x", [-1], DType::Float64).unwrap();
        x.set_stop_gradient(false);
        let built = program.one(&LOGIT, [], &[&x]).unwrap();
        let traced = program.trace(|x: &Tensor<f64>| logit(x)).x(&x).call().unwrap();
        assert_eq!(program.to_string().matches("= logit(x)").count(), 2, "{program}");
        let feed = at.detach();
        for y in [built, traced] {
            let dx = gradients(&[&y], &[&x]).unwrap().remove(0).unwrap();
            let run = Executor::new().run(&program, &[("x", &feed)], &[&y, &dx]).unwrap();
            check(run[0].downcast_ref().unwrap(), run[1].downcast_ref().unwrap());
        }
    }
}
