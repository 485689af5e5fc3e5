"""Torch on one thread, and the modules beside the tests importable."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def one_thread():
    """The suite runs in parallel; a thread pool per worker would only slow it down."""
    torch.set_num_threads(1)
