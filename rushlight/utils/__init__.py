"""Utilities that the stages share."""
