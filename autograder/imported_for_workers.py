"""Importing this module imports and sets up what a worker needs, and starts no thread: it is done before workers fork."""

import gc

from . import preload

preload.import_all(
    (
        "torch",
        "torch._dynamo",
        "torch.testing",
        "matplotlib.figure",
        "nbformat",
        "autograder.farm",
        "autograder.grade",
    )
)
preload.touch()
gc.collect()
gc.freeze()  # or the first full collection of every fork copies all of this
