"""Made by tools/make_stubs.py of the operators' records; for editors, never run."""

from typing import TypeVar

Same = TypeVar("Same")

from minihybrid.formats.onnx.export.model import export_model as export_model
from minihybrid.formats.onnx.load.model import get_model_metadata as get_model_metadata
from minihybrid.formats.onnx.load.model import import_model as import_model
from minihybrid.formats.onnx.load.model import import_to_gluon as import_to_gluon
