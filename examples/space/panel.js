// The panel closes by its button or by Escape; the sentence that it is about has the focus again.
function close() {
  props.value = '';
  document.querySelector('#rows .pair[aria-current]')?.focus();
}

element.addEventListener('click', (event) => {
  if (event.target.closest('.close')) close();
});

document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && element.querySelector('.explanation')) close();
});

watch('value', () => {
  if (!element.querySelector('.explanation')) return;
  element.closest('#panel').scrollTo(0, 0);
  document.querySelector('#rows .pair[aria-current]')?.scrollIntoView({ block: 'nearest' });
});
