"""The first difference is found, in the right aspect."""

import resource
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from autograder import compare, probe, wire
from autograder import properties as p
from autograder.compare import ASPECTS, CUT_OFF, MASKED_GRADIENT, difference
from autograder.properties import TEXTS, Property
from autograder.records import SeenObject
from maskedtensor_ref import as_masked_tensor

X = torch.arange(12.0).view(3, 4)


def seen(function, *values, **options):
    names = [f"a{i}" for i in range(len(values))]
    return wire.read_seen(probe.answer(function, wire.pack_question([values], names, **options)))[0]


def found(reference, answer, *values, properties=(), **options):
    return difference(seen(reference, *values, **options), seen(answer, *values, **options), tuple(properties))


def made_here(name):
    return type(name, (), {"__module__": "__main__", "__qualname__": f"f.<locals>.{name}"})()


def made_there(name):
    return type(name, (), {"__module__": "exercises", "__qualname__": name})()


SAME = [
    (lambda x: x * 2, lambda x: x + x),
    (lambda x: x / 3, lambda x: x * (1 / 3)),
    (lambda x: x[0] / 0, lambda x: x[0] / 0),  # nan and inf agree with themselves
    (lambda x: (1, [2.0]), lambda x: [1, (2,)]),
    (lambda x: {"a": x}, lambda x: {"a": x.clone()}),
    (lambda x: {1: x}, lambda x: {__import__("numpy").int64(1): x}),
    (lambda x: 0.5, lambda x: __import__("numpy").float64(0.5)),
    (lambda x: made_here("Thing"), lambda x: made_there("Thing")),
]


@pytest.mark.parametrize("pair", SAME)
def test_equal_answers_do_not_differ(pair):
    assert found(*pair, X.clone()) is None


DIFFERENT = [
    ("value", lambda x: x * 2, lambda x: x * 3),
    ("value", lambda x: 2, lambda x: 3),
    ("value", lambda x: 2.0, lambda x: 1 << 4000),
    ("value", lambda x: float("inf"), lambda x: 1e300),
    ("value", lambda x: float("inf"), lambda x: -float("inf")),
    ("value", lambda x: float("nan"), lambda x: 0.0),
    ("type", lambda x: 2.0, lambda x: x.as_subclass(type("scalar", (torch.Tensor,), {}))),
    ("value", lambda x: made_here("Thing"), lambda x: made_here("Other")),
    ("value", lambda x: [1, 2], lambda x: [1, 2, 3]),
    ("value", lambda x: {"a": 1}, lambda x: {"b": 1}),
    ("shape", lambda x: x[:1], lambda x: x[0]),
    ("shape", lambda x: torch.ones(3), lambda x: torch.ones(1)),  # allclose would say yes
    ("dtype", lambda x: x, lambda x: x.double()),
    ("type", lambda x: x, lambda x: x.tolist()),
    ("type", lambda x: x[0, 0], lambda x: 0.0),
    ("type", lambda x: True, lambda x: 1),
    ("type", lambda x: 1, lambda x: None),
    ("layout", lambda x: x, lambda x: x.to_sparse()),
    ("raised", lambda x: x, lambda x: x[9]),
    ("raises", lambda x: x[9], lambda x: x),
    ("raises", lambda x: x[9], lambda x: 1 / 0),
    ("unanswered", lambda x: x, lambda x: (_ for _ in ()).throw(NotImplementedError())),
    ("inputs", lambda x: x.sum(), lambda x: x.add_(1).sub(1).sum()),
    ("inputs", lambda x: x.zero_().sum(), lambda x: torch.zeros(())),
]


@pytest.mark.parametrize(("aspect", "reference", "answer"), DIFFERENT)
def test_the_first_difference_names_its_aspect(aspect, reference, answer):
    difference = found(reference, answer, X.clone())
    assert difference is not None and difference.aspect == aspect and difference.next_step


@pytest.mark.parametrize("aspect", sorted({"shape", "dtype", "layout", "raised", "unanswered", "inputs"}))
def test_the_next_step_is_that_of_the_aspect(aspect):
    _, reference, answer = next(row for row in DIFFERENT if row[0] == aspect)
    assert found(reference, answer, X.clone()).next_step == ASPECTS[aspect]


def refuses(x):
    raise ValueError("x is empty")


def yields(x):
    yield x


def awaits(x):
    return type("coroutine", (), {})()  # a real one would warn that nobody awaits it


