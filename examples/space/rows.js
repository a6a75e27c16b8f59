// Sentences are text with a small button each, of which one is in the tab order; arrows, Home and End move among them.
const buttons = () => [...element.querySelectorAll('.why')].filter((button) => button.offsetParent);
let chosen = null;

function mark() {
  element.querySelectorAll('.pair').forEach((row) => {
    row.toggleAttribute('aria-current', row.id === chosen);
  });
  const all = buttons();
  const current = all.find((button) => button.closest('.pair').id === chosen) ?? all[0];
  all.forEach((button) => { button.tabIndex = button === current ? 0 : -1; });
}

element.addEventListener('click', (event) => {
  const button = event.target.closest('.why');
  if (!button) return;
  const row = button.closest('.pair');
  chosen = row.id;
  mark();
  document.getElementById('side').classList.add('open', 'busy');
  window.docmt.say(`Looking at sentence ${row.dataset.sentence}`);
  trigger('click', { document: Number(row.dataset.document), sentence: Number(row.dataset.sentence) });
});

element.addEventListener('keydown', (event) => {
  const all = buttons();
  const here = all.indexOf(document.activeElement);
  if (here < 0) return;
  const steps = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: all.length - 1 };
  const next = all[steps[event.key]];
  if (!next) return;
  event.preventDefault();
  all[here].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
  next.closest('.pair').scrollIntoView({ block: 'nearest' });
});

watch('value', mark);
