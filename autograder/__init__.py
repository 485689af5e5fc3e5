"""Grades PyTorch notebooks: builds them, runs what students hand in, judges it outside their process."""

import sys

# jsonschema, which nbformat needs, imports this to check addresses in non-Latin letters. It takes 1.2 s of every process,
# and no notebook has any: jsonschema goes without where it is missing.
sys.modules.setdefault("rfc3987_syntax", None)
