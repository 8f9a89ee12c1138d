"""Pages of data sets: the table of goldens, their versions, and what programs pull and push."""
