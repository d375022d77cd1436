"""Files of settings: their language, the files that they include, and references in values."""
