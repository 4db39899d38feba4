"""Whole runs as data: a model, a world, and the stages that teach the one to play the other."""
