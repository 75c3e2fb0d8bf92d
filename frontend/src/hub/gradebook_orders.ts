/** What is done to a selection of the gradebook: told first, then done once. */

import { readForm, requestNumber } from './forms';
import { selection } from './gradebook_grid';
import { course, post, postPatiently, RefusalError } from './page';
import { when } from './times';

interface Line {
  name: string;
  lab: string;
  words: string;
  is_skipped: boolean;
  from_ms: number | null;
  to_ms: number | null;
}

interface Told {
  changed: number;
  skipped: number;
  lines: Line[];
}

/** Have orders told and done. */
export function watchOrders(): void {
  const form = document.querySelector<HTMLFormElement>('#order');
  const dialog = document.querySelector<HTMLDialogElement>('#preview');
  const apply = document.querySelector<HTMLButtonElement>('#apply');
  if (form === null || dialog === null || apply === null) {
    return;
  }
  const path = `courses/${course}/gradebook`;
  let order: Record<string, unknown> = {};
  const suit = () => {
    const action = readForm(form)['action'];
    for (const part of form.querySelectorAll<HTMLElement>('[data-for]')) {
      part.hidden = part.dataset['for'] !== action;
    }
  };
  suit();
  form.addEventListener('change', suit);
  form.addEventListener('submit', event => {
    event.preventDefault();
    const given = readForm(form);
    if (given['action'] !== 'extend') {
      delete given['due_ms'];
    }
    // one for each preview: a second click is the same order
    order = { ...given, cells: selection(), request: requestNumber() };
    void doing(form, async () => {
      tell(dialog, (await post(path, { ...order, is_preview: true })) as Told);
      dialog.showModal();
    });
  });
  apply.addEventListener('click', () => {
    void doing(dialog, async say => {
      await postPatiently(path, order, say);
      location.reload();
    });
  });
}

async function doing(
  within: HTMLElement,
  work: (say: (words: string) => void) => Promise<void>
): Promise<void> {
  const problem = within.querySelector('[role=alert]');
  const buttons = within.querySelectorAll('button');
  const say = (words: string) => {
    if (problem !== null) {
      problem.textContent = words;
    }
  };
  say('');
  buttons.forEach(button => (button.disabled = true));
  try {
    await work(say);
  } catch (error) {
    if (!(error instanceof RefusalError)) {
      throw error;
    }
    say(error.message);
  } finally {
    buttons.forEach(button => (button.disabled = false));
  }
}

function tell(dialog: HTMLElement, told: Told): void {
  const rows = told.lines.map(line => {
    const row = document.createElement('tr');
    const dates =
      line.to_ms === null
        ? ''
        : `: ${when(line.from_ms)} → ${when(line.to_ms)}`;
    const words = `${line.is_skipped ? 'left as it is: ' : ''}${line.words}${dates}`;
    for (const text of [line.name, line.lab, words]) {
      row.insertCell().textContent = text;
    }
    return row;
  });
  dialog.querySelector('tbody')?.replaceChildren(...rows);
  const all = told.changed + told.skipped;
  const rest = all - told.lines.length;
  const more = dialog.querySelector('.more');
  if (more !== null) {
    more.textContent =
      all === 0
        ? 'There is nothing to do in what is selected.'
        : `${told.changed} changed, ${told.skipped} left as they are` +
          (rest > 0 ? `; ${rest} more are not listed` : '');
  }
  const apply = dialog.querySelector<HTMLButtonElement>('#apply');
  if (apply !== null) {
    apply.hidden = told.changed === 0;
  }
}
