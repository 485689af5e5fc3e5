"""What is told of a result is computed outside of the student's process, and no result makes that an accident."""

import base64
import json
import time
from dataclasses import replace

import pytest
import torch

from autograder import checks, checks_writer, facts, judge, probe, wire
from autograder.check import Checker, CheckFailed
from autograder.errors import CourseError
from autograder.exercises import Exercise, Lecture, exercise
from autograder.properties import same_sharing
from autograder.records import Reply

from .test_wire import message as message_of


@exercise("1.1", points=1, minutes=1, stars=1, visible=2, hints=["a", "b", "c"])
def example(claim, n):
    return torch.full((n,), -1.0 if claim == "never negative" else 1.0)


@example.facts
def _(x, claim, n):
    import torch

    given = isinstance(x, torch.Tensor)
    if not given or tuple(x.shape) != (n,):
        return {"a tensor": given or x, "the claim fails": False}
    sign = -1 if claim == "never negative" else 1
    return {"a tensor": True, "the claim fails": bool((sign * x.double() > 0).all())}


@example.cases
def _(rng):
    yield "never negative", 3
    yield "never positive", 2
    yield rng.choice(["never negative", "never positive"]), rng.integer(1, 4)


@example.wrong("X-1.1-1", "Zero has no sign.")
def _(claim, n):
    import torch

    return torch.zeros(n)


@example.right
def _(claim, n):
    import torch

    return torch.linspace(1, 2, n) * (-1 if claim == "never negative" else 1)


@exercise("1.2", points=1, minutes=1, stars=1, properties=[same_sharing], hints=["a", "b", "c"])
def first_row(x):
    return x[0]


@first_row.facts
def _(row, x):
    return {"row": row, "as long as x is wide": len(row) == x.shape[1]}


@first_row.cases
def _(rng):
    yield (rng.matrix(2, 3),)


ASKED = judge.question(example, 5)


def verdict(answer, asked=ASKED):
    """The verdict on a function of ours, or on the bytes that a process sent."""
    data = answer if isinstance(answer, bytes) else probe.answer(answer, asked.message)
    return judge.verdict(asked, judge.answers(asked, Reply(asked.exercise.id, data)), [])


def test_right_answers_score_and_a_wrong_one_is_recognised():
    assert verdict(example.function).score == verdict(example.right_answers[0]).score == 1
    wrong = verdict(example.wrong_answers[0].function)
    assert (wrong.score, wrong.codes) == (0, ("X-1.1-1",)) and wrong.message.startswith("Zero has no sign.")


def test_the_text_of_the_facts_does_not_reach_the_student_s_process():
    assert "the claim fails" not in json.dumps(probe.unpack(ASKED.message)[0])


# ---- lies ------------------------------------------------------------------------------------------------------------


class Yes:
    """Whatever is asked of it, it says yes."""

    def __getattr__(self, name):
        return lambda *a, **k: self

    def __bool__(self):
        return True

    def same(self, *a):
        return self

    __mul__ = __rmul__ = __gt__ = __lt__ = __ge__ = __eq__ = __add__ = __getitem__ = same
    __hash__ = None


class Liar(torch.Tensor):
    def double(self):
        return Yes()

    __mul__ = __rmul__ = __gt__ = __lt__ = lambda self, other: Yes()


def lying_number():
    """A number above everything, and below."""
    return type("Number", (float,), {"__gt__": lambda s, o: True, "__lt__": lambda s, o: True})(0)


