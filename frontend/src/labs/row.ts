/** One lab in the browser: what it is, whether it can be done here, and how far one is. */

import { h, setText } from '../dom';
import { clip } from '../format';
import type { LabEntry, LabHints, LabMark, SoFar } from '../protocol';
import { labCard } from './card';
import { languageName } from './filters';
import type { LabsServer } from './server';
import { blocks, marked } from './words';

const STATES: Record<string, string> = {
  new: 'not begun',
  begun: 'begun',
  passed: 'passed'
};

/** In a word or two, how far a person is. */
export function howFar(progress: SoFar | null): string {
  if (progress === null) {
    return 'not known';
  }
  return progress.state === 'tried'
    ? `${progress.right} of ${progress.of} cases`
    : (STATES[progress.state] ?? progress.state);
}

/**
 * Make the row of a lab.
 *
 * @param lab - from the server
 * @param server - asked for hints and submissions when they are unfolded
 * @param open - opens the notebook
 */
export function labRow(
  lab: LabEntry,
  server: LabsServer,
  open: (button: HTMLButtonElement) => void
): HTMLElement {
  const state = lab.progress?.state ?? 'unknown';
  const facts = [
    `${lab.minutes} minutes`,
    ...(lab.difficulty === null ? [] : [clip(lab.difficulty, 20)]),
    languageName(lab.language),
    lab.needs.length > 0 ? `needs ${lab.needs.join(', ')}` : 'needs nothing',
    ...(lab.after.length > 0 ? [`after ${lab.after.join(', ')}`] : [])
  ];
  const name = `${lab.number} ${clip(lab.title, 100)}`;
  return h(
    'li',
    { class: 'wb-card wb-lab', 'data-lab': lab.id, 'data-state': state },
    h(
      'div',
      { class: 'wb-lab-head' },
      h('h4', {}, name),
      h('span', { class: 'wb-lab-next' }, 'next'),
      h('span', { class: 'wb-lab-state' }, howFar(lab.progress)),
      h(
        'button',
        {
          class: 'wb-button',
          'aria-label': `Open lab ${name}`,
          click: event => open(event.currentTarget as HTMLButtonElement)
        },
        'Open'
      )
    ),
    h('p', {}, ...marked(lab.goal, 400)),
    h('p', { class: 'wb-note' }, clip(facts.join(' · '), 300)),
    lab.why === ''
      ? null
      : h(
          'p',
          {
            class: 'wb-notice',
            'data-severity': lab.can_check ? 'normal' : 'warning'
          },
          ...marked(
            lab.can_check ? lab.why : `It can't be checked here. ${lab.why}`,
            400
          )
        ),
    folded(`Hints of ${name}`, 'Hints', place => {
      void showHints(place, lab.id, server, () => server.hints(lab.id));
    }),
    folded(`Submissions of ${name}`, 'Submissions', place => {
      void showCards(place, lab.id, server);
    }),
    state === 'passed'
      ? folded(`Solution of ${name}`, 'Reference and discussion', place => {
          void showSolution(place, lab.id, server);
        })
      : null
  );
}

/** Words that unfold; what is inside is fetched each time. */
function folded(label: string, words: string, fill: (place: Element) => void) {
  const place = h('div');
  const node = h(
    'details',
    {
      class: 'wb-folded',
      toggle: () => {
        if (node.open) {
          fill(place);
        }
      }
    },
    h('summary', { 'aria-label': label }, words),
    place
  );
  return node;
}

async function showHints(
  place: Element,
  lab: string,
  server: LabsServer,
  ask: () => Promise<LabHints>
): Promise<void> {
  try {
    const { of, hints } = await ask();
    const more = h(
      'button',
      {
        class: 'wb-button',
        click: () =>
          void showHints(place, lab, server, () => server.openHint(lab))
      },
      'Open one more hint'
    );
    place.replaceChildren(
      h('p', { role: 'status' }, `${hints.length} of ${of} are open.`),
      h('ol', {}, ...hints.map(hint => h('li', {}, ...blocks(hint)))),
      ...(hints.length < of ? [more] : [])
    );
  } catch (error) {
    place.replaceChildren(problem(error));
  }
}

async function showSolution(
  place: Element,
  lab: string,
  server: LabsServer
): Promise<void> {
  try {
    const found = await server.solution(lab);
    const wrong = found.mistakes.map(({ name, reason }) =>
      h('li', {}, ...marked(`${name}: ${reason}`, 2000))
    );
    place.replaceChildren(
      h('p', {}, `Reference solution (${clip(found.file, 60)})`),
      h(
        'pre',
        { tabindex: '0', class: 'wb-lab-reference' },
        clip(found.reference, 200_000)
      ),
      ...blocks(found.discussion),
      ...(wrong.length === 0
        ? []
        : [h('p', {}, 'What often goes wrong'), h('ul', {}, ...wrong)])
    );
  } catch (error) {
    place.replaceChildren(problem(error));
  }
}

async function showCards(
  place: Element,
  lab: string,
  server: LabsServer
): Promise<void> {
  try {
    const { cards, newest } = await server.cards(lab);
    const list =
      cards.length === 0
        ? h('p', {}, 'None yet: a notebook or a terminal hands one in.')
        : h('ul', { class: 'wb-list' }, ...cards.map(mark));
    place.replaceChildren(...(newest === null ? [] : [labCard(newest)]), list);
  } catch (error) {
    place.replaceChildren(problem(error));
  }
}

function mark(from: LabMark): HTMLElement {
  const when = new Date(from.graded_ms).toLocaleString();
  return h(
    'li',
    { class: 'wb-lab-mark' },
    h(
      'span',
      {},
      `${from.passed ? '✓' : '✗'} Submission ${from.number}, ` +
        `${when}: ${clip(from.status, 40)}. `,
      ...marked(from.message, 300)
    ),
    from.first_failure === ''
      ? null
      : h('p', { class: 'wb-note' }, ...marked(from.first_failure, 400))
  );
}

/** Why it can't be done, in words. */
export function problem(error: unknown): HTMLElement {
  const words = h('p', { class: 'wb-notice', role: 'alert' });
  words.dataset['severity'] = 'warning';
  setText(words, clip((error as Error).message, 400));
  return words;
}
