"""What passes are made of: their base class, their manager, and the partitioner."""
