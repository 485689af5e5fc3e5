"""Which modules a notebook imports, so that a zygote can import them once for all."""

import hashlib
import json
import sys
from importlib import metadata
from pathlib import Path

from autograder.preload import COURSE
from autograder.running import start_warm_kernel
from autograder.warm import Zygote

CELL_SECONDS = 600
# Modules that can be imported again by their name. Parts of pydevd need a changed path, and no graded kernel debugs.
MODULES = """[name for name, module in __import__('sys').modules.items()
 if getattr(getattr(module, '__spec__', None), 'name', None) == name
 and not name.startswith(('pydevd', '_pydev', 'debugpy', '__'))]"""


async def learnt(notebook, cache, plan, files=None, hides=()):
    """What a zygote for this notebook should import: COURSE and what the notebook itself imports, lazily or not.

    Args:
        notebook: path of a solved notebook (nbformat 4) that is trusted to run.
        cache: path of the JSON file in which the list is kept, until notebook, interpreter or torch change.
        files: the folder of its working files.
    Raises:
        RuntimeError: a cell fails.
    """
    sources = code_cells(notebook)
    key = fingerprint(sources, hides)
    cache = Path(cache)
    if cache.exists() and (kept := json.loads(cache.read_text()))["key"] == key:
        return tuple(kept["modules"])
    with Zygote.start(plan, hides=hides) as zygote:
        modules = [*COURSE, *await run(sources, zygote, files)]
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.write_text(json.dumps({"key": key, "modules": modules}, indent=1))
    return tuple(modules)


def code_cells(notebook):
    """The sources of the code cells, in order."""
    cells = json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def fingerprint(sources, hides):
    """Changes when the list might."""
    versions = [metadata.version(name) for name in ("torch", "ipykernel")]
    return hashlib.sha256(json.dumps([sources, sys.version, sys.prefix, versions, list(hides)]).encode()).hexdigest()


async def run(sources, zygote, files):
    """The modules that running the cells adds, in the order of their import."""
    async with start_warm_kernel(zygote, files=files) as kernel:
        before = await loaded(kernel.client)
        for source in sources:
            reply = await kernel.client.execute_interactive(
                source, timeout=CELL_SECONDS, output_hook=lambda message: None
            )
            if reply["content"]["status"] != "ok":
                error = reply["content"]
                raise RuntimeError(
                    f"the notebook fails with {error['ename']}: {error['evalue']}, in the cell\n{source}"
                )
        return [name for name in await loaded(kernel.client) if name not in before]


async def loaded(client):
    """Names of the modules in the kernel."""
    reply = await client.execute_interactive(
        "", user_expressions={"names": f"__import__('json').dumps({MODULES})"}, silent=True
    )
    shown = reply["content"]["user_expressions"]["names"]["data"]["text/plain"]
    return json.loads(shown.strip("'"))
