""" """

from skdptune.accounting._losses import _closed_forms as closed_forms
from skdptune.accounting._losses import _curves as curves
from skdptune.accounting._losses import _dp_accounting as dp_accounting
from skdptune.accounting._losses import _events as events
from skdptune.accounting._losses import _renyi as renyi
from skdptune.accounting._losses._closed_forms import gaussian_delta
from skdptune.accounting._losses._curves import pair_masses
from skdptune.accounting._losses._distribution import LARGEST_LOSS, LossDistribution
from skdptune.accounting._losses._renyi import (
    ORDERS,
    RenyiCurve,
    RenyiMaximum,
    RenyiMultiple,
    RenyiOfEvent,
    RenyiOfPure,
    RenyiSubsampled,
    RenyiSum,
    RenyiTable,
    RenyiUnknown,
)

__all__ = [
    "LARGEST_LOSS",
    "LossDistribution",
    "ORDERS",
    "RenyiCurve",
    "RenyiMaximum",
    "RenyiMultiple",
    "RenyiOfEvent",
    "RenyiOfPure",
    "RenyiSubsampled",
    "RenyiSum",
    "RenyiTable",
    "RenyiUnknown",
    "closed_forms",
    "curves",
    "dp_accounting",
    "events",
    "gaussian_delta",
    "pair_masses",
    "renyi",
]
