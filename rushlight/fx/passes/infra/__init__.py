"""Infrastructure of passes: the base class, the manager, and the partitioner."""
