"""The Table API in its own notation, Scala and Java, and in the old string expressions: tokens → trees → values."""
