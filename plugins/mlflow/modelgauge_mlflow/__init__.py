"""Sends runs of ModelGauge to an MLflow tracking server, and shows how a plugin sends runs anywhere.

Read `register.py`, which says when, then `contents.py`, which says what, then `sending.py` and `server.py`: how.
"""
