"""External data that tests declare: where it comes from, and the store that fetches, verifies, unpacks and keeps it.

`sources` holds what authors write, `store` what the engine and the command line use. Recording versions in a
run, and the options of the command line, live above.
"""
