// The table of calls: of any number of rows only those on the screen are in the page; the rest is asked for.
// Without this script the table has stretches of 60 rows, links to the next one, and a form to filter.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const box = byId("vtable"), space = byId("vspace"), table = byId("calls"), body = byId("rows"), form = byId("filters");
  if (!box || !form) return;
  const CHUNK = 100;          // rows of one answer
  const KEPT = 60;            // answers that stay in memory
  const TALLEST = 8_000_000;  // pixels: browsers cut elements that are much taller
  const MOST_ROWS = 60;       // rows in the page, whatever the screen
  const LONGEST = 400;        // characters of one cell
  const WORDS = { ok: "agrees", different: "beyond", incomparable: "undetermined", unaligned: "undetermined" };

  const address = new URLSearchParams(location.search);
  let total = Number(box.dataset.total), all = Number(box.dataset.all);
  let first = Number(box.dataset.offset), active = Math.min(Number(address.get("row") ?? first), Math.max(0, total - 1));
  let shown = 20, rowHeight = 32, version = 0, sort = address.get("sort") || "", descending = address.get("descending") || "";
  let chunks = new Map(), asked = new Set(), stop = new AbortController();

  const number = (value) => value.toLocaleString("en-US");
  const harmless = (text) => String(text).slice(0, LONGEST).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (c) => "\\u{" + c.codePointAt(0).toString(16) + "}");

  // --- what is asked -----------------------------------------------------------------------------------------------
  const question = () => {
    const given = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value.trim() && name !== "sort" && name !== "descending") given.set(name, value.trim());
    if (sort) given.set("sort", sort);
    if (descending) given.set("descending", "1");
    return given;
  };

  const say = (text) => { byId("count").textContent = text; };
  const fail = (text) => { const at = byId("failed"); at.textContent = text; at.hidden = !text; };

  const load = async (chunk) => {
    if (chunks.has(chunk) || asked.has(chunk) || chunk < 0) return;
    asked.add(chunk);
    const mine = version, wanted = question();
    wanted.set("offset", chunk * CHUNK);
    wanted.set("limit", CHUNK);
    try {
      const answer = await fetch(`${box.dataset.api}/calls?${wanted}`, { signal: stop.signal });
      const found = await answer.json().catch(() => ({}));
      if (mine !== version) return;
      if (!answer.ok) throw new Error(found.error ? `${found.error.message}: ${found.error.fix}` : "the server refused; open its address anew");
      fail("");
      chunks.set(chunk, found.rows);
      if (chunks.size > KEPT) chunks.delete(chunks.keys().next().value);
      if (found.total !== total) { total = found.total; resize(); }
      all = found.all_rows;
      say(total === all ? `${number(total)} calls of both runs` : `${number(total)} of ${number(all)} calls`);
      draw();
    } catch (error) {
      if (error.name !== "AbortError" && mine === version) fail(error instanceof TypeError ? "the server does not answer; is paritrace view still running?" : error.message);
    } finally {
      if (mine === version) asked.delete(chunk);
    }
  };

  const ask = () => {
    version += 1;
    stop.abort();
    stop = new AbortController();
    chunks = new Map();
    asked = new Set();
    first = active = 0;
    box.scrollTop = 0;
    load(0);
    remember();
  };

  let later = 0;
  const remember = () => {
    clearTimeout(later);
    later = setTimeout(() => {
      const state = question();
      if (first) state.set("offset", first);
      if (active) state.set("row", active);
      const query = String(state);
      history.replaceState(null, "", query ? `?${query}` : location.pathname);
    }, 200);
  };

  // --- what is drawn -----------------------------------------------------------------------------------------------
  const cell = (row, text, classes) => {
    const made = document.createElement("td");
    if (classes) made.className = classes;
    made.textContent = harmless(text);
    if (made.textContent.length > 12) made.title = made.textContent;
    row.append(made);
    return made;
  };

  const linkTo = (one) => `${box.dataset.home}call/${one.side}/${one.rank}/${one.record_id}?session_id=${encodeURIComponent(one.session_id)}`;

  const drawn = (one, place) => {
    const row = document.createElement("tr");
    row.id = `row-${place}`;
    row.setAttribute("aria-rowindex", place + 2);
    if (place === active) { row.className = "active"; row.setAttribute("aria-selected", "true"); }
    if (!one) {
      row.classList.add("waiting");
      for (const kind of ["number", "number c-rank", "c-side", "number c-id", "c-function", "c-module", "c-where", "c-phase", "", "c-told"]) cell(row, kind === "c-function" ? "…" : "", kind);
      return row;
    }
    cell(row, one.step, "number");
    cell(row, one.rank, "number c-rank");
    cell(row, one.side, "c-side");
    cell(row, one.record_id, "number c-id");
    const link = document.createElement("a");
    link.href = linkTo(one);
    link.tabIndex = -1;
    const name = cell(row, one.function, "c-function");
    link.textContent = name.textContent;
    name.replaceChildren(link);
    cell(row, one.module, "c-module");
    cell(row, `${one.file}:${one.line}`, "path c-where");
    cell(row, one.phase, "c-phase");
    const status = cell(row, "", "");
    const word = document.createElement("span");
    word.className = `word ${WORDS[one.status] || ""}`;
    word.textContent = harmless(one.status);
    status.append(word);
    cell(row, (one.reason || one.group || "").replaceAll("_", " "), "c-told");
    return row;
  };

  const draw = () => {
    first = Math.max(0, Math.min(first, total - shown));
    active = Math.max(0, Math.min(active, total - 1));
    const rows = [];
    let whole = true;
    for (let place = first; place < Math.min(first + shown, total); place += 1) {
      const chunk = chunks.get(Math.floor(place / CHUNK));
      if (!chunk) whole = false;
      rows.push(drawn(chunk && chunk[place % CHUNK], place));
    }
    for (let chunk = Math.floor(first / CHUNK); chunk * CHUNK < Math.min(first + shown, total); chunk += 1) load(chunk);
    if (whole && (first + 2 * shown) < total) load(Math.floor((first + 2 * shown) / CHUNK));
    body.replaceChildren(...rows);
    table.setAttribute("aria-rowcount", total + 1);
    if (rows.length) table.setAttribute("aria-activedescendant", `row-${Math.max(first, Math.min(active, first + shown - 1))}`);
    else table.removeAttribute("aria-activedescendant");
    box.dataset.drawn = whole ? `${version}:${first}` : "";
    for (const head of table.tHead.rows[0].cells) {
      if (head.dataset.sort === sort) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
  };

  const headHeight = () => table.tHead.rows[0].offsetHeight;
  const tall = () => Math.min(TALLEST, total * rowHeight + headHeight() + 2);
  const reach = () => Math.max(1, box.scrollHeight - box.clientHeight);
  const exact = () => total * rowHeight <= TALLEST;
  const rowAt = (top) => (exact() ? Math.round(top / rowHeight) : Math.round((top / reach()) * (total - shown)));
  const topOf = (place) => (exact() ? place * rowHeight : (place / Math.max(1, total - shown)) * reach());

  const resize = () => {
    if (body.rows.length) rowHeight = body.rows[0].offsetHeight || rowHeight;
    shown = Math.max(1, Math.min(MOST_ROWS, Math.floor((box.clientHeight - headHeight()) / rowHeight)));
    space.style.height = `${tall()}px`;
  };

  let placed = -1;
  const place = () => { placed = topOf(first); box.scrollTop = placed; placed = box.scrollTop; };

  // --- moving ------------------------------------------------------------------------------------------------------
  box.addEventListener("scroll", () => {
    if (Math.abs(box.scrollTop - placed) < 1) return;
    placed = -1;
    const now = Math.max(0, Math.min(rowAt(box.scrollTop), total - shown));
    if (now === first) return;
    first = now;
    active = Math.max(first, Math.min(active, first + shown - 1));
    draw();
    remember();
  }, { passive: true });

  box.addEventListener("wheel", (event) => {
    if (exact() || event.ctrlKey || !event.deltaY) return;
    event.preventDefault();
    const rows = event.deltaMode === 1 ? event.deltaY : event.deltaY / rowHeight;
    go(first + Math.sign(rows) * Math.max(1, Math.round(Math.abs(rows))), active, true);
  }, { passive: false });

  const go = (start, wanted, keepActiveInside) => {
    first = Math.max(0, Math.min(start, total - shown));
    active = keepActiveInside ? Math.max(first, Math.min(wanted, first + shown - 1)) : wanted;
    draw();
    place();
    remember();
  };

  const moveTo = (wanted) => {
    const next = Math.max(0, Math.min(wanted, total - 1));
    go(next < first ? next : next >= first + shown ? next - shown + 1 : first, next, false);
  };

  table.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== table) return;
    const moves = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + shown, PageUp: active - shown, Home: 0, End: total - 1 };
    if (event.key in moves) {
      event.preventDefault();
      moveTo(moves[event.key]);
    } else if (event.key === "Enter") {
      const link = byId(`row-${active}`)?.querySelector("a");
      if (link) location.assign(link.href);
    }
  });

  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (!row || event.target.closest("a")) return;
    active = Number(row.id.slice(4));
    draw();
    table.focus();
    remember();
  });

  // --- filtering and sorting ---------------------------------------------------------------------------------------
  let soon = 0;
  form.addEventListener("input", () => { clearTimeout(soon); soon = setTimeout(ask, 150); });
  form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(soon); if (form.reportValidity()) ask(); });
  byId("clear").addEventListener("click", (event) => {
    event.preventDefault();
    for (const field of form.elements) if (field.name) field.value = "";
    sort = descending = "";
    ask();
  });
  for (const head of table.tHead.rows[0].cells) {
    head.querySelector("a").addEventListener("click", (event) => {
      event.preventDefault();
      if (sort !== head.dataset.sort) { sort = head.dataset.sort; descending = ""; }
      else if (!descending) descending = "1";
      else sort = descending = "";
      ask();
    });
  }

  const counted = async () => {
    const answer = await fetch(`${box.dataset.api}/facets`).catch(() => null);
    if (!answer || !answer.ok) return;
    const { counts } = await answer.json();
    for (const [name, words] of Object.entries(counts)) {
      for (const option of form.elements[name]?.options ?? []) {
        if (option.value) option.textContent = `${option.value.replaceAll("_", " ")} (${number(words[option.value] || 0)})`;
      }
    }
  };

  // --- taking over from the page as it was sent ---------------------------------------------------------------------
  box.classList.add("virtual");
  table.setAttribute("role", "grid");
  table.tabIndex = 0;
  byId("keys").hidden = false;
  byId("turn").hidden = true;
  byId("none")?.remove();
  resize();
  while (body.rows.length > shown) body.rows[body.rows.length - 1].remove();
  place();
  draw();
  counted();
  addEventListener("resize", () => { resize(); draw(); place(); });
})();
