"""The memory hierarchy says in words what it draws."""

from lecture_pictures import memory_hierarchy
from lecture_pictures.hierarchy import GPU, LEVELS


def test_every_level_is_drawn_and_said_in_order():
    picture = memory_hierarchy()
    places = [level[0] for level in LEVELS]
    assert all(f">{place}<" in picture.svg and place in picture.text for place in (*places, GPU[0]))
    assert sorted(places, key=picture.text.index) == places


def test_it_is_legible(legible):
    legible(memory_hierarchy())
