"""Measurements on a real Flink by name: ``python -m dev.measure NAME``; without a name, a list."""

from dev.measure import PROGRAMS
from dev.tools import run_named

run_named("dev.measure", PROGRAMS)
