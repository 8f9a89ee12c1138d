"""Tasks of lm-evaluation-harness as tests: registered in `register.py`, written in `test.py`."""
