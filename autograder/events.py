"""Reads TensorBoard's event files as plain data: graphs, scalars, histograms.

What comes in may be hostile: it is bytes of a limited size, every count is looked at before anything is built, and
whatever contradicts the format is `Damaged`. Nothing in here opens a file.

Source of the format: tensorflow.org/tutorials/load_data/tfrecord (a record is its length, a checksum of it, the bytes,
a checksum of them) and the messages in tensorboard/compat/proto. The checksums are left alone: they guard against
accidents of a disk, and a forged file has the right ones.
"""

import re
import struct

from google.protobuf.message import DecodeError
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.graph_pb2 import GraphDef

from .records import SeenObject

MAX_BYTES = 1 << 20  # of all files of a run
MAX_EVENTS = 10_000
MAX_NODES = 2_000  # of a graph; and four times as many edges
MAX_TEXT = 80  # characters of a name or of a constant


class Damaged(ValueError):
    """Bytes that are no event file; the text says in which way."""


def runs(files: dict[str, list[bytes]]) -> dict:
    """What the event files of each run hold (see `run`), by its folder; where they are damaged, in which way."""
    return {folder: _run_or_damage(contents) for folder, contents in files.items()}


def _run_or_damage(contents):
    try:
        if not isinstance(contents, list) or not all(isinstance(content, bytes) for content in contents):
            raise Damaged(f"more than {MAX_BYTES} bytes")  # what is too large was not sent
        return run(contents)
    except Damaged as error:
        return SeenObject(f"damaged file: {error}", f"a damaged file: {error}")


def run(files: list[bytes]) -> dict:
    """What the event files of one run hold.

    Returns:
        {"graphs": [[line, ...], ...], "scalars": {tag: [(step, value), ...]}, "histograms": {tag: [(step,
        {"num", "min", "max"}), ...]}}, tags and steps in order. The lines of a graph: see graph_lines.
    Raises:
        Damaged: they are no event files, or larger than is accepted.
    """
    found = {"graphs": [], "scalars": {}, "histograms": {}}
    if sum(map(len, files)) > MAX_BYTES:
        raise Damaged(f"more than {MAX_BYTES} bytes")
    for event in (event for content in files for event in _events(content)):
        if event.WhichOneof("what") == "graph_def":
            found["graphs"].append(graph_lines(_parsed(GraphDef, event.graph_def)))
        for value in event.summary.value:
            kind = value.WhichOneof("value")
            if kind == "simple_value" or (kind == "tensor" and len(value.tensor.float_val) == 1):
                number = value.simple_value if kind == "simple_value" else value.tensor.float_val[0]
                found["scalars"].setdefault(value.tag[:MAX_TEXT], []).append((event.step, number))
            elif kind == "histo":
                shape = {"num": value.histo.num, "min": value.histo.min, "max": value.histo.max}
                found["histograms"].setdefault(value.tag[:MAX_TEXT], []).append((event.step, shape))
    for kind in ("scalars", "histograms"):
        found[kind] = {tag: sorted(points, key=lambda point: point[0]) for tag, points in sorted(found[kind].items())}
    return found


def _events(content):
    at, count = 0, 0
    while at < len(content):
        count += 1
        if count > MAX_EVENTS:
            raise Damaged(f"more than {MAX_EVENTS} events")
        if at + 12 > len(content):
            raise Damaged("it ends in the middle of a record")
        (length,) = struct.unpack_from("<Q", content, at)
        if length > len(content) - at - 16:
            raise Damaged("it ends in the middle of a record")
        yield _parsed(Event, content[at + 12 : at + 12 + length])
        at += length + 16


def _parsed(kind, content):
    try:
        return kind.FromString(content)
    except (DecodeError, UnicodeDecodeError) as error:
        raise Damaged(f"a record is no {kind.__name__}") from error


# ---- graphs ---------------------------------------------------------------------------------------------------------


def graph_lines(graph: GraphDef) -> list[str]:
    """One line for each node that the outputs are made of, inputs before what is made of them.

    A line says the operation and what it takes: `#n` is the node of line n, counted from 1; a constant stands there as
    it is. Names play no part: the same computation gives the same lines, whatever the classes in it are called.

        input of shape (2, 3)
        mul(#1, #1)
        add(#2, 1)
        output(#3)

    Raises:
        Damaged: it has too many nodes, or edges that go in a circle or nowhere.
    """
    if len(graph.node) > MAX_NODES or sum(len(node.input) for node in graph.node) > 4 * MAX_NODES:
        raise Damaged(f"a graph of more than {MAX_NODES} nodes, or {4 * MAX_NODES} edges")
    nodes = {node.name: node for node in graph.node}
    taken = {source for node in graph.node for source in _sources(node)}
    outputs = [node.name for node in graph.node if node.op == "IO Node" and node.input]
    outputs = outputs or [name for name in nodes if name not in taken]
    lines, place, open_nodes = [], {}, set()
    stack = [(name, False) for name in reversed(outputs)]
    while stack:
        name, ready = stack.pop()
        if ready:
            open_nodes.discard(name)
            lines.append(_line(nodes[name], nodes, place))
            place[name] = len(lines)
        elif name in open_nodes:
            raise Damaged("the edges of a graph go in a circle")
        elif name not in place:
            if name not in nodes:
                raise Damaged("an edge of a graph comes from nowhere")
            open_nodes.add(name)
            stack.append((name, True))
            inputs = [source for source in _sources(nodes[name]) if not _constant(nodes.get(source))]
            stack += [(source, False) for source in reversed(inputs) if source not in place]
    return lines


def _source(name):
    """The node that an input names: `^name` and `name:1` are ways to say which of its outputs."""
    return re.sub(r":\d+$", "", name.removeprefix("^"))


def _sources(node):
    """The nodes that a node takes something from; a parameter is taken from its module, which is no node."""
    return [] if node.op == "prim::GetAttr" else [_source(name) for name in node.input]


def _constant(node):
    return node is not None and node.op == "prim::Constant"


def _line(node, nodes, place):
    operation = node.op.split("::")[-1][:MAX_TEXT]
    if node.op == "IO Node":
        operation = "output" if node.input else "input"
    if node.op == "prim::GetAttr":
        return f"parameter {_attribute(node, 'name')}"
    takes = [_value(nodes[s]) if _constant(nodes[s]) else f"#{place[s]}" for s in _sources(node)]
    if operation in ("add", "sub", "rsub") and takes[2:] == ["1"]:
        takes.pop()  # a + alpha * b, with alpha 1
    while takes and takes[-1] == "None":
        takes.pop()
    if operation == "input":
        return f"input of shape {_shape(node)}"
    return f"{operation}({', '.join(takes)})"


def _value(node):
    """What stands in a constant, numbers in their shortest form: `{ value : tensor(1., dtype=torch.float64)}` is 1."""
    text = _attribute(node, "value")
    try:
        return f"{float(text):g}"
    except ValueError:
        return text


def _attribute(node, name):
    """An attribute in the text that torch makes of all of them; "None" if it is not there."""
    text = node.attr["attr"].s.decode("utf-8", errors="replace")
    found = re.search(name + r"\s*+:\s*+(?:tensor\()?[\s{]*+([^{}(),\s]++)", text)
    return found[1][:MAX_TEXT] if found else "None"


def _shape(node):
    shapes = node.attr["_output_shapes"].list.shape
    return tuple(dim.size for dim in shapes[0].dim[:20]) if shapes else "unknown"
