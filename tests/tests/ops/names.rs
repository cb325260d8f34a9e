//! The ops that need a case: the entries of the table of ops, and the methods that are made of them.

use std::collections::BTreeSet;

/// Entries without a method of their own name, and the reason.
const ENTRIES: &[(&str, &str)] = &[
    ("add_n constant intermediate once_differentiable recurrence same_lengths", "only in programs"),
    ("adam adamw rmsprop sgd", "steps of optimizers"),
    ("batch_norm", "a module"),
    ("index_max index_prod", "`index_reduce`"),
    ("places", "assignment to the parts that an index selects"),
    ("fill_like", "`zeros_like`, `ones_like` and `full_like`"),
    ("slice", "`slice_axis`, `narrow`, `select`, `i`"),
    ("std var", "`std_axes` and `var_axes`"),
    ("where", "`where_` and `where_else`"),
    (
        "binary_cross_entropy_each binary_cross_entropy_with_logits_each smooth_l1_loss_each",
        "the losses with options",
    ),
];

/// Methods and functions that call entries of other names, or none.
const METHODS: &[&str] = &[
    "zeros ones full zeros_like ones_like full_like from_vec eye arange arange_step linspace",
    "rand randn rand_like randn_like uniform normal randint randperm bernoulli multinomial",
    "to_vec to_ndarray view item at copy_from fill set_item slice_assign",
    "add_assign sub_assign mul_assign div_assign",
    "eq_scalar ne_scalar gt_scalar ge_scalar lt_scalar le_scalar is_nan allclose nonzero one_hot",
    "any all any_axes all_axes any_axes_keep all_axes_keep",
    "sum_axes mean_axes prod_axes max_axes min_axes median_axes var_axes std_axes",
    "sum_axes_keep mean_axes_keep prod_axes_keep max_axes_keep min_axes_keep median_axes_keep",
    "var_axes_keep std_axes_keep norm_axes_keep logsumexp_keep",
    "sort topk max_with_indices min_with_indices",
    "log clamp contiguous copy where_ where_else masked_fill masked_select",
    "flatten transpose t swap_axes squeeze squeeze_axes unsqueeze unsqueeze_axes",
    "index_reduce repeat_interleave_with_counts unique cdist bincount trace",
    "narrow select slice_axis split_with_sizes chunk",
    "stack outer einsum solve inv slogdet cholesky solve_triangular cholesky_solve eigh qr svd lstsq",
    "pinv",
    "mse_loss l1_loss huber_loss kl_div nll_loss mse_loss_with l1_loss_with huber_loss_with",
    "kl_div_with nll_loss_with smooth_l1_loss_with cross_entropy_with binary_cross_entropy_with",
    "binary_cross_entropy_with_logits_with",
];

/// The names of all ops.
pub(crate) fn ops() -> BTreeSet<String> {
    let mut ops: BTreeSet<String> =
        autograd_core::private::names_of_ops().map(str::to_owned).collect();
    for entry in ENTRIES.iter().flat_map(|(entries, _)| entries.split(' ')) {
        assert!(ops.remove(entry), "the table has no `{entry}`");
    }
    for method in METHODS.iter().flat_map(|methods| methods.split(' ')) {
        assert!(ops.insert(method.to_owned()), "the table has `{method}`");
    }
    ops
}
