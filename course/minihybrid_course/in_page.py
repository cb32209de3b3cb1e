"""What JupyterLite's kernel lacks: "Run all" continues after an intended error.

Use: %load_ext minihybrid_course.in_page      (book/make_lite.py puts it into first cells)

After any error, JupyterLite drops the cells that are queued, whatever the tag
`raises-exception` requests. So the error of such a cell is displayed as its output.
Matplotlib doesn't announce that it lists the fonts, which it does at each first figure here.
"""

import logging


def load_ipython_extension(shell):
    """Let tagged cells fail without stopping the cells below."""
    stop = shell._showtraceback

    def show(kind, value, lines):
        if shell.kernel.get_parent()["content"]["stop_on_error"]:
            stop(kind, value, lines)
        else:
            error = {"ename": kind.__name__, "evalue": str(value), "traceback": lines}
            text = {"application/vnd.jupyter.stderr": "\n".join(lines)}
            shell.display_pub.publish({"application/vnd.jupyter.error": error} | text)

    if hasattr(shell, "_last_traceback"):  # this kernel, and no other
        shell._showtraceback = show
        logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
