"""Gradients: how autograd is asked, and what its engine may do with a masked gradient.

Autograd runs on the data, below the mask, so a rule that is right forward is right backward. What leaves through
as_masked_tensor is a masked gradient; the engine then carries it through the layers in front, and everything it does
there arrives in `engine`. That is not the user's arithmetic: accumulation counts missing as zero.
"""

import torch

from .elementwise import operands, under
from .movement import movement
from .pair import Pair, any_of, broadcast, select, whole
from .storage import same_mask


def backward(func, x, gradient=None, *args, **kwargs):
    """x.backward(): nothing flows from what is unspecified in x."""
    if "inputs" in kwargs and kwargs["inputs"] is not None:
        several = kwargs["inputs"] if isinstance(kwargs["inputs"], (tuple, list)) else (kwargs["inputs"],)
        kwargs["inputs"] = [i.data if isinstance(i, Pair) else i for i in several]
    return func(x.data, _root(x, gradient), *args, **kwargs)


def _root(x, gradient):
    """The gradient of x that backward starts from: zero where x is unspecified, or where the gradient is."""
    if gradient is None:
        if x.data.numel() != 1 or (len(x.shape) > 0 and x.shape.numel() != 1):
            raise RuntimeError(
                "grad can be implicitly created only for scalar outputs: "
                f"x has shape {tuple(x.shape)}; reduce it first, or give gradient="
            )
        gradient = torch.ones_like(x.data)
    if isinstance(gradient, Pair):
        if x.places is not None and x.places.same(gradient.places):
            gradient = gradient.filled(0)
        else:
            gradient = gradient.dense().filled(0)
            gradient = gradient if x.places is None else x.places.gather(gradient)
    elif x.places is not None:
        gradient = x.places.gather(gradient.to_dense())
    return select(x.mask, gradient, 0)


def backward_of_many(func, tensors, grad_tensors=None, *args, **kwargs):
    """torch.autograd.backward."""
    tensors = tensors if isinstance(tensors, (tuple, list)) else (tensors,)
    grads = grad_tensors if isinstance(grad_tensors, (tuple, list)) else (grad_tensors,) * len(tensors)
    roots = [_root(t, g) if isinstance(t, Pair) else g for t, g in zip(tensors, grads, strict=True)]
    if kwargs.get("inputs") is not None:
        several = kwargs["inputs"] if isinstance(kwargs["inputs"], (tuple, list)) else (kwargs["inputs"],)
        kwargs["inputs"] = [i.data if isinstance(i, Pair) else i for i in several]
    return func([t.data if isinstance(t, Pair) else t for t in tensors], roots, *args, **kwargs)


def gradients(func, outputs, inputs, grad_outputs=None, *args, **kwargs):
    """torch.autograd.grad: each gradient under the mask of its input."""
    outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    inputs = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    given = grad_outputs if isinstance(grad_outputs, (tuple, list)) else (grad_outputs,) * len(outputs)
    roots = [_root(o, g) if isinstance(o, Pair) else g for o, g in zip(outputs, given, strict=True)]
    found = func(
        [o.data if isinstance(o, Pair) else o for o in outputs],
        [i.data if isinstance(i, Pair) else i for i in inputs],
        roots,
        *args,
        **kwargs,
    )
    return tuple(
        _under_leaf(g, i) if isinstance(i, Pair) and g is not None else g for g, i in zip(found, inputs, strict=True)
    )


def _bare(g):
    """A gradient of data as a plain tensor."""
    pair = getattr(g, "_pair", None)
    return g if pair is None else pair.filled(0)


def grad(func, x):
    """The gradient of a masked leaf, under the leaf's mask."""
    g = func(x.data)
    return None if g is None else _under_leaf(g, x)


def _under_leaf(g, leaf):
    """A gradient of the leaf's data as a Pair: specified where the leaf is, and some path specified the gradient."""
    pair = getattr(g, "_pair", None)
    if pair is None:
        return Pair(g, leaf.mask, leaf.places)
    return Pair(pair.data, leaf.mask & pair.mask, leaf.places)


def set_grad(func, x, g):
    """x.grad = g, or None; what g does not specify stays missing."""
    if isinstance(g, torch.Tensor) and x.places is not None:
        g = x.places.gather(g.to_dense())
    if isinstance(g, Pair):
        if x.places is None:
            g = g.dense()
        elif not x.places.same(g.places):
            g = g.dense()
            g = Pair(x.places.gather(g.data), x.places.gather(g.mask))
        g = g.data if same_mask(g.mask, x.mask) else Enter.dressed(Pair(g.data, g.mask))
    return func(x.data, g)


def accumulate(a, b, alpha=1):
    """The sum of two gradients: missing counts as zero, and what either specifies is specified."""
    a, b = whole(a), whole(b)
    if a.mask is b.mask and a.places is b.places:
        return Pair(torch.add(a.data, b.data, alpha=alpha), a.mask, a.places)
    a, b = a.dense(), b.dense()
    return Pair(torch.add(a.filled(0), b.filled(0), alpha=alpha), a.mask | b.mask)


