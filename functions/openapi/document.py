"""The whole document: every group of routes gives its paths and schemas."""

from __future__ import annotations

import json
from pathlib import Path

from functions.front_door import OPEN_JOBS
from functions.openapi import operations, reads
from functions.openapi.parts import SCHEMAS, Json

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "openapi.json"


def document() -> Json:
    """OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Operations",
            "version": "1",
            "summary": "Jobs for clients that repeat themselves: one intent has one effect.",
            "description": "The owner of an operation is the verified caller; nobody sees another's. See docs/reference/http.md.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [
            {
                "url": "https://{api}",
                "description": "The stack's output `Api`",
                "variables": {"api": {"default": "api"}},
            }
        ],
        "security": [{"token": []}],
        "paths": {**operations.paths(OPEN_JOBS), **reads.paths()},
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "JWT",
                    "description": "Of the stage's issuer. Where its identity is of kind `iam`, requests are signed instead (SigV4).",
                }
            },
            "schemas": {**SCHEMAS, **operations.schemas(OPEN_JOBS), **reads.SCHEMAS},
        },
    }


def text() -> str:
    """As it is committed."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"
