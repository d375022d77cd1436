"""Records of JsonConverter, with and without schemas."""
