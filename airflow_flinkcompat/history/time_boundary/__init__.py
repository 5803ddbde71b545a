"""Archives that do not tell offsets, joined to their topics at an event time that is proven to part them."""
