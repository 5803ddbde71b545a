"""A change, paired once: what stands on both sides and every difference between them."""
