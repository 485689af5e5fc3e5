"""The first difference between what was expected and what came.

Works on `Seen` records only, so it is the same in the judge, in a student's notebook and in the course's own tests. Shape and
dtype are compared before any value is read: a hostile answer never decides how much memory a comparison takes.
"""

import math
import re
import textwrap
from dataclasses import dataclass, replace

import torch

from . import plots
from .properties import Property
from .records import Seen, SeenFigure, SeenObject, SeenTensor
from .wire import ADDRESS, sparse

TOLERANCES = {  # rtol, atol: those of torch.testing.assert_close
    "float64": (1e-7, 1e-7),
    "float32": (1.3e-6, 1e-5),
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "complex128": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
}
ELSEWHERE = 10  # times as much on a GPU, whose sums run in another order from kernel to kernel


@dataclass(frozen=True)
class Difference:
    """Where an answer leaves the expected one.

    Attributes:
        aspect: one of ASPECTS.
        path: "result", "result[1]", "x after the call" ...
        expected, got: short texts.
        next_step: a sentence on what to look at.
    """

    aspect: str
    path: str
    expected: str
    got: str
    next_step: str


ASPECTS = {  # aspect: what is said when it differs
    "unanswered": "This exercise is not answered yet: write your code in its cell in place of `raise ...`, and run that cell.",
    "raised": "Call your function on this input in a cell of its own: the error then names the line where it comes from.",
    "raises": "This input is not legal: raise the exception that the task names, before computing anything.",
    "type": "Look at what your function returns.",
    "shape": "Print the .shape of your result, and compare it with the one expected, dimension by dimension.",
    "dtype": "Print the .dtype of your result. What decides it: your inputs, or a function you call?",
    "device": "Make new tensors on the device of the input: device=x.device.",
    "layout": "Print the .layout of your result.",
    "mask": "Compare the mask of your result with the one expected.",
    "value": "Work the smallest failing input through by hand.",
    "inputs": "Your function changed an argument, or did not change it as the task asks.",
    "sharing": "Does each step of yours return a view, or a copy?",
    "strides": "Print .stride() of your result.",
    "storage": "How large is the storage behind your result? A view keeps all of it alive.",
    "gradient": "Call .backward() on the sum of your result and look at the .grad of the input. The check gives each element "
    "of the result a weight of its own, so compare zeros, signs and NaN rather than the numbers.",
    "operations": "Count what your code does for a large input. One operation on the whole tensor replaces a loop.",
    "memory": "Which of your steps copies, and how much of what it copies is needed?",
    "forbidden call": "Find a way without this operation.",
    "warnings": "Read the warning: it names the cause.",
    "requires_grad": "Is the result connected to the graph of the input?",
    "source": "Find a way without this construct.",
    "plot": "Show the figure and look at it as a reader who knows nothing of the code, and once as one who sees no colours.",
    "kind": "Look at what kind of object your function returns.",
}


