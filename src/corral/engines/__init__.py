"""Tokens in, tokens out. Import the engine you need from its own module: torch stays lazy."""