SLIPS = [  # what somebody typed in haste, what is said to have come, and a word of the way out
    (lambda x: x, lambda x: None, "None", "end with `return`"),
    (lambda x: 3, lambda x: None, "None", "end with `return`"),
    (lambda x: {"a": 1}, lambda x: None, "None", "end with `return`"),
    (lambda x: [1, 2], lambda x: None, "None", "end with `return`"),
    (lambda x: x, lambda x: x.contiguous, "a builtin_function_or_method", "call it"),
    (lambda x: True, lambda x: x.is_contiguous, "of Tensor object>", "call it"),
    (lambda x: x, lambda x: (row for row in x), "a generator", "`yield`"),
    (lambda x: x, yields, "a generator", "end with `return`"),
    (lambda x: x, awaits, "a coroutine", "write `def`"),
    (lambda x: x, lambda x: {x: 1, x.dtype: 2, frozenset("a"): 3}, "a dict", "what your function returns"),
    (lambda x: x, lambda x: x.numpy(), "a NumPy array of shape (3, 4)", "Stay with torch"),
    (lambda x: x.amax(0), lambda x: x.max(0), "a tuple", "`.values` are the numbers"),
    (lambda x: x, lambda x: as_masked_tensor(x, x > 0), "a MaskedTensor of shape (3, 4)", "`.to_tensor(value)`"),
    (lambda x: as_masked_tensor(x, x > 0), lambda x: x, "a tensor of shape (3, 4)", "data and mask together"),
    (lambda x: {"slope": x}, lambda x: {"slope": None}, "None", "This is None"),
    (lambda x: 1, lambda x: torch.tensor(1), "a tensor of shape (): 1", "`.item()`"),
    (lambda x: {"n": True}, lambda x: {"n": (x == x).all()}, "a tensor of shape (): True", "`.item()`"),
    (lambda x: "one", lambda x: torch.tensor(1), "a tensor of shape (): 1", "what your function returns"),
    (lambda x: {"gradient of a": x}, lambda x: {"gradient of a": None}, "None", "No gradient reaches"),
    (lambda x: 1.0, lambda x: "one", "a str: 'one'", "what your function returns"),
    (lambda x: True, lambda x: {3, 2}, "a set: {2, 3}", "what your function returns"),
    (lambda x: True, lambda x: set(), "a set: set()", "what your function returns"),
    (lambda x: {"a": 1}, lambda x: {"A": 1, "b": 2}, "the keys 'A', 'b'", "letter by letter"),
    (lambda x: {"a": 1}, lambda x: {}, "an empty dict", "letter by letter"),
    (lambda x: {"a": 1}, lambda x: {"a": 1, "b": 2}, "also the key 'b'", "letter by letter"),
    (lambda x: [1, 2], lambda x: [1], "1 item: [1]", "inside a loop"),
    (refuses, lambda x: ValueError("x is empty"), "ValueError was returned, not raised", "`raise`"),
    (refuses, lambda x: ValueError, "ValueError was returned, not raised", "`raise`"),
    (refuses, lambda x: [][0], "IndexError: list index out of range", "another error came"),
]


@pytest.mark.parametrize(("reference", "answer", "came", "way_out"), SLIPS)
def test_a_slip_is_called_by_its_name_with_the_way_out(reference, answer, came, way_out):
    difference = found(reference, answer, X.clone())
    assert came in difference.got and way_out in difference.next_step
    assert " at 0x" not in difference.got and not difference.got.endswith(": ")


def test_an_exception_without_a_text_is_shown_without_a_colon():
    def stopped(x):
        raise IndexError

    assert found(refuses, stopped, X.clone()).got == found(lambda x: x, stopped, X.clone()).got == "IndexError"


@pytest.mark.parametrize(("word", "said"), [(1, "an int"), (1.5, "a float"), (X, "a tensor of shape (3, 4)")])
def test_the_article_fits_the_type(word, said):
    assert found(lambda x: {"a": 1}, lambda x: word, X.clone()).got == said


def test_calls_and_operations_are_counted_in_words():
    calls = found(lambda x: x * 1, lambda x: x[[0, 1, 2]], X.clone(), properties=[p.never_calls("index")])
    assert calls.got == "index, 1 time"
    none = found(lambda x: 1, lambda x: int(x.sum() * 0 + 1), X.clone(), properties=[p.op_budget(0)])
    assert none.expected == "no torch operation" and "without any torch operation" in none.next_step


def in_brackets(x, device=None):
    result = torch.zeros(3, device=device or x.device)
    result[x.long()[:1]] = 1
    return result


G = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
BY_PROPERTY = [
    (p.same_sharing, "sharing", lambda x: x[1:], lambda x: x[1:].clone(), {}),
    (p.same_sharing, "sharing", lambda x: x[1:].clone(), lambda x: x[1:], {}),
    (p.same_sharing, "sharing", lambda x: x, lambda x: x.view_as(x), {}),
    (p.same_strides, "strides", lambda x: x.t(), lambda x: x.t().contiguous(), {}),
    (p.same_kind, "kind", lambda x: x, lambda x: torch.nn.Parameter(x), {}),
    (p.no_warnings, "warnings", lambda x: x, lambda x: __import__("warnings").warn("old") or x, {}),
    (p.op_budget(3), "operations", lambda x: x + 1, lambda x: torch.stack([r + 1 for r in x]), {}),
    (p.copy_budget(0), "memory", lambda x: x[:1].clone(), lambda x: x.clone()[:1].clone(), {}),
    (p.never_calls("clone"), "forbidden call", lambda x: x + 0, lambda x: x.clone(), {}),
    (p.never_calls("to_dense"), "forbidden call", lambda x: x + 0, lambda x: x.to_sparse().to_dense(), {}),
    (p.small_storage, "storage", lambda x: x[0].clone(), lambda x: x[0], {}),
    (p.gradient, "gradient", lambda x: x * x, lambda x: x * x.detach(), {"gradient": True}),
    (p.gradient, "gradient", lambda x: x * 1, lambda x: x.detach() * 1, {"gradient": True}),
    (p.same_requires_grad, "requires_grad", lambda x: x * 1, lambda x: x.detach() * 1, {"gradient": True}),
    (
        p.finite_gradient,
        "gradient",
        lambda x: x - x,
        lambda x: torch.where(x > 9, x / 0 * 0, x - x),
        {"gradient": True},
    ),
    (
        p.device_agnostic,
        "device",
        lambda x: x + torch.zeros(3, device=x.device),
        lambda x: x + torch.zeros(3),
        {"fake_cuda": True},
    ),
    (p.device_agnostic, "device", in_brackets, lambda x: in_brackets(x, "cpu"), {"fake_cuda": True}),
]


@pytest.mark.parametrize(("wanted", "aspect", "reference", "answer", "options"), BY_PROPERTY)
def test_a_property_finds_what_it_is_for_and_only_when_it_is_asked_for(wanted, aspect, reference, answer, options):
    x = G if options.get("gradient") else (torch.ones(3) if options else X.clone())
    difference = found(reference, answer, x, properties=[wanted], **options)
    assert difference is not None and difference.aspect == aspect
    assert found(reference, reference, x, properties=[wanted], **options) is None
    if wanted.name != "finite_gradient":
        assert found(reference, answer, x, **options) is None


VIEWS = [lambda x: x[0], lambda x: x.t()[1:], lambda x: x.view(-1).unsqueeze(0), lambda x: x.zero_()]


@pytest.mark.parametrize("view", VIEWS)
def test_views_and_writes_take_no_new_memory(view):
    assert seen(view, X.clone()).new_bytes == 0


def test_new_memory_is_counted_in_bytes_of_every_step():
    assert seen(lambda x: (x + 1) * 2, X.clone()).new_bytes == 2 * 12 * 4


def test_of_an_operation_that_a_layout_lacks_is_not_told_where_this_machine_keeps_the_others():
    """The same slip would not be the same on another machine."""
    raised = seen(lambda x: x.to_sparse().exp(), X.clone()).raised
    assert raised.message == "Could not run 'aten::exp' with arguments from the 'SparseCPU' backend."


def test_values_that_exist_only_while_they_are_described_have_memory_of_their_own():
    pack = probe.Pack()
    names = {pack.describe_tensor(torch.ones(1000))["tensor"]["storage"] for _ in range(20)}
    assert len(names) == 20


NEXT_STEPS = [  # what students do, and what they are told to look at
    (lambda x: x, lambda x: x if x else -x, "several answers"),
    (lambda x: x, lambda x: x ^ 2, "A power is `**`"),
    (lambda x: x, lambda x: __import__("math").log(x), "whole tensors"),
    (lambda x: x, lambda x: layout_of(x), "run the cell that defines it"),  # noqa: F821
]


@pytest.mark.parametrize("reference, answer, said", NEXT_STEPS)
def test_a_frequent_slip_is_told_what_it_is(reference, answer, said):
    assert said in found(reference, answer, X.clone()).next_step


@pytest.mark.parametrize("answer", [lambda x: x[:], len, list])
def test_a_tensor_without_a_dimension_is_said_to_have_no_axis(answer):
    assert "no axis" in found(lambda x: x[...], answer, torch.tensor(2.0)).next_step


