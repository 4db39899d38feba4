"""Hostile tool calls through the whole tool layer, and a judge of what came of them."""
