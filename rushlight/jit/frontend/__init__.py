"""The frontend: Python source to tree views. `definitions.py` begins; `statements.py` and `expressions.py` do the rest."""
