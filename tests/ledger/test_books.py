"""The books: every change from outside is detected."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdptune.accounting import Geometric, PrivacyProfile, calibrate
from skdptune.ledger import LedgerError, PrivacyLedger
from skdptune.ledger._books import (
    BEYOND,
    SLACK,
    STATUS_AFTER,
    Books,
    Charges,
    Totals,
    Ways,
    save_account,
)
from skdptune.ledger._shared import ADD_OR_REMOVE, REPLACE, ZERO_OUT, common_relation
from tests.accounting.budgets.interactions import (
    LEAKY,
    Interaction,
    adverse,
    chosen_by,
    greedy,
    leaky,
)
from tests.accounting.budgets.interactions import PURE as PURE_PARTS

PURE = PrivacyProfile.pure(0.5)
TABLES = "accounts", "events", "profiles"
# What a ledger of three spends counts, and another count.
COUNTS = {"nine": '"n_events":9', "eight": '"n_events":8'}


def change(ledger, *statements):
    """Change rows as whoever may write to them can, the ledger's digests aside."""
    with ledger._storage.transaction(write=True) as transaction:
        for statement in statements:
            transaction._execute(in_full(transaction, statement), COUNTS)


def in_full(transaction, statement):
    """Return a statement with the full names of tables."""
    return re.sub(
        rf"\b({'|'.join(TABLES)})\b", lambda found: vars(transaction)[f"_{found[0]}"], statement
    )


def copied(ledger):
    """Return a copy of all that is kept at the place of a ledger."""
    with ledger._storage.transaction(write=False) as transaction:
        statements = [in_full(transaction, f"SELECT * FROM {table}") for table in TABLES]
        return [list(map(tuple, transaction._execute(each, {}))) for each in statements]


def put_back(ledger, copy):
    """Replace all that is kept by a copy."""
    change(ledger, *(f"DELETE FROM {table}" for table in TABLES))
    with ledger._storage.transaction(write=True) as transaction:
        for table, rows in zip(TABLES, copy, strict=True):
            for row in rows:
                values = {f"v{i}": value for i, value in enumerate(row)}
                places = ", ".join(f":{name}" for name in values)
                statement = in_full(transaction, f"INSERT INTO {table} VALUES ({places})")
                transaction._execute(statement, values)


@pytest.fixture
def spent(shared):
    for _ in range(3):
        with shared.reserve(PURE, name="a fit"):
            pass
    return shared


