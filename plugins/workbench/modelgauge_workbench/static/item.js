// Lays out the record of an item, with the report's own view.
/* global itemView */

const { record, expected, common } = JSON.parse(document.getElementById("record").textContent);
document.getElementById("item").append(...itemView(record, expected, common));
document.documentElement.dataset.ready = "true";
