"""Gluon's additional layers: `contrib.nn`."""

from minihybrid.gluon.contrib import nn as nn
