"""Questions and answers survive the wire, and a malformed answer is a value."""

import asyncio
import base64
import json
import marshal
import struct
import sys
import zlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save
from torch._subclasses.fake_tensor import FakeTensorMode

from autograder import probe, wire
from autograder.records import SeenObject, SeenTensor


def seen_of(*values, function=lambda *case: case, names=None, **options):
    """What a trusted call reports of `values`."""
    names = names or [f"a{i}" for i in range(len(values))]
    return wire.read_seen(probe.answer(function, wire.pack_question([values], names, **options)))[0]


BASE = torch.arange(24.0).view(4, 6)
TENSORS = {
    "contiguous": BASE,
    "transposed": BASE.t(),
    "slice": BASE[1:3, ::2],
    "expanded": torch.ones(1, 3).expand(4, 3),
    "0-d": torch.tensor(3),
    "empty": torch.empty(0, 3),
    "bool": BASE > 5,
    "half": BASE.half(),
    "bfloat16": BASE.bfloat16(),
    "uint8": BASE.to(torch.uint8),
    "complex": torch.complex(BASE, BASE),
    "nan": torch.tensor([float("nan"), float("inf"), -0.0]),
}


@pytest.mark.parametrize("name", TENSORS)
def test_a_tensor_arrives_with_its_values_and_its_layout_in_memory(name):
    t = TENSORS[name]
    arrived = []
    seen = seen_of(t, function=lambda x: arrived.append(x) or x)
    (there,) = arrived
    assert (there.dtype, there.shape, there.stride(), there.storage_offset()) == (
        t.dtype,
        t.shape,
        t.stride(),
        t.storage_offset(),
    )
    assert torch.equal(torch.nan_to_num(there.to(torch.complex64)), torch.nan_to_num(t.to(torch.complex64)))
    assert seen.result.shape == tuple(t.shape) and seen.result.stride == tuple(t.stride())
    assert seen.result.same_as == "a0"


def test_a_message_is_written_as_safetensors_writes_it():
    odd = torch.empty(0, dtype=torch.float32).set_(torch.ones(9).untyped_storage(), 2, (1, 3, 1), (7, 1, 5))
    assert odd.is_contiguous()
    tensors = {f"{n}{dtype}": torch.arange(6).to(dtype) for dtype in probe._DTYPES for n in (1, 10, 2)}
    tensors |= {"0-d": torch.tensor(3.5), "empty": torch.zeros(2, 0), "no": torch.tensor(False), "odd": odd}
    for some in (tensors, {}, {"odd": odd}):
        tree = json.dumps({"a": 'é\n"\\\x7f', "n": [float("nan")]})
        assert probe.packed(some, tree) == save(some, {"tree": tree})


def test_the_fake_gpu_is_sent_only_where_it_is_asked_for():
    def sent(**options):
        space = {"__name__": "probe"}
        question = wire.pack_question([(torch.ones(2),)], ["x"], **options)
        exec(marshal.loads(zlib.decompress(base64.b64decode(wire._compiled_probe(options["fake_cuda"])))), space)
        return space, wire.read_seen(space["answer"](lambda x: x + torch.zeros(2), question))[0]

    without, seen = sent(fake_cuda=False)
    assert "FakeGpu" not in without and seen.fake_cuda is None
    _, seen = sent(fake_cuda=True)
    assert "two devices" in seen.fake_cuda["message"]
    for count in (False, True):
        _, plain = sent(fake_cuda=False, count=count, gradient=True)
        _, faked = sent(fake_cuda=True, count=count, gradient=True)
        assert (plain.ops, plain.new_bytes) == (faked.ops, faked.new_bytes)


def test_tensors_that_share_memory_share_it_on_the_other_side():
    x = torch.zeros(4)
    shared = lambda a, b: a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    assert seen_of(x, x[1:], function=shared).result is True
    assert seen_of(x, x.clone(), function=shared).result is False


def test_a_call_never_touches_the_callers_tensors():
    x = torch.zeros(3)
    seen = seen_of(x, function=lambda t: t.add_(1))
    assert x.tolist() == [0, 0, 0]
    assert seen.inputs["a0"].value.tolist() == [1, 1, 1]


WRITES = [
    lambda stream: stream.writelines(["a", "b"]),
    lambda stream: stream.isatty() or stream.closed,
    lambda stream: stream.buffer.write(b"a"),
    lambda stream: stream.reconfigure(line_buffering=True),
    lambda stream: print("\ud800", file=stream, flush=True),
]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_what_a_function_prints_in_any_way_is_no_error(write, name, capsys):
    assert seen_of(1, function=lambda x: write(getattr(sys, name)) and None).raised is None
    assert capsys.readouterr() == ("", "")


class Out(BaseException):
    pass


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, asyncio.CancelledError, Out])
def test_whatever_a_function_raises_is_part_of_its_answer(error):
    def raises(x):
        raise error("stopped")

    raised = seen_of(1, function=raises).raised
    assert (raised.types[0], raised.message) == (error.__name__, "stopped")


