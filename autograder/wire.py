"""Bytes that pass between the judge and a student's process: questions out, answers in.

Source of the format: huggingface.co/docs/safetensors (8 bytes of length, a JSON header, the tensors' bytes). Nothing is ever
unpickled. What comes in is hostile: sizes are checked before anything is built from them, and whatever is malformed is a
value, `Unreadable`, not an accident.
"""

import base64
import contextlib
import functools
import inspect
import json
import marshal
import re
import struct
import warnings
import zlib
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load

from . import fake_gpu, probe
from .records import Answers, Raised, Seen, SeenAxes, SeenFigure, SeenLine, SeenObject, SeenTensor

MAX_MESSAGE = 64 << 20  # bytes
MAX_HEADER = 32 << 20
MAX_SECONDS = 1e6  # that a call may be said to have taken
MAX_LEGEND = 1000  # texts: a figure may have several legends
MAX_KEYS = 2000  # of one dict or set


class Unreadable(ValueError):
    """A message that does not follow the format; its text says where."""


# ---- questions ------------------------------------------------------------------------------------------------------


def pack_question(
    cases,
    arguments,
    *,
    seed=0,
    hidden=None,
    driver="",
    gradient=False,
    fake_cuda=False,
    count=True,
    device="cpu",
    threads=0,
) -> bytes:
    """The message that asks for a function's answers on `cases`, a list of tuples of values named `arguments`.

    Tensors keep their strides, and those of one case that share memory share it again on the other side, which builds
    them on `device` and uses `threads` of torch (0: as many as it finds). The random state of each case comes of `seed`,
    that of hidden ones of their own: `hidden` is the number of the first of them and that seed.
    """
    tensors: dict[str, torch.Tensor] = {}
    nodes = []
    for case in cases:
        storages: dict[int, str] = {}
        nodes.append([_on(device, _node(value, tensors, storages)) for value in case])
    meta = {
        "cases": nodes,
        "arguments": list(arguments),
        "seed": seed,
        "driver": driver,
        "gradient": gradient,
        "fake_cuda": fake_cuda,
        "threads": threads,
    }
    if hidden:
        meta["hidden"] = list(hidden)
    return _message(tensors, meta if count else {**meta, "count": False})


def without_driver(question: bytes) -> bytes:
    """The same question with its function called directly."""
    meta, tensors = probe.unpack(question)
    return _message(tensors, {**meta, "driver": "", "fake_cuda": False})


def cases(question: bytes) -> list[tuple]:
    """The cases of a question as values, their tensors on the CPU."""
    meta, tensors = probe.unpack(question)
    return [probe.build({"tuple": _on("cpu", case)}, tensors, {}) for case in meta["cases"]]


def without_times(answer: bytes) -> bytes:
    """The same answer with every duration 0, no address, and NaN without a sign, so that equal behaviour gives equal bytes."""
    meta, tensors = probe.unpack(answer)
    for t in tensors.values():
        if t.is_floating_point():
            t[t != t] = float("nan")  # which sign it has differs from processor to processor
    seen = [{**case, "seconds": 0.0} for case in meta["seen"]]
    return probe.packed(tensors, ADDRESS.sub("", json.dumps({"seen": seen})))


ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # of an object, in its text: another one at every run


def _message(tensors, meta) -> bytes:
    return probe.packed(tensors, json.dumps(meta))


def probe_code(exercise: str, question: bytes, gpu: bool = True) -> str:
    """The Python expression that, evaluated in a kernel, answers `question` with the function named `exercise`.

    The reply goes out on the kernel's display channel; a missing function is a KeyError. `gpu`: whether the question may ask
    for the fake GPU.
    """
    return _publishing(f"__import__('IPython').get_ipython().user_ns[{exercise!r}]", question, gpu)


def echo_code(word: str) -> str:
    """The expression that answers as a probe does, tensors included, with nothing of the student's: its reply holds `word` backwards."""
    question = pack_question([(word, torch.ones(2))], ["word", "x"])
    return _publishing("lambda word, x: (word[::-1], x + 1)", question, gpu=False)


def _publishing(function: str, question: bytes, gpu: bool) -> str:
    """An expression, not a cell: IPython would take 10 ms to read its text, and show it to the student's AST transformers.

    The probe comes compiled, so the kernel has to be of this version of Python.
    """
    text = base64.b64encode(question).decode()
    return (
        "(lambda space: (__import__('builtins').exec(__import__('marshal').loads(__import__('zlib').decompress("
        f"__import__('base64').b64decode({_compiled_probe(gpu)!r}))), space), space['publish']({function}, {text!r}))[1])"
        "({'__name__': 'probe'})"
    )


