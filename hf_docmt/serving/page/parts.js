// Small parts that the others use: elements, messages for screen readers, requests.
export const $ = (id) => document.getElementById(id);

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Pieces [change, text] of `changed_words`: what is new in an element of this name, without what is gone.
export function pieces(parts, name) {
  return parts.filter(([change]) => change !== 'gone')
    .map(([change, text]) => (change === 'new' ? element(name, { textContent: text }) : text));
}

export function say(text) {
  if ($('live').textContent !== text) $('live').textContent = text;
}

// Stored for this tab alone; a browser may refuse.
export const stored = {
  get(name) { try { return sessionStorage.getItem(`docmt-${name}`) ?? ''; } catch { return ''; } },
  set(name, value) { try { sessionStorage.setItem(`docmt-${name}`, value); } catch { /* it is not kept */ } },
};

// The answer of the server; an Error with `status` and `seconds` to wait for anything else.
export async function ask(path, body, signal) {
  const headers = $('key').value ? { Authorization: `Bearer ${$('key').value}` } : {};
  const isForm = body instanceof FormData;
  if (body && !isForm) headers['Content-Type'] = 'application/json';
  const request = body ? { method: 'POST', body: isForm ? body : JSON.stringify(body), headers, signal } : { headers, signal };
  let response;
  try {
    response = await fetch(path, request);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Error('the server cannot be reached; try again');
  }
  const answer = await response.json().catch(() => ({ error: `the server answered with status ${response.status}` }));
  if (response.ok) return answer;
  throw Object.assign(new Error(answer.error), { status: response.status, seconds: Number(response.headers.get('Retry-After')) });
}
