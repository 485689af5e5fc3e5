"""Drawings of tensors for the lectures: SVG with a text equivalent, and sliders where there is a front end."""

from lecture_pictures.broadcast import broadcast
from lecture_pictures.controls import Explorer, explore_broadcast, explore_index, explore_strides
from lecture_pictures.indexing import index_overlay
from lecture_pictures.notation import DrawingError
from lecture_pictures.picture import Picture, stacked
from lecture_pictures.ruler import memory_ruler
from lecture_pictures.strides import stride_view

__all__ = [
    "DrawingError",
    "Explorer",
    "Picture",
    "broadcast",
    "explore_broadcast",
    "explore_index",
    "explore_strides",
    "index_overlay",
    "memory_ruler",
    "stacked",
    "stride_view",
]
