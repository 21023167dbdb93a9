"""The fields of OpenDP's registry of deployments, as a JSON schema with our descriptions.

Names, kinds and allowed words are those of opendp/deployments-registry-data in 2026.
"""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT, "minItems": 1}
NUMBER = {"type": "number"}


def one_of(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


def fields(required: tuple[str, ...] = (), **known: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": known,
    }


BASIC = {
    "name": TEXT,
    "data_curators": TEXTS,
    "intended_use": TEXT,
    "data_product_type": one_of(
        *("Summary statistics", "Machine learning model", "Dataset", "Synthetic data"),
        *("Interactive API", "SQL queries"),
    ),
    "data_product_region": TEXT,
    "description": TEXT,
    "publication_date": TEXT | {"format": "date"},
}
DEPLOYMENT = {
    "basic": fields(
        tuple(BASIC),
        **BASIC,
        data_product_sector=one_of(
            *("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
        ),
    ),
    "dp_variant": fields(
        variant_name=one_of(
            *("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom")
        ),
        data_domain=TEXT,
        unprotected_quantities=TEXT,
    ),
    "privacy_loss": fields(
        privacy_unit=TEXT,
        privacy_unit_details=TEXT,
        privacy_parameters=fields(
            epsilon=NUMBER, delta={"type": ["number", "string"]}, rho=NUMBER
        ),
        privacy_parameters_details={},
    ),
    "deployment_model": fields(
        model_name=one_of("Local", "Central", "Shuffle", "Federated", "Varies"),
        model_name_details=TEXT,
        actors=TEXT,
        release_type=one_of("One release", "Many releases"),
        release_type_details=TEXT,
        data_source_type=one_of("Static", "Dynamic"),
        data_source_type_details={},
        access_type=one_of("Interactive", "Non-interactive"),
        access_type_details=TEXT,
    ),
    "accounting": fields(post_processing=TEXT, composition=TEXT),
    "implementation": fields(
        preprocessing_and_hyperparameter_tuning=TEXT, mechanisms=TEXT, justification=TEXT
    ),
    "administrative": fields(
        ("registry_authors",), sources=TEXT, notes=TEXT, registry_authors=TEXTS
    ),
}
SCHEMA = fields(
    ("url_slug", "status", "tier", "deployment"),
    url_slug=TEXT,
    status=one_of("Draft", "Pending", "Approved"),
    tier={"type": "integer", "enum": [1, 2, 3]},
    deployment=fields(("basic",), **DEPLOYMENT),
)
