"""Draft a pipeline's configuration from what its topics and its database's catalogue hold."""

from lakeingest.apply.draft.draft import draft, provisional

__all__ = ["draft", "provisional"]