ONE_NUMBER = "The functions of `math`, `float()` and `.item()` take one number. torch has functions of the same names for whole tensors."
NO_AXIS = "A tensor of shape () is a single number: it has no axis to slice or to walk along. `x[...]` is all of a tensor of any shape."
TWO_TENSORS = (
    "`x.max(dim)`, `x.min(dim)`, `x.sort(dim)` and their like give two tensors at once: `.values` are the numbers, `.indices` the "
    "places. `x.amax(dim)` and `x.amin(dim)` give the numbers alone."
)
SIGNATURE = (
    "A function was called with another number of arguments than it takes. The check gives yours those of the task: leave the "
    "line with `def` as it was."
)
RAISED = {  # of an error that says so: what is said in place of the general sentence
    "Boolean value of Tensor with more than one value is ambiguous": "`if`, `and` and `or` ask one question, and a tensor "
    "of several elements gives several answers. Choose place by place (`torch.where`), or say whether `.any()` or `.all()` "
    "of them is meant.",
    "a leaf Variable that requires grad is being used in an in-place operation": "Your code writes into a tensor whose "
    "gradient is wanted. Make a new tensor in its place; only where the write itself is the task, do it under "
    "`torch.no_grad()`.",
    "modified by an inplace operation": "Your function returned, and the way back failed: something was written into (`x /= y`, "
    "`x += y`, `x[i] = y`) that the gradient needs. Make a new tensor: `x = x / y`.",
    "can be converted to Python scalars": ONE_NUMBER,
    "cannot be converted to Scalar": ONE_NUMBER,
    "is not defined": "The kernel does not know this name: run the cell that defines it (after a restart, all cells above), or "
    "see whether it is misspelt.",
    "required positional argument": SIGNATURE,
    "positional arguments but": SIGNATURE,
    "positional argument but": SIGNATURE,
    "torch.return_types": TWO_TENSORS,
    "bitwise_xor": "In Python `^` is the exclusive or of bits. A power is `**`.",
    "slice() cannot be applied to a 0-dim tensor": NO_AXIS,
    "a 0-d tensor": NO_AXIS,  # len() of, iteration over
    "device type tensor to numpy": "NumPy reads the memory of the CPU only. torch has functions of the "
    "same names, which work wherever the tensor is.",
}
CUT_OFF = (
    "No gradient reaches this input: the result does not use it here, or was cut off from it, by `.detach()`, `.data`, "
    "`.item()`, NumPy, `torch.tensor(...)`, `masked_tensor(...)` or `torch.no_grad()`."
)


def difference(expected: Seen, got: Seen, properties: tuple[Property, ...] = (), tolerance=None) -> Difference | None:
    """The first difference that counts, or None. Properties are looked at in their order, after the values."""
    if (found := _raised(expected, got)) or expected.raised:
        return found or _inputs(expected, got, tolerance)
    found = _tree("result", expected.result, got.result, tolerance) or _inputs(expected, got, tolerance)
    for wanted in properties:
        found = found or _PROPERTIES[wanted.name](expected, got, tolerance, *wanted.arguments)
    return found


def _differs(aspect, path, expected, got, next_step="") -> Difference:
    return Difference(aspect, path, str(expected), str(got), next_step or ASPECTS[aspect])


# What to look at when not a value but something on the way to it came back.
NOTHING = "Nothing comes back: end with `return`. What is printed is only shown, and an `if` without its `else` returns nothing."
NOTHING_THERE = "This is None: nothing came back (end with `return`), nothing was put there, or it is a gradient that does not exist."
SEVERAL = (
    "Several things came back at once, as with a comma behind `return`. `x.max(dim)` and `x.min(dim)` do that, too: their "
    "`.values` are the numbers, their `.indices` the places."
)
TO_PLAIN = "A MaskedTensor came, and a plain tensor is wanted: `.to_tensor(value)` makes one, with your value where nothing counts."
TO_MASKED = "A plain tensor came, and a MaskedTensor is wanted: data and mask together, so that what is missing stays known as missing."
MASKED_GRADIENT = (
    "A masked gradient is what an input gets that goes through `as_masked_tensor`. Where a plain one is wanted, compute with "
    "plain tensors and `torch.where`."
)
YIELDED = "With `yield` in it a function returns a generator and computes nothing yet: end with `return`."
AWAITED = "An `async def` returns a coroutine and computes nothing yet: write `def`."
UNCALLED = "This is the function itself, not what it returns: call it, with () behind its name."
UNFINISHED = {"generator": YIELDED, "coroutine": AWAITED, "async_generator": AWAITED}
ARRAY = "This came out as a NumPy array. Stay with torch: what NumPy has, a tensor has as well."
HANDED_BACK = "`return` hands the exception over as a value. `raise` in its place ends the call with it."
KEYS = "Compare the keys of your dict with those that the task names, letter by letter."
COUNT = "Count what comes back: is a `return` inside a loop that should go on, or a step too many?"
OTHER_ERROR = (
    "This input is not legal, and another error came before the exception that the task names: read it first. Raise the one "
    "that is named before computing anything."
)
NO_OPERATION = "Do it without any torch operation, from what you were given."
STATEMENT = (
    "What stands between the quotes has to be true of your result, and it is not: which line of yours decides it?"
)
ONE_ELEMENT = "This is a tensor of one element. `.item()` makes a plain number of it."


