"use strict";
// Sorts a table by a click on a column heading, and filters its rows by text. Cells keep their content.
const scales = {k: 1e3, M: 1e6, G: 1e9};
function value(cell) {
  const text = cell.firstChild ? cell.firstChild.textContent.trim() : "";
  const found = text.replace(/,/g, "").match(/^-?\d+(\.\d+)?(e-?\d+)?/);
  return found ? parseFloat(found[0]) * (scales[text.slice(found[0].length).trim()[0]] || 1) : text;
}
function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b));
}
for (const table of document.querySelectorAll("table.keyed")) {
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.textContent = heading.textContent;
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") !== "descending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].map((row) => [value(row.cells[column]), row]);
      rows.sort((a, b) => (down ? compare(b[0], a[0]) : compare(a[0], b[0])));
      body.append(...rows.map((entry) => entry[1]));
    });
  });
  if (body.rows.length < 8) continue;
  const input = document.createElement("input");
  input.type = "search";
  input.placeholder = "filter rows";
  input.setAttribute("aria-label", "filter rows");
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
  table.parentElement.before(input);
}
