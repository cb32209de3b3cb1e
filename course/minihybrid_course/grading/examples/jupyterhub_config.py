"""JupyterHub for a course with this book, on one machine whose users have accounts there.

    python -m pip install jupyterhub jupyterlab nbgrader -e .
    npm install -g configurable-http-proxy
    cd course/minihybrid_course/grading/examples
    COURSE=/srv/course jupyterhub --ip 127.0.0.1 --config jupyterhub_config.py

Run as root, the hub starts each student's server as that student; put a web server with TLS
before it. For The Littlest JupyterHub, `tljh.yaml` says where this file goes.

The course's folder holds `exchange`, nbgrader's, where everybody may write, and `kernels`,
compiled ones, where only the teacher may.
"""

import os
from pathlib import Path

HERE = Path(__file__).resolve().parent
COURSE = os.environ.get("COURSE", "/srv/course")

c = get_config()  # noqa: F821, which JupyterHub defines

c.Authenticator.admin_users = {"teacher"}
c.Authenticator.allow_all = True  # who has an account

c.Spawner.cmd = ["sh", str(HERE / "start_student.sh")]
c.Spawner.default_url = "/lab"
c.Spawner.environment = {
    "COURSE": COURSE,
    "JUPYTER_CONFIG_PATH": str(HERE),  # nbgrader_config.py
    "MINIHYBRID_WAIT": "1",  # as in the book: a call waits for its kernel
    "NUMBA_NUM_THREADS": "2",
    "OMP_NUM_THREADS": "2",
    # Limits of each process; those of all that a student runs need systemd (tljh.yaml).
    "MOST_KB": str(4 << 20),
    "MOST_PROCESSES": "400",
}
c.Spawner.start_timeout = 120

# Servers that nobody has used for an hour end.
c.Spawner.args = [
    "--MappingKernelManager.cull_idle_timeout=3600",
    "--ServerApp.shutdown_no_activity_timeout=3600",
]
