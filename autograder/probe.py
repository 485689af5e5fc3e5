"""What runs beside the student's code: calls a function on case inputs and packs what happened as bytes.

The text of this module is sent to the student's kernel, with that of fake_gpu in the place of its import; so both import
the standard library, torch and safetensors and nothing else of ours. The same functions describe the reference's calls
in a trusted process: one way of seeing, two places. Nothing that it reports is trusted (design: the
student's process can only send data); `wire` reads the bytes on the other side.

A message is one safetensors file held in memory: the tensors, and in its `__metadata__` the tree that refers to them, as JSON.
"""

import base64
import contextlib
import io
import json
import random
import struct
import sys
import time
import warnings

import torch
from safetensors.torch import load as _load_tensors
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from .fake_gpu import FakeGpu, leaves

MIME = "application/vnd.autograder.reply"
MAX_NODES = 200_000  # of the tree of one answer
MAX_DEPTH = 60
MAX_TENSOR_BYTES = 8 << 20  # of one message; base64 and the header fit into 16 MiB
MAX_TEXT = 10_000
MAX_BYTES = 1 << 20  # of one value of type bytes
MAX_PANELS = 40  # of a figure, and lines of a panel
NO_KERNEL = " This could be because the operator doesn't exist for this backend"  # then paths of this very machine


# ---- reading the question -------------------------------------------------------------------------------------------


def unpack(message: bytes) -> tuple[dict, dict]:
    """The metadata and the tensors of a message."""
    (length,) = struct.unpack("<Q", message[:8])
    header = json.loads(message[8 : 8 + length])
    return json.loads(header["__metadata__"]["tree"]), _load_tensors(message)


def build(node, tensors, storages):
    """The Python value of a node, tensors rebuilt with their layout; `storages` keeps those of one case shared."""
    if not isinstance(node, dict):
        return node
    (kind, body), *_ = node.items()
    below = lambda child: build(child, tensors, storages)
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(map(below, body))
    if kind == "dict":
        return {below(key): below(value) for key, value in body}
    if kind == "tensor":
        return _build_tensor(body, tensors, storages)
    if kind == "sparse_coo":
        return torch.sparse_coo_tensor(
            below(body["indices"]),
            below(body["values"]),
            body["size"],
            is_coalesced=body["coalesced"],
            check_invariants=False,
        ).requires_grad_(body["requires_grad"])
    if kind == "sparse_csr":
        parts = below(body["crow"]), below(body["col"]), below(body["values"])
        with warnings.catch_warnings():  # "Sparse CSR tensor support is in beta state", once a process
            warnings.simplefilter("ignore")
            made = torch.sparse_csr_tensor(*parts, body["size"], check_invariants=False)
        return made.requires_grad_(body["requires_grad"])
    if kind == "masked":
        from maskedtensor_ref import masked_tensor

        return masked_tensor(below(body["data"]), below(body["mask"]), requires_grad=body["requires_grad"])
    if kind == "array":
        return below(body).numpy()
    return _ATOMS[kind](body)


_ATOMS = {
    "slice": lambda body: slice(*body),
    "ellipsis": lambda body: Ellipsis,
    "dtype": lambda body: getattr(torch, body),
    "device": torch.device,
    "layout": lambda body: getattr(torch, body),
    "size": torch.Size,
    "complex": lambda body: complex(*body),
    "bytes": base64.b64decode,
    "set": set,
}


def _build_tensor(body, tensors, storages):
    key, dtype = body["storage"], getattr(torch, body["dtype"])
    if key not in storages:
        storages[key] = tensors[key].clone().to(body["device"])  # aligned, and fresh for every call
    whole = torch.empty(0, dtype=dtype, device=body["device"]).set_(storages[key].untyped_storage())
    value = whole.as_strided(body["size"], body["stride"], body["offset"]).detach()
    return torch.nn.Parameter(value) if body["parameter"] else value.requires_grad_(body["requires_grad"])


# ---- observing one call ---------------------------------------------------------------------------------------------


