"""What is part of a fit that is paid for is paid for by it, and by nothing else."""

from __future__ import annotations

import contextvars
import os
import threading

import pytest

from skdptune.base._recording._payments import current_payment, paid_by, paid_for


def test_block_is_paid_for_until_it_ends():
    """Theorem H4."""
    assert current_payment() is None
    with paid_for():
        outer = current_payment()
        with paid_for(is_passed_on=True):
            inner = current_payment()
            assert inner is not outer and inner.is_passed_on
        assert current_payment() is outer and outer.is_open and not inner.is_open
    assert current_payment() is None and not outer.is_open


def test_exception_ends_it():
    with pytest.raises(ZeroDivisionError), paid_for():
        raise ZeroDivisionError
    assert current_payment() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_process_is_not_paid_for():
    """Theorem H4: it may go on when what paid has ended."""
    with paid_for():
        child = os.fork()
        if child == 0:
            os._exit(0 if current_payment() is None else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_another_thread_is_paid_for_only_if_it_is_told():
    found = []

    def run(payment):
        found.append(current_payment())
        with paid_by(payment):
            found.append(current_payment())
        found.append(current_payment())

    with paid_for():
        thread = threading.Thread(target=run, args=(current_payment(),))
        thread.start()
        thread.join()
        assert found == [None, current_payment(), None]
        # Who was told does not end what others pay for.
        assert current_payment().is_open


def test_copied_context_is_not_paid_for_once_the_payment_has_ended():
    """Theorem H4: as of a task of asyncio that was made on the way and lives on."""
    with paid_for():
        kept = contextvars.copy_context()
        assert kept.run(current_payment) is current_payment()
    assert kept.run(current_payment) is None
