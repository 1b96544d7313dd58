// Keeps the page of a session that lives as it is now: asks for the page again and puts in the sections that changed.
// Without this script the page stands as of when it was opened.
"use strict";
(() => {
  const EVERY_MS = 2000; // a person reads no faster; one answer reads the session's journal
  const pause = document.getElementById("pause");
  const freshness = document.getElementById("freshness");
  const said = document.getElementById("said");
  if (!pause || !freshness) return;
  const parts = () => document.querySelectorAll("#head, main > section[id], #left-out");
  let paused = false;
  let last = document.querySelector("h1").textContent;
  const keep = (old, fresh) => {
    for (const one of old.querySelectorAll("details[open][id]")) {
      const same = fresh.querySelector(`#${CSS.escape(one.id)}`);
      if (same) same.open = true;
    }
  };
  const inUse = (part) => part.contains(document.activeElement) || part.contains(getSelection().anchorNode) && !getSelection().isCollapsed;
  const take = (page) => {
    for (const old of parts()) {
      const fresh = page.getElementById(old.id);
      if (!fresh) continue;
      keep(old, fresh);
      if (!old.isEqualNode(fresh) && !inUse(old)) old.replaceWith(document.adoptNode(fresh));
    }
    const head = document.querySelector("h1").textContent;
    const state = head.split(",")[0];
    if (said && state !== last.split(",")[0]) said.textContent = state;
    last = head;
    return page.getElementById("pause") !== null;
  };
  const again = async () => {
    let lives = true;
    if (!paused && !document.hidden) {
      try {
        const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
        if (!answer.ok) throw new Error(`${answer.status}`);
        lives = take(new DOMParser().parseFromString(await answer.text(), "text/html"));
        freshness.textContent = lives ? "Kept as it is now." : "The session is over: this is its last state.";
      } catch (error) {
        freshness.textContent = `Not fresh: the server of this page does not answer (${error.message}).`;
      }
    }
    if (lives) setTimeout(again, EVERY_MS);
    else pause.hidden = true;
  };
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
    freshness.textContent = paused ? "Paused: this page stands still." : "Kept as it is now.";
  });
  setTimeout(again, EVERY_MS);
})();
