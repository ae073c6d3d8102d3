"""What builds the site of the documentation: `make docs`."""
