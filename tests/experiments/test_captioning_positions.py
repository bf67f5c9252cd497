import numpy as np

from lff.experiments.tasks.captioning import positions, source


def test_a_position_is_seen_where_all_four_numbers_are_those_of_one_element() -> None:
    train = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
    asked = np.array([[5, 6, 7, 8], [1, 2, 7, 8], [1, 2, 3, 4]])
    assert positions.seen(asked, train).tolist() == [True, False, True]


def test_the_package_s_unseen_positions_are_nearly_all_inside() -> None:
    split = source.read(None, pixels=False, own_text=False).split
    found = positions.summary(split.train, split.test)
    assert (found["seen"], found["unseen"], found["unseen_in_hull"]) == (381, 992, 978)
    assert found["unseen_by_captioned"] > found["unseen"]
    assert positions.counts(positions.of_elements(split.train)).sum() == 4 * sum(len(s.elements) for s in split.train)
