""" """

from skdptune.accounting._report._report import PrivacyReport

__all__ = ["PrivacyReport"]
