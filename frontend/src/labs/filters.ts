/** Which labs of the list are shown: by track, language, length and state. */

import { h, setText } from '../core/dom';
import { clip } from '../core/format';
import type { LabEntry } from '../shapes/protocol';
import { mark, trans } from '../core/translation';
import { LANGUAGES } from './languages';

/** What is chosen; an empty string is no choice. */
export interface LabFilter {
  readonly track: string;
  readonly language: string;
  /** The most minutes. */
  readonly minutes: string;
  readonly state: string;
}

export const ALL: LabFilter = {
  track: '',
  language: '',
  minutes: '',
  state: ''
};
const MINUTES = ['30', '45', '60'];
/** What is chosen, in words, and the states of a lab that it has. */
const STATES: Record<string, readonly [string, readonly string[]]> = {
  new: [mark('not begun'), ['new']],
  open: [mark('begun, not passed'), ['begun', 'tried']],
  passed: [mark('passed'), ['passed']]
};

/** Name a language. */
export function languageName(language: string): string {
  const name = LANGUAGES[language];
  return name === undefined ? clip(language, 20) : trans.__(name);
}

/** Whether a lab is one of those that are chosen. */
export function fits(lab: LabEntry, filter: LabFilter): boolean {
  const { track, language, minutes, state } = filter;
  const states = STATES[state]?.[1];
  return (
    (track === '' || lab.track === track) &&
    (language === '' || lab.language === language) &&
    (minutes === '' || lab.minutes <= Number(minutes)) &&
    // what is not known is in no state
    (states === undefined || states.includes(lab.progress?.state ?? ''))
  );
}

type Option = readonly [value: string, words: string];

/** The row of choices. */
export class LabFilters {
  /** @param changed - called when another choice is made */
  constructor(private readonly changed: () => void) {}

  /** What is chosen now. */
  get value(): LabFilter {
    const { track, language, minutes, state } = this.selects;
    return {
      track: track.value,
      language: language.value,
      minutes: minutes.value,
      state: state.value
    };
  }

  /** Offer what these labs have; what is chosen stays if it is there. */
  offer(labs: readonly LabEntry[]): void {
    const names = (of: (lab: LabEntry) => string) => [...new Set(labs.map(of))];
    this.fill('track', [
      ['', trans.__('all tracks')],
      ...names(lab => lab.track).map((name): Option => [name, clip(name, 40)])
    ]);
    this.fill('language', [
      ['', trans.__('all languages')],
      ...names(lab => lab.language).map((name): Option => [
        name,
        languageName(name)
      ])
    ]);
    this.fill('minutes', [
      ['', trans.__('any length')],
      ...MINUTES.map((most): Option => [
        most,
        trans.__('up to %1 minutes', most)
      ])
    ]);
    this.fill('state', [
      ['', trans.__('any state')],
      ...Object.entries(STATES).map(([value, [words]]): Option => [
        value,
        trans.__(words)
      ])
    ]);
  }

  /** Say how many are shown. */
  tell(shown: number, of: number): void {
    setText(
      this.count,
      shown === of
        ? trans.__('%1 labs', of)
        : trans.__('%1 of %2 labs are shown', shown, of)
    );
  }

  private fill(name: keyof LabFilter, options: readonly Option[]): void {
    const select = this.selects[name];
    const before = select.value;
    select.replaceChildren(
      ...options.map(([value, words]) => h('option', { value }, words))
    );
    select.value = options.some(([value]) => value === before) ? before : '';
  }

  private choice(label: string): HTMLSelectElement {
    return h('select', { 'aria-label': label, change: () => this.changed() });
  }

  private readonly selects: Record<keyof LabFilter, HTMLSelectElement> = {
    track: this.choice(trans.__('Track')),
    language: this.choice(trans.__('Language')),
    minutes: this.choice(trans.__('Length')),
    state: this.choice(trans.__('State'))
  };
  private readonly count = h('span', { class: 'wb-note', role: 'status' });

  readonly node = h(
    'div',
    {
      class: 'wb-labs-filters',
      role: 'group',
      'aria-label': trans.__('Show labs')
    },
    ...Object.values(this.selects),
    this.count
  );
}
