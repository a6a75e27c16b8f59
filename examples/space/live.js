// What screen readers are told; the text box that goes by the direction of its text; where the focus was last.
const live = element.querySelector('#live');

window.docmt = {
  focused: null,
  say(text) {
    if (text && live.textContent !== text) live.textContent = text;
  },
  sayFrom(part) {
    this.say(part.querySelector('[data-spoken]')?.dataset.spoken);
  },
};

document.addEventListener('focusin', (event) => {
  window.docmt.focused = event.target;
});

const directed = setInterval(() => {
  const box = document.querySelector('#text textarea');
  if (!box) return;
  box.dir = 'auto';
  clearInterval(directed);
}, 100);