class _CountOps(TorchDispatchMode):
    """Counts what is dispatched, by operation, and the bytes that the results take beyond the memory of their inputs."""

    def __init__(self):
        super().__init__()
        self.counts = {}
        self.new_bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.counts[str(func)] = self.counts.get(str(func), 0) + 1
        result = func(*args, **(kwargs or {}))
        known = {_address(t) for t in leaves([args, kwargs or {}])}
        self.new_bytes += sum(t.untyped_storage().nbytes() for t in leaves(result) if _address(t) not in known | {None})
        return result


def _address(t):
    """Where the memory of a plain strided tensor begins; None of others, and where there is none."""
    plain = type(t) in (torch.Tensor, torch.nn.Parameter) and t.layout == torch.strided and t.device.type != "meta"
    return t.untyped_storage().data_ptr() or None if plain else None


class _Nothing(io.RawIOBase):
    """Bytes that are not kept."""

    def writable(self):
        return True

    def write(self, data):
        return len(data)


def _nowhere():
    """A text stream that keeps nothing: what a function prints while it is probed is not part of its answer."""
    return io.TextIOWrapper(io.BufferedWriter(_Nothing()), "utf-8", "replace", write_through=True)


@contextlib.contextmanager
def _unseen():
    """What a function prints or displays while it is probed is no part of its answer, and could show a hidden case."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    publisher = getattr(shell, "display_pub", None)
    drop = lambda message: None
    hooked = hasattr(publisher, "register_hook") and hasattr(publisher, "unregister_hook")
    if hooked:
        publisher.register_hook(drop)
    try:
        with contextlib.redirect_stdout(_nowhere()), contextlib.redirect_stderr(_nowhere()):
            yield
    finally:
        if hooked:
            publisher.unregister_hook(drop)


@contextlib.contextmanager
def _no_modes():
    """Modes that a cell entered and did not leave are put aside meanwhile: torch.device, torch.inference_mode, its own."""
    torch.set_default_device(None)
    aside = []
    while torch.overrides._len_torch_function_stack():
        aside.append(torch.overrides._pop_mode())
    try:
        with torch.inference_mode(False), _disable_current_modes():
            yield
    finally:
        while aside:
            torch.overrides._push_mode(aside.pop())


def reset_state(seed: int) -> None:
    """Undo what an earlier cell may have left behind: seeds, default dtype and device, grad mode, warning filters."""
    random.seed(seed)
    torch.default_generator.manual_seed(seed)  # torch.manual_seed formats a stack for every lazy device: 4 ms
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % (1 << 32))
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)
    torch.use_deterministic_algorithms(False)
    torch.storage._reset_warn_typed_storage_removal()  # torch warns of it once a process: here, once a call
    # where nobody chose, torch warns of it once a process; and what is checked changes how many operations are counted
    torch.sparse.check_sparse_tensor_invariants.enable()


def observe(
    function, arguments: dict, *, driver=None, gradient=False, fake_cuda=False, count=True, pack=None, failed=None
) -> dict:
    """Call `function` on `arguments` (by name, in order) and describe what happened as a node; tensors go into `pack`.

    Operations are counted where `count` says so: torch.jit.trace does not work under a dispatch mode. `failed` is called with
    an exception that came: a student's notebook asks where.
    """
    seen = {"raised": None, "result": None, "gradients": {}, "fake_cuda": None}
    values, counter = list(arguments.values()), _CountOps()
    call = function if driver is None else lambda *case: driver(function, *case)
    started = time.perf_counter()
    # what fails in making these is no fault of the function: then there is no answer
    with _unseen(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with counter if count else contextlib.nullcontext():
                result = call(*values)
            seen["seconds"] = time.perf_counter() - started
            pack.name_inputs(arguments)
            if gradient:
                seen["gradients"] = _gradients(result, arguments, pack)
            seen["result"] = pack.describe(result)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):  # it is the time limit: let it through
                raise
            message = _text(error).partition(NO_KERNEL)[0]
            seen["raised"] = {"types": [c.__name__ for c in type(error).__mro__], "message": message}
            if failed is not None:
                failed(error)
            pack.name_inputs(arguments)
    seen.setdefault("seconds", time.perf_counter() - started)
    seen["inputs"] = [[name, pack.describe(value)] for name, value in arguments.items()]
    seen["ops"], seen["new_bytes"] = counter.counts, counter.new_bytes
    seen["warnings"] = [f"{w.category.__name__}: {_text(w.message)}" for w in caught][:20]
    return seen


def _gradients(result, arguments, pack):
    """d(weighted sum of every floating point output)/d(each input that requires a gradient); the weights differ by place."""
    inputs = {
        name: value for name, value in arguments.items() if isinstance(value, torch.Tensor) and value.requires_grad
    }
    outputs = [t for t in leaves(result) if t.requires_grad]
    if not outputs or not inputs:
        return dict.fromkeys(inputs)
    total = 0
    for output in outputs:
        weights = torch.linspace(0.5, 1.5, max(output.numel(), 1), dtype=torch.float64)[: output.numel()].reshape(
            output.shape
        )
        product = output * weights.to(device=output.device, dtype=output.dtype)
        total = total + product.sum()
    found = torch.autograd.grad(total, list(inputs.values()), allow_unused=True)
    return {name: None if g is None else pack.describe(g) for name, g in zip(inputs, found, strict=True)}


def on_fake_cuda(function, arguments: dict, driver=None) -> dict | None:
    """Call `function` with its tensors on a pretended GPU: shows a missing `device=` on a machine that has none.

    None where a tensor among the arguments lies elsewhere than on the CPU: then the call itself has told.
    """
    call, gpu = function if driver is None else lambda *case: driver(function, *case), FakeGpu()
    given = leaves(list(arguments.values()))
    if any(t.device.type != "cpu" for t in given):
        return None
    for t in given:
        gpu.place(t)
    try:
        with _unseen(), gpu.in_charge(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call(*arguments.values())
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return {"raised": type(error).__name__, "message": _text(error), "devices": []}
    devices = {"cuda" if gpu.holds(t) else t.device.type for t in leaves(result)}
    return {"raised": "", "message": "", "devices": sorted(devices)}


# ---- packing the answer ---------------------------------------------------------------------------------------------


class Pack:
    """Turns values into nodes and collects their tensors; one a message."""

    def __init__(self, prefix="t"):
        self.prefix = prefix  # of the tensors' names
        self.tensors = {}
        self.nodes = 0
        self.bytes = 0
        self.storages = {}
        self.alive = []
        self.inputs = []

    def name_inputs(self, arguments):
        """Remember which storage and which object belongs to which input, before anything is described."""
        self.storages, self.alive, self.inputs, self.nodes = {}, [], [], 0
        for name, value in arguments.items():
            for path, leaf in _paths(name, value):
                self.inputs.append((leaf, path))
                if type(leaf) is torch.Tensor and leaf.layout == torch.strided:
                    self.storage_name(leaf, path)

    def storage_name(self, tensor, path=""):
        """A name for the memory of a tensor: the path of the first input that lives there, else "new0", "new1" ..."""
        pointer = tensor.untyped_storage().data_ptr()  # not _cdata: it misses memory shared through NumPy
        if pointer == 0:
            return ""
        self.alive.append(tensor)  # the address of a temporary one would be given out again, under its name
        return self.storages.setdefault(
            pointer, path or f"new{sum(n.startswith('new') for n in self.storages.values())}"
        )

    def describe(self, value, depth=0):
        """The node of any value; what is too large or too deep becomes a short text."""
        self.nodes += 1
        if self.nodes > MAX_NODES or depth > MAX_DEPTH:
            return _other(value, "too large or too deeply nested to be sent")
        below = lambda child: self.describe(child, depth + 1)
        if value is None or value is True or value is False or type(value) in (float, str, int):
            return _plain(value)
        if isinstance(value, torch.Tensor):
            return self.describe_tensor(value)
        if isinstance(value, torch.Size):
            return {"size": [int(n) for n in value]}
        if _is_figure(value):
            return self.describe_figure(value)
        if type(value) in (list, tuple) and len(value) == 2 and _is_figure(value[0]) and isinstance(value[1], str):
            return self.describe_figure(*value)
        if isinstance(value, (list, tuple)):
            return {"list" if isinstance(value, list) else "tuple": [below(item) for item in value]}
        if isinstance(value, dict):
            return {"dict": [[below(_key(key)), below(item)] for key, item in value.items()]}
        if isinstance(value, (set, frozenset)):
            return {"set": sorted((below(item) for item in value), key=json.dumps)}
        if isinstance(value, slice):
            return {"slice": [below(part) for part in (value.start, value.stop, value.step)]}
        if value is Ellipsis:
            return {"ellipsis": True}
        if isinstance(value, (torch.dtype, torch.layout)):
            return {type(value).__name__: str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if isinstance(value, bytes):
            return self.describe_bytes(value)
        if type(value).__module__ == "numpy":
            return self.describe_numpy(value)
        if isinstance(value, (bool, int, float, str)):
            return _plain(value)
        return _other(value)

    def describe_bytes(self, value):
        if len(value) > MAX_BYTES or self.bytes + len(value) > MAX_TENSOR_BYTES:
            return _other(value, f"{len(value)} bytes, which are more than is accepted")
        self.bytes += len(value)
        return {"bytes": base64.b64encode(value).decode()}

    def describe_numpy(self, value):
        try:
            tensor = torch.as_tensor(value)
        except (TypeError, ValueError, RuntimeError):
            return _other(value)
        return {"array" if getattr(value, "ndim", 0) else "scalar": self.describe_tensor(tensor)}

    def describe_tensor(self, t):
        masked = hasattr(t, "get_mask") and hasattr(t, "get_data")
        node = {
            "dtype": str(t.dtype).removeprefix("torch."),
            "shape": list(t.shape),
            "layout": str(t.layout).removeprefix("torch."),
            "device": str(t.device),
            "kind": "masked" if masked else _kind(t),
            "requires_grad": t.requires_grad,
            "is_leaf": t.is_leaf,
            "grad_fn": type(t.grad_fn).__name__ if t.grad_fn is not None else "",
            "same_as": next((path for leaf, path in self.inputs if leaf is t), ""),
        }
        if masked:
            node["parts"] = {
                "data": self.describe_tensor(t.get_data().detach()),
                "mask": self.describe_tensor(t.get_mask()),
            }
        elif t.layout == torch.strided:
            self._describe_strided(t, node)
        else:
            self._describe_sparse(t, node)
        return {"tensor": node}

    def _describe_strided(self, t, node):
        node["stride"], node["offset"] = list(t.stride()), t.storage_offset()
        if t.device.type == "meta":
            node["withheld"] = "it is on the meta device, which holds no values"
            return
        node["storage"], node["storage_bytes"] = self.storage_name(t), t.untyped_storage().nbytes()
        size = t.numel() * t.element_size()
        if self.bytes + size > MAX_TENSOR_BYTES:
            node["withheld"] = f"its {size} bytes are more than is accepted"
            return
        self.bytes += size
        value = t.detach().resolve_conj().resolve_neg().cpu().contiguous()
        if value.is_complex():
            value = torch.view_as_real(value)
        key = f"{self.prefix}{len(self.tensors)}"
        self.tensors[key] = value.clone()  # as it is now: what shares its memory may change it
        node["value"] = key

    def _describe_sparse(self, t, node):
        t = t.detach()
        if t.layout == torch.sparse_coo:
            node["coalesced"] = t.is_coalesced()
            parts = {"indices": t._indices(), "values": t._values()}
        elif t.layout in (torch.sparse_csr, torch.sparse_bsr):
            parts = {"crow": t.crow_indices(), "col": t.col_indices(), "values": t.values()}
        elif t.layout in (torch.sparse_csc, torch.sparse_bsc):
            parts = {"ccol": t.ccol_indices(), "row": t.row_indices(), "values": t.values()}
        else:
            parts = {}
        node["parts"] = {name: self.describe_tensor(part) for name, part in parts.items()}

    def describe_figure(self, figure, alt=""):
        """The node of a matplotlib figure, with the description that stands beside it."""
        panels = [axes for axes in figure.axes if axes.get_visible()][:MAX_PANELS]
        legend = [text for box in figure.legends for text in _legend(box)]
        texts = {"title": figure.get_suptitle(), "x_label": figure.get_supxlabel(), "y_label": figure.get_supylabel()}
        node = {name: _plain(text) for name, text in {"alt": alt, **texts}.items()}
        return {"figure": {**node, "legend": legend, "panels": [self.describe_panel(axes, panels) for axes in panels]}}

    def describe_panel(self, axes, panels):
        x_axis, y_axis = axes.get_shared_x_axes(), axes.get_shared_y_axes()
        return {
            "title": _plain(" ".join(filter(None, (axes.get_title(place) for place in ("left", "center", "right"))))),
            "x_label": _plain(axes.get_xlabel()),
            "y_label": _plain(axes.get_ylabel()),
            "x_limits": [float(end) for end in axes.get_xlim()],
            "y_limits": [float(end) for end in axes.get_ylim()],
            "shares_x": next(i for i, other in enumerate(panels) if other is axes or x_axis.joined(axes, other)),
            "shares_y": next(i for i, other in enumerate(panels) if other is axes or y_axis.joined(axes, other)),
            "lines": [self.describe_line(line) for line in axes.get_lines()[:MAX_PANELS]],
            "legend": _legend(axes.get_legend()),
        }

    def describe_line(self, line):
        label, marker = str(line.get_label()), line.get_marker()
        dashes = getattr(
            line, "_unscaled_dash_pattern", ""
        )  # get_linestyle() says "--" of every pattern given as numbers
        return {
            "x": self.describe_tensor(torch.tensor(line.get_xdata(orig=False), dtype=torch.float64)),
            "y": self.describe_tensor(torch.tensor(line.get_ydata(orig=False), dtype=torch.float64)),
            "label": "" if label.startswith("_") else _plain(label),
            "style": f"{line.get_linestyle()} {dashes}",
            "marker": "" if marker in (None, "", " ", "None", "none") else str(marker),
            "colour": sys.modules["matplotlib.colors"].to_hex(line.get_color(), keep_alpha=True),
        }

    def message(self, **metadata) -> bytes:
        """The finished message."""
        return packed(self.tensors, json.dumps(metadata))


def packed(tensors, tree: str) -> bytes:
    """A message, byte for byte what safetensors.torch.save writes, which takes three times as long: it looks for shared memory.

    Args:
        tensors: contiguous ones on the CPU, by name.
    """
    header, rank, parts, end = {"__metadata__": {"tree": tree}}, list(_DTYPES), [], 0
    for name, t in sorted(tensors.items(), key=lambda item: (rank.index(item[1].dtype), item[0])):
        parts.append(
            t.as_strided((t.numel(),), (1,)).view(torch.uint8).numpy().tobytes()
        )  # a stride of one element may be any
        start, end = end, end + len(parts[-1])
        header[name] = {"dtype": _DTYPES[t.dtype], "shape": list(t.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join((struct.pack("<Q", len(text)), text, *parts))


_DTYPES = {  # in the order of their tensors: wide ones first, so that each is aligned
    torch.uint64: "U64",
    torch.int64: "I64",
    torch.float64: "F64",
    torch.float32: "F32",
    torch.uint32: "U32",
    torch.int32: "I32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.uint16: "U16",
    torch.int16: "I16",
    torch.float8_e5m2fnuz: "F8_E5M2FNUZ",
    torch.float8_e4m3fnuz: "F8_E4M3FNUZ",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


class _Key:
    """Stands for a key that no exercise asks for."""

    def __init__(self, key):
        self.text = type(key).__name__

    def __str__(self):
        return self.text


def _key(key):
    """A key of a dict as it is sent: a number of NumPy is one of Python, to which it is equal."""
    if type(key).__module__ == "numpy" and hasattr(key, "item"):
        return key.item()
    return _Key(key) if isinstance(key, (torch.Tensor, frozenset)) else key


def _plain(value):
    if isinstance(value, str):
        return str(value)[:MAX_TEXT]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 4096:
        return _other(value, "an integer of more than 4096 bits")
    return value


def _is_figure(value):
    """Whether it is a matplotlib figure; where matplotlib was never imported, nothing is."""
    figures = sys.modules.get("matplotlib.figure")
    return isinstance(value, getattr(figures, "Figure", ()))


def _legend(box):
    return [] if box is None else [_plain(text.get_text()) for text in box.get_texts()[:MAX_PANELS]]


def _open_figures():
    pyplot = sys.modules.get("matplotlib.pyplot")
    return set(pyplot.get_fignums()) if hasattr(pyplot, "get_fignums") else set()


def _close_figures(numbers):
    """Close what a call left open, or Jupyter would show it below the cell and pyplot warn of the 21st."""
    for number in numbers:
        sys.modules["matplotlib.pyplot"].close(number)


def _kind(t):
    if isinstance(t, torch.nn.Parameter):
        return "parameter"
    return "tensor" if type(t) is torch.Tensor else type(t).__name__[:80]


def _other(value, text=None):
    return {"object": {"type": type(value).__name__[:80], "text": text or _text(value)[:200]}}


def _text(value):
    try:
        return str(value)[:MAX_TEXT]
    except Exception as error:
        return f"<{type(value).__name__}, whose text raised {type(error).__name__}>"


def _paths(name, value, depth=0):
    """(path, tensor) of every tensor inside an argument, as the judge names them: x, x[0], x['key']."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, (list, tuple)) and depth < MAX_DEPTH:
        for i, item in enumerate(value):
            yield from _paths(f"{name}[{i}]", item, depth + 1)
    elif isinstance(value, dict) and depth < MAX_DEPTH:
        for key, item in value.items():
            yield from _paths(f"{name}[{key!r}]", item, depth + 1)