class TestChanges:
    """Theorem H3."""

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE events SET content = replace(content, 'a fit', 'a fix') WHERE sequence = 4",
            "UPDATE events SET content = replace(content, '0.1', '0.0') WHERE sequence = 1",
            "UPDATE events SET reservation = 'another' WHERE sequence = 2",
            "DELETE FROM events WHERE sequence = 2",
            "DELETE FROM events WHERE sequence > 6",
            "DELETE FROM events",
            "UPDATE accounts SET state = replace(state, :nine, :eight)",
            "UPDATE accounts SET terms = replace(terms, '3.0', '9.0')",
            "UPDATE accounts SET terms = 'x', digest = 'y'",
            "DELETE FROM accounts",
            "INSERT INTO events SELECT dataset, 10, 'new', content, digest FROM events LIMIT 1",
        ],
    )
    def test_change_of_a_row_is_seen_when_opened(self, spent, place, statement):
        change(spent, statement)
        with pytest.raises(LedgerError, match="damaged|registered"):
            PrivacyLedger(place, "patients")

    @pytest.mark.parametrize(
        "statement",
        [
            "DELETE FROM events WHERE sequence > 6",
            "UPDATE accounts SET state = replace(state, :nine, :eight)",
            "DELETE FROM accounts",
        ],
    )
    def test_change_of_the_totals_is_seen_by_the_next_spend(self, spent, place, statement):
        change(spent, statement)
        with pytest.raises(LedgerError, match="damaged|registered"):
            spent.reserve(PURE, name="a fit")

    def test_account_that_counts_less_than_its_events_is_seen(self, spent, place):
        with spent._storage.transaction(write=True) as transaction:
            books = Books(transaction, "patients", place)
            # With a digest that is right.
            save_account(transaction, books.terms, replace(books.state, totals=Totals()))
        with pytest.raises(LedgerError, match="events do not add up to its account"):
            PrivacyLedger(place, "patients").history()

    def test_lost_profile_is_seen_when_it_is_read(self, spent):
        change(spent, "UPDATE profiles SET content = '{}'")
        with pytest.raises(LedgerError, match="a profile was changed or is lost"):
            spent.spent()

    def test_older_copy_is_seen_by_who_knew_a_newer_one(self, spent):
        older = copied(spent)
        with spent.reserve(PURE, name="a fit"):
            pass
        put_back(spent, older)
        with pytest.raises(LedgerError, match="got another ledger or an older copy"):
            spent.reserve(PURE, name="a fit")

    @pytest.mark.parametrize("more", [2, 3, 9])
    def test_older_copy_that_went_on_is_seen_by_who_knew_a_newer_one(self, spent, more):
        """Theorem H3: it has the same number of events or more, but different ones."""
        older = copied(spent)
        with spent.reserve(PURE, name="a fit"):
            pass
        put_back(spent, older)
        others = PrivacyLedger(spent.path, spent.dataset)
        for _ in range(more):
            others.reserve(PrivacyProfile.pure(1e-3), name="another").cancel("a test")
        for use in (spent.history, spent.remaining, lambda: spent.reserve(PURE, name="a fit")):
            with pytest.raises(LedgerError, match="got another ledger or an older copy"):
                use()
        # Who has opened it since knows no better.
        assert len(others.history()) >= more

    def test_another_ledger_in_its_place_is_seen(self, spent, tmp_path):
        other = PrivacyLedger.create(tmp_path / "other", "patients", epsilon=3.0, delta=1e-5)
        put_back(spent, copied(other))
        with pytest.raises(LedgerError, match="must be the one that was opened"):
            spent.remaining()


class TestReplay:
    """Theorem H3: events that were checked are not read again, and later ones are."""

    def test_damage_of_a_later_event_is_seen_again_and_again(self, spent):
        spent.history()
        with spent.reserve(PURE, name="a fit"):
            pass
        change(spent, "UPDATE events SET content = replace(content, 'a', 'b') WHERE sequence = 11")
        for _ in range(2):
            with pytest.raises(LedgerError, match="event 11 was changed or is missing"):
                spent.history()

    @pytest.mark.parametrize("place", ["server"], indirect=True)
    def test_transaction_that_began_before_is_read_by_itself(self, spent):
        # Who writes to a file waits for those who read it.
        with spent._books(write=False) as (_, books):
            with spent.reserve(PURE, name="a fit"):
                pass
            assert len(spent.history()) == 4
            assert len(spent._records(books)) == 3
        assert len(spent.history()) == 4


def test_nothing_follows_a_cancellation_and_only_the_unread_is_cancelled():
    """Theorem H3."""
    assert not any(before in ("cancelled", "confirmed") for before, _ in STATUS_AFTER)
    assert [before for before, event in STATUS_AFTER if event == "cancelled"] == ["reserved"]


# Costs about replacing a record and about adding one are never added up ----------------------


WORDS = {"added": ADD_OR_REMOVE, "at its place": ZERO_OUT, "replaced": REPLACE}


def spend(ledger, relation):
    with ledger.reserve(PURE, name="a fit", neighbouring=relation):
        pass


@pytest.mark.parametrize("kinds", list(itertools.product(WORDS, WORDS)), ids="-".join)
def test_first_reservation_settles_the_neighbours(on_disk, kinds):
    """Theorem F11."""
    first, second = (WORDS[kind] for kind in kinds)
    spend(on_disk, first)
    if (first == REPLACE) == (second == REPLACE):
        spend(on_disk, second)
        assert [record.neighbouring for record in on_disk.history()] == [first, second]
    else:
        with pytest.raises(LedgerError, match="Such costs must not be added up"):
            on_disk.reserve(PURE, name="another", neighbouring=second)
        assert len(on_disk.history()) == 1


def test_neighbours_are_settled_for_all_who_use_the_ledger(on_disk, path):
    on_disk.reserve(PURE, name="a fit", neighbouring=REPLACE).cancel("nothing was read")
    again = type(on_disk)(path, "patients")
    with pytest.raises(LedgerError, match="neighbours that replace one"):
        again.reserve(PURE, name="another")


