// Progress comes into view when it begins, and is told in quarters. A button that goes while it has the focus hands it to the one that begins.
const bar = document.getElementById('state');
let wasRunning = false;
new ResizeObserver(() => {
  document.documentElement.style.setProperty('--bar', `${bar.offsetHeight}px`);
}).observe(bar);

watch('value', () => {
  const isRunning = !!element.querySelector('progress');
  if (isRunning) bar.classList.remove('stale');
  if (isRunning && !wasRunning) setTimeout(() => bar.scrollIntoView({ block: 'nearest' }), 300); // Stop is above by then
  wasRunning = isRunning;
  window.docmt.sayFrom(element);
  setTimeout(() => {
    const lost = document.activeElement === document.body && window.docmt.focused?.id === 'stop';
    if (lost) document.getElementById('start').focus();
  }, 200);
});
