/** Whether a device is measured now, played back, or gone: beside each name of one. */

import { h, setText } from '../../core/dom';
import type { Device } from '../../shapes/protocol';
import type { Latest } from '../../core/store';
import { isUnread } from '../../core/words';
import { mark, trans } from '../../core/translation';

export class Badge {
  readonly node = h('span', {});

  constructor(private readonly device: Device) {}

  /** Write how the device is now. */
  update(latest: Latest): void {
    const [kind, words] = this.state(latest);
    this.node.className = `wb-badge wb-badge-${kind}`;
    setText(this.node, words);
  }

  private state(latest: Latest): [string, string] {
    if (this.device.origin === 'replay') {
      return ['replay', trans.__('REPLAY')];
    }
    return latest.state === 'ok' || isUnread(latest)
      ? ['live', trans.__('LIVE')]
      : ['wrong', trans.__(WRONG[latest.state] ?? mark('NOT READ'))];
  }
}

const WRONG: Partial<Record<Latest['state'], string>> = {
  lost: mark('LOST'),
  stale: mark('STALE')
};
