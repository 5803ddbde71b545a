"""How the states of one operator become those of another, field by field: one module for each family of operators."""
