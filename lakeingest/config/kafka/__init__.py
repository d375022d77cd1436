"""The settings of Kafka's clients and of the schema registry."""
