const size = 500, main = document.querySelector("main"), form = document.forms[0], found = form.elements;
const sentences = [...document.querySelectorAll("article")].map(article => ({
  article, text: article.textContent.toLowerCase(), deltas: JSON.parse(article.dataset.deltas),
  context: "context" in article.dataset }));
let first = 0;
function chosen() {
  const words = found.words.value.trim().toLowerCase(), view = found.view.value, system = found.system.value;
  const delta = sentence => sentence.deltas[system];
  const kept = sentences.filter(sentence => sentence.text.includes(words) && {
    all: true, changed: delta(sentence) !== null, gains: delta(sentence) > 0, losses: delta(sentence) < 0,
    context: sentence.context }[view]);
  if (view === "gains") kept.sort((a, b) => delta(b) - delta(a));
  if (view === "losses") kept.sort((a, b) => delta(a) - delta(b));
  return kept;
}
function show(start) {
  const kept = chosen();
  first = start;
  main.replaceChildren(...kept.slice(first, first + size).map(sentence => sentence.article));
  const last = Math.min(first + size, kept.length);
  found.status.value = last - first < kept.length ? `${first + 1} to ${last} of ${kept.length} sentences`
    : kept.length === 1 ? "1 sentence" : `${kept.length} sentences`;
  found.earlier.disabled = first === 0;
  found.later.disabled = last === kept.length;
  found.earlier.hidden = found.later.hidden = kept.length <= size;
}
function go() {
  const id = location.hash.slice(1), place = sentences.findIndex(sentence => sentence.article.id === id);
  if (place < 0) return;
  if (!document.getElementById(id)) { form.reset(); show(place - place % size); }
  location.replace(location.hash);  // now that it is there
}
form.addEventListener("input", () => show(0));
form.addEventListener("submit", event => event.preventDefault());
found.earlier.addEventListener("click", () => show(first - size));
found.later.addEventListener("click", () => { show(first + size); main.scrollIntoView(); });
addEventListener("hashchange", go);
form.hidden = false;
show(0);
go();
