"""Entries of torch's operator database without a rule, each with its reason: this list only shrinks."""

STRUCTURE = "its result is a factor or a fit, whose meaning with missing elements is not defined"
INTERNAL = "an internal of torch that users do not call"
LAYER = "a layer that is not taught"
DEVICE = "runs on a GPU only"
SIZES = "changes the shape in place, or reads memory outside the tensor"
MASKED = "a composite of torch.masked, which has masks of its own"
PLAIN = "torch itself lacks the gradient of the plain, sparse result; test_rules.py tests the conversion"
OPEN = "no rule yet"

NO_RULE = {
    "to_sparse": PLAIN,
    **dict.fromkeys(
        [
            "lu_unpack",
            "ormqr",
            "svd_lowrank",
            "pca_lowrank",
            "linalg.ldl_solve",
            "linalg.lstsq",
            "linalg.lstsq.grad_oriented",
            "linalg.tensorinv",
            "linalg.tensorsolve",
        ],
        STRUCTURE,
    ),
    **dict.fromkeys(
        [
            "linspace.tensor_overload",
            "logspace.tensor_overload",
            "_softmax_backward_data",
            "native_group_norm",
            "native_layer_norm",
            "native_batch_norm",
            "_native_batch_norm_legit",
            "_batch_norm_with_update",
            "_upsample_bilinear2d_aa",
            "max_pool2d_with_indices_backward",
            "torch._scaled_mm_v2",
            "torch._scaled_mm",
            "_unsafe_masked_index",
            "_unsafe_masked_index_put_accumulate",
            "_chunk_cat",
            "native_dropout_backward",
            "hash_tensor",
            "_segment_reduce.lengths",
            "_segment_reduce.offsets",
            "nonzero_static",
        ],
        INTERNAL,
    ),
    **dict.fromkeys(
        [
            "nn.functional.linear_cross_entropy",
            "nn.functional.linear_cross_entropy.chunked",
            "nn.functional.linear_cross_entropy.chunked_none",
            "nn.functional.multi_margin_loss",
            "nn.functional.multilabel_margin_loss",
            "nn.functional.fractional_max_pool2d",
            "nn.functional.fractional_max_pool3d",
            "nn.functional.max_unpool1d",
            "nn.functional.max_unpool1d.grad",
            "nn.functional.max_unpool2d",
            "nn.functional.max_unpool2d.grad",
            "nn.functional.max_unpool3d",
            "nn.functional.max_unpool3d.grad",
            "nn.functional.triplet_margin_with_distance_loss",
            "nn.functional.embedding_bag",
            "nn.functional.multi_head_attention_forward",
            "nn.functional.ctc_loss",
        ],
        LAYER,
    ),
    **dict.fromkeys(
        [
            "jiterator_unary",
            "jiterator_binary",
            "jiterator_4inputs_with_extra_args",
            "jiterator_binary_return_by_ref",
            "jiterator_2inputs_2outputs",
        ],
        DEVICE,
    ),
    **dict.fromkeys(["resize_", "resize_as_", "as_strided.partial_views"], SIZES),
    **dict.fromkeys(["masked.var", "masked.std", "masked.normalize"], MASKED),
    **dict.fromkeys(
        [
            "stft",
            "istft",
            "gradient",
            "unravel_index",
            "multinomial",
            "histogram",
            "histogramdd",
            "trapz",
            "trapezoid",
            "cumulative_trapezoid",
            "index_reduce.mean",
            "scatter_reduce.mean",
            "searchsorted",
        ],
        OPEN,
    ),
}

NOTHING_TO_MASK = [
    "arange",
    "broadcast_shapes",
    "sparse.sampled_addmm",
    "sparse.mm.reduce",
    "linspace",
    "logspace",
    "randn",
    "randint",
    "ones",
    "zeros",
    "full",
    "empty_strided",
    "empty",
    "eye",
    "empty_permuted",
    "scalar_tensor",
    "normal.number_mean",
    "triu_indices",
    "tril_indices",
    "signal.windows.hamming",
    "signal.windows.hann",
    "signal.windows.bartlett",
    "signal.windows.blackman",
    "signal.windows.cosine",
    "signal.windows.exponential",
    "signal.windows.gaussian",
    "signal.windows.kaiser",
    "signal.windows.general_cosine",
    "signal.windows.general_hamming",
    "signal.windows.nuttall",
    "torch.ops.aten._flash_attention_forward",
    "torch.ops.aten._efficient_attention_forward",
    "nn.functional.batch_norm.without_cudnn",
]

UNINITIALISED = {"empty_like", "new_empty", "new_empty_strided"}  # their values are whatever memory held
