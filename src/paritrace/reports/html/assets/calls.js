// The table of calls of a report: filtered, sorted and opened from the data in the file. Every text is set as text.
"use strict";
(() => {
  const holder = document.getElementById("calls-table");
  const source = document.getElementById("calls-data");
  if (!holder || !source) return;
  const data = JSON.parse(source.textContent);
  const PAGE = 50;
  const TITLES = { id: "call id", rank: "rank", step: "step", phase: "phase", level: "level", call: "call", module: "module", site: "site", status: "status", how: "how", group: "group" };
  const GLYPHS = { ok: ["=", "agrees"], different: ["X", "beyond"], unaligned: ["?", "undetermined"], incomparable: ["?", "undetermined"] };
  const MARKS = { "=": "agrees", X: "beyond", "?": "undetermined" };
  const columns = data.columns;
  const at = (name) => columns.indexOf(name);
  const text = (row, column) => (column < 3 ? String(row[column]) : data.words[row[column]]);
  const make = (name, attributes, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const order = data.rows.map((_, index) => index);
  const places = new Map();
  data.rows.forEach((row, index) => {
    const [side, record] = row[0].split(":");
    places.set(`call-${side}-${row[1]}-${record}`, index);
    if (row[columns.length] >= 0) places.set(`call-candidate-${row[1]}-${row[columns.length]}`, index);
  });
  const state = { words: "", status: "", rank: "", step: "", sort: -1, down: false, first: 0, open: new Set() };
  let shown = order;

  const values = (name) => [...new Set(data.rows.map((row) => text(row, at(name))))];
  const numeric = (a, b) => Number(a) - Number(b);
  const choice = (label, key, options) => {
    const select = make("select", { id: `calls-${key}` }, make("option", { value: "" }, "all"));
    for (const one of options) select.append(make("option", { value: one }, one));
    select.addEventListener("change", () => { state[key] = select.value; refresh(); });
    return make("label", { for: `calls-${key}` }, label, select);
  };
  const search = make("input", { id: "calls-words", type: "search", autocomplete: "off", spellcheck: "false" });
  search.addEventListener("input", () => { state.words = search.value.toLowerCase(); refresh(); });
  const filters = make("div", { class: "filters", role: "search", "aria-label": "Filter the calls" },
    make("label", { for: "calls-words" }, "call, module or site contains", search),
    choice("status", "status", values("status")),
    choice("rank", "rank", values("rank").sort(numeric)),
    choice("step", "step", values("step").sort(numeric)));
  const count = make("p", { class: "quiet", role: "status", id: "calls-count" });
  const body = make("tbody", {});
  const heads = columns.map((name, column) => {
    const button = make("button", { type: "button" }, TITLES[name]);
    button.addEventListener("click", () => {
      state.down = state.sort === column ? !state.down : false;
      state.sort = column;
      refresh();
    });
    return make("th", { scope: "col", "aria-sort": "none" }, button);
  });
  const table = make("table", { class: "calls" }, make("caption", {}, "Calls; the id of a call opens its details"),
    make("thead", {}, make("tr", {}, ...heads)), body);
  const back = make("button", { type: "button" }, "Previous");
  const forth = make("button", { type: "button" }, "Next");
  back.addEventListener("click", () => { state.first -= PAGE; draw(); });
  forth.addEventListener("click", () => { state.first += PAGE; draw(); });
  const pager = make("p", { class: "pager" }, back, " ", forth);
  const scroll = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of calls" }, table);
  holder.append(filters, count, scroll, pager);

  const matches = (row) =>
    (!state.status || text(row, at("status")) === state.status) &&
    (!state.rank || String(row[1]) === state.rank) &&
    (!state.step || String(row[2]) === state.step) &&
    (!state.words || ["id", "call", "module", "site"].some((name) => text(row, at(name)).toLowerCase().includes(state.words)));
  const compare = (a, b) => {
    const column = state.sort;
    const [left, right] = [data.rows[a], data.rows[b]];
    const by = column === 1 || column === 2 ? left[column] - right[column] : text(left, column) < text(right, column) ? -1 : text(left, column) > text(right, column) ? 1 : 0;
    return (state.down ? -by : by) || a - b;
  };
  const refresh = () => {
    shown = order.filter((index) => matches(data.rows[index]));
    if (state.sort >= 0) shown.sort(compare);
    heads.forEach((head, column) => head.setAttribute("aria-sort", column !== state.sort ? "none" : state.down ? "descending" : "ascending"));
    state.first = 0;
    draw();
  };
  const mark = (glyph, name, meaning) => {
    const hidden = make("span", { "aria-hidden": "true" }, glyph);
    return make("span", { class: `mark ${name}`, title: meaning }, hidden, make("span", { class: "sr" }, meaning));
  };
  const regions = (found) => {
    if (!found.length) return "";
    const [marks, total, pairs] = found;
    const line = make("span", { class: "regions", role: "img", "aria-label": `${[...marks].filter((one) => one === "X").length} of ${total} regions differ` });
    for (const one of marks) line.append(make("span", { class: MARKS[one] }, one));
    const part = make("div", {}, line);
    if (total > marks.length) part.append(` and ${total - marks.length} more`);
    for (let i = 0; i < pairs.length; i += 3) part.append(make("div", { class: "id quiet" }, `region ${pairs[i]}: ${pairs[i + 1]} → ${pairs[i + 2]}`));
    return part;
  };
  const details = (index) => {
    const found = data.details[index];
    if (!found) return make("p", {}, "Its details are in calls.parquet; this file has those of the first calls.");
    const facts = make("dl", { class: "facts" });
    for (const [name, value] of found.facts) facts.append(make("div", {}, make("dt", {}, data.words[name]), make("dd", { class: "id" }, data.words[value])));
    const part = make("div", { class: "details" }, facts);
    if (found.slots.length) {
      const rows = found.slots.map(([name, kind, agreement, ours, theirs, parts]) => make("tr", {},
        make("th", { scope: "row" }, data.words[name]), make("td", { class: "id" }, data.words[kind]), make("td", {}, data.words[agreement]),
        make("td", { class: "id" }, data.words[ours]), make("td", { class: "id" }, theirs === "" ? "" : data.words[theirs]), make("td", {}, regions(parts))));
      part.append(make("table", {}, make("caption", {}, "Slots, with the fingerprints of both sides"),
        make("thead", {}, make("tr", {}, ...["slot", "kind", "agreement", "baseline", "candidate", "regions"].map((name) => make("th", { scope: "col" }, name)))),
        make("tbody", {}, ...rows)));
    }
    if (found.more) part.append(make("p", { class: "quiet" }, `and ${found.more} more slots; all are in calls.parquet`));
    return part;
  };
  const identity = (row) => `call-${row[0].replace(":", "-").replace(/-(\d+)$/, `-${row[1]}-$1`)}`;
  const toggle = (index) => {
    if (state.open.has(index)) state.open.delete(index); else state.open.add(index);
    draw();
    const button = document.getElementById(identity(data.rows[index]))?.querySelector("button");
    if (button) button.focus({ preventScroll: true });
  };
  const drawn = (index) => {
    const row = data.rows[index];
    const isOpen = state.open.has(index);
    const button = make("button", { type: "button", "aria-expanded": String(isOpen), class: "id" }, row[0]);
    button.addEventListener("click", () => toggle(index));
    const line = make("tr", { id: identity(row), class: isOpen ? "selected" : "" }, make("th", { scope: "row" }, button));
    for (let column = 1; column < columns.length; column += 1) {
      const value = text(row, column);
      const [glyph, name] = GLYPHS[value] || [];
      line.append(column === at("status") && glyph ? make("td", { class: "status" }, mark(glyph, name, value), ` ${value}`)
        : make("td", { class: ["site", "module", "call"].includes(columns[column]) ? "id" : "" }, value));
    }
    line.querySelectorAll("td.status .sr").forEach((one) => one.remove());
    return isOpen ? [line, make("tr", { class: "selected" }, make("td", { colspan: columns.length }, details(index)))] : [line];
  };
  const draw = () => {
    state.first = Math.max(0, Math.min(state.first, Math.floor(Math.max(0, shown.length - 1) / PAGE) * PAGE));
    const part = shown.slice(state.first, state.first + PAGE);
    body.replaceChildren(...part.flatMap(drawn));
    count.textContent = part.length ? `${state.first + 1} to ${state.first + part.length} of ${shown.length.toLocaleString("en")} here` : "No call here is like this";
    back.disabled = state.first === 0;
    forth.disabled = state.first + PAGE >= shown.length;
  };
  const go = () => {
    const wanted = places.get(location.hash.slice(1));
    if (wanted === undefined) return;
    if (!shown.includes(wanted)) {
      Object.assign(state, { words: "", status: "", rank: "", step: "" });
      search.value = "";
      filters.querySelectorAll("select").forEach((one) => { one.value = ""; });
      refresh();
    }
    state.open.add(wanted);
    state.first = Math.floor(shown.indexOf(wanted) / PAGE) * PAGE;
    draw();
    const line = document.getElementById(identity(data.rows[wanted]));
    if (line) { line.scrollIntoView({ block: "center" }); line.querySelector("button").focus({ preventScroll: true }); }
  };
  addEventListener("hashchange", go);
  refresh();
  go();
})();