@functools.cache
def _compiled_probe(gpu: bool) -> str:
    """The probe's code, without docstrings; the fake GPU, a third of it, only where it is needed: it is read at each probe."""
    before, after = inspect.getsource(probe).split("from .fake_gpu import FakeGpu, leaves\n")
    leaves = f"DEEPEST = {fake_gpu.DEEPEST}\n{inspect.getsource(fake_gpu.leaves)}"
    text = before + (inspect.getsource(fake_gpu) if gpu else leaves) + after
    code = compile(text, "<probe>", "exec", optimize=2)
    return base64.b64encode(zlib.compress(marshal.dumps(code))).decode()


def _on(device, node):
    """The same node with its tensors on `device`."""
    if isinstance(node, list):
        return [_on(device, item) for item in node]
    if not isinstance(node, dict):
        return node
    if "tensor" in node:
        return {"tensor": {**node["tensor"], "device": device}}
    return {key: _on(device, item) for key, item in node.items()}


def _node(value, tensors, storages):
    below = lambda child: _node(child, tensors, storages)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, torch.Tensor):
        return _tensor_node(value, tensors, storages)
    if isinstance(value, torch.Size):
        return {"size": list(value)}
    if isinstance(value, (list, tuple)):
        return {"list" if isinstance(value, list) else "tuple": [below(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[below(key), below(item)] for key, item in value.items()]}
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if value is Ellipsis:
        return {"ellipsis": True}
    if isinstance(value, (torch.dtype, torch.layout)):
        return {type(value).__name__: str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, set):
        return {"set": sorted(value)}
    if type(value).__module__ == "numpy":
        return {"array": below(torch.from_numpy(value))}
    raise TypeError(
        f"a case holds a {type(value).__name__}; use tensors, numbers, text, lists, tuples, dicts, slices, dtypes"
    )


def _tensor_node(t, tensors, storages):
    if hasattr(t, "get_mask"):
        parts = {
            "data": _node(t.get_data().detach(), tensors, storages),
            "mask": _node(t.get_mask(), tensors, storages),
        }
        return {"masked": {**parts, "requires_grad": t.requires_grad}}
    grad = t.requires_grad
    if t.layout == torch.sparse_coo:
        parts = {"indices": t.detach()._indices(), "values": t.detach()._values()}
        nodes = {name: _node(part, tensors, storages) for name, part in parts.items()}
        return {"sparse_coo": {**nodes, "size": list(t.shape), "coalesced": t.is_coalesced(), "requires_grad": grad}}
    if t.layout == torch.sparse_csr:
        t = t.detach()
        parts = {"crow": t.crow_indices(), "col": t.col_indices(), "values": t.values()}
        nodes = {name: _node(part, tensors, storages) for name, part in parts.items()}
        return {"sparse_csr": {**nodes, "size": list(t.shape), "requires_grad": grad}}
    key = storages.setdefault(t.untyped_storage()._cdata, f"s{len(tensors)}")
    if key not in tensors:
        tensors[key] = torch.empty(0, dtype=torch.uint8).set_(t.detach().untyped_storage()).clone()
    return {
        "tensor": {
            "storage": key,
            "dtype": str(t.dtype).removeprefix("torch."),
            "size": list(t.shape),
            "stride": list(t.stride()),
            "offset": t.storage_offset(),
            "device": "cpu",
            "requires_grad": grad,
            "parameter": isinstance(t, torch.nn.Parameter),
        }
    }


# ---- answers --------------------------------------------------------------------------------------------------------


def read_answers(exercise: str, message: bytes, cases: int, told=lambda message: message) -> Answers:
    """The Answers in a message of a student's process; one whose form is wrong has a `failure` and nothing else.

    Args:
        told: puts what is told of the results in their place, see `facts`.
    """
    try:
        seen = read_seen(told(message))
        if len(seen) != cases:
            raise Unreadable(f"it answers {len(seen)} cases where {cases} were asked")
    except Unreadable as error:
        return Answers(exercise, failure=f"The answer that was sent back is unreadable: {error}.")
    return Answers(exercise, tuple(seen))


def read_seen(message: bytes) -> list[Seen]:
    """One Seen for each case that a message answers.

    Raises:
        Unreadable: the message does not follow the format, or is larger than MAX_MESSAGE bytes.
    """
    with reading():
        meta, tensors = opened(message)
        return [_seen(case, tensors) for case in meta["seen"]]


@contextlib.contextmanager
def reading():
    """What goes wrong meanwhile is Unreadable."""
    try:
        yield
    except Unreadable:
        raise
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RuntimeError) as error:
        raise Unreadable(f"{type(error).__name__} while reading it") from error


def whole(question: bytes) -> bytes:
    """The question itself, when it can be read.

    Raises:
        ValueError, KeyError, TypeError: it does not follow the format.
    """
    opened(question)
    return question


