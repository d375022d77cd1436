"""Write a batch: from its changes to one commit per table and one publication."""
