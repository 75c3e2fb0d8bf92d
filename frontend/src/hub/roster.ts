/** A roster: how a file was read is shown, and can be changed, before it is imported. */

import { refresh } from './fragments';
import { post, RefusalError } from './page';

interface Problem {
  readonly line: number;
  readonly message: string;
}

type Person = Readonly<Record<Field, string | null | undefined>>;

/** What the service says of a file. */
interface Shown {
  readonly program: string;
  readonly encoding: string;
  readonly is_encoding_sure: boolean;
  readonly encodings: Readonly<Record<string, string>>;
  readonly separator: string;
  readonly columns: readonly {
    readonly name: string;
    readonly field: string;
    readonly examples: readonly string[];
  }[];
  readonly unused_columns: readonly string[];
  readonly skipped: readonly Problem[];
  readonly problems: readonly Problem[];
  readonly notes: readonly string[];
  readonly people: number;
  readonly first_people: readonly Person[];
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly hidden: readonly string[];
  readonly returned: readonly string[];
  readonly unchanged: number;
}

const FIELDS = {
  username: 'user name',
  first_name: 'first name',
  last_name: 'last name',
  full_name: 'whole name, "last, first"',
  email: 'e-mail',
  section: 'section',
  team: 'team'
} as const;
type Field = keyof typeof FIELDS;
const SHOWN_FIELDS: readonly Field[] = [
  'username',
  'first_name',
  'last_name',
  'email',
  'section',
  'team'
];
const SEPARATORS: Readonly<Record<string, string>> = {
  ',': 'commas',
  ';': 'semicolons',
  '\t': 'tabs',
  '|': 'bars'
};
const MOST_BYTES = 2 << 20;
const MOST_NAMES = 20;

/** Have the form for rosters show what it would do. */
export function watchRoster(): void {
  const form = document.querySelector<HTMLFormElement>('form[data-roster]');
  const place = form?.querySelector<HTMLElement>('.preview') ?? null;
  if (form === null || place === null) {
    return;
  }
  const problem = form.querySelector<HTMLElement>('[role=alert]');
  let choices: { encoding: string; columns: Record<string, string> };
  let newest = 0;
  const forget = () => {
    newest += 1;
    choices = { encoding: '', columns: {} };
    place.replaceChildren();
  };
  forget();

  const ask = async (isPreview: boolean) => {
    say(problem, '');
    newest += 1;
    const mine = newest;
    // what was asked before another choice is of no interest
    const isStale = () => isPreview && mine !== newest;
    try {
      const given = await content(form);
      const path = form.dataset['roster'] ?? '';
      const body = { ...given, ...choices, is_preview: isPreview };
      const shown = (await post(path, body)) as Shown;
      if (isStale()) {
        return;
      }
      place.replaceChildren(
        ...(isPreview ? preview(shown, choose, () => void ask(false)) : []),
        // what can't be imported changes nothing
        ...(shown.problems.length === 0 ? [changes(shown, isPreview)] : [])
      );
      if (!isPreview) {
        form.reset();
        await refresh();
      }
    } catch (error) {
      if (!(error instanceof RefusalError)) {
        throw error;
      }
      if (isStale()) {
        return;
      }
      place.replaceChildren();
      say(problem, error.message);
    }
  };
  const choose = (what: Partial<typeof choices>) => {
    choices = {
      encoding: what.encoding ?? choices.encoding,
      columns: { ...choices.columns, ...what.columns }
    };
    void ask(true);
  };

  form.addEventListener('submit', event => {
    event.preventDefault();
    void ask(true);
  });
  const file = form.querySelector<HTMLInputElement>('input[type=file]');
  const text = form.querySelector('textarea');
  // another file has other columns, and what was chosen last is meant
  file?.addEventListener('change', () => {
    forget();
    if (text !== null) {
      text.value = '';
    }
    void ask(true);
  });
  text?.addEventListener('input', () => {
    forget();
    if (file !== null) {
      file.value = '';
    }
  });
}

/** Read what is chosen: bytes as they are, for the service to decode. */
async function content(form: HTMLFormElement): Promise<object> {
  const file = form.querySelector<HTMLInputElement>('input[type=file]');
  const chosen = file?.files?.[0];
  if (chosen === undefined) {
    const lines = form.querySelector('textarea')?.value ?? '';
    if (lines.trim() === '') {
      throw new RefusalError('Choose a file, or paste its lines.');
    }
    return { csv: lines };
  }
  if (chosen.size > MOST_BYTES) {
    throw new RefusalError('This file has more than 2 MiB.');
  }
  const url = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(new RefusalError('It can not be read.'));
    reader.readAsDataURL(chosen);
  });
  return { file: url.slice(url.indexOf(',') + 1) };
}

