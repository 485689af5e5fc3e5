"""The class that people meet: a Pair that torch functions take as a tensor."""

import re
import warnings

import torch
import torch.utils.data
from torch import Tensor

from .gradients import KEEPING, Enter, accumulate, engine
from .layouts import Places, project
from .pair import Pair
from .storage import freeze, freeze_sparse, own, sparse_coo_tensor
from .table import RULES, full_name, rule_of
from .text import array, number, numbers, text
from .writing import write

SPARSE = torch.sparse_coo, torch.sparse_csr
OURS = re.compile(r"\bPair\b|'Tensor' object has no attribute '(dense|places|filled|mask)'")  # words of no user


class MaskedTensor(Tensor):
    """A tensor that knows which of its elements are specified.

    Args:
        data: a plain tensor: strided, sparse COO or two-dimensional sparse CSR. It is copied; its history is cut.
        mask: bool, of data's shape, layout and device; True means specified. It is copied, once for all who share it.
        requires_grad: whether this leaf records gradients; its gradient is a MaskedTensor under the same mask.
    Raises:
        TypeError: data or mask is not a plain tensor, the mask is not bool, or their layouts differ.
        ValueError: their shapes, devices or indices differ.
        RuntimeError: requires_grad on a dtype that cannot have gradients.
    """

    @staticmethod
    def __new__(cls, data, mask, requires_grad=False):
        _check(data, mask)
        if data.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad: its history is "
                "cut. Use as_masked_tensor to keep it, or data.detach() to say that you mean it",
                UserWarning,
                stacklevel=2,
            )
        if requires_grad and not (data.is_floating_point() or data.is_complex()):
            raise RuntimeError(
                f"Only Tensors of floating point and complex dtype can require gradients, got {data.dtype}"
            )
        pair = _pair(data.detach() if data.requires_grad else data, mask)
        values = pair.data.clone()
        if requires_grad:
            values.requires_grad_()
        return dressed(Pair(values, pair.mask, pair.places), cls)

    def __init__(self, data, mask, requires_grad=False):
        pass

    # What torch.masked offers.

    def get_data(self):
        """The plain tensor underneath, in this layout, with its history. What lies under a False means nothing."""
        return self._pair.tensor()

    def get_mask(self):
        """The boolean mask, in this layout. Do not write to it: it is shared."""
        p = self._pair
        return own(p.mask) if p.places is None else p.mask_tensor()

    def to_tensor(self, value):
        """A plain strided tensor with `value` wherever nothing is specified; differentiable."""
        if isinstance(value, MaskedTensor):
            raise TypeError("to_tensor got a MaskedTensor as value: give a number, or use torch.where")
        p = self._pair.dense()
        if isinstance(value, Tensor):
            return torch.where(p.mask, p.data, value.to(p.data.dtype))
        return p.filled(value)

    def is_sparse_coo(self):
        """Whether the layout is sparse COO."""
        return self.layout == torch.sparse_coo

    def is_sparse_csr(self):
        """Whether the layout is sparse CSR."""
        return self.layout == torch.sparse_csr

    # Properties that need no rule.

    @property
    def is_sparse(self):
        """Whether the layout is sparse COO or CSR."""
        return self._pair.places is not None

    @property
    def shape(self):
        """torch.Size."""
        return self._pair.shape

    @property
    def ndim(self):
        """The number of dimensions."""
        return len(self._pair.shape)

    @property
    def dtype(self):
        """The dtype of the data."""
        return self._pair.data.dtype

    @property
    def device(self):
        """The device of data and mask."""
        return self._pair.data.device

    @property
    def layout(self):
        """torch.strided, torch.sparse_coo or torch.sparse_csr."""
        p = self._pair
        return torch.strided if p.places is None else p.places.layout

    @property
    def requires_grad(self):
        """Whether autograd records what is done with the data."""
        return self._pair.data.requires_grad

    @requires_grad.setter
    def requires_grad(self, value):
        self._pair.data.requires_grad = value

    # What torch's argument parser or its Python wrappers do not let through.

    def prod(self, dim=None, keepdim=False, *, dtype=None):
        """The product, along several dimensions too, which torch's own parser refuses."""
        return self.__torch_function__(torch.prod, (type(self),), (self, dim, keepdim), {"dtype": dtype})

    def item(self):
        """The one element as a Python number; ValueError when it is unspecified."""
        return number(self._pair)

    def tolist(self):
        """Nested lists, with None where nothing is specified."""
        return numbers(self._pair)

    def numpy(self, *, force=False):
        """A numpy.ma.MaskedArray, whose mask is the inverse (NumPy's True means missing)."""
        p = self._pair
        return array(Pair(p.data.detach().cpu().resolve_conj().resolve_neg(), p.mask.cpu(), p.places) if force else p)

    def __array__(self, dtype=None, copy=None):
        """Called by numpy.asarray, which would drop the mask: allowed only when every element is specified."""
        p = self._pair.dense()
        if not bool(p.mask.all()):
            raise TypeError(
                "numpy.asarray would drop the mask of a MaskedTensor with unspecified elements: "
                "use .numpy(), a numpy.ma.MaskedArray, or .to_tensor(value)"
            )
        out = p.data.detach().numpy()
        return out if dtype is None else out.astype(dtype)

    def __bool__(self):
        return bool(self.item())

    def __int__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())

    def __complex__(self):
        return complex(self.item())

    def __index__(self):
        value = self.item()
        if not isinstance(value, int):
            raise TypeError(f"only integer tensors of a single element can be converted to an index, got {self.dtype}")
        return int(value)

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter(torch.unbind(self))

    def __contains__(self, element):
        equal = self == element
        if not isinstance(equal, MaskedTensor):
            raise RuntimeError(f"a tensor holds numbers: `in` got {element!r}, expected a number or a tensor")
        return bool(equal._pair.filled(False).any())

    def __dir__(self):
        return sorted({*dir(type(self)), *self.__dict__})

    def __hash__(self):
        return id(self)

    def __repr__(self, *, tensor_contents=None):
        p = self._pair
        return text(p, p.data.grad_fn, p.data.requires_grad)

    def __format__(self, spec):
        return format(self.item(), spec) if self.dim() == 0 and spec else repr(self)

    def register_hook(self, f):
        """f receives the gradient under this tensor's mask, and may return another."""
        p = self._pair

        def on_data(g):
            out = f(dressed(Pair(g, p.mask, p.places), type(self)))
            return out if out is None else out._pair.filled(0) if isinstance(out, MaskedTensor) else out

        return p.data.register_hook(on_data)

    def register_post_accumulate_grad_hook(self, f):
        """f receives this leaf after its gradient has been accumulated."""
        return self._pair.data.register_post_accumulate_grad_hook(lambda _: f(self))

    def __deepcopy__(self, memo):
        p = self._pair
        if p.data.grad_fn is not None:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol "
                "at the moment: detach() first"
            )
        if id(self) not in memo:
            data = p.data.detach().clone().requires_grad_(p.data.requires_grad)
            copy = memo[id(self)] = dressed(Pair(data, p.mask, p.places), type(self))
            if p.data.grad is not None:
                copy._pair.data.grad = p.data.grad.detach().clone()
            if getattr(self, "_is_param", False):
                copy._is_param = True
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        """Called by pickle and torch.save, which keep no history."""
        p = self._pair
        return rebuilt, (p.tensor().detach(), p.mask_tensor(), p.data.requires_grad)

    # The two doors.

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """Called by torch for whatever a user writes: look up, unwrap, apply the rule, wrap."""
        rule = RULES.get(func)
        if rule is None:
            rule = rule_of(func)
        for t in types:
            if t is not cls and not issubclass(t, Tensor):
                return NotImplemented
        bare = [a._pair if isinstance(a, MaskedTensor) else a if isinstance(a, Tensor) else undressed(a) for a in args]
        if kwargs:
            if kwargs.get("out") is not None:
                raise NotImplementedError(
                    f"{func.__name__} got out=, which MaskedTensor refuses: use the returned tensor"
                )
            kwargs = {k: undressed(v) for k, v in kwargs.items() if k != "out"}
            if not bare and "input" in kwargs and func is not torch.where:
                bare = [kwargs.pop("input")]
        inplace = bool(kwargs) and kwargs.get("inplace") is True
        try:
            if not kwargs:
                out = rule(func, *bare)
            else:
                out = rule(func, *bare, **({**kwargs, "inplace": False} if inplace else kwargs))
        except (TypeError, AttributeError) as e:
            if not OURS.search(str(e)):
                raise
            reason = "of its other operands" if isinstance(e, AttributeError) else OURS.sub("MaskedTensor", str(e))
            raise TypeError(
                f"{full_name(func)} got a MaskedTensor where it takes none ({reason}): "
                "say what the missing elements mean with .to_tensor(value)"
            ) from e
        if inplace:
            write(func, bare[0], out)
            return args[0]
        if type(out) is Pair:
            if args and out is bare[0]:
                return args[0]
            return dressed(out, cls)
        return _dressed_all(out, cls) if isinstance(out, (tuple, list)) else out

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        """Called by torch for what the autograd engine does with a masked gradient."""
        name = func.overloadpacket.__name__
        if name == "_sparse_coo_tensor_with_dims_and_tensors":  # torch.sparse_coo_tensor asks no __torch_function__
            size, indices, values = args[2:5]
            return dressed(sparse_coo_tensor(func, indices, undressed(values), size), cls)
        if name == "is_pinned":  # asked by torch.sparse_coo_tensor where invariants are checked
            return args[0]._pair.data.is_pinned()
        if torch._C._current_graph_task_id() == -1 and name not in KEEPING:
            raise NotImplementedError(
                f"{func} reached a MaskedTensor from below torch's functions, where its rule cannot be asked "
                "(torch.func, vmap or an extension): give it m.to_tensor(value)"
            )
        bare = [undressed(a) for a in args]
        kwargs = {k: undressed(v) for k, v in (kwargs or {}).items()}
        target = args[0] if args else None
        if not name.endswith("_") or name.endswith("__"):
            out = engine(name, func, bare, kwargs)
            return dressed(out, cls) if isinstance(out, Pair) else _dressed_all(out, cls)
        if not isinstance(target, MaskedTensor):  # plain += masked, by the engine
            func(target, *(a.dense().filled(0) if isinstance(a, Pair) else a for a in bare[1:]), **kwargs)
            return target
        if name == "add_":
            target._pair = accumulate(*bare, **kwargs)
        elif name == "copy_":
            source = bare[1] if isinstance(bare[1], Pair) else Pair(bare[1], torch.ones_like(bare[0].mask))
            target._pair = Pair(source.data.clone(), source.mask, source.places)
        elif name == "detach_":
            pass
        else:
            data = target._pair.data
            func(data, *(a.dense().filled(0) if isinstance(a, Pair) else a for a in bare[1:]), **kwargs)
        return target


