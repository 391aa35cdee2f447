"""The version of this distribution, as pyproject.toml has it."""

VERSION = "0.1.0"
