"""Regular files, opened without following links; locks of files that end with their process; tables in files."""
