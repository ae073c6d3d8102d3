"""Why a stage does not give PyTorch's values, by file, client and stage, for docs/clients.md."""

REASONS: dict[tuple[str, str, str], str] = {}
