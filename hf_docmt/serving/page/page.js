// The page: what to translate and how, the way of a translation, and what is taken away.
import { $, ask, element, say, stored } from './parts.js';
import * as review from './review.js';
import { build, onOpen, rows, showComparison, update } from './rows.js';

const SHORT = '.txt .docx .xlsx .pptx .odt .epub .html .md .srt .vtt .po .xliff .tmx .json .yaml .csv'.split(' ');
const EXAMPLE = 'Good evening, Mr Weber, the camera was expensive.\nNow it is switched off.\nCan you help me?\nI see the computer.\nIt is switched off again.\n';
const page = { languages: [], abilities: {}, file: null, id: '', name: '', text: '', run: null };
const KEPT = ['source', 'target', 'strategy'];

async function start() {
  $('key').value = stored.get('key');
  const [languages, settings, abilities] = await Promise.all(['languages', 'frontend/settings', 'documents'].map((path) => ask(path)));
  Object.assign(page, { languages, abilities });
  $('key-field').hidden = !settings.keyRequired;
  showSettings(settings);
  $('text').value = stored.get('text');
  for (const name of KEPT) choose($(name), stored.get(name));
  $('source').onchange();
  choose($('target'), stored.get('target'));
  if (abilities.takesTerms) $('glossary').value = stored.get('glossary');
  $('glossary-field').open = !!$('glossary').value;
  describe();
  if (stored.get('id')) await restore();
}

const nameOf = (code) => page.languages.find((each) => each.code === code)?.name ?? code;
const others = ({ code, targets }) => page.languages.filter((each) => each.code !== code && targets.includes(each.code));

function fill(select, choices) {
  const before = select.value;
  select.replaceChildren(...choices.map(({ name, code }) => new Option(name, code)));
  choose(select, before);
}

function choose(select, value) {
  if ([...select.options].some((option) => option.value === value)) select.value = value;
}

function showSettings(settings) {
  const sources = page.languages.filter((each) => others(each).length);
  const all = { code: 'auto', targets: sources.flatMap((each) => others(each).map(({ code }) => code)) };
  fill($('source'), [...sources, { name: 'Detect language', code: 'auto' }]);
  $('source').onchange = () => fill($('target'), others(sources.find(({ code }) => code === $('source').value) ?? all));
  $('source').value = settings.language.source.code;
  $('source').onchange();
  $('target').value = settings.language.target.code;
  const { model, about, strategies, compares, takesTerms } = page.abilities;
  $('about').replaceChildren('Model: ', element('b', { textContent: model }), `. ${about}`);
  fill($('strategy'), strategies.map(({ name, title }) => ({ name: title, code: name })));
  $('strategy-field').hidden = strategies.length < 2;
  $('compare-field').hidden = !compares;
  $('glossary-field').hidden = !takesTerms;
  $('example').hidden = !settings.language.source.code.startsWith('en');
  const known = settings.supportedFilesFormat;
  $('file').accept = known.join();
  const short = SHORT.filter((ending) => known.includes(ending)).join(' ');
  $('formats').textContent = `Files: ${short}${known.length > SHORT.length ? ' and others like these' : ''}`;
}

function describe() {
  $('strategy-about').textContent = page.abilities.strategies.find(({ name }) => name === $('strategy').value)?.about ?? '';
}

// States: what is translated, how far it is, what can be done

function status(text, isError = false) {
  $('message').textContent = text;
  $('status').classList.toggle('error', isError);
  say(text);
}

function fail(error) {
  if (error.name !== 'AbortError') status(`${error.message[0].toUpperCase()}${error.message.slice(1)}.`, true);
  if (error.status === 404) stored.set('id', '');
}

function buttons(isRunning) {
  const { sentences } = rows, waiting = sentences.some((each) => each.waiting);
  $('start').disabled = isRunning;
  const lost = document.activeElement === $('stop') || document.activeElement === $('continue');
  $('stop').hidden = $('progress').hidden = !isRunning;
  $('continue').hidden = isRunning || !waiting || !page.id;
  $('take').hidden = !sentences.some((each) => each.translation);
  $('unsure').hidden = !rows.unsure.size;
  if (lost) (isRunning ? $('stop') : $('continue').hidden ? $('start') : $('continue')).focus();
}

