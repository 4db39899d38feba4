"""The per-token terms of the losses, one small file a family."""
