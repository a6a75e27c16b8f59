// The panel closes by its button or by Escape; the sentence that it is about has the focus again.
const side = document.getElementById('side');
const chosenRow = () => document.querySelector('#rows .pair[aria-current]');

function close() {
  props.value = '';
  side.classList.remove('open', 'busy');
  chosenRow()?.querySelector('.why')?.focus();
}

element.addEventListener('click', (event) => {
  const button = event.target.closest('button');
  if (!button) return;
  if (button.classList.contains('close')) return close();
  const place = { document: Number(button.dataset.document), sentence: Number(button.dataset.sentence) };
  if (button.classList.contains('go')) {
    document.getElementById(`sentence-${place.document}-${place.sentence}`)?.scrollIntoView({ block: 'center' });
  } else if (button.classList.contains('researchers')) {
    button.setAttribute('aria-busy', 'true');
    window.docmt.say('Details come when it is your turn');
    trigger('click', place);
  }
});

document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && side.classList.contains('open')) close();
});

watch('value', () => {
  side.classList.remove('busy');
  const isOpen = !!element.querySelector('.explanation');
  side.classList.toggle('open', isOpen);
  if (!isOpen) return;
  side.scrollTo(0, 0);
  window.docmt.sayFrom(element);
  requestAnimationFrame(() => {
    side.scrollIntoView({ block: 'nearest' });
    chosenRow()?.scrollIntoView({ block: 'nearest' });
  });
});