LIES = {
    "a tensor that lies about itself": lambda claim, n: torch.zeros(n).as_subclass(Liar),
    "an object that says yes": lambda claim, n: Yes(),
    "a number that lies": lambda claim, n: lying_number(),
    "the facts themselves": lambda claim, n: {"a tensor": True, "the claim fails": True},
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_earns_nothing(name):
    assert verdict(LIES[name]).score == 0


def test_a_patched_torch_earns_nothing(monkeypatch):
    with monkeypatch.context() as patch:
        for name in ("all", "double", "__gt__", "__lt__"):
            patch.setattr(torch.Tensor, name, lambda *a, **k: Yes())
        data = probe.answer(lambda claim, n: torch.zeros(n), ASKED.message)
    assert verdict(data).score == 0


# ---- results on which nothing can be computed ------------------------------------------------------------------------


def sent(node, tensors=None):
    """The bytes of a process that answers every case with a node."""
    meta, _ = wire.opened(message_of(node))
    return probe.packed(tensors or {}, json.dumps({"seen": meta["seen"] * ASKED.cases}))


def tensor(**changed):
    plain = {"dtype": "float32", "shape": [3], "layout": "strided", "device": "cpu", "kind": "tensor"}
    return {"tensor": plain | {"requires_grad": False, "is_leaf": True, "grad_fn": "", "same_as": ""} | changed}


def sparse(shape):
    """A sparse tensor with one entry."""
    parts = {"indices": tensor(dtype="int64", shape=[1, 1], value="i"), "values": tensor(shape=[1], value="v")}
    return tensor(layout="sparse_coo", shape=shape, parts=parts)


ONE = {"i": torch.zeros(1, 1, dtype=torch.int64), "v": torch.ones(1)}
HOSTILE = {
    "an integer of thousands of digits": sent(1 << 4000),
    "no finite number": sent(float("nan")),
    "a sparse tensor of giant size": sent(sparse([1 << 62]), ONE),
    "a sparse tensor of more cells than can be counted": sent(sparse([1 << 62, 1 << 62]), ONE),
    "a sparse tensor that contradicts itself": sent(sparse([0]), ONE),
    "a tensor without its values": sent(tensor(shape=[1 << 40], withheld="too large")),
    "a layout that there is not": sent(tensor(layout="sparse_bsr", parts={})),
    "a dict of strange keys": sent({"dict": [[{"tuple": [1, {"bytes": "AAA="}]}, None]]}),
    "nothing": sent(None),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_result_is_a_wrong_answer_at_once(name):
    started = time.process_time()
    given = verdict(HOSTILE[name])
    assert given.score == 0 and given.message
    assert time.process_time() - started < 5  # seconds of work, whatever else the machine does


def _(x, claim, n):
    return {"sum": float(x.reshape(n).sum())}


CARELESS = replace(example, teller=_, wrong_answers=[])  # its facts raise on a tensor of another shape


def test_what_the_facts_raise_is_told_and_earns_nothing():
    asked = judge.question(CARELESS, 5)
    for answer in (lambda claim, n: torch.zeros(n + 1), lambda claim, n: None, lambda claim, n: print):
        given = verdict(answer, asked)
        assert given.score == 0 and "cannot be used" in given.message and "the call: expected no error" in given.message


def test_what_the_facts_raise_is_no_exception_that_a_task_asks_for():
    def refused(claim, n):
        raise ValueError("never")

    asked = judge.question(replace(CARELESS, function=refused), 5)
    assert verdict(refused, asked).score == 1
    assert verdict(lambda claim, n: torch.zeros(n + 1), asked).score == 0


def test_facts_that_fail_on_the_reference_are_our_fault_and_no_point():
    asked = judge.question(replace(CARELESS, function=lambda claim, n: None), 5)
    with pytest.raises(CourseError, match="facts fail on its reference"):
        verdict(lambda claim, n: None, asked)


@pytest.mark.parametrize("data", [b"", b"\0" * 40, sent({"list": 3}), sent({"tensor": {}}), sent({"unknown": 1})])
def test_what_is_malformed_is_unreadable_as_ever(data):
    assert "unreadable" in verdict(data).message


def test_another_number_of_answers_is_unreadable():
    assert "answers 1 cases" in verdict(message_of(1)).message


# ---- what the facts see and hand on ----------------------------------------------------------------------------------


ONE_CASE = wire.pack_question([(torch.arange(2),)], ["x"])


def test_tensors_come_as_plain_ones_and_are_handed_on_as_they_were_seen():
    row = judge.seen_by(first_row.function, judge.question(first_row, 5).message, first_row.facts_text)[0].result["row"]
    assert (row.storage, row.same_as, row.stride) == ("x", "", (1,))
    asked = judge.question(first_row, 5)
    assert verdict(first_row.function, asked).score == 1
    assert "memory of its own" in verdict(lambda x: x[0].clone(), asked).message


@pytest.mark.parametrize(
    "result",
    [
        lambda x: torch.nn.Parameter(torch.ones(2)),
        lambda x: x.to_sparse(),
        lambda x: x.double().view(1, 2).to_sparse_csr(),
        lambda x: torch.complex(x.float(), x.float()),
        lambda x: [x, (x[:1], None), {"a": 1.5, 2: "b"}, {3}, print, b"c", 1j, x.shape, x.numpy()],
    ],
)
def test_what_is_handed_on_is_what_would_have_come_without_facts(result):
    answer = probe.answer(result, ONE_CASE)
    (plain,) = wire.read_seen(answer)
    (told,) = wire.read_seen(facts.told(answer, ONE_CASE, "facts = lambda result, x: result"))
    assert repr(told.result) == repr(plain.result)


def test_the_case_is_that_before_the_call():
    answer = probe.answer(lambda x: x.fill_(9), ONE_CASE)
    (told,) = wire.read_seen(facts.told(answer, ONE_CASE, "facts = lambda result, x: (result.tolist(), x.tolist())"))
    assert told.result == ([9, 9], [0, 1])


def test_the_cases_of_a_gpu_are_looked_at_on_the_cpu():
    (case,) = wire.cases(wire.pack_question([(torch.arange(2), [torch.ones(1)])], ["x", "y"], device="cuda"))
    assert {t.device.type for t in (case[0], *case[1])} == {"cpu"} and case[0].tolist() == [0, 1]


def test_new_tensors_take_no_name_that_was_sent():
    answer = probe.answer(lambda x: x, ONE_CASE)
    told = facts.told(answer, ONE_CASE, "facts = lambda result, x: [result, result + 1]")
    (found,) = wire.read_seen(told)
    assert [t.value.tolist() for t in found.result] == [[0, 1], [1, 2]]


# ---- in the notebook -------------------------------------------------------------------------------------------------


@pytest.fixture
def checker(tmp_path):
    lecture = Lecture("11_facts", tmp_path, (example,), (), "")
    (tmp_path / checks.FILE).write_text(checks_writer.to_json(lecture), encoding="utf-8")
    return Checker("11_facts", tmp_path)


def named(function):
    function.__name__ = "example"
    return function


def test_the_check_tells_the_same_facts(checker, capsys):
    checker(named(lambda claim, n: torch.ones(n) * (-2 if claim == "never negative" else 2)))
    with pytest.raises(CheckFailed, match=r"result\['the claim fails'\]: expected True.*Zero has no sign"):
        checker(named(lambda claim, n: torch.zeros(n)))
    with pytest.raises(CheckFailed, match=r"result\['a tensor'\]: .*got a str: 'x'"):
        checker(named(lambda claim, n: "x"))


def test_what_is_released_holds_the_facts_and_not_the_reference_s_result(checker):
    released = checker.exercises["example"]
    assert "def facts(x, claim, n)" in released.facts
    assert [expected.result for expected in released.expected] == [{"a tensor": True, "the claim fails": True}] * 2
    (written,) = json.loads((checker.folder / checks.FILE).read_text())["exercises"]
    for text in (written["expected"], *(wrong["seen"] for wrong in written["wrong"])):
        assert wire.opened(base64.b64decode(text))[1] == {}  # no tensor is in it


def test_the_label_keeps_the_function():
    assert isinstance(example, Exercise) and example.teller(torch.ones(2), "never positive", 2)["the claim fails"]