def _wrong_type(path, expected, got, tensor=None) -> Difference:
    """Another type than expected came; `expected` is a text, `tensor` the tensor expected, `got` what was seen."""
    callables = ("builtin_function_or_method", "function", "method", "type")
    if got is None:
        next_step = CUT_OFF if "gradient of " in path else NOTHING if path == "result" else NOTHING_THERE
    elif isinstance(got, tuple) and len(got) > 1 and tensor is not None:
        next_step = SEVERAL
    elif isinstance(got, SeenTensor) and got.kind == "masked" and tensor is not None:
        next_step = MASKED_GRADIENT if "gradient of" in path else TO_PLAIN
    elif isinstance(got, SeenTensor) and got.kind == "tensor" and tensor is not None and tensor.kind == "masked":
        next_step = TO_MASKED
    elif isinstance(got, SeenObject) and got.type in callables:
        next_step = UNCALLED
    elif isinstance(got, SeenObject) and got.type in UNFINISHED:
        next_step = UNFINISHED[got.type]
    else:
        next_step = ARRAY if isinstance(got, SeenTensor) and got.kind == "array" else ""
    return _differs("type", path, expected, _type_of(got), next_step)


def _raised(expected, got):
    if got.raised and got.raised.blank and not expected.raised:
        return _differs("unanswered", "the call", "an answer", "NotImplementedError")
    if got.raised and not expected.raised:
        return _differs("raised", "the call", "no error", _error(got.raised, 300), _better(got.raised.message))
    if expected.raised and not got.raised:
        wanted = expected.raised.types[0]
        if isinstance(got.result, SeenObject) and got.result.type in (wanted, "type"):
            return _differs("raises", "the call", wanted, f"no error: {wanted} was returned, not raised", HANDED_BACK)
        return _differs("raises", "the call", wanted, f"no error, but {show(got.result)}")
    if expected.raised and expected.raised.types[0] not in got.raised.types:
        return _differs("raises", "the call", expected.raised.types[0], _error(got.raised, 200), OTHER_ERROR)
    return None


def _better(message) -> str:
    """The sentence of RAISED for an error with this message, or ""."""
    return next((step for sign, step in RAISED.items() if sign in message), "")


def _error(raised, most) -> str:
    """Name and first line of what was raised, at most `most` characters of it."""
    text = textwrap.shorten(raised.message.strip().split("\n")[0], most, placeholder=" …")
    return f"{raised.types[0]}: {text}" if text else raised.types[0]


def _inputs(expected, got, tolerance):
    for name, value in expected.inputs.items():
        if name not in got.inputs:
            return _differs("inputs", name, show(value), "nothing")
        if found := _tree(f"{name} after the call", value, got.inputs[name], tolerance):
            return _differs("inputs", found.path, found.expected, found.got)
    return None


# ---- trees ----------------------------------------------------------------------------------------------------------


def _tree(path, expected, got, tolerance):
    if isinstance(expected, SeenTensor):
        return _tensor(path, expected, got, tolerance)
    if isinstance(expected, (list, tuple)):
        return _sequence(path, expected, got, tolerance)
    if isinstance(expected, dict):
        return _mapping(path, expected, got, tolerance)
    if isinstance(expected, SeenFigure):  # what counts of it, same_plot says
        return None if isinstance(got, SeenFigure) else _wrong_type(path, show(expected), got)
    if isinstance(expected, SeenObject):
        same = isinstance(got, SeenObject) and got.type == expected.type and show(got) == show(expected)
        return None if same else _differs("value", path, show(expected), show(got))
    return _scalar(path, expected, got, tolerance)


