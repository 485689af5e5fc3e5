"""Event files become plain data, whoever wrote them; hostile bytes become a value and never an accident."""

import base64
import json
import struct
import time
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.graph_pb2 import GraphDef
from torch.utils.tensorboard import SummaryWriter

from autograder import compare, events, facts, probe, tensorboard, wire
from autograder.errors import UsageError
from autograder.exercises import exercise, standalone_text
from autograder.judge import answers, question, seen_by, verdict
from autograder.records import Reply, SeenObject


class Wave(torch.nn.Module):
    """sin(log(x * x + 1))."""

    def forward(self, x):
        return torch.sin(torch.log(x * x + 1))


WAVE = ["input of shape (2, 3)", "mul(#1, #1)", "add(#2, 1)", "log(#3)", "sin(#4)", "output(#5)"]


@pytest.fixture
def logged(tmp_path):
    """The bytes of a run with a graph, two scalars of one tag and a histogram; and its folder."""
    with SummaryWriter(str(tmp_path)) as writer, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        writer.add_graph(Wave(), torch.ones(2, 3))
        writer.add_scalar("loss", 0.5, 7)
        writer.add_scalar("loss", 2.0, 3)
        writer.add_histogram("weights", torch.tensor([1.0, 2.0, 5.0]), 3)
    return [path.read_bytes() for path in tmp_path.iterdir()], tmp_path


def record(message):
    content = message.SerializeToString() if hasattr(message, "SerializeToString") else message
    return struct.pack("<Q", len(content)) + b"\0" * 4 + content + b"\0" * 4


def graph(*nodes):
    """The record of a graph of (name, op, inputs) nodes."""
    made = GraphDef()
    for name, op, inputs in nodes:
        made.node.add(name=name, op=op, input=inputs)
    return record(Event(graph_def=made.SerializeToString()))


# ---- what is read ---------------------------------------------------------------------------------------------------


def test_a_run_is_read_as_it_was_logged(logged):
    files, _ = logged
    found = events.run(files)
    assert found["graphs"] == [WAVE]
    assert found["scalars"] == {"loss": [(3, 2.0), (7, 0.5)]}  # by step
    assert found["histograms"] == {"weights": [(3, {"num": 3.0, "min": 1.0, "max": 5.0})]}


def test_tensorboard_reads_the_same(logged):
    files, folder = logged
    theirs = EventAccumulator(str(folder)).Reload()
    ours = events.run(files)
    assert sorted((s.step, s.value) for s in theirs.Scalars("loss")) == ours["scalars"]["loss"]
    (shape,) = theirs.Histograms("weights")
    value = shape.histogram_value
    assert ours["histograms"]["weights"] == [(shape.step, {"num": value.num, "min": value.min, "max": value.max})]
    assert {n.op.split("::")[-1] for n in theirs.Graph().node} >= {"mul", "add", "log", "sin"}


def test_names_play_no_part_and_operations_do(tmp_path):
    class Other(torch.nn.Module):
        def forward(self, of_another_name):
            return of_another_name.mul(of_another_name).add(1.0).log().sin()

    tensorboard.log_graph(Other(), torch.ones(2, 3), tmp_path)
    assert tensorboard.read_runs(tmp_path)["."]["graphs"] == [WAVE]


def test_files_of_one_run_are_read_together(tmp_path):
    for _ in range(2):
        tensorboard.log_graph(Wave(), torch.ones(2, 3), tmp_path / "twice")
    assert len(tensorboard.read_runs(tmp_path)["twice"]["graphs"]) == 2


def test_parameters_are_inputs_of_their_operation():
    lines = events.run(
        [
            graph(
                ("in", "IO Node", []),
                ("w", "prim::GetAttr", ["the module"]),
                ("y", "aten::linear", ["in", "w:0"]),
                ("out", "IO Node", ["y"]),
            )
        ]
    )["graphs"][0]
    assert lines == ["input of shape unknown", "parameter None", "linear(#1, #2)", "output(#3)"]


# ---- hostile bytes --------------------------------------------------------------------------------------------------

