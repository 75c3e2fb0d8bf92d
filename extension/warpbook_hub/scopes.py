"""The course service in JupyterHub's configuration: scopes, roles, and whom it asks.

Who is what in a course is in the course's database; a token never does more than both
allow.
"""

from __future__ import annotations

from typing import Any

#: of the course service at JupyterHub
SERVICE = "warpbook"
#: hand in, and see one's own
SUBMIT = "custom:warpbook:submit"
#: see and decide about a section
ASSIST = "custom:warpbook:assist"
#: run the course
TEACH = "custom:warpbook:teach"
#: operate the hub
OPERATE = "custom:warpbook:operate"
SCOPES = (SUBMIT, ASSIST, TEACH, OPERATE)
_ENTER = f"access:services!service={SERVICE}"

#: what tokens may be used for
CUSTOM_SCOPES: dict[str, Any] = {
    SUBMIT: {"description": "Hand in labs, and see one's own results"},
    ASSIST: {"description": "See and grade the work of one's section"},
    TEACH: {"description": "Run a course", "subscopes": [ASSIST]},
    OPERATE: {"description": "Operate the hub: queue, graders, backups"},
}
ROLES: list[dict[str, Any]] = [
    # a course's database gives the rights, so staff are added and removed at once
    {"name": "user", "scopes": ["self", _ENTER, SUBMIT, TEACH, OPERATE]},
    {
        "name": "warpbook-service",
        "services": [SERVICE],
        "scopes": ["list:users", "read:users:name", "read:users:groups"],
    },
    # what a notebook may do in its learner's name
    {
        "name": "server",
        "scopes": ["users:activity!user", "access:servers!server", _ENTER, SUBMIT],
    },
]
#: how the service has people log in
LOGIN: dict[str, Any] = {
    "oauth_no_confirm": True,
    "oauth_client_allowed_scopes": list(SCOPES),
}