def _sequence(path, expected, got, tolerance):
    if not isinstance(got, (list, tuple)):
        return _wrong_type(path, f"a {type(expected).__name__} of {len(expected)}", got)
    if len(got) != len(expected):
        came, wanted = (f"{plots.count(len(items), 'item')}: {show(items)}" for items in (got, expected))
        return _differs("value", path, wanted, came, COUNT)
    return next(
        filter(
            None, (_tree(f"{path}[{i}]", e, g, tolerance) for i, (e, g) in enumerate(zip(expected, got, strict=True)))
        ),
        None,
    )


def _mapping(path, expected, got, tolerance):
    if not isinstance(got, dict):
        return _wrong_type(path, "a dict", got)
    if missing := [key for key in expected if key not in got]:
        came = f"the keys {', '.join(map(repr, list(got)[:10]))}" if got else "an empty dict"
        return _differs("value", path, f"the key {missing[0]!r}", came, KEYS)
    if extra := [key for key in got if key not in expected]:
        wanted = f"the keys {', '.join(map(repr, expected))}"
        return _differs("value", path, wanted, f"also the key {extra[0]!r}", KEYS)
    return next(
        filter(None, (_tree(f"{path}[{key!r}]", value, got[key], tolerance) for key, value in expected.items())), None
    )


def _scalar(path, expected, got, tolerance):
    numbers = isinstance(expected, (int, float, complex)) and not isinstance(expected, bool)
    if isinstance(got, SeenTensor) and got.kind == "scalar" and got.shape == () and got.value is not None:
        got = got.value.item()  # a NumPy number, e.g. np.float64(0.5)
    if numbers and isinstance(expected, float) and type(got) in (int, float):
        same = _near(expected, got, *(tolerance or TOLERANCES["float64"]))
        return None if same else _differs("value", path, show(expected), show(got))
    if type(expected) is not type(got):
        wanted, came = (_type_of(v) if v is None else f"{_type_of(v)}: {show(v)}" for v in (expected, got))
        found = replace(_wrong_type(path, wanted, got), got=came)
        alone = isinstance(got, SeenTensor) and got.kind == "tensor" and got.shape == ()
        return replace(found, next_step=ONE_ELEMENT) if alone and isinstance(expected, (int, float)) else found
    if isinstance(expected, complex):
        return (
            None
            if abs(expected - got) <= 1e-7 * (1 + abs(expected))
            else _differs("value", path, show(expected), show(got))
        )
    told = (
        expected is True and path.endswith("']") and " " in path.rsplit("['", 1)[1]
    )  # a fact, not a key that a task names
    return None if expected == got else _differs("value", path, show(expected), show(got), STATEMENT * told)


def _near(expected, got, rtol, atol):
    """Whether a number is the float that is expected, as torch.isclose says it of tensors."""
    if expected == got or (math.isnan(expected) and got != got):
        return True
    try:
        return math.isfinite(expected) and abs(expected - got) <= atol + rtol * abs(expected)
    except OverflowError:  # an int that is larger than every float
        return False


def _tensor(path, expected, got, tolerance):
    if not isinstance(got, SeenTensor):
        return _wrong_type(path, _type_of(expected), got, expected)
    if any((expected.kind == kind) != (got.kind == kind) for kind in ("masked", "array")):
        return _wrong_type(path, _type_of(expected), got, expected)
    for aspect in ("shape", "dtype", "layout", "device"):
        if getattr(expected, aspect) != getattr(got, aspect):
            said = show if aspect in ("shape", "dtype") else lambda seen, aspect=aspect: getattr(seen, aspect)
            return _differs(aspect, path, said(expected), said(got))
    if expected.kind == "masked":
        return _masked(path, expected, got, tolerance)
    if expected.parts:
        return _parts(path, expected, got, tolerance)
    if got.value is None and expected.value is not None:
        return _differs("value", path, show(expected), f"nothing: {got.withheld or 'no values came'}")
    if expected.value is None or _close(expected.value, got.value, expected, tolerance):
        return None
    return _differs("value", path, show(expected), show(got) + _where(expected, got, tolerance))


