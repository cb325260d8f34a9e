//! Names from other libraries are found in the documentation: as an alias, or in the table of
//! `autograd_core::names`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Names of PyTorch, NumPy, candle and burn for features that this library has, except its own methods.
const ELSEWHERE: &[&str] = &[
    // Shape.
    "reshape view ravel flatten transpose swapaxes swap_dims t permute permute_dims unsqueeze unsqueeze_dim",
    "expand_dims squeeze expand pad pad_with_zeros repeat tile roll unfold sliding_window_view",
    "chunk split array_split split_with_sizes cat concat concatenate stack select",
    // Indexing.
    "i slice getitem setitem index_fill index_put slice_assign index_select take gather take_along_axis",
    "scatter_add put_along_axis index_add masked_fill mask_fill masked_select boolean_mask where where_cond",
    "mask_where nonzero argwhere unsorted_segment_sum bucketize size diag_embed",
    // Along axes.
    "sum mean prod max min var std argmax max_dim_with_indices median cumsum cumprod norm",
    "vector_norm topk top_k sort argsort arg_sort_last_dim logsumexp log_sum_exp any all",
    // Elements.
    "expm1 log1p log reciprocal arcsin arccos arctan power powf clip clamp heaviside sign sqr swish",
    "arctan2 mod gammaln psi polygamma nan_to_num",
    "gelu_erf astype to_dtype eq gt allclose isclose assert_close logical_and logical_or logical_not",
    // Making.
    "arange range linspace full full_like eye identity meshgrid one_hot bernoulli multinomial",
    "categorical manual_seed Generator tolist to_scalar",
    // Products and systems.
    "einsum matmul bmm dot outer solve inv inverse slogdet logdet det cholesky",
    "solve_triangular triangular_solve cholesky_solve cho_solve eigh eigvalsh qr svd svdvals lstsq pinv",
    "fixed_point custom_root odeint solve_ivp implicit_diff",
    // Losses.
    "CrossEntropyLoss cross_entropy nll_loss L1Loss HuberLoss MSELoss KLDivLoss kl_div BCELoss",
    "BCEWithLogitsLoss binary_cross_entropy",
    // Training.
    "BatchNorm1d GroupNorm RMSNorm LayerNorm Conv1d MultiHeadAttention attn_mask key_padding_mask is_causal",
    "Sequential ReLU GELU SiLU parameters zero_grad numel RMSprop AdamW SGD StepLR CosineAnnealingLR LinearLR",
    "ExponentialLR SequentialLR DataLoader num_workers set_printoptions linewidth edgeitems sci_mode",
];

/// The form in which a search compares names.
fn plain(name: &str) -> String {
    name.replace('_', "").to_lowercase()
}

fn aliases(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            aliases(&path, found);
        } else {
            let source = fs::read_to_string(&path).unwrap();
            let after = source.split("doc(alias = \"").skip(1);
            found.extend(after.map(|rest| plain(rest.split('"').next().unwrap())));
        }
    }
}

#[test]
fn names_of_other_libraries_are_found() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = BTreeSet::new();
    for source in ["../autograd-core/src", "../autograd-kernels/src"] {
        aliases(&root.join(source), &mut all);
    }
    let table = fs::read_to_string(root.join("../autograd-core/src/names.rs")).unwrap();
    let table: BTreeSet<String> =
        table.split(|c: char| c != '_' && !c.is_alphanumeric()).map(plain).collect();
    let is_found = |name: &str| {
        let name = plain(name);
        all.contains(&name) || table.iter().any(|own| own.contains(&name))
    };
    let names = ELSEWHERE.iter().flat_map(|names| names.split(' '));
    let missing: Vec<_> = names.filter(|name| !is_found(name)).collect();
    assert!(missing.is_empty(), "give what they are called here a `#[doc(alias)]`: {missing:?}");
}
