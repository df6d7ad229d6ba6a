// What a page does beyond HTML: live parts, copying, local times, filters while typing. Everything else works without it.

const announceEvery = 15000; // milliseconds between two announcements to screen readers

/** Show times in the zone and language of the reader; the original stays as the title. */
function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([title])")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.valueOf())) continue;
    time.title = time.textContent;
    const today = at.toDateString() === new Date().toDateString();
    time.textContent = today
      ? at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" })
      : at.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  }
}

/** Buttons that copy the text of another element. */
function copying(root) {
  for (const button of root.querySelectorAll("button[data-copy]")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      const label = button.textContent;
      try {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent.trim());
        button.textContent = "copied";
      } catch {
        button.textContent = "select and copy it";
      }
      setTimeout(() => (button.textContent = label), 1500);
    });
  }
}

/** What identifies a control in its part, before and after the part is replaced. */
function nameOf(control) {
  return control.id || control.getAttribute("href") || `${control.name ?? ""} ${control.value || control.textContent}`;
}

/** Replace a part, unless somebody is typing in it; the focus stays on the same control, and what is open stays open. */
function replacePart(id, html) {
  const part = document.getElementById(id);
  if (!part) return;
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  if (focused && focused.matches("input, select, textarea")) return;
  const template = document.createElement("template");
  template.innerHTML = html; // made and escaped by the server; the policy of the page forbids scripts in it
  if (template.innerHTML === part.innerHTML) return;
  const name = focused && nameOf(focused);
  const open = [...part.querySelectorAll("details[open] > summary")].map(nameOf);
  part.replaceChildren(template.content);
  localTimes(part);
  for (const summary of part.querySelectorAll("details > summary")) {
    if (open.includes(nameOf(summary))) summary.parentElement.open = true;
  }
  if (!focused) return;
  const controls = [...part.querySelectorAll("a, button, summary")];
  (controls.find((one) => nameOf(one) === name) ?? controls.find((one) => one.matches("button:enabled")))?.focus();
}

/** Follow the events of a page. */
function live(main) {
  const lost = document.getElementById("lost-contact");
  const announcement = document.getElementById("announcement");
  let announcedAt = 0;
  let source;
  const open = () => {
    source = new EventSource(main.dataset.events);
    source.addEventListener("open", () => (lost.hidden = true));
    source.addEventListener("error", () => (lost.hidden = false));
    source.addEventListener("parts", (event) => {
      for (const [id, html] of Object.entries(JSON.parse(event.data))) replacePart(id, html);
      const summary = main.querySelector("[data-announce]");
      if (summary && Date.now() - announcedAt > announceEvery) {
        announcement.textContent = summary.dataset.announce;
        announcedAt = Date.now();
      }
    });
  };
  open();
  // A hidden page needs no events, and browsers allow only six connections per server.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      source.close();
    } else if (source.readyState === EventSource.CLOSED) {
      open();
    }
  });
  addEventListener("pagehide", () => source.close());
}

/** Reload when a computation has ended. */
function polling(element) {
  const look = async () => {
    try {
      const answer = await fetch(element.dataset.poll);
      const state = await answer.json();
      if (!state.running) {
        location.reload();
        return;
      }
      const seconds = element.querySelector("[data-seconds]");
      if (seconds) seconds.textContent = `${Math.round(state.seconds)} s`;
    } catch {
      // the server may be gone for a moment
    }
    setTimeout(look, 1500);
  };
  setTimeout(look, 1000);
}

/** Reload when the tables of a survey have been made. */
function tables() {
  const look = async () => {
    try {
      if ((await fetch(location.href)).status !== 503) {
        location.reload();
        return;
      }
    } catch {
      // the server may be gone for a moment
    }
    setTimeout(look, 1500);
  };
  setTimeout(look, 1500);
}

/** Apply the filters of a form while typing, by fetching the same page. */
function filtering(form) {
  let timer;
  let latest = 0;
  const apply = async () => {
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
    const address = `${form.getAttribute("action")}?${query}`;
    const number = ++latest;
    const answer = await fetch(address);
    const text = await answer.text();
    if (number !== latest) return; // a later one is on its way
    const page = new DOMParser().parseFromString(text, "text/html");
    for (const part of document.querySelectorAll("[data-filtered]")) {
      const fresh = page.getElementById(part.id);
      if (fresh) part.replaceChildren(...fresh.childNodes);
      localTimes(part);
      copying(part);
    }
    history.replaceState(null, "", address);
  };
  form.addEventListener("input", (event) => {
    if (!event.target.matches("[type=search]")) return;
    clearTimeout(timer);
    timer = setTimeout(() => apply().catch(() => form.submit()), 200);
  });
  form.addEventListener("change", (event) => {
    if (event.target.matches("select")) form.requestSubmit();
  });
}

/** Keyboard: / goes to the filter, ctrl+enter sends a form from a text area. */
function keyboard() {
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, textarea, select");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      const filter = document.querySelector("input[type=search]");
      if (filter) {
        event.preventDefault();
        filter.focus();
        filter.select();
      }
    }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches("textarea")) {
      event.target.form?.requestSubmit();
    }
  });
}

/** Forms are sent once. */
function sending() {
  document.addEventListener("submit", (event) => {
    if (event.target.method !== "post") return;
    setTimeout(() => {
      for (const button of event.target.querySelectorAll("button")) button.disabled = true;
    });
  });
  addEventListener("pageshow", () => {
    for (const button of document.querySelectorAll("form button:disabled:not([data-off])")) button.disabled = false;
  });
}

localTimes(document);
copying(document);
keyboard();
sending();
const main = document.querySelector("main[data-events]");
if (main) live(main);
for (const element of document.querySelectorAll("[data-poll]")) polling(element);
for (const form of document.querySelectorAll("form[data-filter]")) filtering(form);
if (document.querySelector("[data-tables]")) tables();
document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