def test_common_relation_is_the_weakest():
    """Theorem F11."""
    assert common_relation([]) == common_relation([ADD_OR_REMOVE]) == ADD_OR_REMOVE
    assert common_relation([ZERO_OUT, ADD_OR_REMOVE]) == ZERO_OUT
    assert common_relation([REPLACE]) == REPLACE
    assert common_relation([REPLACE, ADD_OR_REMOVE]) is None
    assert common_relation([REPLACE, ZERO_OUT]) is None


# Shares and shifts: what is charged, and all courses of interactions that choose their pa


class Budget:
    """What a ledger admits, in the manner of a filter."""

    def __init__(self, ways):
        self.ways, self.totals = ways, Totals()

    def emptied(self):
        return Budget(self.ways)

    def _with(self, part):
        return self.totals.changed(self.ways.charges_of(part))

    def fits(self, part):
        return self.ways.admits(self._with(part))

    def record(self, part):
        self.totals = self._with(part)


def check_promise(epsilon, delta, ways, choose, parts):
    found = Interaction(Budget(ways), choose, parts)
    assert found.depth >= 1
    for mirrored in (False, True):
        assert found.delta(epsilon, mirrored) <= delta * (1.0 + 1e-9) + 1e-13
    return found


def stored(profile):
    return json.dumps(profile.to_dict())


class TestShares:
    """Theorem H1."""

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 7.0])
    @pytest.mark.parametrize("delta", [0.0, 1e-5])
    def test_pure_release_takes_its_part_of_epsilon(self, epsilon, delta):
        ways = Ways.shares_alone(3.0, delta)
        share = ways.charges_of(PrivacyProfile.pure(epsilon)).share
        assert share <= epsilon / 3.0
        assert share == pytest.approx(epsilon / 3.0, rel=1e-3)

    @pytest.mark.parametrize("count", [1, 2, 3, 7, 10])
    def test_equal_parts_of_the_budget_fit_as_often_as_there_are(self, count):
        ways = Ways.shares_alone(float(count), count * 1e-6)
        charges = ways.charges_of(PrivacyProfile.approximate(1.0, 1e-6))
        assert ways.more(Totals(), charges) == count

    @given(
        epsilon=st.floats(0.01, 20.0),
        delta=st.floats(1e-12, 0.5),
        part=st.sampled_from(
            [
                PrivacyProfile.gaussian(0.05),
                PrivacyProfile.gaussian(1.0).subsampled(0.1),
                PrivacyProfile.approximate(0.5, 1e-7),
                PrivacyProfile.gaussian(0.3).selected(Geometric(0.1)),
                PrivacyProfile.pure(1e-9),
            ]
        ),
    )
    @settings(max_examples=30)
    def test_share_is_proven_by_the_profile(self, epsilon, delta, part):
        share = Ways.shares_alone(epsilon, delta).charges_of(part).share
        if share < BEYOND:
            assert part.delta(share * epsilon) <= min(share * delta, 1.0) * (1.0 + 1e-12)
            less = share * (1.0 - 1e-6)
            assert part.delta(less * epsilon) > less * delta or share <= 1e-18

    @pytest.mark.parametrize("choose", [greedy, adverse])
    def test_choices_that_follow_the_losses(self, choose):
        check_promise(2.0, 0.0, Ways.shares_alone(2.0, 0.0), choose, PURE_PARTS)

    @given(seed=st.integers(0, 10**9))
    @settings(max_examples=10)
    def test_parts_that_may_tell_all(self, seed):
        check_promise(2.0, 0.02, Ways.shares_alone(2.0, 0.02), chosen_by(seed, 4), LEAKY)

    def test_the_guarantee_is_not_idle(self):
        """All of a budget is used by responses that compose to it, and one more breaks it."""
        parts = [leaky(0.5, 0.005)]
        found = check_promise(2.0, 0.02, Ways.shares_alone(2.0, 0.02), lambda past: 0, parts)
        assert found.delta(2.0 - 1e-9) > 0.0197
        beyond = Interaction(Budget(Ways.shares_alone(2.5, 0.025)), lambda past: 0, parts)
        assert beyond.delta(2.0) > 0.02


