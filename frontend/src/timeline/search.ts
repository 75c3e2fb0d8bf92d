/** The search field of a timeline: how much a name takes, and a step to each match. */

import { h, setText } from '../core/dom';
import { clip, count, durationNs } from '../core/format';
import type { TimelineEvent, TimelineMatches } from '../shapes/protocol';
import type { TimelineSource } from './source';

/** A person types on. */
const TYPING_MS = 250;
const LONGEST_TEXT = 1200;
const KINDS: Readonly<Record<string, string>> = {
  gpu: 'on the GPU',
  call: 'calls',
  operator: 'operators',
  annotation: 'annotations',
  profiler: "of the profiler's"
};

export interface SearchEvents {
  /** Mark the matches of another text; none is the empty one. */
  changed(text: string): void;
  /** Show a match. */
  show(event: TimelineEvent): void;
  /** Where the first step begins. */
  beginNs(): number;
  /** A person leaves the field. */
  left(): void;
}

export class Search {
  readonly node: HTMLElement;

  constructor(
    private readonly source: TimelineSource,
    private readonly events: SearchEvents
  ) {
    this.node = h(
      'span',
      { class: 'wb-timeline-search', role: 'search' },
      this.input,
      this.previous,
      this.next,
      this.words
    );
    this.update();
  }

  get text(): string {
    return this.searched;
  }

  dispose(): void {
    window.clearTimeout(this.timer);
  }

  private typed(): void {
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      const text = this.input.value;
      if (text.trim() !== this.searched) {
        this.begin(text);
      }
    }, TYPING_MS);
  }

  focus(): void {
    this.input.focus();
    this.input.select();
  }

  /**
   * Search for a text.
   * @param text - in quotes it is a whole name
   * @param fromNs - go to the first match from there, too
   */
  begin(text: string, fromNs?: number): void {
    window.clearTimeout(this.timer);
    this.input.value = text;
    this.searched = text.trim();
    this.at = null;
    this.matches = null;
    this.update();
    this.events.changed(this.searched);
    void this.ask(fromNs).then(() => {
      if (fromNs !== undefined) {
        this.step(this.matches?.next);
      }
    });
  }

  /** Ask what there is around the match that is shown. */
  private async ask(beginNs = this.events.beginNs()): Promise<void> {
    const { searched, at } = this;
    if (searched === '') {
      setText(this.words, '');
      return;
    }
    try {
      const answer = await this.source.search(
        searched,
        at?.start_ns ?? beginNs,
        at?.row ?? -1
      );
      if (searched === this.searched && at === this.at) {
        this.matches = answer;
        this.update();
        setText(this.words, sentence(answer, at));
      }
    } catch (error) {
      if (searched === this.searched) {
        setText(this.words, (error as Error).message);
      }
    }
  }

  private step(event: TimelineEvent | null | undefined): void {
    if (event === null || event === undefined) {
      return;
    }
    this.at = event;
    this.events.show(event);
    void this.ask();
  }

  private key(event: KeyboardEvent): void {
    if (event.key === 'Enter') {
      const text = this.input.value;
      if (text.trim() === this.searched && this.matches !== null) {
        this.step(event.shiftKey ? this.matches.previous : this.matches.next);
      } else {
        this.begin(text, this.events.beginNs());
      }
    } else if (event.key === 'Escape') {
      if (this.input.value === '') {
        this.events.left();
      } else {
        this.begin('');
      }
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private update(): void {
    this.previous.disabled = !this.matches?.previous;
    this.next.disabled = !this.matches?.next;
  }

  private readonly input = h('input', {
    class: 'wb-select',
    type: 'search',
    placeholder: 'Search names',
    'aria-label': 'Search names in the timeline',
    maxlength: String(LONGEST_TEXT),
    input: () => this.typed(),
    keydown: event => this.key(event as KeyboardEvent)
  });
  private readonly previous = h(
    'button',
    {
      class: 'wb-button',
      'aria-label': 'Previous match',
      title: 'Previous match (Shift+Enter)',
      click: () => this.step(this.matches?.previous)
    },
    '↑'
  );
  private readonly next = h(
    'button',
    {
      class: 'wb-button',
      'aria-label': 'Next match',
      title: 'Next match (Enter)',
      click: () => this.step(this.matches?.next)
    },
    '↓'
  );
  private readonly words = h('span', { role: 'status' });
  private searched = '';
  private matches: TimelineMatches | null = null;
  /** The match that is shown. */
  private at: TimelineEvent | null = null;
  private timer = 0;
}

function sentence(answer: TimelineMatches, at: TimelineEvent | null): string {
  if (answer.found.length === 0) {
    return 'Nothing has that in its name.';
  }
  const all = answer.found
    .map(
      ({ kind, events, time_ns: timeNs }) =>
        `${count(events)} ${KINDS[kind] ?? clip(kind, 40)} (${durationNs(timeNs)})`
    )
    .join(', ');
  return at === null
    ? all
    : `${all}. Shown: ${clip(at.name, 60)}, ${durationNs(at.duration_ns)}`;
}
