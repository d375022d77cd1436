"""Rows that ``ExtractNewRecordState`` took out of their envelopes, in JSON and in Avro."""
