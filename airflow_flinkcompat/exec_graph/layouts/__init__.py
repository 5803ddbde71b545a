"""How each kind of operator of a compiled plan stores what it keeps: one function a kind.

Every layout rests on a savepoint of a real Flink that holds it (``tests/fixtures/savepoints``).
"""
