"""Names the tests that were skipped wherever they were collected, and fails if there are any.

    python3 .ci/skipped.py OUTCOMES

The file holds the lines that conftest.py writes for SKDPTUNE_OUTCOMES, of all legs together. A
file that was skipped as a whole ran if one of its tests did.
"""

import sys
from pathlib import Path

PERMITTED = (
    # scikit-learn's own tests, which pass over array libraries that nobody here has.
    "tests/model_selection/test_scikit_learn_search.py::",
    # Only root can mount a small disk.
    "tests/ledger/test_postgresql.py::TestFaults::test_full_disk",
)


def always_skipped(lines: list[str]) -> list[str]:
    """Return the names after `skipped` that no line says ran."""
    words = [line.partition(" ")[::2] for line in lines]
    ran = {name for word, name in words if word == "ran"}
    ran |= {name.partition("::")[0] for name in ran}
    skipped = {name for word, name in words if word == "skipped"}
    return sorted(name for name in skipped - ran if not name.startswith(PERMITTED))


if __name__ == "__main__":
    found = always_skipped(Path(sys.argv[1]).read_text("utf-8").splitlines())
    print("\n".join(found) or "Every test ran on a leg.")
    sys.exit(bool(found))
