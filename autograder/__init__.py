"""Grades PyTorch notebooks: builds them, runs what students hand in, judges it outside their process."""
