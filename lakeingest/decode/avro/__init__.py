"""Records of Confluent's Avro converter, read by the schemas of the registry."""
