"""Which rule decides when the operands of an elementwise operation specify different elements."""

from contextlib import contextmanager
from contextvars import ContextVar

POLICIES = {
    "match": "the masks must be equal after broadcasting, else ValueError (PyTorch's documented rule, the default)",
    "intersection": "a result is specified where every operand specifies it (numpy.ma's rule)",
    "union": "a result is specified where any operand specifies it; missing reads as the operation's identity",
}
_policy = ContextVar("mask_policy", default="match")


@contextmanager
def mask_policy(name):
    """Choose, for a block, what an elementwise operation does with unequal masks.

    >>> import torch
    >>> from maskedtensor_ref import mask_policy, masked_tensor
    >>> a = masked_tensor(torch.tensor([1., 2.]), torch.tensor([True, False]))
    >>> b = masked_tensor(torch.tensor([3., 4.]), torch.tensor([True, True]))
    >>> with mask_policy("intersection"):
    ...     (a + b).tolist()
    [4.0, None]
    >>> with mask_policy("union"):
    ...     (a + b).tolist()
    [4.0, 4.0]

    Args:
        name: a key of POLICIES. A plain tensor or number specifies every element, under each of them.
    Raises:
        ValueError: the name is not a policy.
    """
    if name not in POLICIES:
        raise ValueError(f"mask_policy got {name!r}: expected one of {', '.join(map(repr, POLICIES))}")
    token = _policy.set(name)
    try:
        yield
    finally:
        _policy.reset(token)


current = _policy.get
