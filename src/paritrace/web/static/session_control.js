// Gives the commands of a session's page: each press is one command with an id of its own, asked again until it has a
// result. The server of this page forwards it; the session's token is never here.
"use strict";
(() => {
  const EVERY_MS = 1000;
  const MOST_SILENT = 5; // questions in a row without an answer
  document.documentElement.dataset.control = "";
  const sleep = (ms) => new Promise((done) => { setTimeout(done, ms); });
  const element = (name, text) => { const made = document.createElement(name); made.textContent = text; return made; };
  const tell = (words, lines = [], mood = "undetermined") => {
    const line = element("p", " " + words.slice(words.indexOf(":") + 1).trim());
    const word = element("span", words.slice(0, words.indexOf(":")));
    word.className = `word ${mood}`;
    line.prepend(word);
    const parts = [line];
    if (lines.length) {
      const list = document.createElement("ul");
      list.append(...lines.map((one) => element("li", one)));
      parts.push(list);
    }
    document.getElementById("outcome").replaceChildren(...parts);
  };
  const moods = { applied: "agrees", cancelled: "not-reached", failed: "beyond" };
  const who = (rank) => (rank < 0 ? "coordinator" : `rank ${rank}`);
  const tellReply = (kind, reply) => {
    const at = reply.step === undefined ? "" : ` at step ${reply.step.toLocaleString("en")}`;
    const target = reply.facts && reply.facts.target;
    const on = reply.result === "applied" && typeof target === "number" && target !== reply.step
      ? `, goes on to step ${target.toLocaleString("en")}` : "";
    const reasons = (reply.reasons || []).map((one) => `${who(one.rank)}: ${one.words} [${one.code}]`);
    const notes = (reply.notes || []).map((one) => `note: ${one}`);
    if (reply.result === "unknown") notes.push(`its id is ${reply.command_id}; it may still be done`);
    tell(`${kind}: ${reply.result}${at}${on}`, [...reasons, ...notes], moods[reply.result] || "undetermined");
  };
  const tellError = (kind, error) => tell(
    `${kind}: ${error.kind}: ${error.message} [${error.code}]`, [...(error.details || []), error.fix]);
  const asked = async (address, options) => {
    const answer = await fetch(address, { headers: { Accept: "application/json", "Content-Type": "application/json" }, ...options });
    return answer.json();
  };
  const settled = async (kind, home, id, first) => {
    let told = first;
    for (let silent = 0; !told || (told.error === undefined && !told.reply);) {
      tell(`${kind}: under way`);
      await sleep(EVERY_MS);
      try {
        told = await asked(`${home}/${id}`);
        silent = 0;
      } catch (error) {
        silent += 1;
        if (silent >= MOST_SILENT) {
          tell(`${kind}: unknown: the server of this page does not answer (${error.message})`, [`its id is ${id}; \`paritrace session reconcile\` asks for it`]);
          return;
        }
      }
    }
    if (told.error === undefined) tellReply(kind, told.reply);
    else tellError(kind, told.error);
  };
  const values = (form) => {
    const given = {};
    for (const field of form.elements) {
      if (!field.name || field.value === "" || (field.type === "checkbox" && !field.checked)) continue;
      given[field.name] = field.type === "number" ? Number(field.value) : field.value;
    }
    return given;
  };
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    const fieldset = form.closest("fieldset.control");
    if (!fieldset) return;
    event.preventDefault();
    const button = form.querySelector("button");
    if (form.dataset.busy !== undefined) return;
    form.dataset.busy = "";
    const kind = form.dataset.kind;
    const id = crypto.randomUUID();
    const home = `/api/sessions/${encodeURIComponent(fieldset.dataset.key)}/commands`;
    const body = JSON.stringify({ id, generation: Number(fieldset.dataset.generation), ...values(form) });
    button.setAttribute("aria-disabled", "true");
    tell(`${kind}: asked`);
    let first = null;
    try {
      first = await asked(`${home}/${kind}`, { method: "POST", body });
    } catch { /* it may have come all the same: its id tells */ }
    await settled(kind, home, id, first);
    delete form.dataset.busy;
    button.removeAttribute("aria-disabled");
    if (kind === "close") form.reset();
    document.dispatchEvent(new Event("paritrace-changed"));
  });
})();
