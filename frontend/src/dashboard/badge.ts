/** Whether a device is measured now, played back, or gone: beside each name of one. */

import { h, setText } from '../dom';
import type { Device } from '../protocol';
import type { Latest } from '../store';
import { isUnread } from '../words';

export class Badge {
  readonly node = h('span', {});

  constructor(private readonly device: Device) {}

  /** Write how the device is now. */
  update(latest: Latest): void {
    const [kind, words] = this.told(latest);
    this.node.className = `wb-badge wb-badge-${kind}`;
    setText(this.node, words);
  }

  private told(latest: Latest): [string, string] {
    if (this.device.origin === 'replay') {
      return ['replay', 'REPLAY'];
    }
    return latest.state === 'ok' || isUnread(latest)
      ? ['live', 'LIVE']
      : ['wrong', WRONG[latest.state] ?? 'NOT READ'];
  }
}

const WRONG: Partial<Record<Latest['state'], string>> = {
  lost: 'LOST',
  stale: 'STALE'
};
