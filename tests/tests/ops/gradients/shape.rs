//! Ops that move elements, of or into squares, so that second derivatives are not zero.

use autograd_core::{Error, GradOptions, Tensor, grad_with, jvp};

use super::{check, check_layouts, layouts, sample};

#[test]
fn ops_for_any_shape() {
    check_layouts("flatten", |x| x.square().flatten(), 0.5, 2.0);
    check_layouts("reshape", |x| x.reshape([1, x.len()]).square(), 0.5, 2.0);
    check_layouts("unsqueeze", |x| x.unsqueeze(0).square(), 0.5, 2.0);
    check_layouts("unsqueeze last", |x| x.unsqueeze(-1).square().squeeze(-1), 0.5, 2.0);
    check_layouts("stack", |x| Tensor::stack(&[x, &x.square()], 0), 0.5, 2.0);
    check_layouts("stack last", |x| Tensor::stack(&[x, &x.square(), x], -1), 0.5, 2.0);
    let stretch = |x: &Tensor<f64>| {
        let shape: Vec<usize> = [2].iter().chain(x.shape()).copied().collect();
        x.broadcast_to(shape).square()
    };
    check_layouts("broadcast_to", stretch, 0.5, 2.0);
}

#[test]
fn ops_on_axes() {
    for (layout, x) in layouts(0.5, 2.0) {
        let rank = x.ndim() as isize;
        for axis in 0..rank {
            let n = x.shape()[axis as usize];
            let check = |name: &str, f: &dyn Fn(&Tensor<f64>) -> Tensor<f64>| {
                check(&format!("{name}({axis}), {layout}"), |t| f(&t[0]), &[x.clone()]);
            };
            check("flip", &|x| x.flip(axis).square());
            check("narrow", &|x| x.square().narrow(axis, n / 3, n - n / 3));
            check("nothing", &|x| x.square().narrow(axis, n, 0));
            check("slice_axis", &|x| x.slice_axis(axis, n.min(1), n, 2).square());
            check("concat", &|x| Tensor::concat(&[x, &x.square(), x], axis));
            check("split", &|x| Tensor::stack(x.split(1, axis), 0).square());
            if n > 0 {
                check("select", &|x| x.select(axis, n - 1).square());
                check("halves", &|x| {
                    let parts = x.split(n, axis);
                    &parts[0] * &parts[n - 1]
                });
            }
        }
        if rank >= 2 {
            let order: Vec<isize> = (0..rank).rev().collect();
            let f = |t: &[Tensor<f64>]| t[0].permute(&order).square();
            check(&format!("permute, {layout}"), f, &[x.clone()]);
            let f = |t: &[Tensor<f64>]| t[0].transpose().square() + 1.0;
            check(&format!("transpose, {layout}"), f, &[x.clone()]);
            for diagonal in [-1, 0, 2] {
                let f = |t: &[Tensor<f64>]| t[0].square().tril(diagonal) - t[0].triu(diagonal);
                check(&format!("triangles, {layout}"), f, &[x.clone()]);
            }
        }
    }
}

#[test]
fn nothing_of_the_other_triangle_comes_through() {
    // A multiplication by zeros would give NaN.
    let data = [1.0, f64::INFINITY, f64::NAN, 2.0, 3.0, f64::NEG_INFINITY];
    let x = Tensor::from(data).reshape([2, 3]);
    x.set_stop_gradient(false);
    let seed = Tensor::from([f64::NAN; 6]).reshape([2, 3]);
    for (y, kept) in [(x.tril(0), [1.0, 0.0, 0.0, 2.0, 3.0, 0.0]), (x.triu(3), [0.0; 6])] {
        assert_eq!(y.to_vec(), kept);
        x.clear_grad();
        y.backward_with(&seed).unwrap();
        let dx = x.grad().unwrap().to_vec();
        assert!(dx.iter().zip(kept).all(|(dx, kept)| dx.is_nan() == (kept != 0.0)), "{dx:?}");
    }
    assert_eq!(x.triu(1).to_vec()[..2], [0.0, f64::INFINITY]);
    let (_, dy) = jvp(|t| t[0].tril(0), &[x.detach()], &[seed]).unwrap();
    assert!(
        dy.to_vec().iter().zip([1, 0, 0, 1, 1, 0]).all(|(dy, kept)| dy.is_nan() == (kept == 1))
    );
}

