"""The built book, served from this machine to a headless Chromium."""

import os
import shutil
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Error, sync_playwright

BUILD = Path(__file__).parents[2] / "_build"
SITE = BUILD / "html"
SCREENSHOTS = BUILD / "screenshots"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

DESKTOP = {"width": 1280, "height": 900}
WIDE = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}


class QuietHandler(SimpleHTTPRequestHandler):
    sent = 0  # bytes of files, of all servers

    def log_message(self, *args):
        pass

    def copyfile(self, source, outputfile):
        QuietHandler.sent += os.fstat(source.fileno()).st_size
        super().copyfile(source, outputfile)


@contextmanager
def serve(folder):
    """Serve `folder` on a free port; yields the address."""
    handler = partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def address():
    with serve(SITE) as address:
        yield address


@pytest.fixture(scope="session")
def browser():
    installed = next(filter(None, map(shutil.which, CHROMIUM)), None)
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=installed, headless=True, args=FLAGS
            )
        except Error as error:
            pytest.exit(
                f"no Chromium could be started; install it with your package manager, "
                f"or with `python -m playwright install chromium` ({error})",
                2,
            )
        yield browser
        browser.close()


def drawn(page):
    """Wait until the page has been drawn, and what observes sizes has been called."""
    page.evaluate("() => new Promise((f) => requestAnimationFrame(() => requestAnimationFrame(f)))")


class Visit:
    """One page opened in a browser window of its own, and what went wrong meanwhile."""

    def __init__(self, browser, url, viewport=DESKTOP, color_scheme="light"):
        self.problems = []
        self.home = url[: url.index("/", len("http://")) + 1]
        self.context = browser.new_context(viewport=viewport, color_scheme=color_scheme)
        self.context.set_default_timeout(600_000)  # milliseconds, an alarm for hangs
        self.page = self.context.new_page()
        self.page.on("console", self.on_console)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("requestfailed", self.on_failure)
        self.page.on("response", self.on_response)
        self.context.route("**/*", self.on_request)
        self.page.goto(url, wait_until="networkidle")
        drawn(self.page)  # until then a browser throws away keys and clicks

    def on_console(self, message):
        if message.type in ("error", "warning"):
            self.problems.append(f"console {message.type}: {message.text}")

    def on_failure(self, request):
        self.problems.append(f"failed: {request.url}")

    def on_response(self, response):
        if response.status >= 400:
            self.problems.append(f"status {response.status}: {response.url}")

    def on_request(self, route):
        """Let nothing leave this machine, and say what wanted to."""
        url = route.request.url
        if url.startswith((self.home, "data:", "blob:")):
            route.continue_()
        else:
            self.problems.append(f"left this machine: {url}")
            route.abort()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.context.close()
