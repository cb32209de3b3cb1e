"""The example's configuration, and what a test must change: no accounts, free ports, a folder."""

import os
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROXY, HUB, API = map(int, os.environ["PORTS"].split())

load_subconfig(os.environ["EXAMPLE"])  # noqa: F821, which JupyterHub defines
c = get_config()  # noqa: F821, which JupyterHub defines

c.JupyterHub.authenticator_class = "dummy"
c.JupyterHub.spawner_class = "simple"  # all students are the user who runs the test
c.JupyterHub.bind_url = f"http://127.0.0.1:{PROXY}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{HUB}"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{API}"
c.ConfigurableHTTPProxy.command = [os.environ["NODE"], os.environ["PROXY"]]
c.SimpleLocalProcessSpawner.home_dir_template = os.environ["HOMES"] + "/{username}"
c.Spawner.args += ["--allow-root"]
c.Spawner.ip = "127.0.0.1"
# nbgrader takes the name of the account; here it is told the student's.
c.Spawner.environment["JUPYTER_CONFIG_PATH"] = (
    f"{HERE / 'student'}:{c.Spawner.environment['JUPYTER_CONFIG_PATH']}"
)
