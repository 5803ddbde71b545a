"""Python as a program uses it, evaluated over its syntax tree as far as it is understood, and never run."""
