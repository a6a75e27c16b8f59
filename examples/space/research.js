watch('value', () => {
  document.querySelector('.researchers')?.removeAttribute('aria-busy');
  window.docmt.sayFrom(element);
  element.querySelector('.research')?.scrollIntoView({ block: 'nearest' });
});