def dressed(p, cls=MaskedTensor):
    """A Pair as a MaskedTensor that shares its data and mask."""
    data = p.data
    out = Tensor._make_wrapper_subclass(cls, p.shape, dtype=data.dtype, device=data.device)
    out._pair = p
    return out


Enter.dressed = staticmethod(dressed)


def _dressed_all(out, cls):
    if isinstance(out, Pair):
        return dressed(out, cls)
    if isinstance(out, (tuple, list)) and not isinstance(out, torch.Size):
        return type(out)([_dressed_all(o, cls) for o in out])
    return out


def undressed(a):
    """An argument with the Pair of every MaskedTensor in its place, in lists and tuples too."""
    if isinstance(a, MaskedTensor):
        return a._pair
    if type(a) in (list, tuple):
        return type(a)([undressed(b) for b in a])
    return a


def _check(data, mask):
    for name, t in (("data", data), ("mask", mask)):
        if isinstance(t, MaskedTensor):
            raise TypeError(f"{name} must be a Tensor, and not a MaskedTensor: take its get_data() or get_mask()")
        if not isinstance(t, Tensor):
            raise TypeError(f"{name} must be a Tensor, got {type(t).__name__}: use torch.tensor({name})")
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must have dtype bool, got {mask.dtype}: use mask.bool(), or data != missing_value")
    if data.layout != mask.layout:
        raise TypeError(
            f"data and mask must have the same layout. data is {data.layout}, mask is {mask.layout}: "
            "convert one of them, for instance with mask.to_sparse_coo() or data.sparse_mask(mask)"
        )
    if data.layout != torch.strided and data.layout not in SPARSE:
        raise TypeError(
            f"data layout of {data.layout} is not supported: use torch.strided, torch.sparse_coo or torch.sparse_csr"
        )
    if data.is_quantized:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor: dequantize() it")
    if data.dim() != mask.dim():
        raise ValueError(
            f"data.dim() must equal mask.dim(). data has shape {tuple(data.shape)}, mask {tuple(mask.shape)}"
        )
    if data.shape != mask.shape:
        raise ValueError(
            f"data.size() must equal mask.size(). data has shape {tuple(data.shape)}, mask "
            f"{tuple(mask.shape)}: mask.expand_as(data) repeats a smaller mask"
        )
    if data.device != mask.device:
        raise ValueError(
            f"data and mask must be on the same device. data is on {data.device}, mask on {mask.device}: "
            f"use mask.to(data.device)"
        )


