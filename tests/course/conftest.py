"""The lectures as they stand in solutions/, and answers judged without a kernel."""

import functools
import os

import pytest
import torch

from autograder import judge

os.environ.setdefault("MPLBACKEND", "Agg")  # answers that draw open no windows


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def each_wrong_answer_runs_once():
    """Judging asks what the reference and the wrong answers do again and again, on the same cases."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "seen_by", functools.cache(judge.seen_by))
        yield
