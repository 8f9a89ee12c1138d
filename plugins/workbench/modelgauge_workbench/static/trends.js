// Dots of a chart choose runs to compare, together with the boxes in the tables.

const boxOf = (dot) => document.querySelector(`[name=runs][value="${CSS.escape(dot.dataset.run)}"]`);

const mark = () => {
  for (const dot of document.querySelectorAll("[data-run]")) dot.classList.toggle("chosen", boxOf(dot).checked);
};

addEventListener("click", (event) => {
  const dot = event.shiftKey && event.target.closest("[data-run]");
  if (!dot) return;
  event.preventDefault();
  boxOf(dot).checked = !boxOf(dot).checked;
  mark();
});
addEventListener("change", mark);
addEventListener("pageshow", mark); // boxes stay checked when one comes back
