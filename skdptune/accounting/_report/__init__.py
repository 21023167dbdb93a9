"""What a fitted object guarantees, as a tree of parts that can be printed and stored."""

from skdptune.accounting._report._report import PrivacyReport

__all__ = ["PrivacyReport"]
