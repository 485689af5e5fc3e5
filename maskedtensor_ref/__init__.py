"""MaskedTensor: a tensor that knows which of its elements are specified."""

from .policy import mask_policy
from .tensor import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "mask_policy", "masked_tensor"]
