"""Parts of the data in public numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold

from skdptune.metrics import accuracy
from skdptune.model_selection._cost._layout import Layout, make_layout, split_of


def made(n_samples: int = 1000, **more: Any) -> Layout:
    usual = {"cv": 0.2, "public": False, "tuning_fraction": None, "variant": 1}
    settings = {**usual, "refit": "winner", "is_random": False, **more}
    return make_layout(n_samples, 3, **settings)


def test_sizes_of_the_usual_layouts() -> None:
    plain = made()
    assert (plain.n_train, plain.n_score, plain.final) == (800, 200, False)
    assert (plain.n_final, plain.train_is_random) == (800, True)
    part = made(tuning_fraction=0.1)
    assert (part.n_train, part.n_score, part.n_final, part.final) == (100, 200, 900, True)
    assert part.final_is_random
    second = made(tuning_fraction=0.1, variant=2)
    assert (second.n_final, second.final_is_random) == (1000, False)
    folds = made(cv=4, refit=True)
    assert (folds.n_train, folds.n_score, folds.n_final) == (750, 1000, 1000)
    public = made(public=True)
    assert (public.n_train, public.train_is_random, public.validation) == (1000, False, 0.0)


@pytest.mark.parametrize(
    ("n_samples", "share"),
    [(900, None), (1000, 0.2), (9_999, 0.2), (10_000, 0.1), (19_999, 0.1), (20_000, 0.05)],
)
def test_automatic_tuning_fraction(n_samples: int, share: float | None) -> None:
    assert made(n_samples, tuning_fraction="auto").tuning == share


def test_automatic_tuning_fraction_leaves_records() -> None:
    assert made(1500, tuning_fraction="auto", cv=0.9).tuning is None


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"cv": 0.0}, ValueError, "cv must be"),
        ({"cv": 1.5}, ValueError, "cv must be"),
        ({"cv": 1}, ValueError, "cv must be"),
        ({"cv": True}, TypeError, "cv must be a fraction or a number of folds; got bool"),
        ({"cv": None}, TypeError, "cv must be a fraction or a number of folds; got NoneType"),
        ({"cv": StratifiedKFold()}, ValueError, "cv must be KFold, ShuffleSplit with one split"),
        ({"cv": ShuffleSplit(1, test_size=30)}, ValueError, "cv must be KFold, ShuffleSplit"),
        ({"cv": ShuffleSplit(2)}, ValueError, "cv must be KFold, ShuffleSplit"),
        ({"variant": 3}, ValueError, "variant must be"),
        ({"refit": "best"}, ValueError, "refit must be 'winner', True or False; got 'best'"),
        ({"refit": 1}, ValueError, "refit must be 'winner', True or False; got 1"),
        ({"cv": 3}, ValueError, "refit must be True or False with folds"),
        ({"tuning_fraction": 0.8}, ValueError, "tuning_fraction must be"),
        ({"tuning_fraction": "some"}, ValueError, "tuning_fraction must be"),
        ({"n_samples": 0}, ValueError, "n_samples must be"),
        ({"n_samples": 10}, ValueError, "n_samples must be at least 20 to leave"),
    ],
)
def test_bad_layouts(settings: dict[str, Any], kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        made(**settings)


@pytest.mark.parametrize(
    ("splitter", "wanted"),
    [
        (KFold(4), (0.0, 4)),
        (KFold(3, shuffle=True, random_state=0), (0.0, 3)),
        (ShuffleSplit(1, test_size=0.3), (0.3, 0)),
        (ShuffleSplit(1), (0.1, 0)),
    ],
    ids=["folds", "shuffled-folds", "share", "default-share"],
)
def test_splitters_that_treat_records_alike_are_taken(
    splitter: Any, wanted: tuple[float, int]
) -> None:
    assert split_of(splitter) == wanted


def test_a_final_fit_of_no_record_is_paid_for() -> None:
    # Theorem F7.
    found = made(30, tuning_fraction=0.74, cv=0.25).chance_of_nothing
    assert found == pytest.approx(0.74**29 + 0.26**29, rel=1e-9)
    second = made(30, tuning_fraction=0.74, cv=0.25, variant=2).chance_of_nothing
    assert second == pytest.approx(0.26**29, rel=1e-9)


def test_replacing_a_record_moves_a_score_twice() -> None:
    # Theorem F8.
    plain, replaced = (made(replaces=to).sensitivity(accuracy()) for to in (False, True))
    assert replaced == 2.0 * plain
    wrong, right = (accuracy().score(np.array([value, 1.0]), 200) for value in (0.0, 1.0))
    assert right - wrong == pytest.approx(replaced)


def test_guarantees_about_replacing_do_not_grow_by_sampling() -> None:
    # Theorem F8.
    assert made(6000, replaces=True, tuning_fraction="auto").tuning is None
    with pytest.raises(ValueError, match="does not grow by sampling"):
        made(6000, replaces=True, tuning_fraction=0.1)


def test_a_final_fit_needs_records() -> None:
    with pytest.raises(ValueError, match="to leave some records for the final fit"):
        made(20, tuning_fraction=0.9, public=True)


def test_least_number_of_records_is_enough() -> None:
    assert made(20).n_score == 4


def test_uses_of_the_records_cover_what_their_sizes_say() -> None:
    settings = (
        {},
        {"refit": True},
        {"tuning_fraction": 0.1},
        {"tuning_fraction": 0.1, "variant": 2},
        {"tuning_fraction": 0.1, "cv": 4},
        {"cv": 4, "refit": True},
        {"public": True, "refit": False},
    )
    for setting in settings:
        layout = made(**setting)
        width = {use: end - start for use, (start, end) in layout.uses.items()}
        folds = 1.0 - 1.0 / layout.folds if layout.folds else 1.0
        assert width["fits of candidates"] * folds == pytest.approx(layout.train_share)
        assert width.get("scores", 0.0) == pytest.approx(layout.score_share)
        if layout.final:
            assert width["final fit"] == pytest.approx(layout.final_share)
        assert set(width) - {"scores"} == {
            "fits of candidates",
            *(["final fit"] if layout.final else []),
        }
        assert all(0.0 <= start < end <= 1.0 for start, end in layout.uses.values())
    apart = made(tuning_fraction=0.1).uses
    # Neither those who score nor those who are fitted last took part in candidates' fits.
    assert apart["scores"][0] == apart["final fit"][0] == apart["fits of candidates"][1] == 0.1
