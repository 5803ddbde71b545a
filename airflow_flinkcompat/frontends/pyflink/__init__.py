"""PyFlink programs: a subset of Python, evaluated over the syntax tree and never run."""
