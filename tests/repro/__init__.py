"""Small histories that were once published wrong, or stuck; each grows in steps."""
