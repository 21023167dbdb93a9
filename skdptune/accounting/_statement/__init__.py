"""What an auditor asks about a release, answered: as a page, and as a registry's record."""

from skdptune.accounting._statement._facts import ReleaseFacts, includes_tuning
from skdptune.accounting._statement._statement import PrivacyStatement

__all__ = ["PrivacyStatement", "ReleaseFacts", "includes_tuning"]
