"""Drawings of tensors for the lectures: SVG with a text equivalent, and sliders where there is a front end."""
