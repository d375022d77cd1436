"""Schema registries: the schemas that Avro records were written with, by id."""