def _pair(data, mask):
    """A checked data and mask as a Pair; sparse data is restricted to what the mask stores."""
    if data.layout == torch.strided:
        return Pair(data, freeze(mask))
    values, places = Places.of(data)
    kept, onto = freeze_sparse(mask)
    if values.dim() != kept.dim():
        raise ValueError(
            f"data and mask must have the same number of sparse dimensions. data has {data.sparse_dim()}, mask "
            f"{mask.sparse_dim()}"
        )
    if not places.same(onto):
        values, places = project(values, places, onto), onto
    return Pair(values, kept, onto)


def masked_tensor(data, mask, requires_grad=False):
    """A new leaf, as torch.tensor makes one: data is copied and its history cut. See MaskedTensor.

    >>> masked_tensor(torch.tensor([1., 2., 3.]), torch.tensor([True, False, True]))
    MaskedTensor([1., --, 3.])
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data, mask):
    """A MaskedTensor that keeps the history of data, and lets only a masked gradient through to it.

    Data is copied, as torch.masked copies it. See MaskedTensor for what is raised.

    >>> x = torch.tensor([1., 1.], requires_grad=True)
    >>> divisor = torch.tensor([0., 1.])
    >>> as_masked_tensor(x / divisor, divisor != 0).sum().backward()
    >>> x.grad
    MaskedTensor([--, 1.])
    """
    _check(data, mask)
    pair = _pair(data, mask)
    if pair.data.requires_grad and torch.is_grad_enabled():
        return dressed(Pair(Enter.apply(pair.data, pair.mask), pair.mask, pair.places))
    return dressed(Pair(pair.data.detach().clone(), pair.mask, pair.places))


def collated(batch, *, collate_fn_map=None):
    """What a DataLoader makes of a batch, in this process or in a worker."""
    return torch.stack(batch)


torch.utils.data._utils.collate.default_collate_fn_map[MaskedTensor] = collated


def is_masked_tensor(obj):
    """Whether an object is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)


def rebuilt(data, mask, requires_grad):
    """A MaskedTensor out of a pickle."""
    return masked_tensor(data, mask, requires_grad)


torch.serialization.add_safe_globals([rebuilt])  # it runs nothing, so torch.load(weights_only=True) may call it
