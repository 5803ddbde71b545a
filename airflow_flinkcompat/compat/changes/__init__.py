"""A change, paired once: common parts and every difference between both sides."""