KEEPING = {"detach", "clone", "alias", "_to_copy", "lift_fresh", "view_as", "contiguous"}
MOVING = {
    "view",
    "_unsafe_view",
    "reshape",
    "_reshape_alias",
    "expand",
    "t",
    "transpose",
    "permute",
    "squeeze",
    "unsqueeze",
    "select",
    "slice",
    "index_select",
    "split",
    "split_with_sizes",
    "unbind",
    "diagonal",
    "narrow",
    "flip",
    "roll",
    "movedim",
}
ELEMENTWISE = {
    "mul",
    "div",
    "neg",
    "pow",
    "tanh_backward",
    "sigmoid_backward",
    "threshold_backward",
    "rsqrt",
    "sqrt",
    "exp",
    "reciprocal",
    "sgn",
    "abs",
    "conj",
    "_conj",
    "gelu_backward",
    "silu_backward",
    "leaky_relu_backward",
}
CREATING = {"empty_like", "zeros_like", "ones_like", "full_like", "new_zeros", "new_empty", "new_empty_strided"}


def engine(name, func, args, kwargs):
    """What the autograd engine does to a masked gradient.

    Accumulation counts missing as zero; elementwise operations, moves and sums keep the mask; any other formula reads
    the missing as zero and gives a plain gradient, which is right in value.

    Returns:
        A Pair or a plain tensor.
    """
    first = args[0] if args else None
    if name == "add":
        return accumulate(*args, **kwargs)
    if name in KEEPING and isinstance(first, Pair):
        data = func(first.data, *args[1:], **kwargs)
        mask = first.mask if data.device == first.mask.device else first.mask.to(data.device)
        return Pair(data, mask, first.places)
    if name == "new_empty_strided" and isinstance(first, Pair) and tuple(args[1]) == tuple(first.shape):
        return Pair(func(first.data, *args[1:], **kwargs), first.mask)
    if name in CREATING and isinstance(first, Pair):
        return func(first.data, *args[1:], **kwargs)
    strided = all(p.places is None for p in operands(args, kwargs))
    if strided and name == "where" and not isinstance(first, Pair):  # what Pair.filled did, backward
        mask = _common(operands(args, kwargs))
        out = func(first, *(a.filled(0) if isinstance(a, Pair) else a for a in args[1:]))
        return under(out, mask.expand(out.shape))
    if strided and name in MOVING and isinstance(first, Pair):
        return movement(func, first, *args[1:], **kwargs)
    if strided and name in ELEMENTWISE:
        mask = _common(operands(args, kwargs))
        out = func(
            *(
                select(mask.expand(a.shape), a.data, 1)
                if isinstance(a, Pair) and a.shape == mask.shape
                else a.filled(1)
                if isinstance(a, Pair)
                else a
                for a in args
            ),
            **kwargs,
        )
        return under(out, mask)
    if strided and name == "sum" and isinstance(first, Pair):
        dims = args[1] if len(args) > 1 and args[1] else ()
        keepdim = args[2] if len(args) > 2 else kwargs.get("keepdim", False)
        return Pair(func(first.filled(0), *args[1:], **kwargs), any_of(first.mask, tuple(dims), keepdim))
    return func(*map(_missing_is_zero, args), **{k: _missing_is_zero(v) for k, v in kwargs.items()})


def _missing_is_zero(a):
    """An argument with every Pair read as a plain strided tensor."""
    if isinstance(a, Pair):
        return a.dense().filled(0)
    return type(a)(map(_missing_is_zero, a)) if isinstance(a, (list, tuple)) else a


def _common(pairs):
    shape = broadcast(*(p.mask.shape for p in pairs))
    mask = pairs[0].mask.expand(shape)
    for p in pairs[1:]:
        mask = mask if p.mask is mask else mask & p.mask
    return mask


class Enter(torch.autograd.Function):
    """The door from plain to masked: the same values forward, a masked gradient backward."""

    dressed = None  # from a Pair to a MaskedTensor; tensor.py, which imports this module, puts it here

    @staticmethod
    def forward(ctx, y, mask):
        ctx.mask = mask
        return y.detach().clone()

    @staticmethod
    def backward(ctx, g):
        return Enter.dressed(Pair(_bare(g), ctx.mask)), None


class Choose(torch.autograd.Function):
    """An operand of a selection: what was not chosen receives a missing gradient, which no 0 / 0 can touch."""

    @staticmethod
    def forward(ctx, y, chosen):
        ctx.save_for_backward(chosen)
        return y.view_as(y)

    @staticmethod
    def backward(ctx, g):
        (chosen,) = ctx.saved_tensors
        pair = getattr(g, "_pair", None)
        if pair is not None:
            return Enter.dressed(Pair(pair.data, pair.mask & chosen)), None
        if torch.is_grad_enabled():  # create_graph: a plain gradient has a graph
            return select(chosen, g, 0), None
        return Enter.dressed(Pair(g, chosen)), None
