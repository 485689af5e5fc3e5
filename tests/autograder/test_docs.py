"""The documentation keeps up with the code."""

import re
from ast import literal_eval
from dataclasses import fields
from pathlib import Path

import pytest

from autograder.settings import Grading, Settings

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_every_setting_is_documented_with_its_default():
    text = (ROOT / "docs" / "instructor.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (\S*) \|", text, re.MULTILINE))
    for field in fields(Settings):
        assert f"`{field.name}`" in text
        if rows.get(field.name):
            assert literal_eval(rows[field.name]) == getattr(Grading(), field.name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_make_target_named_in_the_readme_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make (\w+)", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE) or target in ("are", "is"), target


def test_conda_installs_what_the_constraints_and_pyproject_say():
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    assert "-c constraints.txt -e .[test,postgres]" in text
    assert "-c constraints.txt -e '.[test,postgres]'" in (ROOT / "Makefile").read_text(encoding="utf-8")
    wanted = re.search(r'requires-python = "(.*)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))[1]
    assert f"python{wanted}" in text


def test_pyproject_gives_a_reason_for_every_dependency():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for line in re.findall(r'^    "[A-Za-z].*$', text.split("[project.scripts]")[0], re.MULTILINE):
        if "torch-lectures[" not in line:
            assert "#" in line, line


def test_no_path_of_a_machine_is_in_the_tree():
    for path in PAGES:
        assert not re.search(r"/(?:work|root|home|opt)/\w", path.read_text(encoding="utf-8")), path
