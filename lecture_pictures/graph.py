"""Graphs of computations, laid out in layers without any other program."""

from dataclasses import dataclass, field
from itertools import pairwise

import torch

from lecture_pictures.notation import DrawingError, count, tuple_of
from lecture_pictures.svg import INK, ORANGE, PAPER, QUIET, SKY, Drawing, words_width

MOST_NODES = 60
ROW, GAP = 62, 18  # px from layer to layer, px between boxes
KINDS = {"operation": (PAPER, 1.2, 0), "input": (SKY, 2.5, 14), "output": (ORANGE, 2.5, 0)}


@dataclass(frozen=True)
class Graph:
    """Plain data.

    Attributes:
        labels: node → words in its box.
        kinds: node → "operation", "input" or "output"; operation where missing.
        edges: (from, to) pairs, from an input towards the output.
    """

    labels: dict
    edges: list
    kinds: dict = field(default_factory=dict)

    def kind(self, node):
        return self.kinds.get(node, "operation")


def layers(graph):
    """Node → the length of the longest way from it to an output; 0 for the outputs.

    Raises:
        DrawingError: the edges go round in a circle.
    """
    after = {node: [] for node in graph.labels}
    before = {node: [] for node in graph.labels}
    for a, b in graph.edges:
        after[a].append(b)
        before[b].append(a)
    waiting = {node: len(after[node]) for node in after}
    ready = [node for node in graph.labels if not waiting[node]]
    depth = dict.fromkeys(graph.labels, 0)
    for node in ready:  # grows while it is read: outputs first
        for earlier in before[node]:
            depth[earlier] = max(depth[earlier], depth[node] + 1)
            waiting[earlier] -= 1
            if not waiting[earlier]:
                ready.append(earlier)
    if len(ready) < len(graph.labels):
        raise DrawingError("the edges go round in a circle: a computation has no way back to its own input")
    return depth


def graph_picture(labels, edges, kinds=None, title="Computation graph", backward=False):
    """A graph given as data: outputs on top, inputs at the bottom, as TensorBoard draws it.

    Args:
        labels: node → words in its box; or a list of nodes that are their own labels.
        edges: (from, to) pairs of nodes, from the input side to the output side.
        kinds: node → "operation", "input" or "output".
        backward: whether the arrows point from the outputs to the inputs, as gradients flow.
    Raises:
        DrawingError: no node, more than 60, an edge to a node that is not there, a circle, or an unknown kind.
    """
    labels = dict(labels) if isinstance(labels, dict) else {node: str(node) for node in labels}
    graph = Graph(labels, [tuple(edge) for edge in edges], dict(kinds or {}))
    _check(graph)
    drawing = Drawing()
    drawing.words(0, 0, title, 15, "start", bold=True)
    places, ways = _laid_out(graph)
    for edge, points in ways.items():
        points = [(x, y + 40) for x, y in points]
        drawing.line(*(points[::-1] if not backward else points), arrow=True)
        if (n := graph.edges.count(edge)) > 1:
            (x0, y0), (x1, y1) = points[-2:]
            drawing.words((x0 + x1) / 2 + 8, (y0 + y1) / 2, f"×{n}", 12, "start", bold=True)
    for node, (x, y) in places.items():
        _draw_node(drawing, x, y + 40, graph, node)
    _draw_key(drawing, drawing.bottom + 24, graph, backward)
    return drawing.picture(title, _words(graph, title, backward))


def _check(graph):
    if not 1 <= len(graph.labels) <= MOST_NODES:
        raise DrawingError(f"the graph has {count(len(graph.labels), 'node')}, expected 1 to {MOST_NODES}")
    for edge in graph.edges:
        for node in edge:
            if node not in graph.labels:
                raise DrawingError(f"the edge {edge} names {node!r}, which is not among the nodes")
    for node, kind in graph.kinds.items():
        if kind not in KINDS:
            raise DrawingError(f"the kind of {node!r} is {kind!r}, expected one of {', '.join(KINDS)}")


def _laid_out(graph):
    """Where each node's centre lies, and the points of each edge from the output side down to the input side."""
    depth = layers(graph)
    rows = [[] for _ in range(max(depth.values()) + 1)]
    for node in graph.labels:
        rows[depth[node]].append(node)
    links, ways = [], {}
    for a, b in dict.fromkeys(graph.edges):  # a is the input side, so it lies deeper
        stops = [b, *((a, b, d) for d in range(depth[b] + 1, depth[a])), a]
        for d, stop in enumerate(stops[1:-1], depth[b] + 1):
            rows[d].append(stop)
        links += pairwise(stops)
        ways[(a, b)] = stops
    _untangle(rows, links)
    width = {stop: _box_width(graph.labels[stop]) if stop in graph.labels else 12 for row in rows for stop in row}
    widest = max(sum(width[s] for s in row) + GAP * (len(row) - 1) for row in rows)
    at = {}
    for d, row in enumerate(rows):
        x = (widest - sum(width[s] for s in row) - GAP * (len(row) - 1)) / 2
        for stop in row:
            at[stop] = (x + width[stop] / 2, d * ROW)
            x += width[stop] + GAP
    places = {node: at[node] for node in graph.labels}
    return places, {edge: _way(stops, at, ways.values()) for edge, stops in ways.items()}


