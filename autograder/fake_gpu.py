"""A GPU that is not there: CPU memory that counts as a GPU's, to find what a function makes in the wrong place.

Its text is sent to the student's kernel as a part of the probe's, so it imports the standard library and torch only.
torch's own fake tensors have no values, so a function that reads one, or works on sparse or masked tensors, cannot be tried
with them. Sources: torch.utils._device for what takes a device; what a call says on a GPU is in tests/autograder/test_fake_gpu.py.
"""

import contextlib

import torch
import torch.utils._device
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

DEEPEST = 60  # of lists in lists


class FakeGpu(TorchFunctionMode):
    """Memory of the CPU that counts as a GPU's: the tensors in it say that their device is cuda:0, refuse NumPy, and refuse to
    be computed with what lies elsewhere. They have their values, so whatever runs on the CPU runs.

    A result lies where the tensors lie that it is made from, or where `device` says. What torch's own functions written in
    Python make inside is not seen, nor what torch.jit.script compiled, and torch's packed sequences are refused.
    """

    def __init__(self):
        self.memory = {}  # address of a storage: the storage, kept alive lest another one be given its address

    @contextlib.contextmanager
    def in_charge(self):
        """What is called meanwhile takes the pretence for real."""
        made = torch.Tensor._make_wrapper_subclass
        on_cpu = lambda *sizes, device=None, **options: made(*sizes, device=device and "cpu", **options)
        with contextlib.ExitStack() as stack:
            stack.enter_context(_replaced(torch.autograd, "_engine_run_backward", self.backward))
            stack.enter_context(_replaced(torch.Tensor, "_make_wrapper_subclass", on_cpu))  # asks no mode
            stack.enter_context(self)
            yield

    def backward(self, outputs, gradients, *arguments, **options):
        """Called by torch.autograd, mostly from inside a torch function, where this mode is not asked."""
        for output, gradient in zip(outputs, gradients, strict=True):
            if isinstance(output, torch.Tensor) and gradient is not None:
                self.place(gradient, self.holds(output))
        asked = self in torch.overrides._get_current_function_mode_stack()
        with contextlib.nullcontext() if asked else self, _FollowMemory(self):
            return torch.autograd.graph._engine_run_backward(outputs, gradients, *arguments, **options)

    def holds(self, t):
        """Whether a tensor, or a part of it, lies on the pretended GPU."""
        return any(storage._cdata in self.memory for storage in _storages(t))

    def place(self, t, there=True, except_for=()):
        """Let a tensor lie on the pretended GPU, or on the CPU; `except_for` are addresses of storages that stay."""
        for storage in _storages(t):
            if storage._cdata not in except_for:
                if there:
                    self.memory[storage._cdata] = storage
                else:
                    self.memory.pop(storage._cdata, None)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        for kind in types if torch._C._is_torch_function_enabled() else ():
            if getattr(kind.__torch_function__, "__func__", _PLAIN) is not _PLAIN:  # it speaks for its parts
                with self:
                    return kind.__torch_function__(func, types, args, kwargs)
        if func in _SAID and self.holds(args[0]):
            return _SAID[func]
        if func in (torch.Tensor.numpy, torch.Tensor.__array__) and self.holds(args[0]) and not kwargs.get("force"):
            raise TypeError(NO_NUMPY)
        if func in (torch.device, torch._C._nn._parse_to):
            return func(*args, **kwargs)
        func, args, kwargs, asked = self.destination(func, args, kwargs)
        given = leaves([args, kwargs])
        there = [self.holds(t) for t in given]
        if asked is None and True in there and False in there and self.refuses(func, args, kwargs):
            raise RuntimeError(_apart(func, given, there))
        result = func(*args, **kwargs)
        if not given and not asked:
            return result
        if func is torch.autograd.grad:
            for t, gradient in zip(leaves([args[1:2], kwargs.get("inputs")]), result, strict=True):
                if gradient is not None:
                    self.place(gradient, self.holds(t))
            return result
        if asked is None and func not in _CONSTRUCTORS:
            return self.laid(result, given, any(there))
        return self.laid(result, given, bool(asked), moved=True)

    def destination(self, func, args, kwargs):
        """The call with the CPU in the GPU's place, and whether it asks for a result on the GPU, on the CPU (False), or None."""
        asked = None

        def here(device):
            nonlocal asked
            kind = "cuda" if isinstance(device, int) else str(device).partition(":")[0]
            asked = kind == "cuda" if kind in ("cpu", "cuda") else asked
            return "cpu" if kind == "cuda" else device

        if func in (torch.Tensor.cuda, torch.Tensor.cpu):
            return torch.Tensor.cpu, args[:1], {}, func is torch.Tensor.cuda
        if func is torch.Tensor.to:
            args = tuple(here(x) if i == 1 and isinstance(x, (str, int)) else x for i, x in enumerate(args))
        if func in (torch.Tensor.to, torch.Tensor.type_as):
            for like in leaves([args[1:], kwargs]):
                asked = self.holds(like)
        args = tuple(here(x) if isinstance(x, torch.device) else x for x in args)
        if kwargs.get("device") is not None:
            kwargs["device"] = here(kwargs["device"])
        elif func in _CONSTRUCTORS:
            if torch.utils._device.CURRENT_DEVICE is not None:  # inside `with torch.device(...)`
                kwargs["device"] = here(torch.utils._device.CURRENT_DEVICE)
            elif like := _source(func, args, kwargs):
                asked = self.holds(like[0])
        return func, args, kwargs, asked

    def refuses(self, func, args, kwargs):
        """Whether a GPU would refuse this call, some of whose tensors lie there and some do not."""
        if func in _MEET or isinstance(func, torch._ops.OpOverload):
            return False
        if func in (torch.Tensor.__getitem__, torch.Tensor.__setitem__):
            x, index, *values = args
            gathers = any(
                isinstance(i, (torch.Tensor, list)) for i in (index if isinstance(index, tuple) else (index,))
            )
            if not self.holds(x) and any(map(self.holds, leaves([index]))):
                return True
            return gathers and any(_inmost(t).dim() and self.holds(t) != self.holds(x) for t in leaves(values))
        name = func.__name__
        if name in ("index_put", "index_put_") and self.holds(args[0]):
            args, kwargs = (args[0], *args[2:]), {**kwargs, "indices": ()}
        outside = [t for t in leaves([args, kwargs]) if not self.holds(t)]
        if name.endswith("_") and not name.endswith("__") and not all(map(self.holds, leaves(args[:1]))):
            return True
        return any(_inmost(t).dim() for t in outside) or (bool(outside) and name.strip("_") in _NO_SCALARS)

    def laid(self, result, given, there, moved=False):
        """The result in its place; what shares the memory of an input stays there, or is copied where the call moves it."""
        known = {storage._cdata for t in given for storage in _storages(t)}
        if moved and isinstance(result, torch.Tensor):
            found = [s._cdata for s in _storages(result) if s._cdata in known]
            if any((address in self.memory) != there for address in found):
                result, known = result.clone(), ()
        for t in leaves(result):
            self.place(t, there, known)
        return result


