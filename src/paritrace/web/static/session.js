// Keeps the page of a session that lives as it is now: asks for the page again and puts in the parts that changed.
// Without this script the page stands as of when it was opened. It asks for nothing while nobody sees it.
"use strict";
(() => {
  const EVERY_MS = 2000; // a person reads no faster; one answer reads the session's journal
  const pause = document.getElementById("pause");
  const freshness = document.getElementById("freshness");
  const said = document.getElementById("said");
  if (!pause || !freshness) return;
  const parts = () => document.querySelectorAll("#head, main > section[id]:not(#control), #control-said, #control form, #left-out");
  let paused = false;
  let asking = false;
  let over = false;
  let timer = 0;
  let last = document.querySelector("h1").textContent;
  const keep = (old, fresh) => {
    for (const one of old.querySelectorAll("details[open][id]")) {
      const same = fresh.querySelector(`#${CSS.escape(one.id)}`);
      if (same) same.open = true;
    }
    for (const one of old.elements || []) { // of a form: what somebody has entered
      const same = one.name ? fresh.elements.namedItem(one.name) : null;
      if (!same) continue;
      if (one.type === "checkbox") same.checked = one.checked;
      else if (one.tagName !== "SELECT" || [...same.options].some((choice) => choice.value === one.value)) same.value = one.value;
    }
  };
  const inUse = (part) => part.contains(document.activeElement) || part.dataset.busy !== undefined
    || part.contains(getSelection().anchorNode) && !getSelection().isCollapsed;
  const takeControl = (page) => {
    const [old, fresh] = [document, page].map((one) => one.getElementById("control-forms"));
    if (!old || !fresh) return;
    old.dataset.generation = fresh.dataset.generation;
    if (old.disabled !== fresh.disabled) old.disabled = fresh.disabled;
  };
  const take = (page) => {
    for (const old of parts()) {
      const fresh = page.getElementById(old.id);
      if (!fresh) continue;
      if (old.isEqualNode(fresh) || inUse(old)) continue;
      keep(old, fresh);
      if (!old.isEqualNode(fresh)) old.replaceWith(document.adoptNode(fresh));
    }
    takeControl(page);
    const head = document.querySelector("h1").textContent;
    const state = head.split(",")[0];
    if (said && state !== last.split(",")[0]) said.textContent = state;
    last = head;
    return page.getElementById("pause") !== null;
  };
  const look = async () => {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok) throw new Error(`${answer.status}`);
      over = !take(new DOMParser().parseFromString(await answer.text(), "text/html"));
      freshness.textContent = over ? "The session is over: this is its last state." : "Kept as it is now.";
    } catch (error) {
      freshness.textContent = `Not fresh: the server of this page does not answer (${error.message}).`;
    }
  };
  const again = async () => {
    if (asking || over) return;
    clearTimeout(timer);
    asking = true;
    if (!paused && !document.hidden) await look();
    asking = false;
    if (over) pause.hidden = true;
    else timer = setTimeout(again, EVERY_MS);
  };
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
    freshness.textContent = paused ? "Paused: this page stands still." : "Kept as it is now.";
  });
  document.addEventListener("paritrace-changed", again); // a command has a result
  document.addEventListener("visibilitychange", () => { if (!document.hidden) again(); });
  timer = setTimeout(again, EVERY_MS);
})();
