//! Sums of products by labelled axes.

use autograd_core::{Error, Tensor};

use super::{check, sample};

#[test]
fn every_kind_of_sum() {
    let cases: &[(&str, &[&[usize]])] = &[
        ("ij,jk->ik", &[&[2, 3], &[3, 4]]),
        ("ij,jk,kl->li", &[&[2, 3], &[3, 2], &[2, 4]]),
        ("bij,bjk->bik", &[&[2, 3, 2], &[2, 2, 4]]),
        ("bqhd,bkhd->bhqk", &[&[2, 3, 2, 4], &[2, 3, 2, 4]]),
        ("ij,ij->ij", &[&[2, 3], &[2, 3]]),
        ("ij,ij->", &[&[2, 3], &[2, 3]]),
        ("i,j->ji", &[&[2], &[3]]),
        ("iij->ij", &[&[3, 3, 2]]),
        ("ii->", &[&[3, 3]]),
        ("iij,ij->j", &[&[2, 2, 3], &[2, 3]]),
        ("...ij,...jk->...ik", &[&[2, 1, 2, 3], &[3, 3, 2]]),
        ("ij,ij->ij", &[&[2, 1], &[1, 3]]),
        ("ij,k->i", &[&[2, 3], &[4]]),
        ("ij,jk->ik", &[&[2, 0], &[0, 3]]),
        ("->", &[&[]]),
    ];
    for &(equation, shapes) in cases {
        let inputs: Vec<_> = shapes.iter().map(|shape| sample(shape, 0.5, 1.5)).collect();
        let f = |t: &[Tensor<f64>]| Tensor::einsum(equation, &t.iter().collect::<Vec<_>>()).exp();
        check(&format!("einsum {equation}"), f, &inputs);
    }
    let (a, b) = (Tensor::from([[1, 2], [3, 4]]), Tensor::from([[0, 1], [1, 0]]));
    assert_eq!(Tensor::einsum(" ij , jk -> ik ", &[&a, &b]).to_vec(), [2, 1, 4, 3]);
}

#[test]
fn errors_name_the_part_that_is_wrong() {
    let (a, b) = (Tensor::<f64>::zeros([2, 3]), Tensor::<f64>::zeros([4, 5]));
    let words = |equation: &str, operands: &[&Tensor<f64>]| {
        Tensor::try_einsum(equation, operands).unwrap_err().to_string()
    };
    for (equation, expected) in [
        ("ij", "einsum: expected 1 tensor, as `ij` says, found 2"),
        (
            "ij,jk->ik",
            "einsum: `operands[1]` must be of length 3 along axis 0, as another `j` is, found shape [4, 5]",
        ),
        ("ij,k", "einsum: `operands[1]` must be of 1 axis, as `k` says, found shape [4, 5]"),
        (
            "ij,k.",
            "einsum: `equation` must be of letters, `...`, `,` and one `->`, without `.`, found `ij,k.`",
        ),
        (
            "ij,kl->ii",
            "einsum: `equation` must be an equation whose result has `i` once, found `ij,kl->ii`",
        ),
        (
            "ij,kl->m",
            "einsum: `equation` must be an equation with the result's `m` on the left, found `ij,kl->m`",
        ),
        (
            "...,...",
            "einsum: `operands[1]` must be of length 2 along axis 0, as another `...` is, found shape [4, 5]",
        ),
    ] {
        assert_eq!(words(equation, &[&a, &b]), expected);
    }
    assert_eq!(
        words("ii", &[&a]),
        "einsum: `operands[0]` must be of length 2 along axis 1, as another `i` is, found shape [2, 3]"
    );
}

#[test]
fn an_integer_sum_beyond_its_type_is_an_error() {
    let x = Tensor::from([200_u8, 100]);
    let sum = Tensor::try_einsum("i->", &[&x]).unwrap_err();
    let product = Tensor::try_einsum("i,i->", &[&x, &x]).unwrap_err();
    for error in [sum, product] {
        assert!(error.to_string().starts_with("einsum: "), "{error}");
        assert!(matches!(error, Error::Overflow { .. }), "{error}");
    }
}
