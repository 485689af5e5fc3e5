"""The concepts of the course's sources, by id: in which lectures each is taught. Nothing of them may be lost."""

NAMES = {
    "01": "01_storage",
    "02": "02_indexing",
    "03": "03_activations",
    "04": "04_graphs",
    "05": "05_masked_overview",
    "06": "06_sparsity",
    "07": "07_adagrad",
    "08": "08_masked_semantics",
}


def _run(letter, first, last, lectures):
    """Ids of one letter, from `first` to `last`: taught in each of `lectures`."""
    return {f"{letter}-{n:02}": tuple(NAMES[lecture] for lecture in lectures) for n in range(first, last + 1)}


LECTURES = {
    # the introductory lecture: storage, indexing, functions, derivatives, graphs
    "L-G": (),  # its goals: belongs to no lecture alone
    **_run("L", 1, 15, ["01"]),
    **_run("L", 16, 21, ["02"]),
    **_run("L", 22, 22, ["01", "02"]),
    **_run("L", 23, 23, ["02"]),
    **_run("L", 24, 34, ["03"]),
    **_run("L", 35, 45, ["04"]),
    **_run("L", 46, 46, ["02", "03"]),
    # the overview of MaskedTensor
    **_run("O", 1, 20, ["05"]),
    **_run("O", 19, 19, ["05", "08"]),
    # Adagrad with masked gradients
    **_run("A", 1, 13, ["07"]),
    **_run("A", 9, 9, ["06", "07"]),
    **_run("A", 14, 14, ["07", "08"]),
    # masks and sparse layouts; advanced semantics
    **_run("S", 1, 12, ["06"]),
    **_run("V", 1, 8, ["08"]),
}


def required(lecture: str) -> set[str]:
    """The ids that a lecture must teach."""
    return {id for id, lectures in LECTURES.items() if lecture in lectures}


FACTS = {f"F-{n:02}" for n in range(1, 62)}  # what the sources say and torch no longer does, numbered in their order
CORRECTED = {  # the facts that a lecture must put right
    "01_storage": {f"F-{n:02}" for n in range(1, 14)},
    "02_indexing": {f"F-{n}" for n in range(14, 25)},
    "03_activations": {"F-23", "F-25", "F-26", "F-27", "F-35"},
    "04_graphs": {f"F-{n}" for n in range(28, 36)},
    "05_masked_overview": {f"F-{n}" for n in range(37, 49)},
    "06_sparsity": {"F-49", "F-50", "F-51", "F-54", "F-56", "F-57", "F-58"},
    "07_adagrad": {"F-44", "F-50", *(f"F-{n}" for n in range(52, 59))},
    "08_masked_semantics": {"F-48", "F-59", "F-60"},
    "09_minimask": {"F-40", "F-44", "F-48", "F-60"},
}