#[test]
fn joins_of_different_lengths() {
    let inputs = [sample(&[2, 1], 0.5, 1.0), sample(&[2, 3], 1.0, 2.0), sample(&[2, 0], 0.0, 1.0)];
    let join = |t: &[Tensor<f64>]| Tensor::concat(t, 1).square();
    check("concat", join, &inputs);
    let columns =
        [sample(&[3, 2], 0.5, 1.0), sample(&[2, 4], 1.0, 2.0).transpose().narrow(0, 1, 2)];
    check("concat", |t| Tensor::concat(&[&t[0], &t[1]], 0).exp(), &columns);
}

#[test]
fn parts_that_nobody_used_have_no_gradient() {
    let x = sample(&[4, 6], 0.5, 2.0);
    x.set_stop_gradient(false);
    for used in [&[0][..], &[2], &[1, 2], &[2, 2, 0], &[]] {
        x.clear_grad();
        let parts = x.split(3, 1);
        let zero = Tensor::zeros([4, 2]);
        let all = used.iter().fold(zero, |all, &part| all + parts[part].square());
        all.sum().backward().unwrap();
        let times = |column: usize| used.iter().filter(|&&part| part == column / 2).count() as f64;
        let Some(dx) = x.grad() else {
            assert!(used.is_empty());
            continue;
        };
        for (at, dx) in dx.to_vec().into_iter().enumerate() {
            assert_eq!(dx, 2.0 * times(at % 6) * x.to_vec()[at], "{used:?}, {at}");
        }
    }
    let halves = |t: &[Tensor<f64>]| t[0].square().split(2, 0).swap_remove(1).exp();
    check("the second half", halves, &[x.detach()]);
    let (_, dy) = jvp(|t| t[0].split(3, 1).swap_remove(1), &[x.detach()], &[x.detach()]).unwrap();
    assert_eq!(dy.to_vec(), x.detach().narrow(1, 2, 2).to_vec());
}

#[test]
fn parts_are_one_op_that_names_itself() {
    let x = sample(&[2, 6], 0.5, 2.0);
    x.set_stop_gradient(false);
    let parts = x.split(3, 1);
    assert!(parts.iter().all(|part| part.shape() == [2, 2] && !part.stop_gradient()));
    let walk = |part: usize, retain: bool| {
        let options = GradOptions::new().retain_graph(retain);
        grad_with(&[&parts[part].sum()], &[&x], options).map(|_| ())
    };
    // Once from each part, unless the graph is retained.
    walk(1, true).and_then(|()| walk(1, false)).unwrap();
    assert!(matches!(walk(1, false), Err(Error::GraphFreed { op: "split", .. })));
    walk(0, false).unwrap();
    assert!(walk(0, true).is_err() && walk(2, false).is_ok());
    let words = x.try_split(4, 1).unwrap_err().to_string();
    assert_eq!(words, "split: `parts` must be a divisor of 6, the length of axis 1, found 4");
    assert!(x.try_split(0, 0).is_err() && x.try_split(1, 2).is_err());
    let numbers = Tensor::from([1, 2, 3, 4]).split(2, 0);
    assert_eq!((numbers[0].to_vec(), numbers[1].to_vec()), (vec![1, 2], vec![3, 4]));
    assert!(Tensor::<f32>::zeros([0]).split(3, 0).iter().all(|part| part.shape() == [0]));
}

#[test]
fn broadcasting_every_axis() {
    let x = sample(&[2, 1, 3], 0.5, 2.0);
    check("broadcast_to", |t| t[0].broadcast_to([4, 2, 5, 3]).square(), &[x.clone()]);
    check("broadcast_to", |t| t[0].broadcast_to([2, 0, 3]).square(), &[x.clone()]);
    check("broadcast_to itself", |t| t[0].broadcast_to([2, 1, 3]).square(), &[x]);
}

#[test]
fn choices_by_a_mask() {
    let (a, b) = (sample(&[3, 4], 0.5, 1.0), sample(&[4], 1.0, 2.0));
    let mask = Tensor::from([true, false, true]).reshape([3, 1]);
    check("where_else", |t| mask.where_else(&t[0], &t[1]).square(), &[a.clone(), b.clone()]);
    check("where_else", |t| mask.where_else(&t[1], &t[0]).square(), &[a, b]);
    let scalars = [sample(&[], 0.5, 1.0), sample(&[], 1.0, 2.0)];
    check("where_else", |t| mask.where_else(&t[0], &t[1]).square(), &scalars);
}