class _FollowMemory(TorchDispatchMode):
    """Where autograd computes by itself, what is made from the GPU's tensors lies there."""

    def __init__(self, gpu):
        super().__init__()
        self.gpu = gpu

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result, given = func(*args, **(kwargs or {})), leaves([args, kwargs or {}])
        if any(map(self.gpu.holds, given)):
            self.gpu.laid(result, given, True)
        return result


def _inmost(t):
    """The tensor that torch.func works with, below what its transforms wrap around it."""
    while torch._C._functorch.is_functorch_wrapped_tensor(t):
        t = torch._C._functorch.get_unwrapped(t)
    return t


def _storages(t):
    """The memory of a tensor; that of its parts, where it is sparse or masked."""
    with torch._C.DisableTorchFunction():
        t = _inmost(t)
        if hasattr(t, "get_mask"):
            return _storages(t.get_data()) + _storages(t.get_mask())
        if t.layout == torch.sparse_coo:
            return _storages(t._indices()) + _storages(t._values())
        if t.layout in (torch.sparse_csr, torch.sparse_bsr):
            return [s for part in (t.crow_indices(), t.col_indices(), t.values()) for s in _storages(part)]
        if t.layout in (torch.sparse_csc, torch.sparse_bsc):
            return [s for part in (t.ccol_indices(), t.row_indices(), t.values()) for s in _storages(part)]
        return [t.untyped_storage()]


def _source(func, args, kwargs):
    """The tensor, in a list, that a constructor's result lies beside; none where it lies on the CPU."""
    place, name = _BESIDE.get(func, (9, ""))
    return [x for x in [*args[place : place + 1], kwargs.get(name)] if isinstance(x, torch.Tensor)]


def _apart(func, given, there):
    t = given[there.index(False)]
    return (
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! "
        f"({func.__name__.strip('_')} got a tensor of shape {tuple(t.shape)} that lies on the CPU)"
    )


NO_NUMPY = "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
_PLAIN = torch.Tensor.__torch_function__.__func__
_SAID = {
    torch.Tensor.device.__get__: torch.device("cuda", 0),
    torch.Tensor.is_cuda.__get__: True,
    torch.Tensor.is_cpu.__get__: False,
    torch.Tensor.get_device: 0,
}
_CONSTRUCTORS = torch.utils._device._device_constructors()
_BESIDE = {  # the argument that a constructor's result lies beside where no device is said
    torch.tensor: (0, "data"),
    torch.as_tensor: (0, "data"),
    torch.asarray: (0, "obj"),
    torch.sparse_coo_tensor: (1, "values"),
    torch.sparse_compressed_tensor: (2, "values"),
    torch.sparse_csr_tensor: (2, "values"),
    torch.sparse_csc_tensor: (2, "values"),
    torch.sparse_bsr_tensor: (2, "values"),
    torch.sparse_bsc_tensor: (2, "values"),
}
_MEET = {  # what takes tensors of two devices
    *_CONSTRUCTORS,
    torch.Tensor.copy_,
    torch.Tensor.view_as,
    torch.Tensor.reshape_as,
    torch.Tensor.expand_as,
    torch.Tensor.new_tensor,
    torch.Tensor.data.__set__,
    torch.Tensor.tensor_split,
    torch.tensor_split,
    torch.result_type,
    torch.autograd.grad,
    torch._has_compatible_shallow_copy_type,
}
_NO_SCALARS = {  # elsewhere a tensor without a dimension may lie on the CPU
    *(
        "stack",
        "cat",
        "concat",
        "hstack",
        "vstack",
        "equal",
        "gather",
        "take",
        "scatter",
        "scatter_add",
        "scatter_reduce",
    ),
    *("index_select", "index_add", "index_copy", "index_fill", "embedding"),
}


def leaves(result, depth=0):
    """The tensors in a value that is a tensor, or a list, a tuple or a dict of such."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, (list, tuple)) and depth < DEEPEST:
        return [leaf for item in result for leaf in leaves(item, depth + 1)]
    if isinstance(result, dict) and depth < DEEPEST:
        return [leaf for item in result.values() for leaf in leaves(item, depth + 1)]
    return []


@contextlib.contextmanager
def _replaced(owner, name, value):
    before = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before) if before is not None else delattr(owner, name)
