// The panel of one sentence: its translation to edit and accept, what is to know of it, and why it reads so.
import { $, ask, element, pieces, say } from './parts.js';
import { choose, editable, focusChosen, following, isUnsure, rows, update } from './rows.js';

const drafts = new Map(); // what was written and not accepted, by number
const review = { id: '', abilities: {}, changed() {}, again() {}, fail() {} };

export function begin(settings) {
  Object.assign(review, settings);
  drafts.clear();
  close(false);
}

const isOpen = () => !$('side').hidden;
const path = (what) => `documents/${review.id}/${what}`;

export function open(n, isFocused = true) {
  const sentence = rows.sentences[n];
  $('side').hidden = false;
  $('output').classList.add('open');
  $('side-title').textContent = `Sentence ${n + 1}`;
  $('side-source').textContent = sentence.source;
  [$('side-source').lang, $('edit').lang] = rows.langs;
  $('edit').value = drafts.get(n) ?? sentence.translation;
  $('why').hidden = !review.abilities.explains;
  $('explanation').replaceChildren();
  show(n);
  $('side').scrollTo(0, 0);
  choose(n, true);
  if (isFocused) $('edit').focus({ preventScroll: true });
  say(`Sentence ${n + 1}${isUnsure(n) ? ', uncertain' : ''}: ${sentence.source}`);
}

function show(n) {
  const sentence = rows.sentences[n];
  const notes = sentence.repairs.map(([name, meaning]) => [name, meaning]);
  if (isUnsure(n)) notes.unshift(['uncertain', 'The model was less sure of this translation than of the others.']);
  if (drafts.has(n)) notes.unshift(['not accepted yet', 'Accept it, or undo it.']);
  $('remarks').replaceChildren(...notes.map(([name, meaning]) => {
    const bold = element('b', { textContent: `${name[0].toUpperCase()}${name.slice(1)}. ` });
    return element('p', { className: 'note' }, bold, meaning);
  }));
  $('undo').disabled = !sentence.accepted && !drafts.has(n);
  const isLast = following(n, 1, (each, k) => k > n && editable(each)) < 0;
  $('again').hidden = !review.abilities.readsContext || isLast || !sentence.accepted;
}

function close(isFocused = true) {
  $('side').hidden = true;
  $('output').classList.remove('open');
  $('list').querySelector('[aria-current]')?.removeAttribute('aria-current');
  if (isFocused) focusChosen();
}

async function send(body) {
  const n = rows.chosen;
  const answer = await ask(path('sentence'), { sentence: n, ...body });
  drafts.delete(n);
  update(answer);
  if (isOpen() && rows.chosen === n) {
    $('edit').value = rows.sentences[n].translation ?? '';
    show(n);
  }
  review.changed();
  return answer;
}

function failing(action) {
  return async (...given) => {
    try { await action(...given); } catch (error) { review.fail(error); }
  };
}

const accept = failing(async (goOn = false) => {
  const n = rows.chosen, walksUnsure = isUnsure(n);
  await send({ translation: $('edit').value });
  say(`Sentence ${n + 1} accepted`);
  if (!goOn) return;
  const next = following(n, 1, (sentence, k) => (walksUnsure ? isUnsure(k) : k > n && editable(sentence)));
  if (next >= 0) open(next);
  else close();
});

export function nextUnsure() {
  const next = following(isOpen() ? rows.chosen : -1, 1, (_, n) => isUnsure(n));
  if (next >= 0) open(next);
}

const why = failing(async () => {
  const n = rows.chosen;
  $('why').disabled = true;
  say(`Looking at sentence ${n + 1}`);
  try {
    const found = await ask(path(`why?sentence=${n}`));
    if (isOpen() && rows.chosen === n) explain(found);
  } finally {
    $('why').disabled = false;
  }
});

const quote = (...parts) => element('p', { className: 'quote', lang: rows.langs[1], dir: 'auto' }, ...parts);
const title = (textContent) => element('h3', { textContent });

function explain(found) {
  const shown = [element('p', { className: 'verdict', textContent: found.verdict })];
  if (found.alone) shown.push(title('With its context it reads'), quote(found.translation));
  for (const one of found.without) {
    const number = one.sentence + 1;
    if (one.remaining === null) shown.push(title(`Without sentence ${number} it reads`), quote(...pieces(one.pieces, 'del')));
    else shown.push(title(`Without sentence ${number} it reads the same, but is ${(100 * one.remaining).toFixed(0)} % as probable`));
    const go = element('button', { type: 'button', textContent: `Sentence ${number}`, onclick: () => open(one.sentence) });
    shown.push(element('p', {}, go, ' ', element('span', { lang: rows.langs[0], dir: 'auto', textContent: one.source })));
  }
  if (found.alone) shown.push(title('Alone, without the others'), quote(...(found.isChanged ? pieces(found.alone, 'del') : ['The same.'])));
  $('explanation').replaceChildren(...shown);
  say(`Sentence ${rows.chosen + 1}. ${found.verdict}`);
}

function walk(by) {
  const n = rows.chosen;
  const next = following(n, by, (sentence, k) => editable(sentence) && (k - n) * by > 0);
  if (next >= 0) open(next, false);
}

$('edit').oninput = () => {
  const n = rows.chosen, value = $('edit').value;
  if (value === rows.sentences[n].translation) drafts.delete(n);
  else drafts.set(n, value);
  show(n);
};
$('edit').onkeydown = (event) => {
  if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  accept(true);
};
$('accept').onclick = () => accept();
$('undo').onclick = failing(async () => {
  const n = rows.chosen, isAccepted = rows.sentences[n].accepted;
  drafts.delete(n);
  if (isAccepted) await send({ restore: true });
  open(n);
});
$('again').onclick = failing(async () => {
  await send({ again: true });
  review.again();
});
$('why').onclick = why;
$('back').onclick = () => walk(-1);
$('forth').onclick = () => walk(1);
$('close').onclick = () => close();
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && isOpen()) close();
});
