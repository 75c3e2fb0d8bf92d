/** "Who holds memory": for each GPU the kernels, programs and other users. */

import { notebookName } from '../notebook/bands';
import { h, setText } from '../core/dom';
import { clip, text } from '../core/format';
import type { Device, Holder } from '../shapes/protocol';
import type { Stream } from '../core/page_stream';
import { deviceLabel } from '../core/words';
import type { Row } from './keyed_list';
import { KeyedList } from './keyed_list';
import type { Kernels } from './kernels';
import { trans } from '../core/translation';

/** More holders than this share one line. */
const MOST_HOLDERS = 30;

/** The memory of one GPU. */
export class HoldersOfDevice {
  readonly node: HTMLElement;

  constructor(
    readonly device: Device,
    private readonly stream: Stream,
    kernels: Kernels
  ) {
    const list = h('ul', { class: 'wb-list' });
    this.rows = new KeyedList<Holder>(
      list,
      holder => holder.kernel_id ?? `${holder.name} ${holder.pids.join()}`,
      holder => new HolderRow(holder, kernels)
    );
    this.node = h(
      'li',
      {},
      h('h4', {}, deviceLabel(device, stream.store.devices)),
      list,
      this.rest,
      this.notes
    );
  }

  /** Write what is known now. */
  update(): void {
    const held = this.stream.statements.holders(this.device);
    const holders = held?.holders ?? [];
    this.rows.show(holders.slice(0, MOST_HOLDERS));
    setText(this.rest, held === null ? this.unknown() : rest(held));
    this.rest.hidden = this.rest.textContent === '';
    const notes = (held?.notes ?? []).map(note => clip(note, 300));
    if (this.notes.dataset['notes'] !== notes.join('\n')) {
      this.notes.dataset['notes'] = notes.join('\n');
      this.notes.replaceChildren(...notes.map(note => h('li', {}, note)));
    }
    this.notes.hidden = notes.length === 0;
  }

  private unknown(): string {
    return this.device.origin === 'replay'
      ? trans.__('A recording does not tell who held its memory.')
      : trans.__('Not known now.');
  }

  private readonly rows: KeyedList<Holder>;
  private readonly rest = h('p', { class: 'wb-note' });
  private readonly notes = h('ul', { class: 'wb-list wb-note', hidden: '' });
}

/** Say what no row says. */
function rest(held: {
  readonly holders: readonly Holder[];
  readonly unattributed_bytes: number | null;
  readonly notes: readonly string[];
}): string {
  const words: string[] = [];
  const more = held.holders.length - MOST_HOLDERS;
  if (more > 0) {
    words.push(trans.__('And %1 more.', more));
  }
  if (held.unattributed_bytes === null) {
    const known = held.holders.length > 0;
    words.push(
      known
        ? trans.__('Whether others hold more is not known.')
        : trans.__('Not known.')
    );
  } else if (held.unattributed_bytes > 0) {
    const bytes = text(held.unattributed_bytes, 'bytes');
    words.push(trans.__('%1 held by processes that are not listed.', bytes));
  } else if (held.holders.length === 0 && held.notes.length === 0) {
    words.push(trans.__('Nobody holds memory.'));
  }
  return words.join(' ');
}

class HolderRow implements Row<Holder> {
  readonly node: HTMLElement;

  constructor(
    private holder: Holder,
    private readonly kernels: Kernels
  ) {
    this.name = h(
      'button',
      { class: 'wb-link', click: () => kernels.open(holder.kernel_id ?? '') },
      ''
    );
    this.restart = h(
      'button',
      {
        class: 'wb-button',
        click: () => {
          if (this.holder.kernel_id !== null) {
            void kernels.restart(this.holder, this.holder.kernel_id);
          }
        }
      },
      trans.__('Restart kernel')
    );
    this.node = h(
      'li',
      { class: 'wb-holder' },
      h('div', { class: 'wb-holder-line' }, this.name, this.plain, this.bytes),
      h('div', { class: 'wb-holder-line' }, this.details, this.restart)
    );
  }

  update(holder: Holder): void {
    this.holder = holder;
    const isKernel = holder.kernel_id !== null;
    const path =
      holder.kernel_id === null ? null : this.kernels.path(holder.kernel_id);
    const name =
      holder.kind === 'kernel'
        ? notebookName(path ?? holder.name)
        : clip(holder.name, 60);
    // what this server does not run can be named, and nothing else
    this.name.hidden = path === null;
    this.plain.hidden = path !== null;
    setText(path === null ? this.plain : this.name, name);
    this.node.title = clip(path ?? holder.name, 300);
    setText(
      this.bytes,
      holder.used_bytes === null ? 'unknown' : text(holder.used_bytes, 'bytes')
    );
    setText(this.details, details(holder));
    const idle = isKernel && holder.execution_state === 'idle';
    this.restart.hidden = !idle || path === null || holder.used_bytes === 0;
    const label = trans.__('Restart kernel of %1', name);
    if (this.restart.getAttribute('aria-label') !== label) {
      this.restart.setAttribute('aria-label', label);
    }
  }

  private readonly name: HTMLButtonElement;
  private readonly plain = h('span', { class: 'wb-holder-name' });
  private readonly bytes = h('span', { class: 'wb-holder-bytes' });
  private readonly details = h('span', { class: 'wb-note' });
  private readonly restart: HTMLButtonElement;
}

/** Say what a holder does and what PyTorch counts in it. */
function details(holder: Holder): string {
  const words: string[] = [];
  if (holder.idle_s !== null) {
    words.push(trans.__('idle for %1', elapsed(holder.idle_s)));
  } else if (holder.execution_state !== null) {
    words.push(clip(holder.execution_state, 20));
  }
  if (holder.allocated_bytes !== null) {
    words.push(trans.__('tensors %1', text(holder.allocated_bytes, 'bytes')));
  }
  if (holder.reserved_bytes !== null) {
    words.push(
      trans.__('PyTorch keeps %1', text(holder.reserved_bytes, 'bytes'))
    );
  }
  if (holder.user !== null) {
    words.push(trans.__('user %1', clip(holder.user, 40)));
  }
  if (holder.kind === 'program' && holder.pids.length > 0) {
    words.push(`PID ${holder.pids.slice(0, 3).join(', ')}`);
  }
  return words.join(' · ');
}

/** A duration as people say it: seconds matter only below a minute. */
export function elapsed(seconds: number): string {
  if (seconds < 60) {
    return `${Math.floor(seconds)}\u00a0s`;
  }
  const minutes = Math.floor(seconds / 60);
  return minutes < 120
    ? `${minutes}\u00a0min`
    : `${Math.floor(minutes / 60)}\u00a0h`;
}
