"""Uses of a ledger by other threads and processes in the tests."""

from __future__ import annotations

import functools
import multiprocessing
import os
import resource
import runpy
import threading

from skdptune.accounting import BudgetExceededError, PrivacyProfile
from skdptune.ledger import LedgerError, PrivacyLedger, _sqlite

SMALL = PrivacyProfile.pure(0.001)
PATIENCE_S = 600


@functools.cache
def context():
    """Return how children are started: each from a fork of a process with one thread."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["pytest", "skdptune.ledger", "sqlalchemy", "psycopg"])
    return found


def started(function, *arguments):
    """Return a process that runs a function of this file, which children cannot import."""
    given = {"ARGUMENTS": arguments}
    child = context().Process(target=runpy.run_path, args=(__file__, given, function.__name__))
    child.start()
    return child


def in_threads(*functions):
    """Run functions at the same time, each in a thread."""
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)


def finish(*children):
    for child in children:
        child.join(PATIENCE_S)
    assert [child.exitcode for child in children] == [0] * len(children)


def _without_sync():
    # Whether a machine that stops loses anything is up to the disk; the tests do not stop it.
    _sqlite._SYNCHRONOUS = "OFF"


def spend_until_killed(ledger, log):
    """Reserve, read, confirm, again and again, and write down first what is about to be read."""
    _without_sync()
    number = os.open(log, os.O_WRONLY | os.O_APPEND)
    while True:
        reservation = ledger.reserve(SMALL, name="a fit")
        with reservation:
            os.write(number, f"{reservation.identifier}\n".encode())


def spend_until_lost(ledger, log):
    """Spend until the server is gone, and write down how far each spend is known to be."""
    number = os.open(log, os.O_WRONLY | os.O_APPEND)

    def note(word, reservation):
        os.write(number, f"{word} {reservation}\n".encode())

    identifier = "none"
    while True:
        try:
            reservation = ledger.reserve(SMALL, name="a fit")
            identifier = reservation.identifier
            with reservation:
                note("read", identifier)
            note("confirmed", identifier)
        except LedgerError as error:
            note("unknown" if "may count or not" in str(error) else "lost", identifier)
            return


def spend_with_files_up_to(size, ledger, log):
    """Spend until the disk is full, as it is for this process at some size of a file."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    spend_until_lost(ledger, log)


def as_nobody(log, use):
    """Do something as a user who may not write, as root may whatever the modes of files say."""
    number = os.open(log, os.O_WRONLY | os.O_APPEND)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    try:
        use()
    except LedgerError as error:
        os.write(number, str(error).encode())


def spend_as_nobody(ledger, log):
    as_nobody(log, lambda: ledger.reserve(SMALL, name="a fit"))


def create_as_nobody(path, log):
    as_nobody(log, lambda: PrivacyLedger.create(path, "patients", epsilon=1.0, delta=0.0))


def spend_at(path, count, start, results):
    """Spend under one of several names of a file, which this process does not look at."""
    _sqlite._only_name = os.path.realpath
    spend(PrivacyLedger(path, "patients"), count, SMALL, start, results)


def check_notes(ledger, log):
    """Check that all that was noted by a child is spent; return how much, and what came last."""
    status = {record.reservation: record.status for record in ledger.history()}
    lines = [line.split() for line in log.read_text().splitlines()]
    for word, reservation in lines:
        if word == "read":
            assert status[reservation] in ("read", "confirmed"), "read, and not spent"
        if word == "confirmed":
            assert status[reservation] == "confirmed", "confirmed to the caller, and lost"
    return len(status), lines[-1][0]


def spend(ledger, count, profile, start, results):
    """Spend a number of times, or until nothing fits; send how often it did."""
    _without_sync()
    start.wait(PATIENCE_S)
    done = 0
    for _ in range(count):
        try:
            with ledger.reserve(profile, name="a fit", details={"process": os.getpid()}):
                done += 1
        except BudgetExceededError:
            pass
    results.put(done)


def spend_in_processes(ledger, n_processes, count, profile):
    """Return how often each of some processes that race could spend."""
    start, results = context().Barrier(n_processes), context().SimpleQueue()
    arguments = ledger, count, profile, start, results
    finish(*[started(spend, *arguments) for _ in range(n_processes)])
    return [results.get() for _ in range(n_processes)]


def confirm(reservation):
    """Read and confirm what another process has reserved."""
    _without_sync()
    with reservation:
        pass


if "ARGUMENTS" in globals():
    globals()[__name__](*globals()["ARGUMENTS"])
