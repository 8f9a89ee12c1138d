"""The workbench: runs, data sets and ratings in the browser, served by `modelgauge serve`."""
