"use strict";
(() => {
  const FIRST = 40, MORE = 500;
  const grouped = (value) => value.toLocaleString("en-US");
  const compare = new Intl.Collator("en", { numeric: true }).compare;

  class Table {
    constructor(section) {
      this.body = section.querySelector("tbody");
      this.rows = [...this.body.rows];
      this.input = section.querySelector("input");
      this.count = section.querySelector(".count");
      this.more = section.querySelector(".more");
      this.limit = FIRST;
      this.order = this.rows;
      this.sorted = null;
      this.head(section.querySelector("thead"));
      section.querySelector(".tools").hidden = false;
      let waiting = 0;
      this.input.addEventListener("input", () => {
        clearTimeout(waiting);
        waiting = setTimeout(() => { this.limit = FIRST; this.draw(); }, 80);
      });
      this.more.addEventListener("click", () => { this.limit += MORE; this.draw(); });
      this.draw();
    }

    head(thead) {
      const cells = [...thead.rows[0].cells];
      this.place = ["topic", "partition"].map((name) => cells.findIndex((cell) => cell.textContent === name));
      cells.forEach((cell, number) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = cell.textContent;
        cell.dataset.name = cell.textContent;  // for print: a heading with a button is not repeated on each page
        button.dataset.tip = cell.title;
        cell.removeAttribute("title");
        button.addEventListener("click", () => this.sort(number, cell));
        cell.replaceChildren(button);
      });
    }

    sort(number, cell) {
      const falls = this.sorted === number ? cell.ariaSort === "ascending" : cell.classList.contains("n");
      for (const each of cell.parentNode.children) each.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", falls ? "descending" : "ascending");
      this.sorted = number;
      const sign = falls ? -1 : 1;
      const key = (row) => {
        const { classList, dataset, textContent } = row.cells[number];
        if (classList.contains("null")) return null;
        const text = dataset.v ?? textContent;
        return /^-?[\d,]+(\.\d+)?$/.test(text) ? Number(text.replaceAll(",", "")) : text;
      };
      this.order = this.rows.map((row) => [key(row), row]).sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null);
        return sign * (typeof a === "number" && typeof b === "number" ? a - b : compare(String(a), String(b)));
      }).map(([, row]) => row);
      this.draw();
    }

    chosen() {
      const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
      if (!words.length) return this.order;
      this.texts ??= new Map(this.rows.map((row) => [row, this.line(row).toLowerCase()]));
      return this.order.filter((row) => words.every((word) => this.texts.get(row).includes(word)));
    }

    line(row) {
      const parts = [...row.cells].map((cell) => cell.textContent);
      const [topic, partition] = this.place.map((number) => parts[number]);
      if (topic !== undefined && partition !== undefined) parts.push(`${topic}-${partition.replaceAll(",", "")} `);
      return parts.join("\n");
    }

    draw() {
      const rows = this.chosen(), shown = rows.slice(0, this.limit);
      this.body.replaceChildren(...shown);
      this.count.textContent = `${grouped(shown.length)} of ${grouped(rows.length)} rows`;
      this.more.hidden = shown.length === rows.length;
    }

    filter(words) {
      this.input.value = words;
      this.limit = FIRST;
      this.draw();
      this.input.closest("section").scrollIntoView();
    }
  }

  const tables = new Map();
  for (const section of document.querySelectorAll("section.table")) tables.set(section.id.slice(2), new Table(section));

  for (const button of document.querySelectorAll(".pick")) {
    button.addEventListener("click", () => tables.get(button.dataset.table)?.filter(button.dataset.filter));
  }
  document.addEventListener("click", (event) => {
    const mark = event.target.closest(".map path[aria-label]");
    const name = mark?.getAttribute("aria-label").split(": ")[0];
    if (name) tables.get("report_partition")?.filter(name);
  });

  const tip = document.getElementById("tip");
  const explain = (target, x, y) => {
    const mark = target.closest?.("figure svg [aria-label], [data-tip]");
    const words = mark && (mark.dataset.tip ?? (mark.tagName === "svg" ? "" : mark.getAttribute("aria-label")));
    tip.hidden = !words;
    if (!words) return;
    tip.textContent = words;
    tip.style.left = `${Math.max(Math.min(x + 14, innerWidth - tip.offsetWidth - 8), 0)}px`;
    const below = y + 18;
    tip.style.top = `${below + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : below}px`;
  };
  document.addEventListener("mousemove", (event) => explain(event.target, event.clientX, event.clientY));
  document.addEventListener("focusin", (event) => {
    const box = event.target.getBoundingClientRect();
    explain(event.target, box.left, box.bottom - 10);
  });
  document.addEventListener("focusout", () => { tip.hidden = true; });

  const draw = async () => {
    const options = {
      ast: true, renderer: "svg", actions: false, tooltip: false, hover: false, defaultStyle: false,
      loader: { load: () => Promise.reject(new Error("a page loads nothing")) },
    };
    for (const holder of document.querySelectorAll(".chart")) {
      const spec = JSON.parse(holder.firstChild.textContent);
      try {
        await vegaEmbed(holder, spec, { ...options, mode: holder.dataset.mode });
      } catch (error) {
        console.error(error);
        holder.textContent = "This chart could not be drawn.";
      }
    }
    document.documentElement.dataset.drawnMs = performance.now();
  };
  draw();

  addEventListener("beforeprint", () => {
    for (const table of tables.values()) { table.kept = table.limit; table.limit = Math.max(table.limit, 200); table.draw(); }
  });
  addEventListener("afterprint", () => {
    for (const table of tables.values()) { table.limit = table.kept; table.draw(); }
  });
})();
