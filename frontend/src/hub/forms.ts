/** Forms: what they hold is sent as JSON, and what is refused is told below them. */

import { post, postPatiently, RefusalError, root, username } from './page';
import { leave, refresh } from './fragments';
import { localInput, nameZones } from './times';

type Control = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;
type Values = Record<string, unknown>;

/** What a dry run of an import says in place of what was done. */
const WOULD: Readonly<Record<string, string>> = {
  added: 'would add',
  changed: 'would change',
  hidden: 'would hide',
  returned: 'would bring back',
  unchanged: 'would leave as they are'
};
const CONTROLS = 'input[name], select[name], textarea[name]';

/** Have every form that names an API sent there. */
export function watchForms(): void {
  document.addEventListener('submit', event => {
    const form = event.target;
    if (form instanceof HTMLFormElement && form.dataset['api'] !== undefined) {
      event.preventDefault();
      void send(form, form.dataset['api']);
    }
  });
  document.addEventListener('input', event => {
    if (event.target instanceof HTMLInputElement) {
      nameZones(event.target.form ?? document);
    }
  });
  document.addEventListener('change', event => {
    const target = event.target;
    if (target instanceof HTMLInputElement && target.dataset['into']) {
      void readFile(target, target.dataset['into']);
    } else if (target instanceof Element) {
      target.closest<HTMLFormElement>('form[data-now]')?.submit();
    }
  });
  document.addEventListener('input', event => {
    const form =
      event.target instanceof Element ? event.target.closest('form') : null;
    if (form?.dataset['request'] !== undefined) {
      keepDraft(form, '');
    }
  });
  for (const form of document.querySelectorAll<HTMLFormElement>(
    'form[data-request]'
  )) {
    goOn(form);
  }
  document.addEventListener('click', event => {
    const target = event.target;
    if (target instanceof HTMLElement) {
      changeList(target);
    }
  });
}

async function send(form: HTMLFormElement, path: string): Promise<void> {
  const sure = form.dataset['sure'];
  if (sure !== undefined && !confirm(sure)) {
    return;
  }
  const problem = form.querySelector('[role=alert]');
  const buttons = form.querySelectorAll('button');
  tell(problem, '');
  buttons.forEach(button => (button.disabled = true));
  const request = form.dataset['request'];
  try {
    const values = readForm(form);
    if (request !== undefined) {
      // one for each text: an answer that was lost is asked for again
      values[request] = numberOf(form, values);
      keepDraft(form, values[request] as string);
    }
    const body = Object.keys(values).length > 0 ? values : undefined;
    const isPreview = values['is_preview'] === true;
    leave(form.dataset['go'] !== undefined && !isPreview);
    const answer =
      request === undefined
        ? await post(path, body)
        : await postPatiently(path, body, words => tell(problem, words));
    tell(problem, '');
    dropDraft(form);
    await after(form, answer, isPreview);
  } catch (error) {
    leave(false);
    if (request !== undefined) {
      // the same text may be handed in again, and is not by itself
      keepDraft(form, '');
    }
    if (!(error instanceof RefusalError)) {
      throw error;
    }
    tell(problem, error.message);
    point(form, error.field);
  } finally {
    buttons.forEach(button => (button.disabled = false));
  }
}

async function after(
  form: HTMLFormElement,
  answer: unknown,
  isPreview: boolean
): Promise<void> {
  const to = form.dataset['go'];
  if (to !== undefined && !isPreview) {
    const key = form.dataset['goKey'];
    location.assign(
      `${root}${to}${key === undefined ? '' : part(answer, key)}`
    );
    return;
  }
  switch (form.dataset['then']) {
    case 'reload':
      location.reload();
      break;
    case 'refresh':
      await refresh();
      break;
    default: {
      const place = form.querySelector<HTMLElement>('.answer');
      if (place !== null) {
        place.hidden = false;
        place.textContent = plain(answer, isPreview);
      }
      // what it has changed is shown beside the answer
      void refresh();
    }
  }
}

/** Read what a form holds; lists of items are arrays. */
export function readForm(form: HTMLElement): Values {
  const values: Values = {};
  for (const control of form.querySelectorAll<Control>(CONTROLS)) {
    const list = control.closest<HTMLElement>('[data-list]');
    if (list === null || !form.contains(list) || list === form) {
      values[control.name] = value(control);
    }
  }
  for (const list of form.querySelectorAll<HTMLElement>('[data-list]')) {
    const items = [...list.querySelectorAll<HTMLElement>('[data-item]')];
    values[list.dataset['list'] ?? ''] = items.map(item =>
      Object.fromEntries(
        [...item.querySelectorAll<Control>(CONTROLS)].map(control => [
          control.name,
          value(control)
        ])
      )
    );
  }
  return values;
}

function value(control: Control): unknown {
  switch (control.dataset['type']) {
    case 'flag':
      return control instanceof HTMLInputElement && control.checked;
    case 'number':
    case 'whole':
      return Number(control.value);
    case 'number-or-none':
      return control.value === '' ? null : Number(control.value);
    case 'zone':
      return new Intl.DateTimeFormat().resolvedOptions().timeZone;
    case 'time':
      return new Date(control.value).getTime();
    default:
      return control.value;
  }
}

const numbers = new WeakMap<
  HTMLFormElement,
  { text: string; number: string }
>();

