"""All the pictures with examples, on one page."""

import html

import torch

from lecture_pictures.activation import activation
from lecture_pictures.adagrad import adagrad_row_map
from lecture_pictures.broadcast import broadcast
from lecture_pictures.chain import chain_step
from lecture_pictures.conventions import mask_conventions
from lecture_pictures.graph import grad_fn_graph, graph_picture
from lecture_pictures.hierarchy import memory_hierarchy
from lecture_pictures.indexing import index_overlay
from lecture_pictures.masks import mask_grid
from lecture_pictures.policies import policy_grid
from lecture_pictures.ruler import memory_ruler
from lecture_pictures.sparsity import sparse_layouts
from lecture_pictures.strides import stride_view

STYLE = """details{margin-bottom:1.5em} body{max-width:60em;margin:1em auto;padding:0 1em;font-family:sans-serif}
@media (prefers-color-scheme:dark){body{background:#111;color:#eee}}"""


def examples():
    """Heading → pictures."""
    nine, twelve = torch.arange(9).view(3, 3), torch.arange(12).view(4, 3)
    hundred = torch.arange(100).view(10, 10)
    return {
        "Memory ruler": [
            memory_ruler(nine, "a"),
            memory_ruler(nine[1:3, 1:3], "b"),
            memory_ruler(nine.t(), "t"),
            memory_ruler(torch.arange(3.0).expand(2, 3), "e"),
            memory_ruler(torch.arange(24).view(2, 3, 4)[:, ::2], "c"),
            memory_ruler(torch.arange(1000)[3:5], "s"),
            memory_ruler(torch.tensor(3.5), "z"),
        ],
        "Memory hierarchy": [memory_hierarchy()],
        "Stride explorer": [
            stride_view((2, 2), (8, 2), 1),
            stride_view((3, 3), (2, 2)),
            stride_view((3, 4), (0, 1), 4),
        ],
        "Index overlay": [
            index_overlay(twelve, (slice(1, 3), slice(1, 2)), write=0),
            index_overlay(hundred, ([0, 1, 3, 4, 7], slice(1, 5, 3)), write=0),
            index_overlay(twelve, twelve[:, 0] == 6, write=0),
            index_overlay(torch.arange(24).view(2, 3, 4), (0, slice(None), [0, 1])),
        ],
        "Broadcast": [
            broadcast(torch.tensor([[10], [20], [30]]), torch.arange(4)),
            broadcast(torch.ones(3, 2), torch.ones(3)),
        ],
        "Activations": [
            activation({f"τ = {t:g}": lambda x, t=t: torch.sigmoid(x / t) for t in (0.25, 1, 4)}, title="Temperature"),
            activation({"naive sigmoid": lambda x: 1 / (1 + torch.exp(-x))}, -120, 20),
            activation({"log": torch.log, "relu": torch.relu}, -2, 4),
        ],
        "Chain rule": [chain_step(step) for step in (0, 2, 5, 7)],
        "Graphs": _graphs(),
        "Masks": _masks(),
        "Mask conventions": [mask_conventions(torch.tensor([True, True, False, True]))],
        "Policies": _policies(),
        "Sparse layouts": _layouts(),
        "Adagrad": _adagrad(),
    }


def _graphs():
    x = torch.tensor([1.0], requires_grad=True)
    g = x * x + 1
    k = g.log().sin()
    w, b = torch.ones(2, 3, requires_grad=True), torch.zeros(2, requires_grad=True)
    h = (w @ torch.ones(3) + b).relu()
    nodes = {"in": "input", "mul": "mul", "one": "1", "add": "add", "log": "log", "sin": "sin", "out": "output"}
    edges = [
        ("in", "mul"),
        ("in", "mul"),
        ("mul", "add"),
        ("one", "add"),
        ("add", "log"),
        ("log", "sin"),
        ("sin", "out"),
    ]
    return [
        grad_fn_graph(k, {"x": x, "g": g, "k": k}),
        graph_picture(
            nodes, edges, {"in": "input", "one": "input", "out": "output"}, "The same as TensorBoard logs it"
        ),
        grad_fn_graph((h * h + h.exp() * w.sum()).sum(), {"w": w, "b": b}),
    ]


def _masks():
    data = torch.tensor([[1.0, 2.0, float("nan")], [3.0, -4.0, 5.0]])
    mask = torch.tensor([[True, False, False], [True, True, False]])

    def mean(data, mask):
        return data.where(mask, 0).sum(1) / mask.sum(1)

    def leaky(data, mask):
        return (data * mask).sum(1)

    return [
        mask_grid(data, mask),
        mask_grid(data, mask, True, mean, called="mean"),
        mask_grid(data.nan_to_num(), mask, True, leaky, called="leaky"),
    ]


def _policies():
    some, others = torch.tensor([True, True, False]), torch.tensor([True, False, False])
    one, two = torch.tensor([1.0, 2.0, float("nan")]), torch.tensor([10.0, 20.0, 30.0])
    wide = torch.tensor([[True, False, True], [False, True, True]])
    return [
        policy_grid(one, some, two, others),
        policy_grid(two, some, one.nan_to_num(), some, "*"),
        policy_grid(torch.arange(6).view(2, 3), wide, torch.arange(3), some, "-", names=("x", "y")),
    ]


def _coo(indices, values, shape):
    return torch.sparse_coo_tensor(indices, values, shape, check_invariants=True)


def _layouts():
    return [
        sparse_layouts(torch.eye(5, 6)),
        sparse_layouts(_coo([[0, 1, 1, 1], [2, 0, 2, 2]], [3.0, 0.0, 4.0, 5.0], (2, 4))),
    ]


def _adagrad():
    entries = _coo([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 4))
    rows = _coo([[1, 4, 1]], [[1.0, 2.0], [0.5, -1.0], [1.0, 1.0]], (6, 2))
    return [
        adagrad_row_map(torch.arange(8.0).view(2, 4), torch.full((2, 4), 0.5), entries),
        adagrad_row_map(torch.ones(6, 2), torch.zeros(6, 2), rows),
    ]


def page():
    """The gallery as one HTML document that needs nothing else."""
    sections = "".join(
        f"<h2>{html.escape(heading)}</h2>{''.join(picture.html() for picture in pictures)}"
        for heading, pictures in examples().items()
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Pictures of the lectures</title>'
        f"<style>{STYLE}</style></head><body><h1>Pictures of the lectures</h1>{sections}</body></html>\n"
    )
