"""A release in the fields of OpenDP's registry of deployments (opendp/deployments-registry-data).

The names of fields and their allowed words are the registry's, as of its schema of 2026.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skdptune.accounting._statement._statement import PrivacyStatement

PRODUCT_TYPES = (
    "Summary statistics",
    "Machine learning model",
    "Dataset",
    "Synthetic data",
    "Interactive API",
    "SQL queries",
)
DATA_SOURCES = ("Static", "Dynamic")
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")


def registry_record(statement: PrivacyStatement) -> dict[str, Any]:
    """Return the record of a statement, with what nobody stated left out where that is allowed."""
    basic = _basic(statement)
    return {
        "url_slug": _slug(basic),
        "status": "Draft",
        "tier": 1 if statement.unstated else 3,
        "deployment": {
            "basic": basic,
            "dp_variant": _variant(statement),
            "privacy_loss": _privacy_loss(statement),
            "deployment_model": _model(statement),
            "accounting": _stated(
                post_processing=statement.about["post_processing"],
                composition=statement.facts.composition,
            ),
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": statement.tuning,
                "mechanisms": statement.mechanisms,
                **_stated(justification=statement.about["justification"]),
            },
            "administrative": _administrative(statement),
        },
    }


def _basic(statement: PrivacyStatement) -> dict[str, Any]:
    about = statement.about
    return {
        "name": about["name"] or statement.facts.name,
        "data_curators": list(about["curators"]) or [statement.answer("curators")],
        "intended_use": statement.answer("intended_use"),
        "data_product_type": about["product_type"],
        "data_product_region": statement.answer("region"),
        "description": statement.answer("description"),
        "publication_date": about["publication_date"],
        **({"data_product_sector": about["sector"]} if about["sector"] else {}),
    }


def _variant(statement: PrivacyStatement) -> dict[str, Any]:
    facts = statement.facts
    return {
        "variant_name": "Pure DP" if facts.delta == 0.0 else "Approximate DP",
        **_stated(data_domain=statement.about["domain"]),
        "unprotected_quantities": statement.public_knowledge,
    }


def _privacy_loss(statement: PrivacyStatement) -> dict[str, Any]:
    facts = statement.facts
    delta = {"delta": facts.delta} if facts.delta > 0.0 else {}
    return {
        "privacy_unit": statement.answer("unit"),
        "privacy_unit_details": f"Neighbouring data sets: {facts.neighbouring}.",
        "privacy_parameters": {"epsilon": facts.epsilon, **delta},
        "privacy_parameters_details": facts.tree,
    }


def _model(statement: PrivacyStatement) -> dict[str, Any]:
    is_continual = statement.facts.is_continual
    return {
        "model_name": "Central",
        "model_name_details": (
            "Whoever runs the computation sees the records; what is published is private."
        ),
        **_stated(actors=statement.about["actors"]),
        "release_type": "Many releases" if is_continual else "One release",
        "release_type_details": statement.facts.other_releases,
        **_stated(data_source_type=statement.about["data_source"]),
        "access_type": "Non-interactive",
        **_stated(access_type_details=statement.about["access"]),
    }


def _administrative(statement: PrivacyStatement) -> dict[str, Any]:
    about = statement.about
    authors = list(about["authors"]) or list(about["curators"]) or [statement.answer("authors")]
    return {
        **_stated(sources=about["sources"], notes=about["notes"]),
        "registry_authors": authors,
    }


def _stated(**fields: str | None) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value}


def _slug(basic: dict[str, Any]) -> str:
    """Return the address of a record: its name, its curators and its year."""
    year = basic["publication_date"].split("-")[0]
    parts = basic["name"], "-".join(basic["data_curators"]), year
    return "_".join(re.sub(r"\W+", "_", part.lower()) for part in parts).replace("_", "-")
