// Lays out the record of an item, with the report's own view.
/* global itemView */

const { record, about } = JSON.parse(document.getElementById("record").textContent);
document.getElementById("item").append(...itemView(record, about));
document.documentElement.dataset.ready = "true";
