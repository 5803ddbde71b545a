"""Benchmarks: what is timed, how, and on what is printed with every result."""
