"use strict";
(() => {
  const FIRST = 40, MORE = 500;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const grouped = (value) => value.toLocaleString("en-US");
  const size = (value) => {
    let unit = 0, rest = value;
    while (Math.abs(rest) >= 1024 && unit < units.length - 1) { rest /= 1024; unit += 1; }
    return unit ? `${rest.toFixed(1)} ${units[unit]}` : `${rest} B`;
  };
  const time = (value) => {
    const moment = new Date(value);
    return value < 0 || Number.isNaN(moment.getTime()) || value > 253402300799999 ? String(value) : moment.toISOString();
  };
  const span = (value) => {
    const sign = value < 0 ? "in " : "", ms = Math.abs(value);
    const steps = [["d", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000]];
    const step = steps.find((each) => ms >= each[1]);
    return sign + (step ? `${(ms / step[1]).toFixed(1)} ${step[0]}` : `${ms} ms`);
  };
  const shows = {
    int: grouped, bytes: size, time, span, bool: (value) => (value ? "yes" : "no"), text: String,
    any: (value) => (typeof value === "number" ? grouped(value) : String(value)),
  };
  const tags = new Set(["severity", "state"]);
  const numeric = new Set(["int", "bytes", "span"]);

  class Table {
    constructor(section) {
      const data = JSON.parse(section.querySelector('script[type="application/json"]').textContent);
      this.columns = data.columns;
      this.rows = data.rows;
      this.columns.forEach((column, number) => {
        if (column.words) {
          for (const row of this.rows) if (row[number] !== null) row[number] = column.words[row[number]];
        }
      });
      this.body = section.querySelector("tbody");
      this.input = section.querySelector("input");
      this.count = section.querySelector(".count");
      this.more = section.querySelector(".more");
      this.limit = FIRST;
      this.order = this.rows;
      this.sorted = null;
      this.head(section.querySelector("thead"));
      let waiting = 0;
      this.input.addEventListener("input", () => {
        clearTimeout(waiting);
        waiting = setTimeout(() => { this.limit = FIRST; this.draw(); }, 80);
      });
      this.more.addEventListener("click", () => { this.limit += MORE; this.draw(); });
      this.draw();
    }

    head(thead) {
      const line = document.createElement("tr");
      this.columns.forEach((column, number) => {
        const cell = document.createElement("th"), button = document.createElement("button");
        cell.scope = "col";
        if (numeric.has(column.kind)) cell.className = "n";
        button.type = "button";
        button.textContent = column.name.replaceAll("_", " ");
        cell.dataset.name = button.textContent;  // for print: a heading with a button is not repeated on each page
        button.dataset.tip = column.meaning;
        button.addEventListener("click", () => this.sort(number, cell));
        cell.append(button);
        line.append(cell);
      });
      thead.append(line);
    }

    sort(number, cell) {
      const falls = this.sorted === number ? cell.ariaSort === "ascending" : numeric.has(this.columns[number].kind);
      for (const each of cell.parentNode.children) each.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", falls ? "descending" : "ascending");
      this.sorted = number;
      const sign = falls ? -1 : 1;
      const compare = new Intl.Collator("en", { numeric: true }).compare;
      this.order = [...this.rows].sort((one, other) => {
        const a = one[number], b = other[number];
        if (a === null || b === null) return (a === null) - (b === null);
        return sign * (typeof a === "number" && typeof b === "number" ? a - b : compare(String(a), String(b)));
      });
      this.draw();
    }

    chosen() {
      const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
      if (!words.length) return this.order;
      this.texts ??= new Map();
      return this.order.filter((row) => {
        let text = this.texts.get(row);
        if (text === undefined) {
          text = this.line(row).toLowerCase();
          this.texts.set(row, text);
        }
        return words.every((word) => text.includes(word));
      });
    }

    line(row) {
      const parts = row.map((value, number) => (value === null ? "" : shows[this.columns[number].kind](value)));
      const names = this.columns.map((column) => column.name);
      const topic = row[names.indexOf("topic")], partition = row[names.indexOf("partition")];
      if (topic != null && partition != null) parts.push(`${topic}-${partition} `);
      return parts.join("\n");
    }

    draw() {
      const rows = this.chosen(), shown = rows.slice(0, this.limit);
      const all = document.createDocumentFragment();
      for (const row of shown) all.append(this.row(row));
      this.body.replaceChildren(all);
      this.count.textContent = `${grouped(shown.length)} of ${grouped(rows.length)} rows`;
      this.more.hidden = shown.length === rows.length;
    }

    row(row) {
      const line = document.createElement("tr");
      row.forEach((value, number) => {
        const column = this.columns[number], cell = document.createElement("td");
        if (value === null) {
          cell.className = numeric.has(column.kind) ? "null n" : "null";
          cell.textContent = "–";
        } else if (tags.has(column.name)) {
          const tag = document.createElement("span");
          tag.className = `tag ${/^[a-z]+$/.test(value) ? value : ""}`;
          tag.textContent = value;
          cell.append(tag);
        } else {
          const text = shows[column.kind](value);
          if (column.name === "path") cell.append(...this.parts(text));
          else cell.textContent = text;
          if (numeric.has(column.kind)) cell.className = "n";
          else if (column.kind === "time" || (column.name === "path" && text.length <= 40)) cell.className = "t";
          else if (text.length > 40) cell.className = text.length > 150 ? "w l" : "w";
        }
        line.append(cell);
      });
      return line;
    }

    parts(path) {
      return path.split(/(?<=\/)/).map((part) => {
        const span = document.createElement("span");
        span.className = "part";
        span.textContent = part;
        return span;
      });
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
