"""Graphs are what autograd recorded, or the nodes and edges that were given."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lecture_pictures import DrawingError, grad_fn_graph, graph_picture
from lecture_pictures.graph import Graph, _laid_out, layers


def leaf(*shape):
    return torch.ones(shape, requires_grad=True)


def test_the_chain_is_drawn_from_the_result_down_to_the_leaf(legible):
    x = leaf(1)
    k = (x * x + 1).log().sin()
    picture = grad_fn_graph(k, {"x": x, "k": k})
    legible(picture)
    assert picture.text.splitlines()[1:] == [
        "5 nodes, 5 edges; outputs first",
        "k: SinBackward0 (output) passes gradients to LogBackward0",
        "LogBackward0 passes gradients to AddBackward0",
        "AddBackward0 passes gradients to MulBackward0",
        "MulBackward0 passes gradients to x (1,), x (1,)",
        "x (1,) (input)",
    ]


def test_an_input_used_twice_is_one_node_with_an_edge_marked_twice(seen):
    x = leaf(2)
    assert "×2" in seen(grad_fn_graph(x * x))
    assert "×2" not in seen(grad_fn_graph(x**2))


def test_a_diamond_is_drawn_with_its_shared_node_once(legible, seen):
    x = leaf(3)
    h = x.exp()
    picture = grad_fn_graph((h.sin() + h.cos()).sum())
    legible(picture)
    assert seen(picture).count("ExpBackward0") == 1


def test_a_leaf_alone_is_an_input(legible):
    picture = grad_fn_graph(leaf(2, 2))
    legible(picture)
    assert "leaf (2, 2) (input)" in picture.text


def test_inputs_that_do_not_require_grad_are_not_recorded():
    text = grad_fn_graph(leaf(2) * torch.ones(2)).text
    assert "2 nodes, 1 edge;" in text


def test_drawing_keeps_the_graph_usable_and_says_the_same_twice():
    x = leaf(2)
    y = (x * x).sum()
    assert grad_fn_graph(y) == grad_fn_graph(y)
    with torch.no_grad():
        grad_fn_graph(y, {"x": x})
    y.backward()
    assert x.grad.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: torch.ones(2), "does not require grad"),
        (lambda: 3.0, "t is a float"),
        (lambda: sum((leaf(1) for _ in range(40)), leaf(1)), "more than 60 operations"),
    ],
)
def test_what_was_not_recorded_or_is_too_large_is_refused(make, said):
    with pytest.raises(DrawingError) as refused:
        grad_fn_graph(make())
    assert said in str(refused.value)


def test_a_graph_given_as_data_is_drawn_with_the_way_of_the_data(legible):
    nodes = {"in": "input", "mul": "mul", "log": "log"}
    picture = graph_picture(nodes, [("in", "mul"), ("in", "mul"), ("mul", "log")], {"in": "input", "log": "output"})
    legible(picture)
    assert picture.text.splitlines()[2:] == ["log (output) takes mul", "mul takes input, input", "input (input)"]
    assert graph_picture(list("ab"), [("a", "b")]).text.endswith("b takes a\na")


pairs = st.tuples(st.integers(0, 11), st.integers(0, 11))
dags = st.lists(pairs.filter(lambda edge: edge[0] < edge[1]), max_size=20)


@given(dags)
@settings(max_examples=60, deadline=None)
def test_in_any_graph_inputs_lie_below_what_takes_them_and_no_boxes_overlap(edges):
    graph = Graph({k: f"node {k}" for k in range(12)}, edges)
    depth = layers(graph)
    places, ways = _laid_out(graph)
    assert all(depth[a] > depth[b] for a, b in edges)
    assert all(ways[e][0][1] < ways[e][-1][1] for e in edges)
    spots = sorted((y, x) for x, y in places.values())
    assert all(y0 != y1 or x1 - x0 >= 44 for (y0, x0), (y1, x1) in pairwise(spots))


@given(dags)
@settings(max_examples=60, deadline=None)
def test_in_any_graph_no_line_runs_through_a_box(edges):
    graph = Graph({k: f"node {k}" for k in range(12)}, edges)
    places, ways = _laid_out(graph)
    for edge, points in ways.items():
        for (x0, y0), (x1, y1) in pairwise(points):
            for node, (x, y) in places.items():
                if node not in edge and min(y0, y1) < y < max(y0, y1):
                    along = x0 + (x1 - x0) * (y - y0) / (y1 - y0)
                    assert abs(along - x) > 30


@pytest.mark.parametrize(
    ("labels", "edges", "kinds", "said"),
    [
        ([], [], {}, "0 nodes, expected 1 to 60"),
        (["a"], [("a", "b")], {}, "names 'b', which is not among the nodes"),
        (["a", "b"], [("a", "b"), ("b", "a")], {}, "round in a circle"),
        (["a"], [], {"a": "leaf"}, "kind of 'a' is 'leaf', expected one of operation, input, output"),
    ],
)
def test_a_graph_that_makes_no_sense_is_refused(labels, edges, kinds, said):
    with pytest.raises(DrawingError) as refused:
        graph_picture(labels, edges, kinds)
    assert said in str(refused.value)