def opened(message: bytes) -> tuple[dict, dict]:
    """The metadata and the tensors of a message that may be hostile."""
    if len(message) > MAX_MESSAGE:
        raise Unreadable(f"it has {len(message)} bytes; at most {MAX_MESSAGE} are accepted")
    if len(message) < 8:
        raise Unreadable("it is cut short")
    (length,) = struct.unpack("<Q", message[:8])
    if length > min(MAX_HEADER, len(message) - 8):
        raise Unreadable("its header is cut short or too long")
    header = json.loads(message[8 : 8 + length])
    try:
        tensors = load(message)
    except SafetensorError as error:
        raise Unreadable("its tensors are malformed") from error
    return json.loads(header["__metadata__"]["tree"]), tensors


def _seen(case, tensors) -> Seen:
    raised = case["raised"]
    return Seen(
        result=read_node(case["result"], tensors),
        raised=None
        if raised is None
        else Raised(tuple(name[:80] for name in _strings(raised["types"])), _short(raised["message"])),
        inputs={_string(name): read_node(node, tensors) for name, node in case["inputs"]},
        gradients={_string(name): read_node(node, tensors) for name, node in case["gradients"].items()},
        ops={_string(name): _count(n) for name, n in case["ops"].items()},
        new_bytes=_count(case["new_bytes"]),
        warnings=tuple(map(_short, case["warnings"])),
        seconds=_seconds(case["seconds"]),
        fake_cuda=_fake(case["fake_cuda"]),
    )


def _seconds(value) -> float:
    """A time that a report can add up: it decides nothing, so one that is no time is 0."""
    known = isinstance(value, (int, float)) and 0 <= value < MAX_SECONDS
    return float(value) if known else 0.0


def _fake(node):
    if node is None:
        return None
    return {
        "raised": _string(node["raised"]),
        "message": _string(node["message"]),
        "devices": _strings(node["devices"]),
    }


def read_node(node, tensors) -> Any:
    """What a node stands for, as in a Seen."""
    if node is None or isinstance(node, (bool, int, float)):
        return node
    if isinstance(node, str):
        return _short(node)
    if not isinstance(node, dict) or len(node) != 1:
        raise Unreadable("a node is neither a plain value nor one named thing")
    ((kind, body),) = node.items()
    below = lambda child: read_node(child, tensors)
    if kind == "list":
        return [below(item) for item in body]
    if kind == "tuple":
        return tuple(below(item) for item in body)
    if kind == "size":
        return tuple(_count(n) for n in body)
    if kind == "dict":
        return {_key(below(key)): below(value) for key, value in _few(body)}
    if kind == "set":
        return frozenset(_key(below(item)) for item in _few(body))
    if kind == "slice":
        start, stop, step = ("" if part is None else part for part in map(below, body))
        return SeenObject("slice", f"{start}:{stop}:{step}" if step else f"{start}:{stop}")
    if kind == "tensor":
        return _seen_tensor(body, tensors)
    if kind in ("array", "scalar"):
        seen = _seen_tensor(body["tensor"], tensors)
        return _renamed(seen, kind)
    if kind == "figure":
        return _seen_figure(body, tensors)
    if kind == "complex":
        real, imag = body
        return complex(real, imag)
    if kind == "bytes":
        return base64.b64decode(_string(body))
    if kind == "object":
        return SeenObject(_short(body["type"]), _short(body["text"]))
    if kind in ("dtype", "layout", "device", "ellipsis"):
        return SeenObject(kind, str(body)[:80])
    raise Unreadable(f"a node is a {str(kind)[:40]!r}, which is not of the format")


MASKED = ("data", "mask")
PARTS = {  # layout: what its values lie in
    "sparse_coo": ("indices", "values"),
    **dict.fromkeys(("sparse_csr", "sparse_bsr"), ("crow", "col", "values")),
    **dict.fromkeys(("sparse_csc", "sparse_bsc"), ("ccol", "row", "values")),
}  # fmt: skip


def sparse(seen: SeenTensor) -> torch.Tensor | None:
    """The sparse tensor that was seen, COO or CSR; None where its parts contradict each other or did not come.

    It takes no more memory than its parts, whatever its shape.
    """
    make = {"sparse_coo": torch.sparse_coo_tensor, "sparse_csr": torch.sparse_csr_tensor}.get(seen.layout)
    parts = [seen.parts[name].value for name in PARTS.get(seen.layout, ())]
    if make is None or any(part is None for part in parts):
        return None
    try:
        with warnings.catch_warnings():  # "Sparse CSR tensor support is in beta state"
            warnings.simplefilter("ignore")
            return make(*parts, seen.shape, check_invariants=True)
    except (RuntimeError, ValueError, TypeError, IndexError):
        return None


