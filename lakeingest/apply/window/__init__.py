"""Read the log: from offset ranges to the batches of whole transactions that they hold."""
