/** Links of a report, both ways: causes, changes, rows of tables and their slices. */

import { h } from '../../core/dom';
import { clip } from '../../core/format';
import { trans } from '../../core/translation';
import type { ReportView } from '../../shapes/protocol';
import type { Tabs } from '../parts/tabs';

/** Of a report, in their order. */
export const TABS = {
  causes: 'Causes',
  stalls: 'Stalls',
  tables: 'Kernels and operators',
  timeline: 'Timeline',
  figures: 'Figures'
} as const;

/** What a kernel's row calls the link to them. */
const STALLS = 'where its warps wait';
/** More would hide what they stand beside. */
const MOST_LINKS = 3;
const MOST_NAME = 60;
const MOST_TITLE = 400;

export class Links {
  /** Set when they are drawn. */
  tabs: Tabs | null = null;

  /** @param hasSlices - a timeline has them, by their names */
  constructor(
    { causes, changes, sections, stalls }: ReportView,
    readonly hasSlices: boolean
  ) {
    causes.forEach(({ id, label, share }) =>
      this.labels.set(id, `${label} ${share}`)
    );
    changes.forEach(({ id, name }) => this.labels.set(id, name));
    stalls?.kernels.forEach(({ id }) => this.labels.set(id, STALLS));
    for (const { links, rows } of sections.flatMap(({ tables }) => tables)) {
      links.forEach(({ id, slice }, at) => {
        this.labels.set(id, rows[at]?.[0]?.text ?? '');
        if (slice !== '' && !this.rows.has(slice)) {
          this.rows.set(slice, id);
        }
      });
    }
  }

  /**
   * Say where an end of links is.
   * @param reveal - shows it, and gives its element
   */
  add(id: string, tab: string, reveal: () => HTMLElement | undefined): void {
    this.ends.set(id, { tab, reveal });
  }

  /** Buttons behind a word, which go to other ends; nothing where there are none. */
  to(word: string, ids: readonly string[]): Node[] {
    const known = ids.filter(id => this.labels.has(id));
    const more = known.length - MOST_LINKS;
    return known.length === 0
      ? []
      : [
          h(
            'div',
            { class: 'wb-links' },
            `${word}:`,
            ...known.slice(0, MOST_LINKS).map(id => this.button(id)),
            more > 0 ? trans.__('and %1 more', more) : null
          )
        ];
  }

  /** Goes to the first row of a name; null where no table has one. */
  rowOf(slice: string): (() => void) | null {
    const id = this.rows.get(slice);
    return id === undefined ? null : () => this.go(id);
  }

  private button(id: string): HTMLElement {
    const label = this.labels.get(id) ?? '';
    return h(
      'button',
      {
        class: 'wb-link',
        title: clip(label, MOST_TITLE),
        click: () => this.go(id)
      },
      clip(label, MOST_NAME)
    );
  }

  private go(id: string): void {
    const end = this.ends.get(id);
    if (end === undefined) {
      return;
    }
    this.tabs?.open(end.tab);
    const element = end.reveal();
    element?.setAttribute('tabindex', '-1');
    element?.focus();
    element?.scrollIntoView({ block: 'center' });
  }

  private readonly labels = new Map<string, string>();
  private readonly rows = new Map<string, string>();
  private readonly ends = new Map<
    string,
    { tab: string; reveal: () => HTMLElement | undefined }
  >();
}