def _parts(path, expected, got, tolerance):
    if set(expected.parts) != set(got.parts):
        return _differs("layout", path, sorted(expected.parts), sorted(got.parts))
    return next(
        filter(
            None,
            (_tensor(f"{path}.{name}()", part, got.parts[name], tolerance) for name, part in expected.parts.items()),
        ),
        None,
    )


def _masked(path, expected, got, tolerance):
    if set(got.parts) != {"data", "mask"}:
        return _differs("type", path, "a MaskedTensor with data and mask", "one without")
    if found := _tensor(f"{path}.get_mask()", expected.parts["mask"], got.parts["mask"], tolerance):
        return _differs("mask" if found.aspect == "value" else found.aspect, found.path, found.expected, found.got)
    parts = expected.parts["data"], got.parts["data"]
    alike = len({(part.shape, part.dtype) for part in parts}) == 1
    data, other = map(_dense, parts) if alike else (None, None)
    if data is None or other is None:
        return _differs("value", f"{path}.get_data()", *map(show, parts))
    mask = _dense(expected.parts["mask"])
    if _close(data[mask], other[mask], expected, tolerance):
        return None
    return _differs("value", f"{path} where it is specified", show_values(data[mask]), show_values(other[mask]))


def _dense(seen):
    """The strided values of a part in any layout; None when they contradict each other or did not come."""
    if seen.layout == "strided":
        return seen.value
    made = sparse(seen)
    return None if made is None else made.to_dense()


def _limits(seen: SeenTensor, tolerance) -> tuple[float, float]:
    """(rtol, atol) for a tensor of a floating point dtype, where it lives."""
    rtol, atol = tolerance or TOLERANCES[seen.dtype]
    return (rtol, atol) if seen.device == "cpu" else (rtol * ELSEWHERE, atol * ELSEWHERE)


def _close(expected, got, seen, tolerance):
    if torch.equal(expected, got):  # what is close costs ten times as much to say, and most are equal
        return True
    if seen.dtype not in TOLERANCES:
        return False
    rtol, atol = _limits(seen, tolerance)
    wide = torch.complex128 if expected.is_complex() else torch.float64
    return torch.allclose(got.to(wide), expected.to(wide), rtol=rtol, atol=atol, equal_nan=True)


def _where(expected, got, tolerance):
    """Names the first place that differs, where a tensor has several."""
    if expected.value.numel() < 2 and show_values(expected.value) != show_values(got.value):
        return ""
    if expected.dtype in TOLERANCES:
        rtol, atol = _limits(expected, tolerance)
        wide = torch.complex128 if expected.value.is_complex() else torch.float64
        apart = ~torch.isclose(got.value.to(wide), expected.value.to(wide), rtol=rtol, atol=atol, equal_nan=True)
    else:
        apart = expected.value != got.value
    index = tuple(apart.nonzero()[0].tolist())
    came, wanted = got.value[index].item(), expected.value[index].item()
    came, wanted = (repr(came), repr(wanted)) if _number(came) == _number(wanted) else (_number(came), _number(wanted))
    return f" (first at [{', '.join(map(str, index))}]: {came} where {wanted} is expected)"


# ---- properties -----------------------------------------------------------------------------------------------------


def leaves(tree, path="result"):
    """(path, SeenTensor) of every tensor in a tree."""
    if isinstance(tree, SeenTensor):
        yield path, tree
    elif isinstance(tree, (list, tuple)):
        for i, item in enumerate(tree):
            yield from leaves(item, f"{path}[{i}]")
    elif isinstance(tree, dict):
        for key, item in tree.items():
            yield from leaves(item, f"{path}[{key!r}]")


