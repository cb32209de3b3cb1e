"""Pages made of templates: feedback for students, in self-contained HTML files."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from minihybrid_course.grading.marks import number, score

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
TEMPLATES.filters["points"] = number


def page(name, marked):
    """Return the page for a result."""
    template = TEMPLATES.get_template("feedback.html")
    return template.render(name=name, one=marked, score=score(marked))
