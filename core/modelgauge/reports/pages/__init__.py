"""Reports as self-contained HTML pages: charts, the data of items, and the file that holds all."""