def _untangle(rows, links):
    """Orders each row by where its neighbours stand, downwards and upwards a few times."""
    below, above = {}, {}
    for upper, lower in links:
        below.setdefault(upper, []).append(lower)
        above.setdefault(lower, []).append(upper)
    for sweep in range(6):
        down = sweep % 2 == 0
        for d in range(1, len(rows)) if down else range(len(rows) - 2, -1, -1):
            fixed = rows[d - 1 if down else d + 1]
            spot = {stop: k / max(len(fixed) - 1, 1) for k, stop in enumerate(fixed)}
            near = above if down else below
            rank = {}
            for k, stop in enumerate(rows[d]):
                spots = [spot[n] for n in near.get(stop, ()) if n in spot]
                rank[stop] = sum(spots) / len(spots) if spots else k / max(len(rows[d]) - 1, 1)
            rows[d].sort(key=rank.get)


def _way(stops, at, ways):
    """From the lower edge of the upper box, down through the free places, to the upper edge of the lower box."""
    first, last = stops[0], stops[-1]
    leaving = sorted(at[w[1]][0] for w in ways if w[0] == first)
    arriving = sorted(at[w[-2]][0] for w in ways if w[-1] == last)
    points = [(at[first][0] + _port(leaving, at[stops[1]][0]), at[first][1] + 15)]
    for stop in stops[1:-1]:
        x, y = at[stop]
        points += [(x, y - 15), (x, y + 15)]
    return [*points, (at[last][0] + _port(arriving, at[stops[-2]][0]), at[last][1] - 15)]


def _port(neighbours, x):
    """How far from the middle of a box the edge to the neighbour at x is tied on: edges share no point."""
    return 12 * (neighbours.index(x) - (len(neighbours) - 1) / 2) if len(neighbours) <= 4 else 0


def _box_width(label):
    return max(44, words_width(label, 12, mono=True) + 20)


def _draw_node(drawing, x, y, graph, node):
    fill, weight, round = KINDS[graph.kind(node)]
    width = _box_width(graph.labels[node])
    drawing.box(x - width / 2, y - 15, width, 30, fill, INK, weight, round=round)
    drawing.words(x, y, graph.labels[node], 12, mono=True)


def _draw_key(drawing, y, graph, backward):
    x = 0
    meaning = {"operation": "operation", "input": "input (round)", "output": "output (thick frame)"}
    for kind, (fill, weight, round) in KINDS.items():
        if any(graph.kind(node) == kind for node in graph.labels):
            drawing.box(x, y - 8, 24, 16, fill, INK, weight, round=min(round, 8))
            x = drawing.words(x + 32, y, meaning[kind], 12, "start") + 18
    words = "arrows: the way of the gradients" if backward else "arrows: the way of the data"
    drawing.words(0, y + 22, words, 12, "start", QUIET)


def _words(graph, title, backward):
    depth = layers(graph)
    lines = [title, f"{count(len(graph.labels), 'node')}, {count(len(graph.edges), 'edge')}; outputs first"]
    for node in sorted(graph.labels, key=lambda n: depth[n]):
        near = [a for a, b in graph.edges if b == node]
        sources = ", ".join(graph.labels[a] for a in near)
        verb = "passes gradients to" if backward else "takes"
        kind = "" if graph.kind(node) == "operation" else f" ({graph.kind(node)})"
        lines.append(f"{graph.labels[node]}{kind}" + (f" {verb} {sources}" if near else ""))
    return "\n".join(lines)


def grad_fn_graph(t, names=None, title=None):
    """What autograd recorded on the way to `t`: every grad_fn from `t` down to the leaves.

    Args:
        t: a tensor with a grad_fn, or a leaf that requires grad.
        names: name → tensor, to call leaves and results by name.
    Raises:
        DrawingError: nothing was recorded, or more than 60 nodes were.
    """
    if not isinstance(t, torch.Tensor):
        raise DrawingError(f"t is a {type(t).__name__}, expected a torch.Tensor")
    if not t.requires_grad:
        raise DrawingError("t does not require grad, so nothing was recorded: set requires_grad=True on an input first")
    called = {}
    for name, tensor in (names or {}).items():
        called.setdefault(_function_of(tensor), name)
    root = _function_of(t)
    order, edges, waiting = {root: 0}, [], [root]
    for function in waiting:  # grows while it is read
        for earlier, _ in function.next_functions:
            if earlier is None:
                continue
            if earlier not in order:
                order[earlier] = len(order)
                waiting.append(earlier)
                if len(order) > MOST_NODES:
                    raise DrawingError(f"more than {MOST_NODES} operations were recorded: draw a smaller computation")
            edges.append((order[earlier], order[function]))
    labels = {number: _label(function, called.get(function)) for function, number in order.items()}
    kinds = {n: "input" for f, n in order.items() if _leaf(f) is not None}
    kinds.setdefault(0, "output")
    return graph_picture(labels, edges, kinds, title or "What autograd recorded (grad_fn)", backward=True)


def _function_of(t):
    """The node that stands for a tensor: its grad_fn, or for a leaf the node that fills .grad."""
    return torch.autograd.graph.get_gradient_edge(t).node if t.requires_grad else None


def _leaf(function):
    return getattr(function, "variable", None)


def _label(function, name):
    leaf = _leaf(function)
    if leaf is None:
        return f"{name}: {function.name()}" if name else function.name()
    return f"{name or 'leaf'} {tuple_of(leaf.shape)}"
