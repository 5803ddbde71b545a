"""What GitHub's code scanning takes of SARIF 2.1.0, as its documentation says it: required properties and their forms.

The whole schema of OASIS is not repeated here; this is stricter in what GitHub needs, and knows what is written alone.
"""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string", "minLength": 1}
_LINE = {"type": "integer", "minimum": 1}


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "required": [*required],
        "properties": {**required, **(optional or {})},
        "additionalProperties": False,
    }


_MESSAGE = _object({"text": _TEXT})
_RULE = _object(
    {
        "id": {"type": "string", "maxLength": 255, "pattern": "^[a-z-]+$"},
        "name": {"type": "string", "maxLength": 255},
        "shortDescription": _object({"text": {"type": "string", "maxLength": 1024}}),
        "fullDescription": _object({"text": {"type": "string", "maxLength": 1024}}),
        "help": _object({"text": _TEXT, "markdown": _TEXT}),
    },
    {
        "helpUri": {"type": "string", "format": "uri"},
        "properties": _object({"tags": {"type": "array", "items": _TEXT, "maxItems": 20}}),
    },
)
_LOCATION = _object(
    {
        "physicalLocation": _object(
            {
                "artifactLocation": _object(
                    {
                        # A path from the root of the repository: neither absolute nor above it.
                        "uri": {"type": "string", "pattern": "^(?!/|\\.\\./|[a-z]+:)[A-Za-z0-9._~%/-]+$"},
                        "uriBaseId": {"const": "%SRCROOT%"},
                    }
                ),
                "region": _object({"startLine": _LINE, "startColumn": _LINE, "endLine": _LINE}, {"endColumn": _LINE}),
            }
        )
    }
)
_SUPPRESSION = _object(
    {"kind": {"enum": ["inSource", "external"]}},
    {
        "status": {"enum": ["accepted", "underReview", "rejected"]},
        "justification": _TEXT,
        "properties": {"type": "object"},
    },
)
_RESULT = _object(
    {
        "ruleId": _TEXT,
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": _MESSAGE,
        "locations": {"type": "array", "minItems": 1, "maxItems": 1000, "items": _LOCATION},
        "partialFingerprints": {
            "type": "object",
            "required": ["primaryLocationLineHash"],
            "additionalProperties": _TEXT,
        },
    },
    # GitHub passes over these; others read them as OASIS says (3.35, 3.8).
    {
        "suppressions": {"type": "array", "minItems": 1, "items": _SUPPRESSION},
        "properties": {"type": "object", "additionalProperties": _TEXT},
    },
)
GITHUB_SARIF: dict[str, Any] = _object(
    {
        "$schema": {"type": "string", "pattern": "sarif-2\\.1\\.0"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "maxItems": 20,
            "items": _object(
                {
                    "tool": _object(
                        {
                            "driver": _object(
                                {
                                    "name": _TEXT,
                                    "semanticVersion": _TEXT,
                                    "rules": {"type": "array", "maxItems": 25_000, "items": _RULE},
                                }
                            )
                        }
                    ),
                    "automationDetails": _object({"id": {"type": "string", "pattern": "/$"}}),
                    "columnKind": {"const": "unicodeCodePoints"},
                    "results": {"type": "array", "maxItems": 25_000, "items": _RESULT},
                }
            ),
        },
    }
)