class TestEither:
    """Theorem H2."""

    @pytest.mark.parametrize(("choose", "parts"), [(greedy, LEAKY), (adverse, PURE_PARTS)])
    def test_choices_that_follow_the_losses(self, choose, parts):
        check_promise(2.0, 0.05, Ways.both(2.0, 0.05), choose, parts)

    @given(seed=st.integers(0, 10**9), epsilon=st.sampled_from([1.0, 2.0, 3.0]))
    @settings(max_examples=6)
    def test_random_choices(self, seed, epsilon):
        ways = Ways.both(epsilon, 0.05)
        check_promise(epsilon, 0.05, ways, chosen_by(seed, 4), LEAKY)

    def test_both_ways_are_needed(self):
        ways = Ways.both(3.0, 1e-5)
        pure = ways.charges_of(PrivacyProfile.pure(2.9))
        assert ways.shares_admit(Totals().changed(pure))
        assert not ways.shifts_admit(Totals().changed(pure))
        many = Totals()
        for _ in range(40):
            many = many.changed(ways.charges_of(PrivacyProfile.gaussian(0.1)))
        assert ways.shifts_admit(many) and not ways.shares_admit(many)
        assert ways.admits(many)

    def test_a_first_release_of_everything_settles_shares_alone(self):
        everything = PrivacyProfile.approximate(1.0, 1e-6)
        assert Ways.settled(1.0, 1e-6, everything, stored(everything)) == Ways.shares_alone(
            1.0, 1e-6
        )
        tuned = calibrate(
            lambda shift: PrivacyProfile.gaussian(shift).selected(Geometric(0.1)),
            *(1.0, 1e-6),
            parameter="budget",
            lower=1e-3,
            upper=3.0,
        ).profile
        for count in (1, 3):
            ways = Ways.settled(count * 1.0, count * 1e-6, tuned, stored(tuned))
            assert ways.more(Totals(), ways.charges_of(tuned)) >= count

    @pytest.mark.parametrize("delta", [0.0, 1e-300, 5e-324])
    def test_no_delta_leaves_shares_alone(self, delta):
        ways = Ways.both(1e-6, delta)
        assert ways.squared_shift == 0.0 or delta > 0.0
        assert ways.admits(Totals().changed(ways.charges_of(PrivacyProfile.pure(1e-7))))


class TestCopies:
    """Theorem G7."""

    def settled(self, epsilon, delta, first):
        return Ways.settled(epsilon, delta, first, stored(first))

    @pytest.mark.parametrize(
        ("epsilon", "least"),
        [
            (1.0, 4),
            *(pytest.param(*each, marks=pytest.mark.slow) for each in [(0.5, 9), (0.2, 32)]),
        ],
    )
    def test_tuned_searches_within_three(self, epsilon, least):
        tuned = calibrate(
            lambda shift: PrivacyProfile.gaussian(shift).selected(Geometric.from_mean(20)),
            *(epsilon, 1e-6),
            parameter="budget",
            lower=1e-3,
            upper=3.0,
        ).profile
        ways = self.settled(3.0, 1e-5, tuned)
        charges = ways.charges_of(tuned)
        assert charges.copies == 1.0
        assert ways.more(Totals(), charges) == ways.copies == least
        # What they cost together, by composition.
        assert (ways.copies * tuned).epsilon(ways.share_delta) <= 3.0
        assert ((ways.copies + 2) * tuned).epsilon(ways.share_delta) > 3.0

    def test_closed_form_of_randomised_responses(self):
        ways = self.settled(3.0, 1e-3, PrivacyProfile.pure(0.1))
        high, delta = 1.0 / (1.0 + math.exp(-0.1)), 1e-3 / 3.0

        def cost(count):
            return sum(
                math.comb(count, k)
                * max(
                    high**k * (1 - high) ** (count - k)
                    - math.exp(3.0) * high ** (count - k) * (1 - high) ** k,
                    0.0,
                )
                for k in range(count + 1)
            )

        assert cost(ways.copies) <= delta < cost(int(1.03 * ways.copies) + 1)

    def test_only_what_is_below_the_first_is_a_copy(self):
        first = PrivacyProfile.gaussian(0.05).selected(Geometric(0.05))
        ways = self.settled(3.0, 1e-5, first)
        assert ways.copies > 0
        for profile, charge in (
            (first, 1.0),
            (PrivacyProfile.gaussian(0.05).selected(Geometric(0.06)), 1.0),
            (PrivacyProfile.gaussian(0.05).selected(Geometric(0.04)), BEYOND),
            (PrivacyProfile.approximate(0.01, 1e-4), BEYOND),
            (PrivacyProfile.pure(0.0), 0.0),
        ):
            assert ways.charges_of(profile).copies == charge
        # A Gaussian release that is said to fit does.
        full = Totals().changed(Charges(5.0, BEYOND, 1.0, ways.copies - 1.0))
        left = ways.largest_epsilon(full, 1e-5)
        shift = calibrate(
            lambda mu: PrivacyProfile.gaussian(mu), left, 1e-5, parameter="budget", upper=20.0
        ).value
        assert left > 0.0
        assert ways.admits(full.changed(ways.charges_of(PrivacyProfile.gaussian(shift))))
        one_more = full.changed(ways.charges_of(first))
        assert ways.admits(one_more)
        assert not ways.admits(one_more.changed(ways.charges_of(first)))
        assert ways.largest_epsilon(one_more, 1e-5) == 0.0

    @pytest.mark.parametrize(
        ("first", "choose"),
        [(0, greedy), (1, adverse), (2, chosen_by(1, 4)), (3, chosen_by(2, 4))],
    )
    def test_choices_that_follow_the_losses(self, choose, first):
        ways = self.settled(2.0, 0.05, LEAKY[first][1])
        check_promise(2.0, 0.05, ways, choose, LEAKY)


