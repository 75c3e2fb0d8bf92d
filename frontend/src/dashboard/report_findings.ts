/** What held a cell back: the verdict, every cause, and how far to believe them. */

import { h } from '../dom';
import { clip, count, duration, share } from '../format';
import { ASK_FOR_LAB } from '../labs/asking';
import type { CellProfile, Finding } from '../protocol';
import { bar } from './sortable';

/** More would push the figures out of sight. */
const MOST_WARNINGS = 20;
const MOST_WORDS = 800;

/** The verdict, the warnings, and the causes that were found. */
export function findingNodes(profile: CellProfile): Node[] {
  const { verdict, findings, completeness, bare } = profile;
  const cautions = bare === null ? [] : bare.cautions;
  return [
    ...(verdict === null
      ? []
      : [
          h(
            'p',
            { class: 'wb-cell-verdict' },
            pill(verdict.kind),
            ' ',
            h('strong', {}, clip(verdict.sentence, MOST_WORDS))
          )
        ]),
    ...[...completeness.warnings, ...cautions]
      .slice(0, MOST_WARNINGS)
      .map(words => h('p', { class: 'wb-warning' }, clip(words, 400))),
    ...(profile.gpu_name === null
      ? []
      : [h('p', { class: 'wb-note' }, completenessWords(profile))]),
    ...changeNodes(profile),
    ...trialNodes(profile),
    ...(findings.length === 0 ? [] : [findingList(findings)])
  ];
}

/** Say how much of what the cell launched is in the figures. */
export function completenessWords({
  completeness: { launches, matched, corrupt, profiler_ms: within },
  profiler_ms: profilerMs,
  first_start_ms: firstMs
}: CellProfile): string {
  const lost = launches - matched;
  const all =
    launches === 1 ? 'The launch was' : `All ${count(launches)} launches were`;
  const seen =
    launches === 0
      ? 'No launches.'
      : lost === 0
        ? `${all} seen on the GPU.`
        : `${count(matched)} of ${count(launches)} launches were seen on the GPU; ` +
          `${count(lost)} ${lost === 1 ? 'is' : 'are'} lost.`;
  const wrong =
    corrupt > 0 ? ` ${count(corrupt)} events have wrong times.` : '';
  const first =
    firstMs === null
      ? ''
      : ` (${duration(firstMs)} to start for the first time)`;
  const took = [
    ...(profilerMs > 0
      ? [`${duration(profilerMs)} beside the cell${first}`]
      : []),
    ...(within > 0
      ? [`${duration(within)} within it, which is taken off the window`]
      : [])
  ];
  const profiler =
    took.length > 0 ? ` The profiler took ${took.join(' and ')}.` : '';
  return seen + wrong + profiler;
}

/** What to change, with the time of the cell after it. */
export function changeNodes({ changes }: CellProfile): Node[] {
  if (changes.length === 0) {
    return [];
  }
  const rows = changes.map(change =>
    h(
      'li',
      { 'data-change': clip(change.name, 40) },
      h('strong', {}, clip(change.title, MOST_WORDS)),
      change.line === null ? '' : ` Line ${change.line}.`,
      ' ',
      clip(change.sentence, MOST_WORDS),
      ' ',
      h('span', { class: 'wb-note' }, clip(change.evidence, MOST_WORDS)),
      ...teacher(change),
      ...(change.sketch === ''
        ? []
        : [h('pre', { class: 'wb-sketch' }, clip(change.sketch, MOST_WORDS))])
    )
  );
  return [
    h('h4', {}, 'What to change'),
    h('ol', { class: 'wb-changes', 'aria-label': 'What to change' }, ...rows)
  ];
}

/** What changes gave that were measured on copies of the cell's state. */
export function trialNodes({ trials }: CellProfile): Node[] {
  if (trials.length === 0) {
    return [];
  }
  const rows = trials.map(({ name, outcome, sentence }) =>
    h(
      'li',
      { 'data-outcome': clip(outcome, 40) },
      h('strong', {}, clip(name, 80)),
      ' ',
      clip(sentence, MOST_WORDS)
    )
  );
  return [
    h('h4', {}, 'Tried on copies'),
    h('ul', { class: 'wb-trials', 'aria-label': 'Tried on copies' }, ...rows)
  ];
}

function findingList(findings: readonly Finding[]): HTMLElement {
  return h(
    'ol',
    { class: 'wb-findings', 'aria-label': 'What explains the time' },
    ...findings.map(each =>
      h(
        'li',
        {},
        h(
          'div',
          { class: 'wb-finding-share' },
          h('span', {}, share(each.share)),
          bar(each.share)
        ),
        h(
          'div',
          {},
          pill(each.kind),
          ' ',
          clip(each.evidence, MOST_WORDS),
          ' ',
          h('em', {}, advice(each), ...teacher(each))
        )
      )
    )
  );
}

/** What may help, and what is left without the cause. */
export function advice({ change, bound_ns: boundNs }: Finding): string {
  return [
    clip(change, MOST_WORDS),
    boundNs === null
      ? ''
      : `Without this cause: ${duration(boundNs / 1e6)} at best.`
  ]
    .filter(words => words !== '')
    .join(' ');
}

/** The lab that teaches the change; who hears of it opens it. */
function teacher({ lab }: Pick<Finding, 'lab'>): (Node | string)[] {
  if (lab === null) {
    return [];
  }
  const open = ({ currentTarget }: Event): void => {
    currentTarget?.dispatchEvent(
      new CustomEvent(ASK_FOR_LAB, { bubbles: true, detail: lab })
    );
  };
  return [
    ' Lab: ',
    h('button', { class: 'wb-link', click: open }, clip(lab, 80)),
    '.'
  ];
}

/** A verdict's kind, coloured. */
export function pill(kind: string): HTMLElement {
  return h('span', { class: 'wb-pill', 'data-kind': kind }, clip(kind, 40));
}
