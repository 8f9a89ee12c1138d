"""Pages of people's ratings: the queue, the agreement of raters, and judges beside people."""
