"""Programs of several ranks."""
