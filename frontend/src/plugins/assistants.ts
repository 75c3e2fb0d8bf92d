/** What assistants ask for: put to the person, and done once that is allowed. */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { Status } from '../core/connection';
import type { Stream } from '../core/page_stream';
import { clip } from '../core/format';
import { trans } from '../core/translation';
import type { Target } from '../notebook/cell_below';
import {
  CannotRun,
  loadExtension,
  plainSource,
  profileBelow,
  replaceSource,
  runAbove,
  targetOf
} from '../notebook/cell_below';
import type { Consent, Question } from '../notebook/consent';
import { ConsentDialog } from '../notebook/consent';
import type {
  ActAnswer,
  ActRequest,
  CellReport,
  ServerMessage
} from '../shapes/protocol';
import { IWarpbook } from './tokens';

const MOST_WORDS = 500;
const NOTICE_MS = 10_000;

export const assistantsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'warpbook:assistants',
  description: 'Asks the person before an assistant changes or runs something.',
  autoStart: true,
  requires: [IWarpbook, INotebookTracker],
  activate: (
    _app: JupyterFrontEnd,
    { stream }: IWarpbook,
    notebooks: INotebookTracker
  ) => {
    stream.connection.listen(new Assistants(stream, notebooks));
  }
};

/** What came of an act, for the assistant. */
type Told = Omit<ActAnswer, 'type' | 'id'>;

class Assistants {
  constructor(
    private readonly stream: Stream,
    private readonly notebooks: INotebookTracker
  ) {}

  message(message: ServerMessage): void {
    if (message.type === 'act_closed') {
      this.open.get(message.id)?.();
      this.open.delete(message.id);
    } else if (message.type === 'act_request') {
      void this.serve(message);
    }
  }

  /** The server has to hear again, on a new connection, who shows what. */
  status({ phase }: Status): void {
    if (phase === 'open') {
      this.open.forEach((_, id) => this.say(id, { state: 'shown' }));
    }
  }

  private async serve(request: ActRequest): Promise<void> {
    const { id } = request;
    const target = targetOf(this.notebooks, request.kernel_id, request.cell_id);
    const question = questionOf(request, target);
    if (question === null || this.open.has(id)) {
      return;
    }
    this.open.set(id, () => undefined);
    this.say(id, { state: 'shown' });
    const about = target?.panel ?? request.lab;
    const isStanding = question.always !== null && this.standing.has(about);
    const consent = isStanding ? 'always' : await this.ask(id, question);
    if (!this.open.has(id)) {
      return;
    }
    if (consent === 'refused') {
      this.end(id, { state: 'refused' });
      return;
    }
    if (consent === 'always' && !isStanding) {
      this.standing.add(about);
      target?.panel.disposed.connect(() => this.standing.delete(about));
    }
    this.say(id, { state: 'allowed' });
    const told =
      target === null
        ? null
        : await this.done(request, target, question.text, isStanding);
    if (isStanding && (target === null || told !== null)) {
      this.notify(question.title, told?.words ?? '', about);
    }
    if (told !== null && this.open.has(id)) {
      this.end(id, told);
    }
  }

  private async done(
    request: ActRequest,
    target: Target,
    source: string,
    isStanding: boolean
  ): Promise<Told | null> {
    const { id, act, change } = request;
    const options =
      act === 'profile_cell'
        ? ''
        : `--${act === 'try_change' ? 'try' : 'apply'} ${change}`;
    try {
      await loadExtension(target.panel);
      if (!this.open.has(id)) {
        // another page does it, or it came too late
        return null;
      }
      if (target.cell.isDisposed || plainSource(target.cell) !== source) {
        throw new CannotRun(trans.__('The cell was edited meanwhile.'));
      }
      const report = await profileBelow(
        target,
        source,
        options,
        this.stream.statements
      );
      const applied =
        act === 'apply_change'
          ? await this.applied(request, target, report, source, isStanding)
          : { is_applied: false, words: '' };
      return {
        ...applied,
        state: 'done',
        report: report.id,
        words: clip(applied.words, MOST_WORDS)
      };
    } catch (error) {
      if (!(error instanceof CannotRun)) {
        console.warn('warpbook: what an assistant asked for failed', error);
      }
      return {
        state: 'failed',
        words: clip((error as Error).message, MOST_WORDS)
      };
    }
  }

