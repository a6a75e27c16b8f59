// The sentences side by side. One button is in the tab order; arrows, Home and End move among them, U to the next uncertain one.
import { $, element, pieces, say } from './parts.js';

const list = $('list');
export const rows = { sentences: [], unsure: new Set(), langs: ['', ''], chosen: 0 };
const row = (n) => list.children[n];

export function build({ sentences, uncertain }, langs) {
  Object.assign(rows, { sentences, langs, chosen: 0, unsure: new Set(uncertain) });
  list.replaceChildren(...sentences.map((sentence, n) => {
    const pair = element('div', { className: 'pair', id: `sentence-${n + 1}` });
    const button = element('button', { type: 'button', textContent: 'Edit', tabIndex: n ? -1 : 0, ariaLabel: `Edit sentence ${n + 1}` });
    const source = element('span', { className: 'source', lang: langs[0], dir: 'auto', textContent: sentence.source });
    pair.append(element('span', { className: 'number', textContent: n + 1 }), source,
      element('span', { className: 'target' }), element('span', { className: 'ask' }, button));
    return pair;
  }));
  sentences.forEach((_, n) => show(n));
}

// Takes an answer of the server; what was translated again is marked if it reads differently.
export function update({ sentences, uncertain }) {
  const before = rows.unsure, changed = new Set(Object.keys(sentences).map(Number));
  rows.unsure = new Set(uncertain);
  for (const n of before) if (!rows.unsure.has(n)) changed.add(n);
  for (const n of uncertain) if (!before.has(n)) changed.add(n);
  for (const n of changed) {
    const old = rows.sentences[n], sentence = sentences[n] ?? old;
    const isNew = old.waiting && !!old.translation && old.translation !== sentence.translation;
    sentence.changed = !sentence.accepted && (!!old.changed || isNew);
    rows.sentences[n] = sentence;
    show(n);
  }
}

function show(n) {
  const sentence = rows.sentences[n], pair = row(n), target = pair.querySelector('.target');
  pair.classList.toggle('differs', sentence.pieces.length > 0);
  pair.classList.toggle('changed', !!sentence.changed);
  pair.classList.toggle('unsure', isUnsure(n));
  pair.classList.toggle('again', sentence.waiting && !!sentence.translation);
  pair.querySelector('button').hidden = !sentence.source.trim();
  if (sentence.translation === null) {
    target.replaceChildren(element('i', { className: 'waiting', role: 'img', ariaLabel: 'not translated yet' }));
    return;
  }
  const text = element('span', { className: 'text', lang: rows.langs[1], dir: 'auto' });
  text.append(...(sentence.pieces.length ? pieces(sentence.pieces, 'ins') : [sentence.translation]));
  target.replaceChildren(text, ...marks(sentence, n));
  if (sentence.pieces.length) {
    const alone = element('span', { lang: rows.langs[1], dir: 'auto', textContent: sentence.alone });
    target.append(element('span', { className: 'alone' }, element('b', { textContent: 'Alone: ' }), alone));
  }
}

export const isUnsure = (n) => rows.unsure.has(n);

function marks(sentence, n) {
  const names = sentence.repairs.map(([name, meaning]) => ({ textContent: name, title: meaning, className: 'mark' }));
  if (isUnsure(n)) names.push({ textContent: 'uncertain', className: 'mark' });
  if (sentence.changed) names.push({ textContent: 'changed', className: 'mark' });
  if (sentence.accepted) names.push({ textContent: sentence.edited ? '✓ edited' : '✓ accepted', className: 'mark good' });
  return names.map((each) => element('small', each));
}

export function choose(n, isOpen) {
  const before = row(rows.chosen);
  before?.removeAttribute('aria-current');
  before?.querySelector('button').setAttribute('tabindex', '-1');
  rows.chosen = n;
  row(n).querySelector('button').tabIndex = 0;
  if (isOpen) row(n).setAttribute('aria-current', 'true');
  row(n).scrollIntoView({ block: 'nearest' });
}

export function focusChosen() {
  row(rows.chosen)?.querySelector('button').focus();
}

// The next number from here that a test holds for, around the end; -1 if there is none.
export function following(here, by, test) {
  const count = rows.sentences.length;
  for (let step = 1; step <= count; step += 1) {
    const n = (here + by * step + count * step) % count;
    if (test(rows.sentences[n], n)) return n;
  }
  return -1;
}

export const editable = (sentence) => !!sentence.source.trim() && sentence.translation !== null;

// Calls a function with the number of a sentence that is clicked; text that is selected, also by a double click, opens nothing.
export function onOpen(open) {
  let timer;
  list.addEventListener('click', (event) => {
    clearTimeout(timer);
    const pair = event.target.closest('.pair'), n = [...list.children].indexOf(pair);
    if (!pair || !editable(rows.sentences[n])) return;
    if (event.target.closest('button')) open(n);
    else if (event.detail < 2) timer = setTimeout(() => { if (getSelection().isCollapsed) open(n); }, 250);
  });
}

list.addEventListener('keydown', (event) => {
  if (event.target.tagName !== 'BUTTON' || event.ctrlKey || event.metaKey || event.altKey) return;
  const shown = (sentence, n) => !!sentence.source.trim() && row(n).offsetParent;
  const last = rows.sentences.length;
  const steps = {
    ArrowDown: () => following(rows.chosen, 1, shown), ArrowUp: () => following(rows.chosen, -1, shown),
    Home: () => following(last - 1, 1, shown), End: () => following(0, -1, shown), u: () => following(rows.chosen, 1, (_, n) => isUnsure(n)),
  };
  const next = steps[event.key]?.() ?? -1;
  if (next < 0) return;
  event.preventDefault();
  choose(next, false);
  focusChosen();
});

// Sentences that differ alone: only these, the next and the one before.
let reached = -1;
const differs = (sentence) => sentence.pieces.length > 0;

function step(by) {
  row(reached)?.classList.remove('reached');
  reached = following(reached < 0 && by < 0 ? 0 : reached, by, differs);
  row(reached).classList.add('reached');
  row(reached).scrollIntoView({ block: 'center' });
  say(`Sentence ${reached + 1}: ${rows.sentences[reached].translation}. Alone: ${rows.sentences[reached].alone}`);
}

export function showComparison(isShown) {
  const count = rows.sentences.filter(differs).length;
  $('comparison').hidden = !isShown;
  $('rows').classList.toggle('compared', isShown);
  $('differing').textContent = `${count} of ${rows.sentences.length} differ`;
  for (const name of ['only', 'previous-differing', 'next-differing']) $(name).hidden = !count;
  if (!isShown || !count) showOnly(false);
  reached = -1;
}

function showOnly(isOn) {
  $('rows').classList.toggle('only', isOn);
  $('only').ariaPressed = String(isOn);
}

$('only').onclick = () => showOnly($('only').ariaPressed === 'false');
$('next-differing').onclick = () => step(1);
$('previous-differing').onclick = () => step(-1);