def test_the_interrupt_of_the_time_limit_is_not():
    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        seen_of(1, function=interrupted)


VALUES = [
    None,
    True,
    3,
    -1.5,
    "text",
    (1, 2),
    [1, [2]],
    {"a": 1, 2: None},
    slice(1, None, 2),
    Ellipsis,
    torch.float64,
    torch.device("cpu"),
    torch.strided,
    1 + 2j,
    {1, 2},
    torch.Size([2, 3]),
    np.arange(3),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_every_kind_of_value_can_be_asked_and_answered(value):
    same = seen_of(value, function=lambda v: type(v).__name__).result
    assert same == type(value).__name__
    assert seen_of(value).raised is None


def test_sparse_tensors_keep_their_parts():
    coo = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    seen = seen_of(coo, function=lambda t: t).result
    assert seen.layout == "sparse_coo" and seen.parts["values"].value.tolist() == [2, 3]


def test_what_is_no_data_becomes_a_short_text():
    seen = seen_of(1, function=lambda v: object()).result
    assert isinstance(seen, SeenObject) and seen.type == "object"


def test_an_endless_list_does_not_end_the_probe():
    loop = []
    loop.append(loop)
    assert seen_of(1, function=lambda v: loop).raised is None


def test_values_too_large_are_withheld():
    seen = seen_of(1, function=lambda v: torch.zeros(1).expand(1 << 40)).result
    assert seen.value is None and "more than is accepted" in seen.withheld


def test_sharing_is_named_by_the_input_it_leads_to():
    seen = seen_of(BASE.clone(), function=lambda x: (x[1:], x.clone(), x)).result
    assert [t.storage for t in seen] == ["a0", "new0", "a0"]
    assert [t.same_as for t in seen] == ["", "", "a0"]


def test_gradients_of_inputs_that_require_them_are_reported():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    seen = seen_of(x, function=lambda x: x * x, gradient=True)
    assert torch.allclose(seen.gradients["a0"].value, torch.tensor([0.5, 1.5]) * 2 * torch.tensor([1.0, 2.0]))


def test_state_that_an_earlier_cell_left_behind_is_undone():
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    try:
        seen = seen_of(1, function=lambda v: (torch.ones(1).dtype == torch.float32, torch.is_grad_enabled()))
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)
    assert seen.result == (True, True)


