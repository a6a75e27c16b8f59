(text, draft, result) => {
  // What is typed is kept; a translation of another text is marked as such.
  const bytes = result?.upload?.name === 'text.txt' ? Uint8Array.from(atob(result.upload.data), (sign) => sign.charCodeAt(0)) : null;
  const isStale = !!bytes && !draft.file && new TextDecoder().decode(bytes) !== text;
  document.getElementById('state')?.classList.toggle('stale', isStale);
  return { ...draft, text };
}
