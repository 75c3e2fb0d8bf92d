/** Whether a device is measured now, played back, awaited or gone: beside its name. */

import { h, setText } from '../../core/dom';
import type { Device } from '../../shapes/protocol';
import type { Latest } from '../../core/store';
import { isUnread } from '../../core/words';
import { mark, trans } from '../../core/translation';

export class Badge {
  readonly node = h('span', {});

  constructor(private readonly device: Pick<Device, 'origin'>) {}

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
    if (isUnread(latest)) {
      return ['waiting', trans.__('WAITING')];
    }
    return latest.state === 'ok'
      ? ['live', trans.__('LIVE')]
      : ['wrong', trans.__(WRONG[latest.state] ?? mark('NOT READ'))];
  }
}

const WRONG: Partial<Record<Latest['state'], string>> = {
  lost: mark('LOST'),
  stale: mark('STALE')
};
