"""Reports as HTML pages that need nothing beside them: charts, the data of items, and the one file that holds all."""