  /** Replace the cell's text, if the edit was better and the person wants it. */
  private async applied(
    { id }: ActRequest,
    target: Target,
    { profile }: CellReport,
    source: string,
    isStanding: boolean
  ): Promise<{ is_applied: boolean; words: string }> {
    const kept = (words: string) => ({ is_applied: false, words });
    const { edited, trials } = profile;
    const trial = trials.at(-1);
    if (edited === null || edited.code === '') {
      return kept(trans.__('Not applied. %1', edited?.sentence ?? ''));
    }
    const { sentence, code, once } = edited;
    const diff = changedLines(source, code);
    const difference = trial?.difference;
    if (
      trial?.outcome !== 'faster' ||
      !difference ||
      difference.differs ||
      difference.compared === 0
    ) {
      return kept(trans.__('Not applied. %1', sentence));
    }
    const isWanted =
      isStanding ||
      (await this.ask(id, {
        title: trans.__('Replace the cell by its edited form?'),
        words: [
          sentence,
          once === ''
            ? trans.__('Ctrl+Z in the cell brings the old text back.')
            : trans.__(
                'A new cell above it, which runs at once, compiles what it calls. Ctrl+Z in the cell brings the old text back.'
              )
        ],
        text: once === '' ? diff : `${once}\n\n${diff}`,
        label: trans.__('Edit'),
        isDiff: true,
        allow: trans.__('Replace the cell'),
        always: null,
        refuse: trans.__('Keep the cell')
      })) === 'once';
    if (!isWanted || !this.open.has(id)) {
      return kept(
        trans.__('Not applied: the person keeps the cell. %1', sentence)
      );
    }
    if (target.cell.isDisposed || plainSource(target.cell) !== source) {
      return kept(trans.__('Not applied: the cell was edited meanwhile.'));
    }
    replaceSource(target.cell, code);
    const failure = once === '' ? '' : await runAbove(target, once);
    return {
      is_applied: true,
      words:
        failure === ''
          ? trans.__('Applied. %1', sentence)
          : trans.__('Applied, but the cell above it failed: %1', failure)
    };
  }

  private async ask(id: string, question: Question): Promise<Consent> {
    const dialog = new ConsentDialog(question);
    this.open.set(id, () => dialog.close());
    return dialog.ask();
  }

  /** Tell the person of what nobody asked them about. */
  private notify(title: string, words: string, about: object | string): void {
    Notification.info(`${title} ${words}`.trim(), {
      autoClose: NOTICE_MS,
      actions: [
        {
          label: trans.__('Ask me again'),
          callback: () => this.standing.delete(about)
        }
      ]
    });
  }

  private end(id: string, told: Told): void {
    this.open.delete(id);
    this.say(id, told);
  }

  private say(id: string, told: Told): void {
    this.stream.connection.answer({ type: 'act_answer', id, ...told });
  }

  /** By id, the requests that somebody waits for, and what closes their dialog. */
  private readonly open = new Map<string, () => void>();
  /** Notebooks and labs of which the person asks not to be asked. */
  private readonly standing = new Set<object | string>();
}

/** The lines that differ, of the very texts: a kernel's diff may show others. */
function changedLines(before: string, after: string): string {
  const old = before.split('\n');
  const now = after.split('\n');
  const most = Math.min(old.length, now.length);
  let first = 0;
  while (first < most && old[first] === now[first]) {
    first += 1;
  }
  let last = 0;
  while (last < most - first && old.at(-1 - last) === now.at(-1 - last)) {
    last += 1;
  }
  return [
    ...old.slice(first, old.length - last).map(line => `-${line}`),
    ...now.slice(first, now.length - last).map(line => `+${line}`)
  ].join('\n');
}

/** What is asked, in words; null where this page has nothing to do with it. */
function questionOf(
  request: ActRequest,
  target: Target | null
): Question | null {
  const { assistant, act, change, lab, source } = request;
  const who =
    assistant === ''
      ? trans.__('An assistant asks for it.')
      : trans.__('An assistant that calls itself “%1” asks for it.', assistant);
  const common = {
    isDiff: false,
    allow: trans.__('Allow once'),
    refuse: trans.__('Refuse')
  };
  if (act === 'lab_check' || act === 'lab_submit') {
    const isCheck = act === 'lab_check';
    return {
      ...common,
      title: isCheck
        ? trans.__('Check this source of the lab “%1”?', lab)
        : trans.__('Hand this source in for the lab “%1”?', lab),
      words: [
        who,
        isCheck
          ? trans.__(
              'It is run in the sandbox against the cases that the lab shows. Nothing is kept, and no file is changed.'
            )
          : trans.__(
              'It is handed in as yours and counts as an attempt. The assistant is told what the judge says.'
            )
      ],
      text: source,
      label: trans.__('Source'),
      always: isCheck ? trans.__('Allow checks of this lab') : null
    };
  }
  if (target === null) {
    return null;
  }
  const name = clip(target.panel.title.label, 60);
  const notebook = {
    ...common,
    text: plainSource(target.cell),
    label: trans.__('Cell'),
    always: trans.__('Allow for this notebook')
  };
  const standing = trans.__(
    '“Allow for this notebook” also allows later profiles, trials and edits of its cells, until it is closed.'
  );
  const runs = trans.__(
    'The cell runs once more, in a cell below it, under the profiler: what it changes or writes, it changes or writes again. The assistant gets the report.'
  );
  switch (act) {
    case 'profile_cell':
      return {
        ...notebook,
        title: trans.__('Profile a cell of %1?', name),
        words: [who, runs, standing]
      };
    case 'try_change':
      return {
        ...notebook,
        title: trans.__('Try the change %1 on a cell of %2?', change, name),
        words: [
          who,
          runs,
          trans.__(
            'Then it runs with and without the change on copies of its values, to measure what that gains. The cell stays as it is.'
          ),
          standing
        ]
      };
    case 'apply_change':
      return {
        ...notebook,
        title: trans.__('Apply the change %1 to a cell of %2?', change, name),
        words: [
          who,
          runs,
          trans.__(
            'Then it runs with and without the edit on copies of its values. If it is faster with equal results, you are shown the edit before the cell is replaced.'
          ),
          standing
        ]
      };
    default:
      // of a newer server
      return null;
  }
}
