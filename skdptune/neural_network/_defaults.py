"""What a net's parameters stand for where they are not given, from public numbers alone."""

from __future__ import annotations

AUTO_EPOCHS = "auto"
# Epochs by default, from so many records on: as many as lose nothing at small budgets, which noise
# decides. It changes a decision between two classes least, numbers more, and one class among many
# most. The measurements are in docs/defaults.md.
EPOCHS_FOR_TWO_CLASSES = {0: 20, 4_000: 30}
EPOCHS_FOR_TARGETS = {0: 10, 16_000: 20}
EPOCHS_FOR_CLASSES = {0: 10}


def default_epochs(rule: dict[int, int], n_samples: int) -> int:
    """Return the number of epochs that "auto" stands for.

    It must depend on nothing that differs between plan and fit, nor on epsilon, which is not there
    while a search solves for the noise.

    Parameters
    ----------
    rule : dict of int to int
        Numbers of epochs by the least number of records from which they hold, in rising order.
    n_samples : int
        The public number of records.

    Returns
    -------
    int
    """
    return [epochs for least, epochs in rule.items() if n_samples >= least][-1]
