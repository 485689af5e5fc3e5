"""Contractions: products, then a sum; a result is specified where some term has all its factors."""

import torch
import torch.nn.functional as F
from torch import Tensor

from .elementwise import elementwise
from .normalisation import softmax_over
from .pair import Pair, whole
from .reductions import vector_norm

add, mul = elementwise(0), elementwise(1)


def product(func, pairs, call):
    """call on the data read as 0 where missing, and on the masks as 0 and 1, which counts the complete terms.

    Args:
        pairs: the factors. call: from a list of tensors to a tensor.
    """
    if not any(isinstance(p, Pair) for p in pairs):
        return call(list(pairs))
    pairs = [whole(p).dense() for p in pairs]
    data = call([p.filled(0) for p in pairs])
    if any(p.data.numel() == 0 for p in pairs):  # a sum of no terms is zero, and nothing is missing
        return Pair(data, torch.ones((), dtype=torch.bool, device=data.device).expand(data.shape))
    terms = call([p.mask.to(torch.float32) for p in pairs])
    return Pair(data, terms > 0.5)  # whole numbers, up to what a fast algorithm of convolution rounds


def contraction(func, *args, **kwargs):
    """matmul and its kin: the first two operands are the factors, the rest are options."""
    names = [k for k in ("input", "self", "other", "mat2", "vec", "tensor", "vec2", "x", "y") if k in kwargs]
    factors = [*args[:2], *(kwargs.pop(k) for k in names)]
    return product(func, factors, lambda ts: func(*ts, *args[2:], **kwargs))


def reflected(func, x, other):
    """other @ x."""
    return product(func, [x, other], lambda ts: func(*ts))


def einsum(func, equation, *operands):
    """Any number of factors."""
    if not isinstance(equation, str):
        raise NotImplementedError(
            "einsum with sublists of numbers: write the equation as a string, such as 'ij,jk->ik'"
        )
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = operands[0]
    return product(func, operands, lambda ts: func(equation, *ts))


def chained(func, *matrices, tensors=None):
    """multi_dot and chain_matmul, left to right."""
    if tensors is not None:
        matrices = tensors
    elif len(matrices) == 1 and isinstance(matrices[0], (tuple, list)):
        matrices = matrices[0]
    out = matrices[0]
    for m in matrices[1:]:
        out = product(func, [out, m], lambda ts: torch.matmul(*ts))
    return out


def plus_product(multiply):
    """The rule of addmm and its kin: beta * input + alpha * product; the sum is elementwise."""

    def rule(func, x, *factors, beta=1, alpha=1, **named):
        factors = [*factors, *(named[k] for k in sorted(named))]  # mat1 and mat2, mat and vec, batch1 and batch2
        out = product(func, factors, lambda ts: multiply(*ts))
        if not (out.data.is_floating_point() or out.data.is_complex()):
            number = bool if out.data.dtype == torch.bool else int
            beta, alpha = number(beta), number(alpha)
        if alpha != 1:
            out = mul(torch.mul, out, alpha)
        if beta == 0:
            return out
        return add(torch.add, x if beta == 1 else mul(torch.mul, x, beta), out)

    return rule


def batches_summed(a, b):
    """addbmm's product."""
    return torch.bmm(a, b).sum(0, dtype=a.dtype)


def linear(func, x, weight, bias=None):
    """x @ weight.T, plus the bias wherever the product is specified."""
    out = product(func, [x, weight], lambda ts: F.linear(*ts))
    return out if bias is None else add(torch.add, out, bias)


def bilinear(func, input1, input2, weight, bias=None):
    """input1 * weight * input2 summed, plus the bias."""
    out = product(func, [input1, input2, weight], lambda ts: F.bilinear(*ts))
    return out if bias is None else add(torch.add, out, bias)


def convolution(func, x, weight, bias=None, *args, **kwargs):
    """A sum of products over a window: specified where the window holds a specified element; padding holds none."""
    call = lambda ts: func(*ts, None, *args, **kwargs)
    out = product(func, [x, weight], call)
    if isinstance(out, Pair) and "transpose" in func.__name__:  # between strides nothing is summed, so nothing missing
        every = call([torch.ones(t.shape, device=out.data.device) for t in (x, weight)])
        out = Pair(out.data, out.mask | (every < 0.5))
    if bias is None:
        return out
    spatial = weight.shape
    shape = (-1, *(1,) * (len(spatial) - 2))
    bias = Pair(bias.data.reshape(shape), bias.mask.reshape(shape)) if isinstance(bias, Pair) else bias.reshape(shape)
    return add(torch.add, out, bias)


def _both(a, b):
    """Two operands under the mask of the elements that both specify, broadcast."""
    a, b = whole(a).dense(), whole(b).dense()
    mask = torch.logical_and(*torch.broadcast_tensors(a.mask, b.mask))
    return Pair(a.data.expand(mask.shape), mask), Pair(b.data.expand(mask.shape), mask)


def cosine_similarity(func, x1, x2, dim=1, eps=1e-8):
    """Over the coordinates that both specify."""
    a, b = _both(x1, x2)
    return Pair(func(a.filled(0), b.filled(0), dim, eps), a.mask.any(dim))


def distances(func, a, b, p=2.0, compute_mode=None):
    """cdist: the p-norm over the coordinates that both specify."""
    a, b = whole(a).dense(), whole(b).dense()
    a, b = _both(Pair(a.data.unsqueeze(-2), a.mask.unsqueeze(-2)), Pair(b.data.unsqueeze(-3), b.mask.unsqueeze(-3)))
    difference = Pair(a.filled(0) - b.filled(0), a.mask)
    return vector_norm(func, difference, p, -1)


def own_distances(func, x, p=2.0):
    """pdist: cdist of the rows with each other, above the diagonal."""
    out = distances(func, x, x, p)
    n = out.data.shape[0]
    rows, columns = torch.triu_indices(n, n, 1, device=out.data.device)
    return Pair(out.data[rows, columns], out.mask[rows, columns])


def attention(func, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """softmax(query @ key.T * scale) @ value, in which an unspecified score takes no weight.

    attn_mask follows torch: bool with True for what takes part, or numbers to add.
    """
    if enable_gqa:
        raise NotImplementedError(
            "scaled_dot_product_attention with enable_gqa: repeat the heads of key and value first"
        )
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = product(func, [query, key], lambda ts: ts[0] @ ts[1].transpose(-2, -1))
    scores = Pair(scores.data * scale, scores.mask)
    if is_causal:
        attn_mask = torch.ones(scores.data.shape[-2:], dtype=torch.bool, device=scores.data.device).tril()
    if isinstance(attn_mask, Tensor) and attn_mask.dtype == torch.bool:
        mask = scores.mask & attn_mask
        scores = Pair(scores.data.expand(mask.shape), mask)
    elif attn_mask is not None:
        scores = add(torch.add, scores, attn_mask)
    weights = softmax_over(scores, -1)
    if dropout_p:
        weights = Pair(F.dropout(weights.data, dropout_p), weights.mask)
    return product(func, [weights, value], lambda ts: torch.matmul(*ts))