class TestTotals:
    @given(st.lists(st.floats(0.0, 1e6, allow_subnormal=True), min_size=1, max_size=8))
    @settings(max_examples=50)
    def test_sums_are_exact_and_shown_from_above(self, values):
        totals = Totals()
        for value in values:
            totals = totals.changed(Charges(value, 0.0, 0.0))
        exact = sum(map(Fraction, values))
        assert Fraction(totals.share, 1 << 1074) == exact
        shown = totals.as_floats().share
        assert Fraction(shown) >= exact
        assert shown == 0.0 or Fraction(math.nextafter(shown, 0.0)) < exact
        for value in values:
            totals = totals.changed(Charges(value, 0.0, 0.0), sign=-1)
        assert totals == Totals()

    def test_budget_is_refused_just_beyond_its_slack(self):
        ways = Ways.shares_alone(1.0, 0.0)
        for share, is_admitted in ((1.0 + SLACK, True), (1.0 + 2.0 * SLACK, False)):
            assert ways.admits(Totals().changed(Charges(share, 0.0, 0.0))) == is_admitted


class TestLeft:
    @pytest.mark.parametrize(
        ("ways", "spent"),
        list(
            itertools.product(
                [Ways.both(3.0, 1e-5), Ways.shares_alone(3.0, 1e-5)],
                [PrivacyProfile.pure(0.5), PrivacyProfile.gaussian(0.3), PrivacyProfile.pure(0.0)],
            )
        ),
        ids=[f"{way}-{part}" for way in ("both", "shares") for part in ("pure", "gauss", "none")],
    )
    def test_what_is_left_fits_and_no_more(self, ways, spent):
        totals = Totals().changed(ways.charges_of(spent))
        for delta in (1e-5, 1e-7):
            left = ways.largest_epsilon(totals, delta)
            for factor, fits in ((1.0, True), (1.002, False)):
                part = calibrate(
                    PrivacyProfile.gaussian,
                    *(factor * left, delta),
                    parameter="budget",
                    lower=1e-4,
                    upper=5.0,
                    tolerance=1e-6,
                ).profile
                assert ways.admits(totals.changed(ways.charges_of(part))) == fits
        pure = ways.largest_epsilon(totals, 0.0)
        for factor, fits in ((1.0 - 1e-9, True), (1.01, False)):
            charges = ways.charges_of(PrivacyProfile.pure(factor * pure))
            assert ways.admits(totals.changed(charges)) == fits
