/** The pinned event of a timeline: its details, and what they link to. */

import { h } from '../core/dom';
import type { TimelineDetails, TimelineEvent } from '../shapes/protocol';
import { detailsNodes } from './details';
import type { TimelineSource } from './source';

export interface PinEvents {
  /** Another event is pinned, or none. */
  changed(): void;
  /** Bring an event into sight. */
  show(event: TimelineEvent): void;
  /** Goes to a name's row in the tables; null where there is none. */
  rowOf(name: string): (() => void) | null;
}

/** Which event: those of a row start at different times. */
type Which = Pick<TimelineEvent, 'row' | 'start_ns' | 'duration_ns'>;

export class Pin {
  private readonly region = h('div', {
    class: 'wb-timeline-pinned',
    role: 'region',
    'aria-label': 'Pinned event'
  });
  /** It stands there before an event is pinned, so that the first one is read out. */
  readonly node = h('div', { 'aria-live': 'polite' }, this.region);

  constructor(
    private readonly source: TimelineSource,
    private readonly events: PinEvents
  ) {}

  get pinned(): Which | null {
    return this.which;
  }

  /** Once they have come. */
  get details(): TimelineDetails | null {
    return this.answer;
  }

  /** Goes to the row of its name in the tables; null where there is none. */
  get goToRow(): (() => void) | null {
    return this.answer && this.events.rowOf(this.answer.event.name);
  }

  async set(which: Which): Promise<void> {
    this.which = which;
    this.answer = null;
    this.events.changed();
    let nodes: HTMLElement[];
    try {
      const answer = await this.source.details(which.row, which.start_ns);
      if (this.which !== which) {
        return;
      }
      this.answer = answer;
      nodes = detailsNodes(answer, {
        goToRow: this.goToRow,
        show: event => {
          this.events.show(event);
          void this.set(event);
        },
        close: () => this.unpin()
      });
    } catch (error) {
      nodes = [h('p', { class: 'wb-warning' }, (error as Error).message)];
    }
    if (this.which === which) {
      this.region.replaceChildren(...nodes);
      this.events.changed();
    }
  }

  /** False if there was none. */
  unpin(): boolean {
    if (this.which === null) {
      return false;
    }
    this.which = null;
    this.answer = null;
    this.region.replaceChildren();
    this.events.changed();
    return true;
  }

  private which: Which | null = null;
  private answer: TimelineDetails | null = null;
}
