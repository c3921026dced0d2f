// Keeps the page up to date, and tells when the console is gone. Without it every page works, and stands still.
"use strict";

const EVERY = 2000;
const main = document.getElementById("main");
const gone = document.getElementById("gone");

const tell = (message) => {
  if (gone.textContent !== message) gone.textContent = message;
  gone.hidden = !message;
};

// The answer is the console's own page, in which everything that others have written is escaped.
const put = (text) => {
  const focused = main.contains(document.activeElement) ? document.activeElement.id : "";
  const open = [...main.querySelectorAll("details")].map((each) => each.open);
  const scrolled = [...main.querySelectorAll(".wide")].map((each) => each.scrollLeft);
  const parsed = new DOMParser().parseFromString(`<main>${text}</main>`, "text/html").querySelector("main");
  main.replaceChildren(...parsed.childNodes);
  main.querySelectorAll("details").forEach((each, number) => { each.open = open[number]; });
  main.querySelectorAll(".wide").forEach((each, number) => { each.scrollLeft = scrolled[number] || 0; });
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
};

const typing = () => ["INPUT", "TEXTAREA", "SELECT"].includes(document.activeElement?.tagName);

const look = async () => {
  const isOver = main.hasAttribute("data-over");
  try {
    const answer = await fetch(isOver ? "/alive" : main.dataset.live, {
      headers: { "X-Part": "1" }, cache: "no-store", redirect: "error",
    });
    const text = await answer.text();
    if (answer.status === 401) {
      tell("The console has been started anew: open the address that it has printed.");
    } else if (!answer.ok) {
      const problem = new DOMParser().parseFromString(text, "text/html").querySelector("[data-problem]");
      tell(problem ? problem.textContent : `The console answers with an error (${answer.status}).`);
    } else {
      tell("");
      if (!isOver && !typing()) {
        put(text);
        if (answer.headers.get("X-Over")) main.setAttribute("data-over", "");
      }
    }
  } catch {
    tell("The console does not answer: it was stopped. Start `tahan console` again, and open the address that it prints. What is shown here is old.");
  }
  setTimeout(look, document.hidden ? 5 * EVERY : EVERY);
};

document.addEventListener("keydown", (key) => {
  if (key.key !== "/" || typing() || key.ctrlKey || key.metaKey || key.altKey) return;
  const search = document.querySelector("[data-search]");
  if (search) { key.preventDefault(); search.focus(); }
});

setTimeout(look, EVERY);