DAMAGED = {
    "cut in a header": (b"\1\0\0", "ends in the middle"),
    "a length beyond the end": (struct.pack("<Q", 1 << 62) + b"\0" * 30, "ends in the middle"),
    "no message": (record(b"\xff" * 20), "no Event"),
    "a graph that is none": (record(Event(graph_def=b"\xff" * 9)), "no GraphDef"),
    "too large": (b"\0" * (events.MAX_BYTES + 1), "bytes"),
    "too many events": (record(b"") * (events.MAX_EVENTS + 1), "events"),
    "too many nodes": (graph(*[(f"n{i}", "op", []) for i in range(events.MAX_NODES + 1)]), "nodes"),
    "too many edges": (graph(("n", "op", ["n"] * (4 * events.MAX_NODES + 1))), "edges"),
    "a circle": (graph(("a", "op", ["b"]), ("b", "op", ["a"]), ("out", "IO Node", ["a"])), "circle"),
    "an edge from nowhere": (graph(("out", "IO Node", ["ghost"])), "nowhere"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_contradicts_the_format_is_damaged(name):
    content, reason = DAMAGED[name]
    with pytest.raises(events.Damaged, match=reason):
        events.run([content])


def test_a_deep_or_doubling_graph_takes_no_longer_than_its_size():
    chain = [("n0", "IO Node", [])] + [(f"n{i}", "aten::mul", [f"n{i - 1}"] * 2) for i in range(1, 1900)]
    (lines,) = events.run([graph(*chain, ("out", "IO Node", ["n1899"]))])["graphs"]
    assert len(lines) == 1901 and lines[-2] == "mul(#1899, #1899)"


def test_an_attribute_that_is_long_to_read_is_not_read_for_long():
    run = GraphDef()
    node = run.node.add(name="c", op="prim::Constant")
    node.attr["attr"].s = b"value:" + b" " * 900_000 + b"}"
    run.node.add(name="out", op="IO Node", input=["c"])
    started = time.process_time()
    events.run([record(Event(graph_def=run.SerializeToString()))])
    assert time.process_time() - started < 10  # seconds; it was hours


@given(st.binary(max_size=300))
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_a_run_or_damaged(content):
    for files in ([content], [record(content)], [record(Event(graph_def=content[:100]))]):
        try:
            assert set(events.run(files)) == {"graphs", "scalars", "histograms"}
        except events.Damaged:
            pass


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_flipped_byte_of_a_true_file_is_read_or_damaged(data):
    content = bytearray(graph(("x", "IO Node", []), ("y", "aten::sin", ["x"]), ("o", "IO Node", ["y"])))
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        events.run([bytes(content)])
    except events.Damaged:
        pass


# ---- from the student's process to a verdict ------------------------------------------------------------------------


@exercise("1.1", points=1, minutes=1, stars=1, hints=["a", "b", "c"])
def wave(x, folder):
    from autograder.tensorboard import log_graph

    class Wave(torch.nn.Module):
        def forward(self, x):
            return torch.sin(torch.log(x * x + 1))

    log_graph(Wave(), x, folder)


@wave.call
def _(wave, x):
    import pathlib
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        wave(x, pathlib.Path(place) / "run")
        return {"run": [path.read_bytes() for path in pathlib.Path(place).rglob("*tfevents*")]}


@wave.facts
def _(result, x):
    from autograder.events import runs

    return runs(result)


@wave.cases
def _(rng):
    yield (rng.normal(2, 3),)


def judged(files):
    """The verdict on an answer that sends these files: bytes, or the text in their place."""
    asked = question(wave, 5)
    meta, tensors = probe.unpack(probe.answer(lambda x, folder: None, asked.message))
    texts = [file if isinstance(file, str) else base64.b64encode(file).decode() for file in files]
    node = {"dict": [["run", {"list": [{"bytes": text} for text in texts]}]]}
    for case in meta["seen"]:
        case["result"] = node
    given = answers(asked, Reply("wave", wire._message(tensors, {"seen": meta["seen"]})))
    return verdict(asked, given, [])


def test_a_right_file_scores_and_its_reference_is_read_the_same_way():
    asked = question(wave, 5)
    given = answers(asked, Reply("wave", probe.answer(wave.function, asked.message)))
    assert verdict(asked, given, [standalone_text(wave.function, "wave")]).score == 1
    assert seen_by(wave.function, asked.message, wave.facts_text)[0].result["run"]["graphs"] == [WAVE]


@pytest.mark.parametrize("name", DAMAGED)
def test_a_hostile_file_costs_its_points_and_says_why(name):
    content, reason = DAMAGED[name]
    found = judged([content])
    assert found.score == 0 and "damaged file" in found.message and reason in found.message


def test_bytes_that_are_no_base64_are_no_accident():
    assert "unreadable" in judged(["§"]).message


@pytest.mark.parametrize("files", [[None], b"a", [SeenObject("bytes", "9 bytes, which are more than is accepted")], 3])
def test_files_that_did_not_come_are_damaged(files):
    assert events.runs({"run": files})["run"].type.startswith("damaged file")


def test_stored_results_hold_what_the_files_say_and_no_time_of_day():
    asked = question(wave, 5)
    answers = (probe.answer(wave.function, asked.message) for _ in range(2))
    first, second = (wire.without_times(facts.told(answer, asked.message, wave.facts_text)) for answer in answers)
    assert first == second
    assert wire.read_seen(first)[0].result["run"]["graphs"] == [WAVE]


def test_bytes_that_are_too_large_are_not_sent():
    pack = probe.Pack()
    assert list(pack.describe(b"a" * (probe.MAX_BYTES + 1))) == ["object"]
    nodes = [pack.describe(b"a" * probe.MAX_BYTES) for _ in range(9)]
    assert [next(iter(node)) for node in nodes] == ["bytes"] * 8 + ["object"]  # 8 MiB in all


def test_a_damaged_file_is_shown_as_one():
    damaged = SeenObject("damaged file: it ends", "a damaged file: it ends")
    found = compare._tree("result", {"graphs": []}, damaged, None)
    assert (found.expected, found.got) == ("a dict", "a damaged file: it ends")


# ---- the lab --------------------------------------------------------------------------------------------------------


def test_a_graph_is_logged_without_a_warning_and_drawn(tmp_path):
    picture = tensorboard.log_graph(Wave(), torch.ones(2, 3), tmp_path)  # a warning is an error here
    assert "sin takes log" in picture.text and "mul takes input of shape (2, 3), input of shape (2, 3)" in picture.text


def test_warnings_that_are_not_of_the_deprecation_come_through(tmp_path):
    class Picky(torch.nn.Module):
        def forward(self, x):
            return x.sqrt() if x.sum() > 0 else x

    with pytest.warns(torch.jit.TracerWarning):
        tensorboard.log_graph(Picky(), torch.ones(2), tmp_path)


def test_a_function_is_refused_with_a_reason(tmp_path):
    with pytest.raises(UsageError, match=r"only a torch\.nn\.Module can be logged"):
        tensorboard.log_graph(torch.sin, torch.ones(2), tmp_path)
    with pytest.raises(UsageError, match=r"an object of it can be logged: Wave\(\)"):
        tensorboard.log_graph(Wave, torch.ones(2), tmp_path)


class Blank(torch.nn.Module):
    def forward(self, x):
        raise NotImplementedError("not answered yet")


def test_the_error_of_a_model_is_shown_without_that_of_the_tracer(tmp_path):
    with pytest.raises(NotImplementedError, match="not answered yet") as raised:
        tensorboard.log_graph(Blank(), torch.ones(2), tmp_path)
    assert raised.value.__context__ is None and not any("jit" in str(frame.path) for frame in raised.traceback)


def test_where_torch_traces_no_more_the_recorded_graph_is_drawn(tmp_path, monkeypatch):
    def gone(*args, **kwargs):
        raise AttributeError("torch.jit has no trace")

    monkeypatch.setattr(SummaryWriter, "add_graph", gone)
    picture = tensorboard.log_graph(Wave(), torch.ones(2, 3), tmp_path)
    assert "SinBackward0" in picture.text and "not logged: torch.jit has no trace" in picture.text


def test_a_fresh_run_is_fresh(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = tensorboard.fresh_run("net")
    first.mkdir(parents=True)
    assert (first.as_posix(), tensorboard.fresh_run("net").as_posix()) == ("runs/net-1", "runs/net-2")


def test_a_damaged_file_in_the_folder_is_reported(tmp_path):
    (tmp_path / "events.out.tfevents.1").write_bytes(b"\1\0")
    with pytest.raises(UsageError, match="cannot be read: it ends in the middle"):
        tensorboard.read_runs(tmp_path)


def test_a_message_is_json_safe_after_reading(logged):
    files, _ = logged
    assert json.dumps(probe.Pack().describe(events.run(files)))


def test_the_files_of_a_run_are_read_in_the_order_in_which_they_were_logged(tmp_path):
    for number, model in ((9, Wave()), (10, torch.nn.Tanh())):
        tensorboard.log_graph(model, torch.ones(2, 3), tmp_path)
        (made,) = (path for path in tmp_path.iterdir() if ".same." not in path.name)
        made.rename(tmp_path / f"events.out.tfevents.1.same.{number}")
    waves, tanh = tensorboard.read_runs(tmp_path)["."]["graphs"]
    assert waves == WAVE and "tanh(#1)" in tanh
