// Sentences that differ: these alone, the next and the one before.
let onlyThese = false;
const rows = () => [...document.querySelectorAll('#rows .pair.differs')];

function filter() {
  document.getElementById('rows').classList.toggle('only', onlyThese);
  element.querySelector('[data-show]')?.setAttribute('aria-pressed', String(onlyThese));
}

function step(by) {
  const all = rows();
  const here = all.findIndex((row) => row.classList.contains('reached'));
  const next = all[(here < 0 ? (by > 0 ? 0 : all.length - 1) : here + by + all.length) % all.length];
  all.forEach((row) => row.classList.toggle('reached', row === next));
  next.scrollIntoView({ block: 'center' });
  window.docmt.say(`Sentence ${next.dataset.sentence}: ${next.querySelector('.text').textContent}. ${next.querySelector('.alone').textContent}`);
}

element.addEventListener('click', (event) => {
  const button = event.target.closest('button');
  if (!button) return;
  if (button.dataset.step) return step(Number(button.dataset.step));
  onlyThese = !onlyThese;
  filter();
});

watch('value', () => {
  if (!element.querySelector('[data-show]')) onlyThese = false;
  filter();
  window.docmt.sayFrom(element);
});
