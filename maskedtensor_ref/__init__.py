"""A tensor that knows which of its elements are specified."""
