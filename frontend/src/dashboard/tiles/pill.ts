/** The kind of a live verdict: the last one stays until another is known. */

import { h, setText } from '../../core/dom';
import { when } from '../../core/format';
import { trans } from '../../core/translation';
import { verdictName } from '../../core/words';
import type { Verdict } from '../../shapes/protocol';

export class Pill {
  readonly node = h('span', { class: 'wb-pill', hidden: '' });

  /** Write what is known now; `unit` is of a view that has room for it. */
  write(verdict: Verdict | null, unit = verdict?.unit ?? null): void {
    this.node.hidden = verdict === null;
    this.node.dataset['kind'] = verdict?.kind ?? '';
    const name = verdict === null ? '' : verdictName(verdict.kind, unit);
    setText(
      this.node,
      verdict?.is_changing ? trans.__('%1, changing…', name) : name
    );
  }
}

/** Since when it is seen; '' where that is not known. */
export function sinceWords(verdict: Verdict | null): string {
  const since = verdict?.since_ms ?? null;
  return since === null ? '' : trans.__('since %1', when(since));
}
