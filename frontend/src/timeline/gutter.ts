/** The labels of lanes: each collapses its lane, and pins it to the top. */

import { h } from '../core/dom';
import { clip } from '../core/format';
import type { Lane, LaneStates, Layout } from './lanes';
import { AXIS_PIXELS, laneName, ROW_PIXELS } from './lanes';

const LONGEST_LABEL = 80;

export class Gutter {
  readonly node = h('div', { class: 'wb-timeline-lanes' });
  private readonly collapsed = new Set<string>();
  private readonly pinned = new Set<string>();
  readonly states: LaneStates = {
    collapsed: this.collapsed,
    pinned: this.pinned
  };

  /** @param changed - a lane is shown in another way */
  constructor(private readonly changed: () => void) {}

  /** Put each label beside its lane. */
  place({ lanes, height }: Layout): void {
    this.node.style.height = `${AXIS_PIXELS + height * ROW_PIXELS}px`;
    // the same buttons as long as there are the same lanes: one may have the focus
    const names = lanes.map(laneName).join('\n');
    if (names !== this.names) {
      this.names = names;
      const { activeElement: focused } = document;
      const made = lanes.map(
        lane => this.labels.get(laneName(lane)) ?? this.label(lane)
      );
      this.labels = new Map(
        lanes.map((lane, at) => [laneName(lane), made[at] as HTMLElement])
      );
      this.node.replaceChildren(...made);
      // what is moved on the page loses it
      if (focused instanceof HTMLElement && this.node.contains(focused)) {
        focused.focus();
      }
    }
    lanes.forEach((lane, at) => {
      const label = this.node.children[at] as HTMLElement;
      const next = lanes[at + 1]?.top ?? height;
      label.style.height = `${(next - lane.top) * ROW_PIXELS}px`;
      label.style.top = `${AXIS_PIXELS + lane.top * ROW_PIXELS}px`;
      label.classList.toggle('wb-pinned', lane.isPinned);
      const [name, pin] = label.children;
      name?.setAttribute('aria-expanded', String(!lane.isCollapsed));
      pin?.setAttribute('aria-pressed', String(lane.isPinned));
    });
  }

  private label(lane: Lane): HTMLElement {
    const words = clip(lane.label, LONGEST_LABEL);
    const name = laneName(lane);
    const pin = () => this.toggle(this.pinned, name);
    return h(
      'div',
      {
        class: 'wb-timeline-track',
        keydown: event => {
          const { key, ctrlKey, metaKey, altKey } = event as KeyboardEvent;
          if (key.toLowerCase() === 'p' && !(ctrlKey || metaKey || altKey)) {
            event.stopPropagation();
            pin();
          }
        }
      },
      h(
        'button',
        {
          class: 'wb-timeline-lane',
          title: `${words}: collapse or open`,
          click: () => this.toggle(this.collapsed, name)
        },
        h('span', {}, words)
      ),
      h(
        'button',
        {
          class: 'wb-timeline-pin',
          'aria-label': `Pin ${words} to the top`,
          title: 'Pin to the top (P)',
          click: pin
        },
        '⤒'
      )
    );
  }

  private toggle(lanes: Set<string>, lane: string): void {
    if (!lanes.delete(lane)) {
      lanes.add(lane);
    }
    this.changed();
  }

  private names = '';
  private labels = new Map<string, HTMLElement>();
}