def _seen_tensor(body, tensors, depth=0) -> SeenTensor:
    if depth > 2:
        raise Unreadable("a tensor has parts of parts")
    dtype = getattr(torch, _string(body["dtype"]), None)
    if not isinstance(dtype, torch.dtype):
        raise Unreadable(f"{str(body['dtype'])[:40]!r} is no dtype")
    shape = tuple(_count(n) for n in body["shape"])
    value = None
    if "value" in body:
        value = tensors[_string(body["value"])]
        value = torch.view_as_complex(value) if dtype.is_complex else value
        if value.dtype != dtype or tuple(value.shape) != shape:
            raise Unreadable("a tensor's values contradict its dtype or shape")
    kind, layout, parts = _string(body["kind"]), _string(body["layout"]), body.get("parts", {})
    if set(parts) != set(MASKED if kind == "masked" else PARTS.get(layout, ())):
        raise Unreadable("a tensor's parts are not those of its kind and layout")
    return SeenTensor(
        value=value,
        dtype=_string(body["dtype"]),
        shape=shape,
        layout=layout,
        stride=tuple(int(n) for n in body["stride"]) if "stride" in body else None,
        offset=_count(body["offset"]) if "offset" in body else None,
        device=_string(body["device"]),
        storage=_string(body.get("storage", "")),
        storage_bytes=_count(body.get("storage_bytes", 0)),
        same_as=_string(body["same_as"]),
        kind=kind,
        requires_grad=body["requires_grad"] is True,
        is_leaf=body["is_leaf"] is True,
        grad_fn=_string(body["grad_fn"]),
        parts={_string(k): _seen_tensor(v["tensor"], tensors, depth + 1) for k, v in parts.items()},
        withheld=_string(body.get("withheld", "")),
    )


def _seen_figure(body, tensors) -> SeenFigure:
    panels = tuple(_seen_axes(panel, tensors) for panel in _shown(body["panels"], probe.MAX_PANELS))
    return SeenFigure(
        panels,
        **_texts(body, "alt", "title", "x_label", "y_label"),
        legend=tuple(map(_short, _shown(body["legend"], MAX_LEGEND))),
    )


def _shown(items, most):
    """The panels of a figure, lines of a panel or texts of a legend: each may be compared with each."""
    if len(items) > most:
        raise Unreadable(f"a figure has {len(items)} panels, lines or texts; at most {most} are accepted")
    return items


def _seen_axes(body, tensors) -> SeenAxes:
    return SeenAxes(
        **_texts(body, "title", "x_label", "y_label"),
        **{key: (float(body[key][0]), float(body[key][1])) for key in ("x_limits", "y_limits")},
        **{key: _count(body[key]) for key in ("shares_x", "shares_y")},
        lines=tuple(_seen_line(line, tensors) for line in _shown(body["lines"], probe.MAX_PANELS)),
        legend=tuple(map(_short, _shown(body["legend"], MAX_LEGEND))),
    )


def _seen_line(body, tensors) -> SeenLine:
    x, y = (_seen_tensor(body[key]["tensor"], tensors) for key in ("x", "y"))
    if any(seen.dtype != "float64" or len(seen.shape) != 1 for seen in (x, y)) or x.shape != y.shape:
        raise Unreadable("the data of a line are not two float64 tensors of one length")
    return SeenLine(x, y, **_texts(body, "label", "style", "marker", "colour"))


def _texts(body, *keys) -> dict[str, str]:
    return {key: _short(body[key]) for key in keys}


def _renamed(seen: SeenTensor, kind: str) -> SeenTensor:
    return SeenTensor(**{**vars(seen), "kind": kind})


def _string(value) -> str:
    if not isinstance(value, str):
        raise Unreadable("a text is missing")
    return value


def _short(value) -> str:
    """A text of a length that a probe sends: what reads it here may take longer than its length tells."""
    if len(_string(value)) > 2 * probe.MAX_TEXT:  # a warning's holds its class as well
        raise Unreadable(f"a text has {len(value)} characters; at most {2 * probe.MAX_TEXT} are accepted")
    return value


def _strings(values) -> list[str]:
    return [_string(value) for value in values]


def _count(value) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0 or value >= 1 << 63:
        raise Unreadable("a count is not a whole number of 63 bits")
    return value


def _few(items):
    """The items of a dict or set; numbers can be chosen so that all have one hash, and then each is compared with each."""
    if len(items) > MAX_KEYS:
        raise Unreadable(f"a dict or set has {len(items)} items; at most {MAX_KEYS} are accepted")
    return items


def _key(value):
    if not isinstance(value, (str, int, float, bool, tuple, complex, bytes, type(None), SeenObject)):
        raise Unreadable("a key is neither a number nor a text")
    hash(value)
    return value
