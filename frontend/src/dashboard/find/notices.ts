/** What GPUs told by themselves, and cells that ran out of memory. */

import { notebookName } from '../../notebook/bands';
import { h } from '../../core/dom';
import { clip, when, NONE, text } from '../../core/format';
import type {
  Device,
  DeviceHolders,
  Event,
  PostMortem
} from '../../shapes/protocol';
import type { Stream } from '../../core/page_stream';
import { deviceLabel } from '../../core/words';
import type { Content } from '../parts/content';
import { card } from '../parts/content';
import { table } from '../../core/table';
import { trans } from '../../core/translation';

/** More would push the charts out of sight. */
const MOST_SHOWN = 3;

export class Notices {
  readonly node = h('section', {
    class: 'wb-notices',
    role: 'log',
    'aria-label': trans.__('Notices')
  });

  constructor(
    private readonly stream: Stream,
    private readonly open: (content: Content) => void
  ) {
    this.update();
  }

  /** Write what was told, unless it is written. */
  update(): void {
    const { store, statements } = this.stream;
    const notices = [
      ...statements.events().map(event => ({
        atMs: event.time_ms,
        node: () => eventNotice(event, store.devices)
      })),
      ...statements.postMortems().map(postMortem => ({
        atMs: postMortem.time_ms,
        node: () => this.postMortem(postMortem)
      }))
    ]
      .filter(({ atMs }) => atMs > this.dismissedMs)
      .sort((one, other) => other.atMs - one.atMs);
    const { keeping } = statements;
    const stopped = keeping?.state === 'stopped' ? keeping.message : '';
    const key = `${notices.map(({ atMs }) => atMs).join()} ${stopped}`;
    if (key === this.shown) {
      return;
    }
    this.shown = key;
    const more = notices.length - MOST_SHOWN;
    const dismiss = () => {
      this.dismissedMs = notices[0]?.atMs ?? 0;
      this.update();
    };
    this.node.replaceChildren(
      ...(stopped === '' ? [] : [keepingNotice(stopped)]),
      ...notices.slice(0, MOST_SHOWN).map(({ node }) => node()),
      ...(notices.length === 0
        ? []
        : [
            h(
              'p',
              { class: 'wb-note' },
              more > 0 ? `and ${more} earlier ` : '',
              h(
                'button',
                { class: 'wb-button', click: dismiss },
                trans.__('Dismiss')
              )
            )
          ])
    );
  }

  private postMortem(postMortem: PostMortem): HTMLElement {
    const { device, notebook, sentence, time_ms: atMs } = postMortem;
    const where = name(device, this.stream.store.devices);
    const whose =
      notebook === null ? trans.__('A kernel') : notebookName(notebook);
    return h(
      'article',
      { class: 'wb-notice', 'data-severity': 'warning' },
      h(
        'strong',
        {},
        trans.__('%1 %2 ran out of memory on %3.', when(atMs), whose, where)
      ),
      ' ',
      clip(sentence, 500),
      ' ',
      h(
        'button',
        {
          class: 'wb-button',
          click: () =>
            this.open(postMortemContent(postMortem, this.stream.store.devices))
        },
        trans.__('Who held what')
      )
    );
  }

  private shown = '';
  private dismissedMs = -Infinity;
}

/** Nothing is kept any more; live goes on. */
function keepingNotice(why: string): HTMLElement {
  return h(
    'article',
    { class: 'wb-notice', 'data-severity': 'warning' },
    h(
      'strong',
      {},
      trans.__('History is not kept on disk now; the live charts go on.')
    ),
    ' ',
    clip(why, 500)
  );
}

function eventNotice(event: Event, devices: readonly Device[]): HTMLElement {
  const where = name(event.device, devices);
  // the number is what people search for
  const number = event.kind === 'xid' ? `XID ${event.code ?? '?'}: ` : '';
  return h(
    'article',
    { class: 'wb-notice', 'data-severity': event.severity },
    h(
      'strong',
      {},
      `${when(event.time_ms)} ${where}: ${number}${clip(event.title, 120)}.`
    ),
    ' ',
    clip(event.meaning, 400),
    ' ',
    h('em', {}, clip(event.remedy, 400))
  );
}

/** The card of a cell that ran out of memory. */
export function postMortemContent(
  postMortem: PostMortem,
  devices: readonly Device[]
): Content {
  const { asked_bytes: requestBytes, holders } = postMortem;
  const where = name(postMortem.device, devices);
  return card(
    trans.__('Out of memory on %1 at %2', where, when(postMortem.time_ms)),
    h('p', {}, clip(postMortem.sentence, 1000)),
    h(
      'p',
      { class: 'wb-note' },
      requestBytes === null
        ? trans.__('How much was asked for is unknown.')
        : trans.__('Asked for: %1.', text(requestBytes, 'bytes'))
    ),
    ...(holders === null
      ? [
          h(
            'p',
            { class: 'wb-missing' },
            trans.__('Who held memory then is unknown.')
          )
        ]
      : holderTable(holders))
  );
}

function holderTable({
  holders,
  unattributed_bytes: rest,
  notes
}: DeviceHolders): Node[] {
  const rows = holders.map(holder => [
    clip(holder.name, 90),
    text(holder.used_bytes, 'bytes'),
    text(holder.allocated_bytes, 'bytes'),
    text(holder.reserved_bytes, 'bytes'),
    holder.execution_state === null ? NONE : clip(holder.execution_state, 20)
  ]);
  return [
    table(
      trans.__('Who held its memory then'),
      [
        trans.__('Who'),
        trans.__('Used'),
        trans.__('torch allocated'),
        trans.__('torch reserved'),
        trans.__('Kernel')
      ],
      rest === null
        ? rows
        : [
            ...rows,
            [trans.__('Nobody that is listed'), text(rest, 'bytes'), '', '', '']
          ]
    ),
    ...notes.map(note => h('p', { class: 'wb-note' }, clip(note, 300)))
  ];
}

function name(device: string | null, devices: readonly Device[]): string {
  const match = devices.find(({ id }) => id === device);
  return match === undefined
    ? clip(device ?? trans.__('a GPU'), 60)
    : deviceLabel(match, devices);
}
