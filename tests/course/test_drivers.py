"""What a driver sends is what came back, nothing that all right answers have alike; and what facts make of whatever was sent."""

import json
import time

import pytest
import torch

from autograder import facts, probe, wire
from autograder.judge import question, visible_question

from .test_exercises import LECTURES, SEEDS, SOLUTIONS

THREATS = SOLUTIONS.parent / "docs" / "threats.md"

OBSERVED = {  # what can only be seen in the student's process: a row of docs/threats.md names the exercise
    ("zero_block", "['writes that autograd counted']"),
    ("log_square", "['one node, and x below it']"),
    ("log_square", "['a write to what is saved is noticed']"),
    ("logged_graphs", "['writers left open']"),
    ("vanishing_layer", "['writers left open']"),
    ("fit", "['writers left open']"),
}
DRIVEN = [
    pytest.param(exercise, id=f"{lecture.name}-{exercise.id}")
    for lecture in LECTURES
    for exercise in lecture.exercises
    if exercise.driver
]


def leaves(tree, path=""):
    """(path, value) of every number, text and truth value in a result; places in a list count alike."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, f"{path}[{key!r}]")
    elif isinstance(tree, (list, tuple)):
        for value in tree:
            yield from leaves(value, f"{path}[]")
    elif isinstance(tree, (bool, int, float, str)):
        yield path, tree


def constants(exercise):
    """The paths at which the driver sends one and the same value for the reference, on every case of every seed."""
    values = {}
    for seed in SEEDS:
        asked = question(exercise, seed)
        for seen in wire.read_seen(probe.answer(exercise.function, asked.message)):
            for path, value in leaves(None if seen.raised else seen.result):
                values.setdefault(path, set()).add((type(value), value))
    return {path for path, found in values.items() if len(found) == 1}


@pytest.mark.parametrize("exercise", DRIVEN)
def test_what_every_right_answer_has_alike_is_found_by_facts_and_not_by_the_driver(exercise):
    assert constants(exercise) == {path for id, path in OBSERVED if id == exercise.id}


def test_what_is_observed_is_named_in_the_threat_model():
    rows = [line for line in THREATS.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    for id, _ in OBSERVED | {("fair_timings", ""), ("graph_nodes", "")}:
        assert any(f"`{id}`" in row for row in rows), id


# ---- whatever comes --------------------------------------------------------------------------------------------------


TELLING = [
    pytest.param(exercise, id=f"{lecture.name}-{exercise.id}")
    for lecture in LECTURES
    for exercise in lecture.exercises
    if exercise.teller
]
PLAIN = {"device": "cpu", "kind": "tensor", "requires_grad": False, "is_leaf": True, "grad_fn": "", "same_as": ""}


def tensor(shape, name="", dtype="float32", layout="strided", **more):
    return {"tensor": PLAIN | {"shape": shape, "dtype": dtype, "layout": layout, **({"value": name} if name else {}), **more}}


def entry(*shape):
    """A sparse tensor of any size with one entry."""
    parts = {"indices": tensor([len(shape), 1], f"i{len(shape)}", "int64"), "values": tensor([1], "one")}
    return tensor(list(shape), layout="sparse_coo", parts=parts)


SENT = {
    "one": torch.ones(1),
    "many": torch.full((100_000,), float("nan")),
    "whole": torch.ones(3, dtype=torch.int64),
    "i1": torch.zeros(1, 1, dtype=torch.int64),
    "i2": torch.zeros(2, 1, dtype=torch.int64),
}
STRANGE = [
    None,
    1 << 4000,
    -1,
    float("nan"),
    float("inf"),
    "text " * 2000,
    {"list": []},
    {"list": [1, "a", None]},
    {"tuple": [{"list": []}, 1]},
    {"dict": []},
    {"object": {"type": "function", "text": "<function>"}},
    {"bytes": "AAAA"},
    tensor([1], "one"),
    tensor([0], dtype="float64"),
    tensor([3], "whole", "int64"),
    tensor([100_000], "many"),
    tensor([1 << 40], withheld="too large"),
    entry(1 << 62),
    entry(1 << 20, 1 << 20),
]


def replaced(node, strange, depth=4):
    """The node with each of its parts replaced by a strange one, one at a time."""
    yield strange
    kind, body = next(iter(node.items())) if isinstance(node, dict) else ("", None)
    if kind in ("list", "tuple") and depth:
        for i in range(min(len(body), 6)):
            yield from ({kind: [*body[:i], part, *body[i + 1 :]]} for part in replaced(body[i], strange, depth - 1))
    if kind == "dict" and depth:
        for i, (key, value) in enumerate(body[:12]):
            yield from ({kind: [*body[:i], [key, part], *body[i + 1 :]]} for part in replaced(value, strange, depth - 1))


@pytest.mark.parametrize("exercise", TELLING)
def test_the_facts_of_whatever_comes_are_told_at_once(exercise):
    asked = visible_question(exercise)
    meta, tensors = probe.unpack(probe.answer(exercise.function, asked.message))
    for strange in STRANGE:
        for number, case in enumerate(meta["seen"][:2]):
            seen = [{**case, "result": node, "raised": None} for node in replaced(case["result"], strange)]
            for one in seen:
                message = probe.packed(tensors | SENT, json.dumps({"seen": [one]}))
                started = time.process_time()
                wire.read_seen(facts.told(message, asked.message, exercise.facts_text, number))
                assert time.process_time() - started < 5, (strange, one["result"])
