// The theme button and the copy buttons. Without this script both stay hidden and nothing else is missing.
"use strict";
(() => {
  const root = document.documentElement;
  const said = document.getElementById("said");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const remembered = () => { try { return localStorage.getItem("paritrace-theme"); } catch { return null; } };
  const remember = (theme) => { try { localStorage.setItem("paritrace-theme", theme); } catch { /* a file may not */ } };
  const present = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  const button = document.getElementById("theme");
  const label = () => { button.textContent = present() === "dark" ? "Light" : "Dark"; };
  const kept = remembered();
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  if (button) {
    button.hidden = false;
    label();
    button.setAttribute("aria-label", "Switch between light and dark colours");
    button.addEventListener("click", () => {
      root.dataset.theme = present() === "dark" ? "light" : "dark";
      remember(root.dataset.theme);
      label();
    });
    dark.addEventListener("change", label);
  }
  const copy = async (text) => {
    try { await navigator.clipboard.writeText(text); return true; } catch { /* not allowed here */ }
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  };
  for (const one of document.querySelectorAll("button.copy")) {
    one.hidden = false;
    one.addEventListener("click", async () => {
      const done = await copy(document.getElementById(one.dataset.copy).textContent);
      if (said) said.textContent = done ? "Copied" : "Copying is not allowed here";
      one.classList.toggle("done", done);
      one.focus();
    });
  }
  const open = () => {
    let target = null;
    try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { return; }
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", open);
  if (location.hash) open();
})();
