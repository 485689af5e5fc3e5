
"use strict";
// Without this script the page is complete; with it the table can be searched and sorted.
const body = document.getElementById("rows");
if (body) {
  const rows = Array.from(body.rows), find = document.getElementById("find"), only = document.getElementById("only");
  const show = () => {
    const wanted = find.value.trim().toLowerCase();
    for (const row of rows) {
      row.hidden = (only.value && row.dataset.state !== only.value) || !row.textContent.toLowerCase().includes(wanted);
    }
    const count = rows.filter(row => !row.hidden).length;
    document.getElementById("shown").textContent = count === rows.length ? "" : `${count} of ${rows.length} shown`;
  };
  find.addEventListener("input", show);
  only.addEventListener("change", show);
  document.querySelector(".controls").hidden = false;
  document.querySelectorAll(".submissions th[data-sort]").forEach((head, column) => {
    const button = document.createElement("button"), number = head.dataset.sort === "number" || column === 1;
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      document.querySelectorAll(".submissions th[aria-sort]").forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = row => row.cells[column].dataset.value;
      const order = number ? (a, b) => value(a) - value(b) : (a, b) => value(a).localeCompare(value(b));
      rows.sort((a, b) => (down ? -1 : 1) * order(a, b)).forEach(row => body.append(row));
    });
  });
}
