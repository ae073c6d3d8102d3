"""Types of TorchScript: `kinds.py` what they are, `relations.py` how they relate, `parser.py` from text."""