function preview(
  shown: Shown,
  choose: (what: {
    encoding?: string;
    columns?: Record<string, string>;
  }) => void,
  go: () => void
): Node[] {
  const read = [
    shown.program === '' ? 'A table' : `As ${shown.program} exports it`,
    `cells between ${SEPARATORS[shown.separator] ?? shown.separator}`,
    counted(shown)
  ].join(', ');
  const names = Object.entries(shown.encodings);
  const encoding = select(
    'Encoding',
    names.map(([value, words]) => [value, words]),
    shown.encoding,
    value => choose({ encoding: value })
  );
  const columns = shown.columns.map(
    ({ name }) => [name, name] as [string, string]
  );
  const fields = Object.entries(FIELDS).map(([field, words]) =>
    select(
      `The ${words} is in`,
      [['', 'no column'], ...columns],
      shown.columns.find(column => column.field === field)?.name ?? '',
      name => choose({ columns: { [field]: name } })
    )
  );
  const parts: Node[] = [element('h3', 'As it was read'), element('p', read)];
  parts.push(encoding);
  if (!shown.is_encoding_sure) {
    const others =
      names.length > 1 ? ' Choose another encoding if names look wrong:' : '';
    const odd = shown.columns
      .flatMap(column => column.examples)
      .filter(text => /\P{ASCII}/u.test(text));
    const words = `Its bytes do not say which encoding it is.${others} ${odd.slice(0, 8).join(', ')}`;
    parts.push(element('p', words, 'warning'));
  }
  const grid = element('div', '', 'item');
  grid.append(...fields);
  parts.push(grid);
  if (shown.unused_columns.length > 0) {
    const words = `Not used: ${listed(shown.unused_columns)}`;
    parts.push(element('p', words, 'quiet'));
  }
  parts.push(...lines('Rows that are left out', shown.skipped));
  parts.push(...lines('It can not be imported like this', shown.problems));
  if (shown.notes.length > 0) {
    const list = element('ul', '');
    list.append(...shown.notes.map(note => element('li', note)));
    parts.push(element('h3', 'Look at these'), list);
  }
  if (shown.first_people.length > 0) {
    parts.push(people(shown));
  }
  if (shown.problems.length === 0) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'primary';
    button.textContent = `Import ${counted(shown)}`;
    button.addEventListener('click', go);
    const row = element('p', '');
    row.append(button);
    parts.push(row);
  }
  return parts;
}

function people(shown: Shown): HTMLElement {
  const table = document.createElement('table');
  table.className = 'wide';
  const head = table.createTHead().insertRow();
  const used = SHOWN_FIELDS.filter(field =>
    shown.first_people.some(one => (one[field] ?? null) !== null)
  );
  for (const field of used) {
    const cell = element('th', FIELDS[field]);
    cell.setAttribute('scope', 'col');
    head.append(cell);
  }
  const body = table.createTBody();
  for (const one of shown.first_people) {
    const row = body.insertRow();
    used.forEach(field => (row.insertCell().textContent = one[field] ?? ''));
  }
  const more = shown.people - shown.first_people.length;
  table.createCaption().textContent =
    more > 0 ? `The first people, and ${more} more` : 'The people';
  return table;
}

function changes(shown: Shown, isPreview: boolean): HTMLElement {
  const would = isPreview ? 'would be ' : '';
  const said = [
    [`${would}added`, shown.added],
    [`${would}changed`, shown.changed],
    [`${would}hidden`, shown.hidden],
    [`${would}brought back`, shown.returned]
  ] as const;
  const words = said.map(
    ([what, names]) =>
      `${what}: ${names.length}${names.length > 0 ? ` (${listed(names)})` : ''}`
  );
  words.push(`unchanged: ${shown.unchanged}`);
  if (!isPreview) {
    words.unshift('Imported.');
  }
  const text = element('pre', words.join('\n'), 'answer');
  text.setAttribute('role', 'status');
  return text;
}

function lines(title: string, problems: readonly Problem[]): HTMLElement[] {
  if (problems.length === 0) {
    return [];
  }
  const list = element('ul', '');
  list.append(
    ...problems.map(({ line, message }) =>
      element('li', `Line ${line}: ${message}`)
    )
  );
  return [element('h3', title), list];
}

function select(
  words: string,
  options: readonly [string, string][],
  chosen: string,
  then: (value: string) => void
): HTMLElement {
  const label = element('label', words);
  const box = document.createElement('select');
  box.append(
    ...options.map(
      ([value, text]) => new Option(text, value, false, value === chosen)
    )
  );
  box.addEventListener('change', () => then(box.value));
  label.append(box);
  return label;
}

function element(name: string, text: string, kind = ''): HTMLElement {
  const made = document.createElement(name);
  made.textContent = text;
  made.className = kind;
  return made;
}

function counted(shown: Shown): string {
  return `${shown.people} ${shown.people === 1 ? 'person' : 'people'}`;
}

function listed(names: readonly string[]): string {
  const more = names.length > MOST_NAMES ? ', …' : '';
  return names.slice(0, MOST_NAMES).join(', ') + more;
}

function say(place: HTMLElement | null, text: string): void {
  if (place !== null) {
    place.textContent = text;
  }
}