def test_numpy_in_an_answer_for_any_device_is_said_to_read_the_cpu_only():
    answer = lambda x: torch.from_numpy(x.numpy() * 2)
    wrong = found(lambda x: x * 2, answer, torch.ones(3), properties=[p.device_agnostic], fake_cuda=True)
    assert wrong.aspect == "device" and "the CPU only" in wrong.next_step


@pytest.mark.parametrize(
    "answer, said",
    [
        (lambda x: x.exp().data * 2, CUT_OFF),
        (lambda x: as_masked_tensor(x, x > 0).exp().to_tensor(0) * 2, MASKED_GRADIENT),
        (lambda x: x.mul_(2), "Make a new tensor in its place"),
        (lambda x: x.exp().div_(2), "the way back failed"),
    ],
)
def test_a_gradient_that_is_cut_off_or_spoiled_is_told_by_what(answer, said):
    x = torch.ones(3, requires_grad=True)
    assert said in found(lambda x: x.exp() * 2, answer, x, properties=[p.gradient], gradient=True).next_step


@pytest.mark.parametrize("unable", [lambda x: x ^ 2, lambda x: torch.nn.Module()(x)])
def test_what_torch_has_not_implemented_is_no_blank_answer(unable):
    assert found(lambda x: x, unable, X.clone()).aspect == "raised"


def test_an_error_is_told_in_one_line_and_is_not_cut_within_a_word():
    got = found(lambda x: x[9], lambda x: torch.any(False), X.clone()).got
    assert got.startswith("TypeError: any() received") and "\n" not in got
    long = found(lambda x: x, lambda x: (_ for _ in ()).throw(ValueError("word " * 100)), X.clone()).got
    assert long.endswith("word …")


def test_every_property_has_a_text_and_a_judge():
    from autograder.compare import _PROPERTIES

    assert set(TEXTS) == set(_PROPERTIES)
    assert all(Property(name, ("clone",)).text for name in TEXTS)


def test_a_difference_in_a_large_tensor_names_the_first_place():
    difference = found(lambda x: x, lambda x: x + (x == 5), X.clone())
    assert "first at [1, 1]: 6 where 5 is expected" in difference.got


def in_a_thread(x):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: x[x > 3]).result()


def uncounted(x):
    with torch.utils._python_dispatch._disable_current_modes():
        return x[x > 3]


COUNTING = [Property("op_budget", (50,)), Property("copy_budget", (10**6,)), Property("never_calls", ("index",))]


@pytest.mark.parametrize("wanted", COUNTING)
@pytest.mark.parametrize("hidden", [in_a_thread, uncounted])
def test_operations_that_cannot_be_counted_do_not_count_as_none(wanted, hidden):
    reference = lambda x: x.masked_select(x > 3)
    difference = found(reference, hidden, X.clone(), properties=[wanted])
    assert difference.aspect == "operations" and "another thread" in difference.next_step
    assert found(reference, hidden, X.clone()) is None, "where operations are not judged, they may run anywhere"


@pytest.mark.parametrize(
    "answer",
    [lambda x: x, lambda x: 12, lambda x: x.numpy().copy(), lambda x: torch.tensor(x.numpy()), lambda x: [x, 1]],
)
def test_an_answer_that_needs_no_operation_is_not_said_to_hide_some(answer):
    assert found(lambda x: answer(x + 0), answer, X.clone(), properties=COUNTING) is None


def test_the_data_of_a_masked_tensor_take_no_more_memory_than_is_expected():
    """A few bytes say that a tensor is 16 GiB large once it is dense."""

    class Giant(torch.Tensor):
        def get_mask(self):
            return torch.ones(12, dtype=torch.bool)

        def get_data(self):
            return torch.sparse_coo_tensor(torch.zeros(1, 1, dtype=torch.int64), torch.ones(1), (1 << 32,))

    reference = lambda x: as_masked_tensor(x.flatten(), torch.ones(12, dtype=torch.bool))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert found(reference, lambda x: torch.ones(12).as_subclass(Giant), X).path == "result.get_data()"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB


@pytest.mark.parametrize("text", ["<" * 20_000, "<a" * 10_000, "<a." * 7000, "<" + "a." * 10_000, " at 0x" * 3000])
def test_a_text_that_is_made_to_be_long_to_read_is_not_read_for_long(text):
    started = time.process_time()
    compare.show(SeenObject("A", text))
    assert time.process_time() - started < 2  # seconds
