"""JupyterHub's configuration, made of the plan that `warpbook hub` has written."""

import ctypes
import os
import signal
import sys
from pathlib import Path

from warpbook.guarded_server import GuardedServer
from warpbook_hub.running.announcement import unread_words
from warpbook_hub.running.lease_spawner import LeaseSpawner
from warpbook_hub.running.login import ClassPassword, passwords_of
from warpbook_hub.running.plan import PLAN, read_plan
from warpbook_hub.scopes import CUSTOM_SCOPES, LOGIN, ROLES, SERVICE

c = get_config()  # type: ignore[name-defined]  # noqa: F821
GuardedServer.be_the_default()
plan = read_plan(Path(os.environ[PLAN]))

# whoever started the hub watches it, and starts it anew
ctypes.CDLL(None).prctl(1, signal.SIGTERM)

scheme = "https" if plan.ssl_cert else "http"
c.JupyterHub.bind_url = f"{scheme}://{plan.ip or '0.0.0.0'}:{plan.port}{plan.base_url}"
# a learner's server is the learner's own program: on a host of its own its pages reach
# nothing of the course's
c.JupyterHub.subdomain_host = plan.subdomain_host
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{plan.hub_port}"
c.JupyterHub.db_url = f"sqlite:///{plan.hub_folder}/hub.sqlite"
c.JupyterHub.cookie_secret_file = f"{plan.hub_folder}/cookie_secret"
if plan.ssl_cert:
    c.JupyterHub.ssl_key, c.JupyterHub.ssl_cert = plan.ssl_key, plan.ssl_cert
c.ConfigurableHTTPProxy.command = list(plan.proxy)
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{plan.proxy_port}"
c.ConfigurableHTTPProxy.pid_file = f"{plan.hub_folder}/proxy.pid"

# who logs in sees their courses; the pages lead on to JupyterLab
c.JupyterHub.default_url = plan.pages_url if plan.subdomain_host else plan.prefix
c.JupyterHub.template_vars = {"announcement_home": unread_words(plan)}

c.JupyterHub.custom_scopes = CUSTOM_SCOPES
c.JupyterHub.load_roles = ROLES
# it is kept running beside the hub, and serves graders while the hub is away
c.JupyterHub.services = [
    {
        "name": SERVICE,
        "url": f"http://127.0.0.1:{plan.service_port}",
        "api_token": plan.token_file.read_text().strip(),
        **LOGIN,
    }
]

if plan.users == "system":
    c.JupyterHub.authenticator_class = "pam"
    c.PAMAuthenticator.open_sessions = False
    c.JupyterHub.spawner_class = LeaseSpawner if plan.lease_gpus else "localprocess"
    c.LeaseSpawner.service_url = plan.service_url
    c.LeaseSpawner.keeper_token_file = str(plan.keeper_token_file)
    c.LeaseSpawner.lease_course = plan.course
else:
    passwords = passwords_of(plan.hub_folder)
    c.JupyterHub.authenticator_class = ClassPassword
    c.ClassPassword.learners_password = passwords.learners
    c.ClassPassword.staff_password = passwords.staff
    c.ClassPassword.course_folder = str(plan.course_folder)
    # it is part of a path
    c.Authenticator.username_pattern = r"[a-z0-9][a-z0-9._@+-]{0,63}"
    c.JupyterHub.spawner_class = "simple"
    c.SimpleLocalProcessSpawner.home_dir_template = f"{plan.homes}/{{username}}"
if plan.platform is not None:
    from warpbook_hub.running import lti_login as launches

    launches.configure(c, plan)
# a class's notebooks outlive a restart, with their tokens: what they hand in meanwhile
# is delivered after it; a demo leaves nothing behind
c.JupyterHub.cleanup_servers = plan.users == "shared"
c.Authenticator.allow_all = True
c.JupyterHub.allow_named_servers = True
c.JupyterHub.named_server_limit_per_user = 2

c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
c.Spawner.default_url = "/lab"
c.Spawner.start_timeout = c.Spawner.http_timeout = 120
if plan.users == "shared" and os.geteuid() == 0:
    c.Spawner.args = ["--allow-root"]
# `warpbook` is found on a terminal, also where the hub was started by its full path
programs = str(Path(sys.executable).parent)
folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
c.Spawner.environment = {
    "PATH": os.pathsep.join(folders if programs in folders else [programs, *folders]),
    "WARPBOOK_HUB_URL": plan.service_url,
    "WARPBOOK_HUB_PAGES": plan.pages_url if plan.subdomain_host else "",
    "WARPBOOK_HUB_FOLDER": plan.folder,
}
is_graded_here = plan.use_gpu and plan.cpu_slots and not plan.notebooks_use_gpu
if is_graded_here or plan.lease_gpus:
    # what grades is timed, and what is leased is shown by its lease
    c.Spawner.environment["CUDA_VISIBLE_DEVICES"] = ""
if "PYTHONPATH" in os.environ:
    c.Spawner.environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
