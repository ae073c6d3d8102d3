"""Types of TorchScript: `kinds.py` defines them, `relations.py` relates them, `parser.py` reads them from text."""
