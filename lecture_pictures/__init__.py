"""Drawings of tensors for the lectures: SVG with a text equivalent, and sliders where there is a front end."""

from lecture_pictures.activation import activation
from lecture_pictures.adagrad import adagrad_row_map
from lecture_pictures.broadcast import broadcast
from lecture_pictures.chain import chain_step
from lecture_pictures.controls import (
    Explorer,
    explore_activation,
    explore_adagrad,
    explore_broadcast,
    explore_chain,
    explore_index,
    explore_layouts,
    explore_mask,
    explore_strides,
)
from lecture_pictures.conventions import mask_conventions
from lecture_pictures.figure import show_figure
from lecture_pictures.graph import grad_fn_graph, graph_picture
from lecture_pictures.hierarchy import memory_hierarchy
from lecture_pictures.indexing import index_overlay
from lecture_pictures.masks import mask_grid
from lecture_pictures.notation import DrawingError
from lecture_pictures.picture import Picture, stacked
from lecture_pictures.policies import policy_grid
from lecture_pictures.ruler import memory_ruler
from lecture_pictures.sparsity import sparse_layouts
from lecture_pictures.strides import stride_view

__all__ = [
    "DrawingError",
    "Explorer",
    "Picture",
    "activation",
    "adagrad_row_map",
    "broadcast",
    "chain_step",
    "explore_activation",
    "explore_adagrad",
    "explore_broadcast",
    "explore_chain",
    "explore_index",
    "explore_layouts",
    "explore_mask",
    "explore_strides",
    "grad_fn_graph",
    "graph_picture",
    "index_overlay",
    "mask_conventions",
    "mask_grid",
    "memory_hierarchy",
    "memory_ruler",
    "policy_grid",
    "show_figure",
    "sparse_layouts",
    "stacked",
    "stride_view",
]
