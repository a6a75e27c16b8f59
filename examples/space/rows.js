// Sentences are buttons of which one is in the tab order; arrows, Home and End move among them.
const rows = () => [...element.querySelectorAll('.pair')];
let chosen = null;

function select(row) {
  rows().forEach((other) => {
    other.tabIndex = other === row ? 0 : -1;
    other.removeAttribute('aria-current');
  });
  row.setAttribute('aria-current', 'true');
}

element.addEventListener('click', (event) => {
  const row = event.target.closest('.pair');
  if (!row || row.getAttribute('aria-disabled')) return;
  chosen = [row.dataset.document, row.dataset.sentence];
  select(row);
  trigger('click', { document: Number(row.dataset.document), sentence: Number(row.dataset.sentence) });
});

element.addEventListener('keydown', (event) => {
  const all = rows();
  const here = all.indexOf(document.activeElement);
  if (here < 0) return;
  const steps = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: all.length - 1 };
  const next = all[steps[event.key]];
  if (!next) return;
  event.preventDefault();
  all[here].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
});

watch('value', () => {
  chosen = null;
});
