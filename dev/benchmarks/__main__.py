"""Benchmarks by name: ``python -m dev.benchmarks NAME``; without a name, a list."""

from dev.benchmarks import PROGRAMS
from dev.tools import run_named

run_named("dev.benchmarks", PROGRAMS)
