"""Names of this folder that other folders use, in addition to its public ones."""

from skdptune.checks._check import check_plan
from skdptune.checks._report import check_codes
from skdptune.checks._source import SourceFinding, check_source
