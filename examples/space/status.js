// Progress is told in quarters. A button that goes while it has the focus hands it to the one that begins.
const bar = document.getElementById('state');
new ResizeObserver(() => {
  document.documentElement.style.setProperty('--bar', `${bar.offsetHeight}px`);
}).observe(bar);

watch('value', () => {
  if (element.querySelector('progress')) bar.classList.remove('stale');
  window.docmt.sayFrom(element);
  setTimeout(() => {
    const lost = document.activeElement === document.body && window.docmt.focused?.id === 'stop';
    if (lost) document.getElementById('start').focus();
  }, 200);
});