class Doubling(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", [torch.inference_mode, lambda: torch.device("meta"), Doubling, FakeTensorMode])
def test_a_mode_that_an_earlier_cell_entered_is_put_aside(mode):
    here = lambda x: (torch.ones(1).device.type, (x * 2).tolist(), torch.is_inference_mode_enabled())
    question = wire.pack_question([(torch.ones(2),)], ["x"])
    with mode() as entered:
        depth = torch.overrides._len_torch_function_stack()
        message = probe.answer(here, question)
        assert torch.overrides._len_torch_function_stack() == depth
    assert wire.read_seen(message)[0].result == ("cpu", [2.0, 2.0], False), entered


def test_equal_behaviour_gives_equal_bytes():
    question = wire.pack_question([(BASE, 2)], ["x", "k"])
    assert question == wire.pack_question([(BASE, 2)], ["x", "k"])
    things = [object(), object()]  # at two addresses
    answers = [probe.answer(lambda x, k, thing=thing: (x[::k], thing, [str(thing)]), question) for thing in things]
    once, again = map(wire.without_times, answers)
    assert once == again


def test_the_sign_of_nan_is_no_difference():
    question = wire.pack_question([(BASE,)], ["x"])
    signed = [torch.tensor(float("nan")).copysign(torch.tensor(sign)) for sign in (0.0, -0.0)]
    answers = [probe.answer(lambda x, t=t: torch.stack([t, x.flatten()[0].float()]), question) for t in signed]
    once, again = map(wire.without_times, answers)
    assert once == again and answers[0] != answers[1]


# ---- hostile answers ------------------------------------------------------------------------------------------------

PLAIN = {
    "raised": None,
    "result": 1,
    "inputs": [],
    "gradients": {},
    "ops": {},
    "new_bytes": 0,
    "warnings": [],
    "seconds": 0.0,
    "fake_cuda": None,
}
TENSOR = {
    "dtype": "float32",
    "shape": [2],
    "layout": "strided",
    "device": "cpu",
    "kind": "tensor",
    "requires_grad": False,
    "is_leaf": True,
    "grad_fn": "",
    "same_as": "",
    "stride": [1],
    "offset": 0,
    "storage": "new0",
    "storage_bytes": 8,
    "value": "t0",
}


def message(result, tensors=None, **more):
    return save(tensors or {}, {"tree": json.dumps({"seen": [{**PLAIN, "result": result, **more}]})})


def deep(n):
    tree = json.dumps({"seen": [{**PLAIN, "result": "HERE"}]})
    return save({}, {"tree": tree.replace('"HERE"', '{"list":[' * n + "1" + "]}" * n)})


FIGURE = {**dict.fromkeys(("alt", "title", "x_label", "y_label"), ""), "legend": [], "panels": []}
ONE_HASH = sys.hash_info.modulus  # and all its multiples: 50,000 of them in a dict take half a minute
HOSTILE = {
    "nothing": b"",
    "garbage": b"\xff" * 100,
    "a length beyond the end": struct.pack("<Q", 1 << 62) + b"{}",
    "a header that is no JSON": struct.pack("<Q", 4) + b"....",
    "a header without a tree": save({}, {"other": "1"}),
    "a pickle": b"\x80\x04\x95cos\nsystem\n.",
    "an unknown node": message({"code": "print(1)"}),
    "a node of two kinds": message({"list": [], "tuple": []}),
    "a tensor without values of that name": message({"tensor": TENSOR}),
    "a tensor of another shape": message({"tensor": TENSOR}, {"t0": torch.zeros(3)}),
    "a tensor of another dtype": message({"tensor": TENSOR}, {"t0": torch.zeros(2, dtype=torch.int64)}),
    "a shape below zero": message({"tensor": {**TENSOR, "shape": [-2]}}, {"t0": torch.zeros(2)}),
    "a dtype that is a function": message({"tensor": {**TENSOR, "dtype": "load"}}, {"t0": torch.zeros(2)}),
    "parts of parts of parts": message(
        {
            "tensor": {
                **TENSOR,
                "parts": {
                    "a": {
                        "tensor": {**TENSOR, "parts": {"b": {"tensor": {**TENSOR, "parts": {"c": {"tensor": TENSOR}}}}}}
                    }
                },
            }
        },
        {"t0": torch.zeros(2)},
    ),
    "a masked tensor without its parts": message({"tensor": {**TENSOR, "kind": "masked"}}, {"t0": torch.zeros(2)}),
    "a plain tensor with parts": message(
        {"tensor": {**TENSOR, "parts": {"data": {"tensor": TENSOR}, "mask": {"tensor": TENSOR}}}},
        {"t0": torch.zeros(2)},
    ),
    "a sparse tensor with parts of another layout": message(
        {"tensor": {**TENSOR, "layout": "sparse_coo", "parts": {"crow": {"tensor": TENSOR}}}}, {"t0": torch.zeros(2)}
    ),
    "a key that cannot be one": message({"dict": [[{"list": []}, 1]]}),
    "a dict of keys with one hash": message({"dict": [[ONE_HASH * n, 1] for n in range(1, 50_000)]}),
    "a set of items with one hash": message({"set": [ONE_HASH * n for n in range(1, 50_000)]}),
    "a figure of endless panels": message({"figure": {**FIGURE, "panels": [{}] * 41}}),
    "a figure with an endless legend": message({"figure": {**FIGURE, "legend": ["a"] * 1001}}),
    "a figure with an endless title": message({"figure": {**FIGURE, "title": "a" * 100_000}}),
    "an endless text": message("a" * 100_000),
    "an object with an endless text": message({"object": {"type": "A", "text": "a" * 100_000}}),
    "a list nested too deeply": deep(5000),
    "a count that is a text": message({"tensor": {**TENSOR, "offset": "0"}}, {"t0": torch.zeros(2)}),
}


@pytest.mark.parametrize("clock", [float("nan"), float("inf"), -1.0, 1e308, 10**400, None, "1", True])
def test_a_clock_that_lies_spoils_nothing(clock):
    (answered,) = wire.read_answers("f", message(1, seconds=clock), 1).seen
    assert 0 <= answered.seconds <= 1


def test_the_name_of_an_exception_is_cut():
    endless = type("E" * 10_000, (ValueError,), {})

    def raises(x):
        raise endless

    assert seen_of(1, function=raises).raised.types[0] == "E" * 80


@pytest.mark.parametrize("name", HOSTILE)
def test_a_malformed_answer_is_unreadable_and_nothing_else(name):
    answers = wire.read_answers("f", HOSTILE[name], 1)
    assert answers.seen == () and "unreadable" in answers.failure


def test_an_answer_to_fewer_cases_is_unreadable():
    assert "2 were asked" in wire.read_answers("f", message(1), 2).failure


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_no_bytes_at_all_raise_anything_but_unreadable(data):
    wire.read_answers("f", data, 1)
    wire.read_answers("f", struct.pack("<Q", len(data)) + data, 1)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["list", "tuple", "dict", "tensor", "set", "slice", "array", "object", "size", "x"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=8,
)


@given(JSON)
@settings(max_examples=200, deadline=None)
def test_no_tree_at_all_raises_anything_but_unreadable(tree):
    answers = wire.read_answers("f", message(tree), 1)
    assert answers.failure or isinstance(
        answers.seen[0].result,
        (type(None), bool, int, float, str, list, tuple, dict, frozenset, SeenTensor, SeenObject, complex, bytes),
    )
