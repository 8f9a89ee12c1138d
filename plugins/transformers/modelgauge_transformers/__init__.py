"""SUTs that are local models of transformers: registered in `register.py`, written in `sut.py`."""
