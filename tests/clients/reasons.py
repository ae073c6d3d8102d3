"""Reasons why stages differ from PyTorch's values, by file, client and stage, for docs/clients.md."""

REASONS: dict[tuple[str, str, str], str] = {}