function numberOf(form: HTMLFormElement, values: Values): string {
  const text = JSON.stringify(values);
  const before = numbers.get(form);
  if (before !== undefined && before.text === text) {
    return before.number;
  }
  const number = requestNumber();
  numbers.set(form, { text, number });
  return number;
}

/** What a form held that the service has not taken yet, for this tab. */
interface Draft {
  values: Values;
  /** of the request that was begun; empty where nobody has pressed yet */
  number: string;
}

function draftKey(form: HTMLFormElement): string {
  return `warpbook-draft:${username}:${form.dataset['api'] ?? ''}`;
}

function keepDraft(form: HTMLFormElement, number: string): void {
  const draft: Draft = { values: readForm(form), number };
  try {
    sessionStorage.setItem(draftKey(form), JSON.stringify(draft));
  } catch {
    // no room, or not allowed: it is on the page
  }
}

function dropDraft(form: HTMLFormElement): void {
  sessionStorage.removeItem(draftKey(form));
}

/** Show what was not handed in before a reload, and send what was begun. */
function goOn(form: HTMLFormElement): void {
  const kept = sessionStorage.getItem(draftKey(form));
  // somebody else's page, which staff look at
  if (kept === null || form.closest('fieldset:disabled') !== null) {
    return;
  }
  const { values, number } = JSON.parse(kept) as Draft;
  for (const control of form.querySelectorAll<Control>(CONTROLS)) {
    const held = values[control.name];
    if (control instanceof HTMLInputElement && typeof held === 'boolean') {
      control.checked = held;
    } else if (typeof held === 'string') {
      control.value = held;
    }
  }
  if (number !== '') {
    numbers.set(form, { text: JSON.stringify(readForm(form)), number });
    form.requestSubmit();
    return;
  }
  tell(
    form.querySelector('[role=status]'),
    'This is what you had here before, and have not handed in.'
  );
}

/** Draw a number by which a repeated request is known. */
export function requestNumber(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map(byte => byte.toString(16).padStart(2, '0')).join('');
}

async function readFile(input: HTMLInputElement, name: string): Promise<void> {
  const file = input.files?.[0];
  const target = input.form?.elements.namedItem(name);
  const problem = input.form?.querySelector('[role=alert]') ?? null;
  if (file === undefined || !(target instanceof HTMLTextAreaElement)) {
    return;
  }
  if (file.size > 2 << 20) {
    tell(problem, 'This file has more than 2 MiB.');
    return;
  }
  tell(problem, '');
  const bytes = new Uint8Array(await file.arrayBuffer());
  try {
    // no character is put in another's place
    target.value = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    tell(problem, 'This is no text in UTF-8. Save the file so.');
    // so that the same file can be chosen again
    input.value = '';
  }
  target.dispatchEvent(new Event('input', { bubbles: true }));
}

function changeList(button: HTMLElement): void {
  const line = button.dataset['line'];
  const field = document.querySelector<HTMLInputElement>(
    '#comment [name=line]'
  );
  if (line !== undefined && field !== null) {
    field.value = line;
    field.form?.querySelector('textarea')?.focus();
  }
  if ('remove' in button.dataset) {
    button.closest('[data-item]')?.remove();
  }
  const name = button.dataset['add'];
  if (name === undefined) {
    return;
  }
  const list = button.closest('form')?.querySelector(`[data-list="${name}"]`);
  const last = list?.querySelector('[data-item]:last-of-type');
  if (list && last) {
    const copy = last.cloneNode(true) as HTMLElement;
    list.append(copy);
    copy.querySelector<HTMLElement>('select, input')?.focus();
  }
}

/** Give controls for times what they hold, in this browser's zone. */
export function fillTimes(within: ParentNode): void {
  for (const input of within.querySelectorAll<HTMLInputElement>(
    'input[data-ms]'
  )) {
    input.value = localInput(Number(input.dataset['ms']));
  }
  nameZones(within);
}

/** Lead to the control of a field, such as `windows[0].due_ms`. */
function point(form: HTMLElement, field: string): void {
  const parts = /^(?:(\w+)\[(\d+)\]\.)?(\w+)$/.exec(field);
  if (parts === null) {
    return;
  }
  const [, list, row, name] = parts;
  const within =
    list === undefined
      ? form
      : form.querySelectorAll(`[data-list="${list}"] [data-item]`)[Number(row)];
  const control = within?.querySelector<HTMLElement>(`[name="${name}"]`);
  control?.setAttribute('aria-invalid', 'true');
  control?.addEventListener(
    'input',
    () => control.removeAttribute('aria-invalid'),
    { once: true }
  );
  control?.focus();
}

function tell(place: Element | null, text: string): void {
  if (place !== null) {
    place.textContent = text;
  }
}

function part(answer: unknown, key: string): string {
  const parts = answer as Record<string, string> | null;
  return encodeURIComponent(parts?.[key] ?? '');
}

/** Write an answer in lines that a person can read. */
function plain(answer: unknown, isPreview: boolean): string {
  return Object.entries(answer as Values)
    .map(([key, value]) => {
      const would = isPreview ? WOULD[key] : undefined;
      const name = would ?? key.replaceAll('_', ' ');
      if (!Array.isArray(value)) {
        return `${name}: ${String(value)}`;
      }
      const names =
        value.length > 0
          ? ` (${value.slice(0, 20).join(', ')}${value.length > 20 ? ', …' : ''})`
          : '';
      return `${name}: ${value.length}${names}`;
    })
    .join('\n');
}
