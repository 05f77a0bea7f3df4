// A click on a column's title sorts its table by that column: by number where cells begin with one, else by text.
for (const table of document.querySelectorAll("table.sortable")) {
  const titles = [...table.tHead.rows[0].cells];
  const key = (row, column) => {
    const text = row.cells[column].textContent.trim();
    const number = parseFloat(text.replace(/,/g, "").replace("−", "-"));
    return Number.isNaN(number) ? text : number;
  };
  const compare = (a, b, sign) => {
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1; // what has no number is last either way
    return sign * (typeof a === "number" ? a - b : a.localeCompare(b));
  };
  titles.forEach((title, column) => {
    title.tabIndex = 0;
    const sort = () => {
      const falling = title.getAttribute("aria-sort") === "ascending";
      titles.forEach((other) => other.removeAttribute("aria-sort"));
      title.setAttribute("aria-sort", falling ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => compare(key(a, column), key(b, column), falling ? -1 : 1));
      table.tBodies[0].append(...rows);
    };
    title.addEventListener("click", sort);
    title.addEventListener("keydown", (event) => event.key === "Enter" && sort());
  });
}
