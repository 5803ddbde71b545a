"""Archives without offsets, joined to their topics at an event time that provably separates them."""
