"""Printable worksheets: the book's predictions, with the answers on separate pages.

    python -m minihybrid_course.grading.sheets                     # into _build/sheets

One sheet per chapter, with the code that its questions refer to and no output; a page of
answers; and an index. HTML for printing, and PDF if Chromium is installed.
"""

import argparse
import shutil
from pathlib import Path

from playwright.sync_api import Error, sync_playwright

from minihybrid_course.grading.chapters import chapters, page
from minihybrid_course.grading.sources import ROOT

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
NO_PDF = "No Chromium could be started, so there is no PDF; print the pages from any browser."


def write(out):
    """Write all sheets and answers as HTML; return the paths, in order."""
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for chapter in chapters():
        for kind in ("questions", "answers"):
            path = out / f"{chapter.stem}-{kind}.html"
            path.write_text(page("sheet.html", chapter=chapter, kind=kind), encoding="utf-8")
            paths.append(path)
    index = page("sheets.html", chapters=chapters())
    (out / "index.html").write_text(index, encoding="utf-8")
    return paths


def write_pdf(paths):
    """Write a PDF next to each page; return whether Chromium is installed."""
    with sync_playwright() as playwright:
        installed = next(filter(None, map(shutil.which, CHROMIUM)), None)
        try:
            browser = playwright.chromium.launch(
                executable_path=installed, args=["--no-sandbox", "--disable-gpu"]
            )
        except Error:
            return False
        tab = browser.new_page()
        for path in paths:
            tab.goto(path.as_uri())
            tab.pdf(path=path.with_suffix(".pdf"), prefer_css_page_size=True, tagged=True)
        browser.close()
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "_build/sheets")
    out = parser.parse_args().out
    paths = write(out)
    n_questions = sum(len(chapter.questions()) for chapter in chapters())
    print(f"{n_questions} questions on {len(paths) // 2} sheets: {out / 'index.html'}")
    if not write_pdf(paths):
        print(NO_PDF)


if __name__ == "__main__":
    main()