def _each_leaf(aspect, what):
    """A property judged tensor by tensor: `what(seen)` must be the reference's."""

    def judge(expected, got, tolerance):
        for (path, e), (_, g) in zip(leaves(expected.result), leaves(got.result), strict=False):
            if what(e) != what(g):
                return _differs(aspect, path, what(e), what(g))
        return None

    return judge


def _sharing(seen: SeenTensor) -> str:
    if seen.same_as:
        return f"{seen.same_as} itself"
    if not seen.storage:
        return "no memory (it is empty)"
    return "memory of its own" if seen.storage.startswith("new") else f"memory shared with {seen.storage}"


NUMPY = ("array", "scalar")
UNSEEN = (
    "Operations are counted here, and yours ran where they cannot be: in another thread or process, or with the count switched "
    "off. Call torch in your function itself."
)


def _counted(judge):
    """A property of the operations: it fails where a new tensor came and none of them was seen; torch makes none without."""

    def judged(expected, got, *arguments):
        made = [
            t for _, t in leaves(got.result) if t.storage.startswith("new") and t.storage_bytes and t.kind not in NUMPY
        ]
        if made and expected.ops and not got.ops:
            return _differs(
                "operations", "the call", "torch operations", "a new tensor, and no operation was seen", UNSEEN
            )
        return judge(expected, got, *arguments)

    return judged


def _op_budget(expected, got, tolerance, extra):
    allowed, used = sum(expected.ops.values()) + extra, sum(got.ops.values())
    if used <= allowed:
        return None
    wanted = f"at most {plots.count(allowed, 'torch operation')}" if allowed else "no torch operation"
    return _differs("operations", "the call", wanted, used, "" if allowed else NO_OPERATION)


def _copy_budget(expected, got, tolerance, extra):
    allowed, used = expected.new_bytes + extra, got.new_bytes
    return _differs("memory", "the call", f"at most {allowed} bytes of new memory", used) if used > allowed else None


def _never_calls(expected, got, tolerance, *names):
    for name in names:
        if called := [op for op in got.ops if op.split(".")[1:2] in ([name], [f"_{name}"])]:  # to_dense: _to_dense
            times = sum(got.ops[op] for op in called)
            return _differs("forbidden call", "the call", f"no {name}", f"{name}, {plots.count(times, 'time')}")
    return None


def _no_warnings(expected, got, tolerance):
    return _differs("warnings", "the call", "no warning", got.warnings[0]) if got.warnings else None


def _gradient(expected, got, tolerance):
    for name, value in expected.gradients.items():
        path, other = f"gradient of {name}", got.gradients.get(name)
        if value is None and other is None:
            continue
        if value is None or other is None:
            return _differs("gradient", path, show(value), show(other), CUT_OFF if other is None else "")
        if found := _tree(path, value, other, tolerance):
            masked = MASKED_GRADIENT if found.next_step == MASKED_GRADIENT else ""
            return _differs("gradient", path, found.expected, found.got, masked)
    return None


def _finite_gradient(expected, got, tolerance):
    for name, value in got.gradients.items():
        if isinstance(value, SeenTensor) and value.value is not None and not torch.isfinite(value.value).all():
            return _differs("gradient", f"gradient of {name}", "finite numbers", show(value))
    return None


def _same_plot(expected, got, tolerance, *parts):
    if isinstance(expected.result, SeenFigure) and (found := plots.fault(expected.result, got.result, parts)):
        return _differs("plot", found.where, found.expected, found.got)
    return None


def _device_agnostic(expected, got, tolerance):
    if got.fake_cuda is None or expected.fake_cuda is None or expected.fake_cuda["raised"]:
        return None
    if got.fake_cuda["raised"]:
        return _differs(
            "device",
            "the same call on a GPU",
            "no error",
            f"{got.fake_cuda['raised']}: {got.fake_cuda['message'][:200]}",
            _better(got.fake_cuda["message"]),
        )
    if got.fake_cuda["devices"] != expected.fake_cuda["devices"]:
        return _differs("device", "the same call on a GPU", expected.fake_cuda["devices"], got.fake_cuda["devices"])
    return None


