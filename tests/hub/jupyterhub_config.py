"""A hub for tests: everybody may log in, each server is a process of this user."""

import json
import os
import sys

c = get_config()  # noqa: F821
given = json.loads(os.environ["WARPBOOK_TEST_HUB"])

c.JupyterHub.bind_url = given["url"]
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{given['hub_port']}"
c.JupyterHub.db_url = f"sqlite:///{given['folder']}/hub.sqlite"
c.JupyterHub.cookie_secret = os.urandom(32)
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{given['proxy_port']}"
c.ConfigurableHTTPProxy.command = [given["proxy"]]
c.ConfigurableHTTPProxy.pid_file = f"{given['folder']}/proxy.pid"

c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allowed_users = set(given["users"])

c.JupyterHub.spawner_class = "simple"
# all three start at once, on a machine that may be busy
c.Spawner.start_timeout = c.Spawner.http_timeout = 120
c.SimpleLocalProcessSpawner.home_dir_template = f"{given['folder']}/{{username}}"
c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
c.Spawner.args = ["--allow-root"]
c.Spawner.environment = {
    **{name: os.environ[name] for name in given["environment"]},
    "JUPYTERHUB_ALLOW_WEBSOCKET_COOKIE_AUTH": lambda spawner: (
        "0" if spawner.user.name in given["no_websocket_cookie"] else "1"
    ),
}
