"""TOML and dotted overrides become a validated configuration that says where each value is from."""
