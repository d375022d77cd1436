"""The source's truth of a live run, from the database's own tools and not from Debezium."""
