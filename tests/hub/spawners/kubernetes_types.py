"""Checks manifests against the types of Kubernetes' own client, which has them all."""

from __future__ import annotations

import re
from typing import Any

from kubernetes_asyncio.client import models

_PLAIN: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "float": (int, float),
    # a number or a name, as of a port
    "object": (str, int),
    # Kubernetes reads `cpu: 2.0`, too
    "quantity": (str, int, float),
}
_CONTAINER = re.compile(r"(list|dict)[\[(](?:str, )?(.+)[\])]")


def check(kind: str, manifest: Any, at: str = "") -> Any:
    """Make the client's object of a manifest, which asks for what is required.

    Raises:
        AssertionError: a field is not of Kubernetes, or of another type.
        ValueError: a field is missing.
    """
    if kind in _PLAIN:
        is_bool = isinstance(manifest, bool)
        assert isinstance(manifest, _PLAIN[kind]), f"{at} is no {kind}"
        assert is_bool == (kind == "bool"), f"{at} is no {kind}"
        return manifest
    container = _CONTAINER.fullmatch(kind)
    if container is None:
        return _model(kind, manifest, at)
    inner = container[2]
    if container[1] == "list":
        assert isinstance(manifest, list), f"{at} is no list"
        return [check(inner, part, f"{at}[]") for part in manifest]
    assert isinstance(manifest, dict), f"{at} is no mapping"
    return {key: check(inner, part, f"{at}.{key}") for key, part in manifest.items()}


def _model(kind: str, manifest: dict[str, Any], at: str) -> Any:
    model = getattr(models, kind)
    names = {json: name for name, json in model.attribute_map.items()}
    unknown = set(manifest) - set(names)
    assert not unknown, f"{at} has no {sorted(unknown)} in {kind}"
    fields = {}
    for key, part in manifest.items():
        of_field = model.openapi_types[names[key]]
        if kind.endswith("ResourceRequirements") and of_field == "dict(str, str)":
            of_field = "dict(str, quantity)"
        fields[names[key]] = check(of_field, part, f"{at}.{key}")
    return model(**fields)
