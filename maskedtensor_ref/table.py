"""Which operation is of which class: the one place to look, and the one place to add to.

A row is a rule and the names of its operations. A name without a dot is looked for in torch, torch.Tensor,
torch.special, torch.linalg and torch.nn.functional, with its dunder, reflected and in-place spellings; a prefix such
as F., fft. or Tensor. names one of QUALIFIED.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from . import (
    contraction,
    gradients,
    layers,
    movement,
    normalisation,
    reductions,
    scans,
    selection,
    sorts,
    storage,
    whole,
    writing,
)
from .elementwise import elementwise
from .pair import highest, lowest
from .reductions import reduction
from .text import number, numbers

FALSE, TRUE, INF = False, True, float("inf")


OPS = [
    # Elementwise, with what a missing operand reads as under mask_policy("union").
    (elementwise(0), "add sub subtract rsub __radd__ __rsub__ hypot bitwise_or bitwise_xor __ror__ __rxor__ gcd"),
    (elementwise(1), "mul multiply div divide true_divide __rmul__ __rdiv__ __rtruediv__ lcm"),
    (elementwise(-1), "bitwise_and __rand__"),
    (elementwise(FALSE), "logical_or logical_xor"),
    (elementwise(TRUE), "logical_and"),
    (elementwise(lowest), "maximum fmax"),
    (elementwise(highest), "minimum fmin"),
    (elementwise(-INF), "logaddexp logaddexp2"),
    (
        elementwise(),
        "abs absolute neg negative positive sign sgn signbit ceil floor round trunc fix frac "
        "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal "
        "sin cos tan asin acos atan arcsin arccos arctan sinh cosh tanh asinh acosh atanh arcsinh arccosh arctanh sinc "
        "atan2 arctan2 deg2rad rad2deg angle real imag conj conj_physical resolve_conj resolve_neg polar complex "
        "erf erfc erfinv erfcx lgamma gammaln digamma psi polygamma mvlgamma multigammaln i0 i0e i1 i1e ndtr "
        "ndtri log_ndtr "
        "entr xlogy xlog1py zeta igamma igammac gammainc gammaincc expit logit sigmoid "
        "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 "
        "modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 "
        "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
        "hermite_polynomial_h "
        "hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t "
        "shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w "
        "pow float_power __rpow__ floor_divide __floordiv__ __rfloordiv__ fmod remainder __rmod__ ldexp "
        "frexp copysign nextafter "
        "heaviside bitwise_not bitwise_left_shift bitwise_right_shift __rlshift__ __rrshift__ "
        "__lshift__ __rshift__ __and__ __or__ __xor__ __invert__ __pow__ __mod__ __truediv__ __div__ __pos__ "
        "__neg__ __abs__ "
        "clamp clip clamp_min clamp_max nan_to_num lerp addcmul addcdiv "
        "eq ne not_equal lt less le less_equal gt greater ge greater_equal isclose logical_not "
        "isnan isinf isfinite isposinf isneginf isreal "
        "relu F.relu6 F.elu F.selu F.celu F.leaky_relu F.gelu F.silu F.mish F.hardswish F.hardsigmoid "
        "F.hardtanh F.hardshrink "
        "F.softshrink F.tanhshrink F.softplus F.softsign F.logsigmoid F.threshold F.rrelu torch.selu "
        "torch.celu torch.rrelu "
        "torch.threshold torch.hardshrink torch.relu_ F.sigmoid F.tanh Tensor.hardshrink "
        "dropout F.dropout1d F.dropout2d F.dropout3d alpha_dropout feature_alpha_dropout feature_dropout",
    ),
    (layers.drawn_elementwise, "bernoulli poisson torch.normal"),
    # Reductions, with what a missing element reads as.
    (reduction(0), "sum"),
    (reduction(1, reductions.prod_over), "prod"),
    (reduction(lowest), "amax"),
    (reduction(highest), "amin"),
    (reduction(FALSE), "any"),
    (reduction(TRUE), "all"),
    (reductions.logsumexp, "logsumexp"),
    (reduction(0, reductions.count_nonzero_over), "count_nonzero"),
    (reductions.mean, "mean"),
    (reductions.spread(), "var"),
    (reductions.spread(root=True), "std"),
    (reductions.spread(with_mean=True), "var_mean"),
    (reductions.spread(root=True, with_mean=True), "std_mean"),
    (reductions.nansum, "nansum"),
    (reductions.nanmean, "nanmean"),
    (reductions.extreme(largest=True), "max"),
    (reductions.extreme(largest=False), "min"),
    (reductions.position_of_extreme(largest=True), "argmax"),
    (reductions.position_of_extreme(largest=False), "argmin"),
    (reductions.both_extremes, "aminmax"),
    (reductions.median, "median"),
    (reductions.nanmedian, "nanmedian"),
    (reductions.mode, "mode"),
    (reductions.quantile(ignoring_nan=False), "quantile"),
    (reductions.quantile(ignoring_nan=True), "nanquantile"),
    (reductions.norm, "norm"),
    (reductions.vector_norm, "vector_norm"),
    (reductions.matrix_norm, "matrix_norm"),
    (reductions.trace, "trace"),
    (reductions.sum_to_size, "sum_to_size"),
    (reductions.between, "dist F.pairwise_distance torch.pairwise_distance"),
    (reductions.equal, "equal allclose"),
    (reductions.has_true(reduction(FALSE)), "Tensor._is_any_true torch._is_any_true"),
    (reductions.has_true(reduction(TRUE)), "Tensor._is_all_true torch._is_all_true"),
    (normalisation.correlated(correlation=False), "cov"),
    (normalisation.correlated(correlation=True), "corrcoef"),
    # Movement.
    (
        movement.movement,
        "reshape transpose swapaxes swapdims permute movedim moveaxis t adjoint unsqueeze squeeze "
        "flatten ravel expand "
        "broadcast_to select narrow split split_with_sizes unsafe_split unsafe_split_with_sizes chunk "
        "unsafe_chunk tensor_split "
        "hsplit vsplit dsplit unbind diagonal linalg.diagonal flip fliplr flipud roll rot90 repeat tile "
        "repeat_interleave "
        "index_select gather take take_along_dim Tensor.unfold __getitem__ Tensor.__reversed__ torch.unfold_copy "
        "torch.alias_copy torch.diagonal_copy torch.expand_copy torch.narrow_copy "
        "torch.permute_copy "
        "torch.select_copy torch.slice_copy torch.split_copy torch.split_with_sizes_copy torch.squeeze_copy "
        "torch.t_copy "
        "torch.transpose_copy torch.unbind_copy torch.unsqueeze_copy fft.fftshift "
        "fft.ifftshift combinations Tensor.narrow_copy F.channel_shuffle torch.channel_shuffle "
        "torch.native_channel_shuffle torch.slice_inverse",
    ),
    (movement.viewed, "view torch.view_copy"),
    (movement.movement_of_strides, "unflatten"),
    (movement.restrided, "as_strided torch.as_strided_copy"),
    (movement.restrided_scatter, "as_strided_scatter"),
    (movement.one_hot, "F.one_hot"),
    (movement.complex_parts, "view_as_real"),
    (movement.complex_whole, "view_as_complex"),
    (movement.moved_like, "view_as expand_as reshape_as"),
    (movement.movement_of_floats, "pixel_shuffle pixel_unshuffle F.upsample_nearest"),
    (
        movement.movement_with_zeros,
        "tril triu diag diag_embed diagflat F.pad torch.constant_pad_nd F.unfold F.fold torch._C._nn.pad",
    ),
    (
        movement.interpolation,
        "F.interpolate F.upsample F.upsample_bilinear F.grid_sample grid_sampler grid_sampler_2d grid_sampler_3d",
    ),
    (movement.joining, "cat concat concatenate stack hstack vstack dstack row_stack column_stack"),
    (
        movement.each,
        "broadcast_tensors meshgrid _VF.meshgrid _VF.broadcast_tensors atleast_1d atleast_2d atleast_3d cartesian_prod",
    ),
    (movement.blocks, "block_diag"),
    (movement.placing(3, "src", "source", "value"), "scatter index_copy index_fill"),
    (movement.placed_by_index, "index_put"),
    (movement.placing(1, "src"), "select_scatter slice_scatter diagonal_scatter"),
    (movement.placing(2, "source"), "masked_scatter"),
    (movement.placed_by_position, "put"),
    (movement.masked_selected, "masked_select"),
    (movement.windows, "diff"),
    (movement.embedding, "F.embedding"),
    # Selection, and what counts or gathers elements.
    (selection.where, "where"),
    (selection.masked_fill, "masked_fill"),
    (selection.nonzero, "nonzero argwhere"),
    (selection.unique, "unique unique_consecutive"),
    (selection.counted, "histc bincount"),
    (selection.gathered(selection.zero), "index_add scatter_add"),
    (selection.gathered(selection.identity_of_reduce), "scatter_reduce index_reduce"),
    # Normalisation.
    (normalisation.normalisation(torch.softmax), "softmax torch._softmax"),
    (normalisation.normalisation(torch._safe_softmax), "torch._safe_softmax"),
    (normalisation.normalisation(torch.log_softmax), "log_softmax torch._log_softmax"),
    (normalisation.normalisation(lambda data, dim: torch.softmax(-data, dim), INF), "F.softmin"),
    (normalisation.layer_norm, "F.layer_norm torch.layer_norm"),
    (normalisation.rms_norm, "F.rms_norm torch.rms_norm"),
    (normalisation.group_norm, "F.group_norm torch.group_norm"),
    (normalisation.instance_norm, "F.instance_norm"),
    (normalisation.batch_norm, "F.batch_norm"),
    (normalisation.local_response_norm, "F.local_response_norm"),
    (normalisation.normalize, "F.normalize"),
    (normalisation.renorm, "renorm"),
    # Contraction.
    (contraction.contraction, "matmul mm bmm mv dot vdot inner outer ger kron tensordot vecdot __matmul__"),
    (contraction.reflected, "__rmatmul__"),
    (contraction.einsum, "einsum"),
    (contraction.chained, "chain_matmul multi_dot"),
    (contraction.plus_product(torch.mm), "addmm"),
    (contraction.plus_product(torch.mv), "addmv"),
    (contraction.plus_product(torch.outer), "addr"),
    (contraction.plus_product(torch.bmm), "baddbmm"),
    (contraction.plus_product(contraction.batches_summed), "addbmm"),
    (contraction.linear, "F.linear"),
    (contraction.bilinear, "F.bilinear torch.bilinear"),
    (contraction.convolution, "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"),
    (contraction.cosine_similarity, "F.cosine_similarity torch.cosine_similarity"),
    (contraction.distances, "cdist"),
    (contraction.own_distances, "pdist"),
    (contraction.attention, "F.scaled_dot_product_attention"),
    # Scans and sorts.
    (scans.scan(0), "cumsum"),
    (scans.scan(1), "cumprod"),
    (scans.scan(-INF), "logcumsumexp"),
    (scans.running_extreme(largest=True), "cummax"),
    (scans.running_extreme(largest=False), "cummin"),
    (sorts.sort, "sort"),
    (sorts.argsort, "argsort"),
    (sorts.msort, "msort"),
    (sorts.topk, "topk"),
    (sorts.kthvalue, "kthvalue"),
    (sorts.searchsorted, "bucketize searchsorted"),
    (sorts.isin, "isin"),
    # Layers and losses.
    (
        layers.mean_pool,
        "F.avg_pool1d F.avg_pool2d F.avg_pool3d F.adaptive_avg_pool1d F.adaptive_avg_pool2d "
        "F.adaptive_avg_pool3d torch.avg_pool1d torch.adaptive_avg_pool1d",
    ),
    (
        layers.max_pool,
        "F.max_pool1d F.max_pool2d F.max_pool3d F.max_pool1d_with_indices F.max_pool2d_with_indices "
        "F.max_pool3d_with_indices F.adaptive_max_pool1d F.adaptive_max_pool2d F.adaptive_max_pool3d "
        "F.adaptive_max_pool1d_with_indices F.adaptive_max_pool2d_with_indices "
        "F.adaptive_max_pool3d_with_indices torch.max_pool1d torch.max_pool2d torch.max_pool3d",
    ),
    (layers.power_pool, "F.lp_pool1d F.lp_pool2d F.lp_pool3d"),
    (layers.glu, "F.glu"),
    (layers.prelu, "prelu"),
    (
        layers.loss,
        "F.l1_loss F.mse_loss F.smooth_l1_loss F.huber_loss F.binary_cross_entropy F.binary_cross_entropy_with_logits "
        "F.kl_div F.poisson_nll_loss F.gaussian_nll_loss F.soft_margin_loss F.hinge_embedding_loss "
        "F.margin_ranking_loss",
    ),
    (layers.nll_loss, "F.nll_loss"),
    (layers.cross_entropy, "F.cross_entropy"),
    (layers.multilabel_soft_margin_loss, "F.multilabel_soft_margin_loss"),
    (layers.cosine_embedding_loss, "F.cosine_embedding_loss"),
    (layers.triplet_margin_loss, "F.triplet_margin_loss"),
    # What needs every element.
    (whole.transform(-1), "fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft"),
    (whole.transform((-2, -1)), "fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2 fft.hfft2 fft.ihfft2"),
    (whole.transform(None), "fft.fftn fft.ifftn fft.rfftn fft.irfftn fft.hfftn fft.ihfftn"),
    (
        whole.matrices(2),
        "det logdet slogdet inverse inv inv_ex pinverse pinv cholesky cholesky_ex cholesky_inverse "
        "cholesky_solve eig eigvals eigh eigvalsh svd svdvals qr matrix_exp matrix_power lu lu_factor "
        "lu_factor_ex lu_solve ldl_factor ldl_factor_ex solve_triangular triangular_solve cond "
        "geqrf solve solve_ex matrix_rank",
    ),
    (whole.matrices(2, 1), "householder_product orgqr"),
    (whole.matrices(1), "vander"),
    (whole.along(-1), "linalg.cross"),
    (whole.along(None), "torch.cross Tensor.cross"),
    # Storage: the same elements elsewhere.
    (storage.to_layout(torch.strided), "to_dense"),
    (storage.to_layout(torch.sparse_coo), "to_sparse to_sparse_coo"),
    (storage.to_layout(torch.sparse_csr), "to_sparse_csr"),
    (
        storage.keeping_mask,
        "clone detach to type type_as cpu cuda half bfloat16 float double int long short char byte bool cfloat "
        "cdouble chalf requires_grad_ Tensor.detach_ pin_memory ",
    ),
    (storage.contiguous, "contiguous is_contiguous"),
    (storage.stored_values, "Tensor.values Tensor._values"),
    (storage.stored_indices, "Tensor.indices Tensor._indices Tensor.crow_indices Tensor.col_indices Tensor._nnz"),
    (storage.coalesce, "Tensor.coalesce"),
    (storage.sparse_mask, "Tensor.sparse_mask"),
    (storage.sparse_coo_tensor, "torch.sparse_coo_tensor"),
    (storage.shared_memory, "share_memory_"),
    # Writing.
    (writing.assign, "__setitem__"),
    (writing.copy, "copy_"),
    (writing.fill, "fill_ zero_"),
    (writing.filled_with, "torch.fill"),
    (
        writing.drawn,
        "normal_ uniform_ random_ exponential_ geometric_ log_normal_ cauchy_ bernoulli_ "
        "init.normal_ init.uniform_ init.constant_ init.kaiming_uniform_",
    ),
    (writing.like, "zeros_like ones_like full_like empty_like rand_like randn_like randint_like"),
    (writing.new, "new_zeros new_ones new_full new_empty new_tensor new_empty_strided new"),
    # Asked of the data, or of autograd.
    (
        storage.on_data,
        "dim ndimension size numel nelement is_floating_point is_complex is_signed element_size stride storage_offset "
        "get_device is_same_size is_pinned is_shared is_conj is_neg is_inference dim_order "
        "data_ptr untyped_storage storage result_type can_cast is_coalesced sparse_dim dense_dim is_tensor is_storage",
    ),
    (storage.on_values, "retain_grad "),
    (lambda func, *args: False, "torch._has_compatible_shallow_copy_type"),  # so nn.Module.to makes a new parameter
    (gradients.backward, "Tensor.backward"),
    (lambda func, x: bool(number(x)), "is_nonzero"),
    (lambda func, x: number(x), "Tensor.item Tensor.__bool__ Tensor.__float__ Tensor.__int__ Tensor.__complex__"),
    (lambda func, x: numbers(x), "Tensor.tolist"),
    (lambda func, x: len(x.shape) and x.shape[0], "Tensor.__len__"),
]
PROPERTIES = {
    movement.movement: "T mT H mH",
    elementwise(): "real imag",
    storage.keeping_mask: "data",
    storage.on_data: "is_cpu is_cuda is_meta is_mps is_xpu is_mkldnn is_quantized is_leaf itemsize nbytes output_nr "
    " is_nested is_mtia is_ipu is_xla is_vulkan is_maia ",
    storage.on_values: "grad_fn _version retains_grad _backward_hooks is_leaf",
    gradients.grad: "grad",
}
ATEN = {  # names that only torch.ops.aten has
    movement.movement_of_strides: "_unsafe_view",
    movement.movement: "slice _reshape_alias index slice_backward select_backward unfold_backward alias",
    movement.movement_with_zeros: "im2col col2im",
}
SPACES = {"torch": torch, "Tensor": Tensor, "special": torch.special, "linalg": torch.linalg, "F": F}
QUALIFIED = SPACES | {"fft": torch.fft, "init": torch.nn.init, "_VF": torch._VF, "torch._C._nn": torch._C._nn}
NEVER_IN_PLACE = {
    movement.movement,
    movement.viewed,
    movement.movement_of_strides,
    movement.restrided,
    movement.moved_like,
    storage.keeping_mask,
    storage.on_data,
    writing.fill,
    writing.copy,
    writing.drawn,
    writing.like,
    writing.new,
}


def _spellings():
    """Every function that torch may hand over, and its rule."""
    rules = {}
    for rule, names in OPS:
        for name in names.split():
            space, _, short = name.rpartition(".")
            spaces = [QUALIFIED[space]] if space else SPACES.values()
            for home in spaces:
                for spelling in {short, f"__{short}__"}:
                    f = getattr(home, spelling, None)
                    if callable(f) and not isinstance(f, type):
                        rules.setdefault(f, rule)
                        if rule not in NEVER_IN_PLACE:
                            _in_place(rules, rule, home, short, f)
    for rule, names in PROPERTIES.items():
        for name in names.split():
            if hasattr(Tensor, name):
                rules[getattr(Tensor, name).__get__] = rule
    rules[Tensor.grad.__set__] = gradients.set_grad
    rules[Tensor.grad.__delete__] = lambda func, x: func(x.data)
    rules[torch.autograd.grad] = gradients.gradients
    rules[torch.autograd.backward] = gradients.backward_of_many
    return rules


def _in_place(rules, rule, home, short, base):
    bare = short.strip("_")
    for spelling in (short + "_", f"__i{bare}__"):
        f = getattr(home, spelling, None)
        if callable(f) and not short.endswith("_"):
            rules.setdefault(f, writing.in_place(rule, base))


RULES = _spellings()
BY_NAME = {name: rule for rule, names in ATEN.items() for name in names.split()}
for _f, _rule in RULES.items():
    if _f.__name__ not in ("__get__", "__set__", "__delete__"):
        BY_NAME.setdefault(_f.__name__, _rule)


def rule_of(func):
    """The rule of torch.ops.aten.add and torch.ops.aten.add.Tensor, found by name; other functions have none.

    Raises:
        NotImplementedError: MaskedTensor has no rule for this function.
    """
    packet = getattr(func, "overloadpacket", func)
    if isinstance(packet, torch._ops.OpOverloadPacket) and packet.__name__ in BY_NAME:
        return RULES.setdefault(func, BY_NAME[packet.__name__])
    raise NotImplementedError(
        f"MaskedTensor has no rule for {full_name(func)}: read the missing elements as a number with "
        "m.to_tensor(value), or add a row to maskedtensor_ref.table.OPS"
    )


def full_name(func):
    """A function's name as a user writes it."""
    owner = getattr(func, "__self__", None)
    if getattr(func, "__name__", "") in ("__get__", "__set__", "__delete__"):
        return f"Tensor.{getattr(owner, '__name__', owner)}"
    return torch.overrides.resolve_name(func) or getattr(func, "__name__", str(func))