function progress(begin, first) {
  const { sentences } = rows, total = sentences.length, done = sentences.filter((each) => !each.waiting).length;
  Object.assign($('progress'), { max: total, value: done });
  const seconds = done > first ? ((performance.now() - begin) / 1000) * ((total - done) / (done - first)) : 0;
  const left = seconds >= 1 ? `, about ${seconds < 100 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`} left` : '';
  $('message').textContent = `${done} of ${total} sentences${left}`;
  if (done && done < total) say(`${25 * Math.floor((4 * done) / total)} percent translated`);
}

function showDocument(document_) {
  const { id, name, source, target, sentences } = document_;
  Object.assign(page, { id, name });
  stored.set('id', id);
  build(document_, [source, target]);
  [$('source-name').textContent, $('target-name').textContent] = [nameOf(source), nameOf(target)];
  $('output').hidden = false;
  $('problems').hidden = true;
  showComparison(sentences.some((each) => each.alone !== null));
  const reads = page.abilities.readsContext && document_.strategy !== 'sentence';
  const abilities = { readsContext: reads, explains: reads && page.abilities.explains };
  review.begin({ id, abilities, changed: () => buttons(!!page.run), again: () => run(), fail });
  showStale();
}

function showStale() {
  $('stale').hidden = !page.id || page.name !== 'text.txt' || !!page.file || $('text').value === page.text;
}

function showFile(name, count) {
  $('opened').hidden = $('remove').hidden = !name;
  $('typed').hidden = !!name;
  $('open').textContent = name ? 'Open another file' : 'Open a file';
  $('opened').replaceChildren(element('b', { textContent: name }), count ? `: ${count} sentences` : '');
}

async function restore() {
  try {
    const found = await ask(`documents/${stored.get('id')}`);
    page.text = stored.get('translated');
    showDocument(found);
    if (found.name !== 'text.txt') showFile(found.name, found.sentences.length);
    finish();
  } catch (error) {
    fail(error);
  }
}

function finish(seconds) {
  const total = rows.sentences.length, done = rows.sentences.filter((each) => !each.waiting).length;
  const time = seconds === undefined ? '' : ` in ${seconds < 1 ? 'less than 1 s' : `${Math.round(seconds)} s`}`;
  if (done === total) status(`${total} ${total === 1 ? 'sentence' : 'sentences'} translated${time}.`);
  else status(`Stopped at ${done} of ${total}. The others keep their source text in the download.`);
  buttons(false);
}

// Runs steps until none is left; others may be before it, then it waits.
async function steps(path, signal, show) {
  for (let rest = 1; rest > 0;) {
    try {
      const answer = await ask(`documents/${page.id}/${path}`, {}, signal);
      update(answer);
      rest = answer.rest;
    } catch (error) {
      if (error.status !== 503) throw error;
      status('Many texts wait to be translated. Yours goes on by itself.');
      await new Promise((resolve) => { setTimeout(resolve, 1000 * (error.seconds || 5)); signal.addEventListener('abort', resolve); });
      signal.throwIfAborted();
    }
    show();
  }
}

async function run() {
  page.run?.abort();
  const own = page.run = new AbortController(), begin = performance.now();
  const first = rows.sentences.filter((each) => !each.waiting).length;
  let error;
  try {
    progress(begin, first);
    buttons(true);
    $('state').scrollIntoView({ block: 'nearest' });
    await steps('translate', own.signal, () => { if (page.run === own) progress(begin, first); });
    if ($('compare').checked && page.abilities.compares) await compare(own.signal);
  } catch (caught) {
    error = caught;
  }
  if (page.run !== own) return;
  page.run = null;
  finish(error ? undefined : (performance.now() - begin) / 1000);
  if (error) fail(error);
}

async function compare(signal) {
  status('Translating every sentence alone …');
  await steps('alone', signal, () => showComparison(true));
}

async function translate() {
  const body = new FormData();
  if (!$('key-field').hidden && !$('key').value) {
    $('key').focus();
    throw new Error('this server needs an API key; write yours into its field');
  }
  if (page.file) body.append('file', page.file);
  else if (!$('opened').hidden) throw new Error(`open ${page.name} again to translate it anew`);
  else if (!$('text').value.trim()) throw new Error('there is no text; write or paste one, or open a file');
  else body.append('text', $('text').value);
  for (const name of [...KEPT, 'glossary']) {
    if ($(name).value) body.append(name, $(name).value);
    stored.set(name, $(name).value);
  }
  if (page.id) body.append('replaces', page.id);
  status('Reading …');
  $('start').disabled = true;
  const text = $('text').value;
  const opened = await ask('documents', body).finally(() => { $('start').disabled = false; });
  page.text = text;
  stored.set('translated', text);
  showDocument(opened);
  if (page.file) showFile(page.file.name, opened.sentences.length);
  await run();
}

// What is taken away

async function take(kind) {
  const { translatedFileUrl, problems = [] } = await ask(`documents/${page.id}/file`, { as: kind });
  const heading = problems.length ? ['Look at this in the file before you use it:'] : [];
  $('problems').hidden = !problems.length;
  $('problems').replaceChildren(...[...heading, ...problems].map((textContent) => element('li', { textContent })));
  element('a', { href: translatedFileUrl, download: '' }).click();
  say(['The file is downloaded.', ...problems].join(' '));
}

async function copy() {
  await navigator.clipboard.writeText(rows.sentences.map((each) => each.translation ?? each.source).join('\n'));
  $('copy').textContent = 'Copied';
  say('Copied');
  setTimeout(() => { $('copy').textContent = 'Copy all'; }, 2000);
}

const safely = (action) => () => { action().catch(fail); };
$('input').onsubmit = (event) => { event.preventDefault(); safely(translate)(); };
$('text').onkeydown = (event) => { if (event.key === 'Enter' && event.shiftKey) { event.preventDefault(); safely(translate)(); } };
$('text').oninput = () => { stored.set('text', $('text').value); showStale(); };
$('key').oninput = () => stored.set('key', $('key').value);
$('strategy').onchange = describe;
$('example').onclick = () => { $('remove').onclick(); $('text').value = EXAMPLE; $('text').oninput(); };
$('open').onclick = () => $('file').click();
$('file').onchange = () => { [page.file] = $('file').files; if (page.file) showFile(page.file.name); };
$('remove').onclick = () => { page.file = null; $('file').value = ''; showFile(''); $('open').focus(); };
$('stop').onclick = () => page.run?.abort();
$('continue').onclick = safely(run);
$('compare').onchange = safely(async () => {
  if (!$('compare').checked) return showComparison(false);
  if (page.id && !page.run && rows.sentences.every((each) => !each.waiting)) await run();
});
$('unsure').onclick = () => review.nextUnsure();
$('copy').onclick = safely(copy);
for (const [name, kind] of [['tmx', 'tmx'], ['xliff', 'xliff'], ['download', 'file']]) $(name).onclick = safely(() => take(kind));
onOpen(review.open);
const below = [document.documentElement, document.querySelector('.head'), $('side')]; // what sticks below the state
new ResizeObserver(() => below.forEach((part) => part.style.setProperty('--bar', `${$('state').offsetHeight}px`))).observe($('state'));
start().catch(fail);
