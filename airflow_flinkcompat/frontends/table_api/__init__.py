"""The Table API of PyFlink, whose calls are translated to equivalent SQL."""
