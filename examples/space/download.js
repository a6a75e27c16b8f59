// The file lies in its link; browsers limit the length of such addresses, but not what a blob holds.
element.addEventListener('click', async (event) => {
  if (event.target.closest('.copy')) {
    const texts = [...document.querySelectorAll('#rows .pair .text')].map((text) => text.textContent);
    await navigator.clipboard.writeText(texts.join('\n'));
    window.docmt.say('Copied');
    event.target.textContent = 'Copied';
    setTimeout(() => { event.target.textContent = 'Copy all'; }, 2000);
    return;
  }
  const link = event.target.closest('a[href^="data:"]');
  if (!link) return;
  const bytes = Uint8Array.from(atob(link.href.split(',')[1]), (letter) => letter.charCodeAt(0));
  link.href = URL.createObjectURL(new Blob([bytes], { type: 'application/octet-stream' }));
});
