/** A course of the hub in the lab browser: its published labs, and its pages. */

import { h } from '../core/dom';
import { clip } from '../core/format';
import type { CourseLab, OwnCourse } from '../shapes/protocol';
import { mark, trans } from '../core/translation';

/** Pages of a course that only its staff may open, by their paths. */
const STAFF_PAGES: readonly (readonly [string, string])[] = [
  ['class', mark('Class')],
  ['queue', mark('Queue')],
  ['appeals', mark('Appeals')],
  ['people', mark('People')],
  ['publish', mark('Publish a lab')],
  ['data', mark('Export')]
];

/**
 * Make the section of a course.
 *
 * @param course - from the server
 * @param open - opens the notebook of a lab; null where the lab is not installed
 */
export function courseSection(
  course: OwnCourse,
  open: (lab: string) => ((button: HTMLButtonElement) => void) | null
): HTMLElement {
  const pages = course.role === 'learner' ? [] : STAFF_PAGES;
  return h(
    'section',
    { 'aria-label': trans.__('Course %1', clip(course.title, 80)) },
    h(
      'h3',
      {},
      link(course.url, clip(course.title, 80)),
      h('span', { class: 'wb-note' }, ` ${clip(course.role, 20)}`)
    ),
    pages.length === 0
      ? null
      : h(
          'nav',
          {
            class: 'wb-course-pages',
            'aria-label': trans.__('Pages of the course')
          },
          ...pages.map(([path, words]) =>
            link(`${course.url}/${path}`, trans.__(words))
          )
        ),
    course.labs.length === 0
      ? h('p', { class: 'wb-note' }, trans.__('No lab is published yet.'))
      : h(
          'ul',
          { class: 'wb-list wb-labs-list' },
          ...course.labs.map(lab => row(lab, open(lab.lab)))
        )
  );
}

function row(
  lab: CourseLab,
  open: ((button: HTMLButtonElement) => void) | null
): HTMLElement {
  const title = clip(lab.title, 120);
  const facts = [
    lab.is_open ? trans.__('open') : trans.__('closed'),
    ...(lab.due_ms === null
      ? []
      : [trans.__('due %1', new Date(lab.due_ms).toLocaleString())]),
    ...(lab.mark === ''
      ? []
      : [
          lab.points === null
            ? markState(lab.mark)
            : trans.__('%1 of %2 points', lab.points, lab.most_points)
        ]),
    trans.__('%1 submitted', lab.attempts),
    ...(lab.attempts_left === null
      ? []
      : [trans.__('%1 left', lab.attempts_left)])
  ];
  return h(
    'li',
    { class: 'wb-lab' },
    h(
      'div',
      { class: 'wb-lab-head' },
      h('h4', {}, link(lab.url, title)),
      open === null
        ? null
        : h(
            'button',
            {
              class: 'wb-button',
              'aria-label': trans.__('Open the notebook of %1', title),
              click: event => open(event.currentTarget as HTMLButtonElement)
            },
            trans.__('Open')
          )
    ),
    h('p', { class: 'wb-note' }, facts.join(' · '))
  );
}

/** A mark that has no points, in words. */
function markState(mark: string): string {
  const words: Record<string, string> = {
    waits: trans.__('waits for its grade'),
    parked: trans.__('parked: an instructor looks at it'),
    'not graded': trans.__('not graded'),
    'not handed in': trans.__('not handed in'),
    excused: trans.__('excused'),
    hidden: trans.__('marks are not released yet'),
    withdrawn: trans.__('withdrawn')
  };
  return words[mark] ?? mark;
}

/** A link in a tab of its own to a page of this host or of the web; else text. */
function link(url: string, words: string): HTMLElement {
  return /^(\/(?!\/)|https?:\/\/)/.test(url)
    ? h('a', { href: url, target: '_blank', rel: 'noopener' }, words)
    : h('span', {}, words);
}