_PROPERTIES = {
    "same_sharing": _each_leaf("sharing", _sharing),
    "same_strides": _each_leaf("strides", lambda seen: seen.stride),
    "same_kind": _each_leaf("kind", lambda seen: seen.kind),
    "same_requires_grad": _each_leaf("requires_grad", lambda seen: seen.requires_grad),
    "small_storage": _each_leaf("storage", lambda seen: f"{seen.storage_bytes} bytes"),
    "op_budget": _counted(_op_budget),
    "copy_budget": _counted(_copy_budget),
    "never_calls": _counted(_never_calls),
    "no_warnings": _no_warnings,
    "gradient": _gradient,
    "finite_gradient": _finite_gradient,
    "device_agnostic": _device_agnostic,
    "same_plot": _same_plot,
    "no_loops": lambda expected, got, tolerance: None,  # read from the source, see source_rules
}


# ---- showing --------------------------------------------------------------------------------------------------------


# the address of an object, and where its class was defined: another one at every run, and in every notebook
OF_THIS_RUN = re.compile(ADDRESS.pattern + r"|(?<=<)(?:[\w<>]{1,100}\.){1,20}(?=\w{1,100} object\b)")


def show(value, limit: int = 240) -> str:
    """A value as a short text for people: values first, then shape and dtype."""
    text = _show(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _show(value):
    if isinstance(value, SeenTensor):
        if value.kind == "masked":
            return f"MaskedTensor, data {_show(value.parts['data'])}, mask {_show(value.parts['mask'])}"
        if value.parts:
            return f"{value.layout} {tuple(value.shape)}, " + ", ".join(
                f"{n} {_show(p)}" for n, p in value.parts.items()
            )
        values = show_values(value.value) if value.value is not None else f"({value.withheld})"
        return f"{values}, shape {value.shape}, {value.dtype}"
    if isinstance(value, SeenFigure):
        return f"a figure with {plots.count(len(value.panels), 'panel')}" + (
            " and a description of it" if value.alt else ""
        )
    if isinstance(value, SeenObject):
        return OF_THIS_RUN.sub("", value.text)
    if isinstance(value, (list, tuple)):
        inner = ", ".join(_show(item) for item in value[:20]) + (", …" if len(value) > 20 else "")
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_show(item)}" for key, item in list(value.items())[:20]) + "}"
    if isinstance(value, frozenset) and value:
        return f"{{{', '.join(sorted(map(_show, value)))}}}"
    return "set()" if isinstance(value, frozenset) else repr(value)  # both kinds of set are sent as one


def show_values(t: torch.Tensor, most: int = 64) -> str:
    """The values of a tensor as nested lists, cut after `most` elements."""
    if t.numel() > most:
        return f"[{', '.join(_number(v) for v in t.flatten()[:8].tolist())}, … {t.numel()} values]"
    return _nested(t.tolist())


def _nested(value):
    return f"[{', '.join(map(_nested, value))}]" if isinstance(value, list) else _number(value)


def _number(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _type_of(value):
    if isinstance(value, SeenTensor):
        kinds = {"masked": "MaskedTensor", "array": "NumPy array", "scalar": "NumPy number"}
        return f"{_a(kinds.get(value.kind, value.kind))} of shape {value.shape}"
    if isinstance(value, SeenObject):
        return _a(value.type)
    if isinstance(value, frozenset):
        return "a set"
    if isinstance(value, SeenFigure):
        return show(value)
    if isinstance(value, (list, tuple)) and any(isinstance(item, SeenFigure) for item in value):
        return f"a {type(value).__name__} of {', '.join(map(_type_of, value))}"
    return "None" if value is None else _a(type(value).__name__)


def _a(word: str) -> str:
    return f"an {word}" if word[:1].lower() in "aeiou" else f"a {word}"