# ---- the whole ------------------------------------------------------------------------------------------------------


def answer(function, question: bytes, failed=None, first=0) -> bytes:
    """Call `function` on the cases of a question, from the `first` on, and return the message that answers it.

    `failed(number, error)` is told of every case that ends with an exception.
    """
    with _no_modes():
        return _answered(function, question, failed, first)


def _answered(function, question, failed, first):
    meta, tensors = unpack(question)
    pack, seen = Pack(), []
    driver = None
    if meta["driver"]:
        space = {}
        exec(compile(meta["driver"], "<driver>", "exec"), space)
        driver = space["driver"]
    for number, case in list(enumerate(meta["cases"]))[first:]:
        arguments = lambda case=case: dict(
            zip(meta["arguments"], build({"tuple": case}, tensors, {}), strict=True)  # fresh at every call
        )
        hidden, seed = meta.get("hidden") or (len(meta["cases"]), 0)
        reset_state(number + (seed if number >= hidden else meta["seed"]))
        if meta["threads"] and torch.get_num_threads() != meta["threads"]:
            torch.set_num_threads(meta["threads"])  # it changes the last digits of sums
        count, figures = meta.get("count", True), _open_figures()
        told = failed and (lambda error, number=number: failed(number, error))
        seen.append(
            observe(
                function, arguments(), driver=driver, gradient=meta["gradient"], count=count, pack=pack, failed=told
            )
        )
        if meta["fake_cuda"] and seen[-1]["raised"] is None:  # what fails here tells nothing there
            seen[-1]["fake_cuda"] = on_fake_cuda(function, arguments(), driver)
        _close_figures(_open_figures() - figures)
    return pack.message(seen=seen)


def publish(function, question: str) -> None:
    """Answer a question (base64) and send the reply through the kernel's own display channel."""
    from IPython import get_ipython

    text = base64.b64encode(answer(function, base64.b64decode(question))).decode()
    get_ipython().display_pub.publish({MIME: text})
