//! Common operations, by their names here and in other libraries.
//!
//! | to | here | PyTorch | NumPy |
//! |---|---|---|---|
//! | change the shape | [`reshape`](Tensor::reshape) with one -1, [`flatten`](Tensor::flatten) | `reshape`, `flatten` | `reshape`, `ravel` |
//! | exchange two axes | [`swap_axes`](Tensor::swap_axes), [`t`](Tensor::t), [`permute`](Tensor::permute) | `transpose`, `mT`, `permute` | `swapaxes`, `transpose` |
//! | add and remove axes | [`unsqueeze_axes`](Tensor::unsqueeze_axes), [`squeeze_axes`](Tensor::squeeze_axes) | `unsqueeze`, `squeeze` | `expand_dims`, `squeeze` |
//! | pad, repeat, roll | [`pad`](Tensor::pad), [`repeat`](Tensor::repeat), [`roll`](Tensor::roll) | `pad`, `tile`, `roll` | `pad`, `tile`, `roll` |
//! | join | [`concat`](Tensor::concat), [`stack`](Tensor::stack) | `cat`, `stack` | `concatenate`, `stack` |
//! | split into parts | [`split`](Tensor::split), [`chunk`](Tensor::chunk), [`split_with_sizes`](Tensor::split_with_sizes) | `chunk`, `split` | `split`, `array_split` |
//! | sliding windows | [`unfold`](Tensor::unfold) | `unfold` | `sliding_window_view` |
//! | index | [`i`](Tensor::i): `x.i((.., 1..3, NewAxis))` | `x[:, 1:3, None]` | the same |
//! | assign to a part | [`slice_assign`](Tensor::slice_assign), [`index_put`](Tensor::index_put) | `x[i] = y`, `index_put` | `x[i] = y`, `add.at` |
//! | pick by index | [`gather`](Tensor::gather), [`index_select`](Tensor::index_select) | `gather`, `index_select` | `take_along_axis`, `take` |
//! | add by index | [`scatter_add`](Tensor::scatter_add), [`index_add`](Tensor::index_add) | `scatter_add`, `index_add` | `add.at` |
//! | diagonals | [`diagonal`](Tensor::diagonal), [`diag`](Tensor::diag), [`trace`](Tensor::trace) | `diagonal`, `diag_embed`, `trace` | `diagonal`, `diag`, `trace` |
//! | write over by index | [`scatter`](Tensor::scatter) | `scatter` | `put_along_axis` |
//! | reduce groups of rows | [`segment_sum`](Tensor::segment_sum), [`index_reduce`](Tensor::index_reduce) | `index_add`, `index_reduce` | `add.at`, `maximum.at` |
//! | repeat each row | [`repeat_interleave`](Tensor::repeat_interleave), [`repeat_interleave_with_counts`](Tensor::repeat_interleave_with_counts) | `repeat_interleave` | `repeat` |
//! | count, distinct elements | [`bincount`](Tensor::bincount), [`unique`](Tensor::unique) | the same | the same |
//! | position in a sorted list | [`searchsorted`](Tensor::searchsorted) | `searchsorted`, `bucketize` | `searchsorted`, `digitize` |
//! | reduce along axes | [`sum_axes`](Tensor::sum_axes), `_keep`; also mean, prod, max, min | `sum(dim, keepdim)` | `sum(axis, keepdims)` |
//! | variance | [`var_axes`](Tensor::var_axes), [`std_axes`](Tensor::std_axes) | `var`, `std` | `var`, `std` |
//! | extremes with positions | [`max_with_indices`](Tensor::max_with_indices), [`argmax`](Tensor::argmax) | `max(dim)`, `argmax` | `argmax` |
//! | sort, rank | [`sort`](Tensor::sort), [`argsort`](Tensor::argsort), [`topk`](Tensor::topk), [`median`](Tensor::median) | `sort`, `argsort`, `topk`, `median` | `sort`, `argsort`, `median` |
//! | sums and products along an axis | [`cumsum`](Tensor::cumsum), [`cumprod`](Tensor::cumprod), [`logsumexp`](Tensor::logsumexp) | the same | `cumsum`, `cumprod` |
//! | normalize a layer | [`normalize`](Tensor::normalize) | `layer_norm`, not `normalize` | |
//! | norms | [`norm`](Tensor::norm), [`norm_axes`](Tensor::norm_axes) | `linalg.vector_norm` | `linalg.norm` |
//! | distances of rows | [`cdist`](Tensor::cdist) | `cdist` | |
//! | functions of two numbers | [`hypot`](Tensor::hypot), [`atan2`](Tensor::atan2), [`logaddexp`](Tensor::logaddexp), [`xlogy`](Tensor::xlogy), [`remainder`](Tensor::remainder), [`copysign`](Tensor::copysign) | the same | the same, `arctan2` |
//! | accurate near 0 | [`exp_m1`](Tensor::exp_m1), [`ln_1p`](Tensor::ln_1p) | `expm1`, `log1p` | the same |
//! | special functions | [`erf`](Tensor::erf), [`erfinv`](Tensor::erfinv), [`lgamma`](Tensor::lgamma), [`digamma`](Tensor::digamma) | the same | in SciPy: `gammaln`, `psi` |
//! | replace NaN | [`nan_to_num`](Tensor::nan_to_num), [`clamp`](Tensor::clamp) for infinities | `nan_to_num` | `nan_to_num` |
//! | length of an axis | [`dim`](Tensor::dim) | `size` | `shape[axis]` |
//! | select by mask | [`where_`](Tensor::where_), [`masked_fill`](Tensor::masked_fill), [`masked_select`](Tensor::masked_select) | `where`, `masked_fill`, `masked_select` | `where`, `x[mask]` |
//! | limit | [`clamp`](Tensor::clamp), [`maximum`](Tensor::maximum) | `clamp`, `maximum` | `clip`, `maximum` |
//! | convert elements | [`cast`](Tensor::cast): `x.cast::<f64>()` | `to`, `type` | `astype` |
//! | compare | [`equal`](Tensor::equal), [`gt_scalar`](Tensor::gt_scalar), [`allclose`](Tensor::allclose) | `eq`, `gt`, `allclose` | `equal`, `greater`, `allclose` |
//! | reduce masks | [`any_axes`](Tensor::any_axes), [`all_axes`](Tensor::all_axes), [`nonzero`](Tensor::nonzero) | `any`, `all`, `nonzero` | `any`, `all`, `argwhere` |
//! | ranges | [`arange`](Tensor::arange), [`arange_step`](Tensor::arange_step), [`linspace`](Tensor::linspace) | `arange`, `linspace` | the same |
//! | fill | [`full`](Tensor::full), [`full_like`](Tensor::full_like), [`eye`](Tensor::eye) | the same | the same |
//! | grids, one-hot | [`meshgrid`](Tensor::meshgrid), [`one_hot`](Tensor::one_hot) | `meshgrid("ij")`, `one_hot` | `meshgrid` |
//! | random numbers | [`rand`](Tensor::rand), [`randn`](Tensor::randn), [`bernoulli`](Tensor::bernoulli), [`multinomial`](Tensor::multinomial) | the same | `random` |
//! | random seed | [`seed`](crate::seed()), [`Generator::run`](crate::Generator::run) | `manual_seed`, `Generator` | `default_rng` |
//! | multiply | [`matmul`](Tensor::matmul), [`einsum`](Tensor::einsum), [`outer`](Tensor::outer) | the same | the same |
#![cfg_attr(
    feature = "linalg",
    doc = "| solve | [`linalg`](crate::linalg): `solve`, `inv`, `slogdet`, `cholesky` | `linalg` | `linalg` |",
    doc = "| solve by a factor | [`solve_triangular`](crate::linalg::solve_triangular) | `linalg.solve_triangular` | |",
    doc = "| solve by a Cholesky factor | [`cholesky_solve`](crate::linalg::cholesky_solve) | `cholesky_solve` | |",
    doc = "| eigenvalues of symmetric matrices | [`eigh`](crate::linalg::eigh) | `linalg.eigh` | `linalg.eigh` |",
    doc = "| QR factors | [`qr`](crate::linalg::qr) | `linalg.qr` | `linalg.qr` |",
    doc = "| singular values | [`svd`](crate::linalg::svd) | `linalg.svd(full_matrices=False)` | `linalg.svd` |",
    doc = "| least squares | [`lstsq`](crate::linalg::lstsq) | `linalg.lstsq` | `linalg.lstsq` |",
    doc = "| pseudoinverse | [`pinv`](crate::linalg::pinv) | `linalg.pinv(rtol=)` | `linalg.pinv` |"
)]
//! | fixed points, roots, differential equations | [`solvers`](crate::solvers): `fixed_point`, `custom_root`, `odeint` | torchdiffeq | `optimize`, `solve_ivp` |
//! | classify | [`cross_entropy`](Tensor::cross_entropy), [`cross_entropy_with`](Tensor::cross_entropy_with) | `cross_entropy` | |
//! | other losses | [`mse_loss`](Tensor::mse_loss), [`l1_loss`](Tensor::l1_loss), [`huber_loss`](Tensor::huber_loss), [`kl_div`](Tensor::kl_div) | the same; `kl_div` by `batchmean` | |
//! | losses of probabilities | [`nll_loss`](Tensor::nll_loss), [`binary_cross_entropy`](Tensor::binary_cross_entropy), `.._with_logits` | the same | |
//! | another reduction | `.._with`: [`LossReduction`](crate::LossReduction) | `reduction=` | |
//! | add up tensors | `tensors.iter().sum()` | `sum(tensors)` | `sum(arrays)` |
//! | compare in tests | [`assert_close!`](crate::assert_close) | `testing.assert_close` | `testing.assert_allclose` |
//! | the same tensor | [`is_same`](Tensor::is_same) | `is` | `is` |
#![cfg_attr(
    feature = "nn",
    doc = "| layers | [`nn`](crate::nn): `Linear`, `Conv1d`, `BatchNorm1d`, `GroupNorm`, `RmsNorm`, `MultiheadAttention`, `Sequential`, `Relu` | `nn` | |",
    doc = "| loop over parameters | [`Module::parameters`](crate::nn::Module::parameters), [`AnyTensor`](crate::AnyTensor) with `grad`, `norm` | `parameters` | |",
    doc = "| optimize | [`optim`](crate::optim): `Sgd`, `Adam`, `AdamW`, `RmsProp`, your own [`Rule`](crate::optim::Rule) | `optim` | |",
    doc = "| change the learning rate | [`schedule`](crate::optim::schedule): `Steps`, `Cosine`, `warm_up`, `then` | `optim.lr_scheduler` | |",
    doc = "| batches | [`DataLoader`](crate::data::DataLoader) | `utils.data.DataLoader` | |"
)]
#![cfg_attr(
    feature = "safetensors",
    doc = "| files | [`SafeTensors`](crate::safetensors::SafeTensors) | `safetensors.torch` | `safetensors.numpy` |"
)]
#![cfg_attr(
    feature = "npy",
    doc = "| NumPy's files | [`npy`](crate::npy) | | `load`, `save`, `savez` |"
)]
//! | print | [`set_print_options`](crate::set_print_options), [`display`](Tensor::display) | `set_printoptions` | `set_printoptions` |
//! | name axes | `1`, `-1`, `[0, 2]` or `..`: [`IntoAxes`](crate::IntoAxes) | `dim=` | `axis=` |
//!
//! A search of this documentation for another library's name finds the method too.

#[cfg(doc)]
use crate::Tensor;
