/** "Why is my cell slow?": profiles a notebook's last cell, or says how to record a script. */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  Clipboard,
  Dialog,
  ICommandPalette,
  Notification,
  showDialog
} from '@jupyterlab/apputils';
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { INotebookTracker, NotebookActions } from '@jupyterlab/notebook';
import { Widget } from '@lumino/widgets';
import { h, setText } from '../core/dom';
import { clip } from '../core/format';
import { gpuIcon } from '../core/icon';
import { phrase, trans } from '../core/translation';
import { loadExtension, MAGIC } from '../notebook/cell_below';
import { CATEGORY, WHY_SLOW } from './tokens';

/** What a script needs to write a trace of four of its steps, which is enough to compare two runs. */
const RECORDER = `from torch.profiler import profile, schedule, tensorboard_trace_handler

with profile(
    schedule=schedule(wait=5, warmup=2, active=4, repeat=1),
    on_trace_ready=tensorboard_trace_handler("traces"),
    record_shapes=True,
) as profiler:
    for batch in loader:
        train(batch)  # your step
        profiler.step()
`;

/** The last cell that ran in an open notebook that has a kernel. */
interface LastCell {
  readonly panel: NotebookPanel;
  readonly index: number;
  readonly source: string;
}

export const profileCellPlugin: JupyterFrontEndPlugin<void> = {
  id: 'warpbook:profile-cell',
  description: 'Profiles the last cell of a notebook.',
  autoStart: true,
  optional: [INotebookTracker, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    notebooks: INotebookTracker | null,
    palette: ICommandPalette | null
  ) => {
    app.commands.addCommand(WHY_SLOW, {
      label: trans.__('Why Is My Cell Slow?'),
      caption: trans.__(
        'Run a cell under the profiler: what holds it back, and what to change'
      ),
      icon: gpuIcon,
      execute: async () => {
        const cells = notebooks === null ? [] : lastCells(notebooks);
        const body = new Body(cells);
        const { button, value } = await showDialog({
          title: trans.__('Why is my cell slow?'),
          body,
          buttons: [
            Dialog.cancelButton(),
            ...(cells.length === 0
              ? []
              : [Dialog.okButton({ label: trans.__('Profile this cell') })])
          ]
        });
        const cell = cells[value ?? -1];
        if (button.accept && cell !== undefined) {
          app.shell.activateById(cell.panel.id);
          await profile(cell);
        }
      }
    });
    palette?.addItem({ command: WHY_SLOW, category: CATEGORY });
  }
};

/** The last cell of each notebook, of the one that was used last first. */
function lastCells(notebooks: INotebookTracker): LastCell[] {
  const found: LastCell[] = [];
  notebooks.forEach(panel => {
    const ran = [...(panel.content.model?.cells ?? [])].map((cell, index) => ({
      panel,
      index,
      source: cell.sharedModel.getSource(),
      count:
        cell.type === 'code'
          ? ((cell as ICodeCellModel).executionCount ?? 0)
          : 0
    }));
    const last = ran.reduce<(typeof ran)[number] | null>(
      (best, cell) => (cell.count > (best?.count ?? 0) ? cell : best),
      null
    );
    const hasKernel = Boolean(panel.sessionContext.session?.kernel);
    if (hasKernel && last !== null) {
      found[panel === notebooks.currentWidget ? 'unshift' : 'push'](last);
    }
  });
  return found;
}

/** Run a cell's source in a new cell below it, under the profiler. */
async function profile({ panel, index, source }: LastCell): Promise<void> {
  const { content, sessionContext } = panel;
  try {
    await loadExtension(panel);
  } catch (error) {
    Notification.error((error as Error).message);
    return;
  }
  const isProfiled = source.startsWith(MAGIC);
  if (!isProfiled) {
    content.model?.sharedModel.insertCell(index + 1, {
      cell_type: 'code',
      source: `${MAGIC}\n${source}`
    });
  }
  content.deselectAll();
  content.activeCellIndex = isProfiled ? index : index + 1;
  await NotebookActions.run(content, sessionContext);
}

/** Which cell is profiled, and what records a script. */
class Body extends Widget implements Dialog.IBodyWidget<number> {
  constructor(cells: readonly LastCell[]) {
    const select = h(
      'select',
      { class: 'jp-mod-styled', 'aria-label': trans.__('Cell') },
      ...cells.map(({ panel, source }, at) =>
        h('option', { value: `${at}` }, named(panel, source))
      )
    );
    const said = h('span', { role: 'status' });
    super({
      node: h(
        'div',
        { class: 'wb-why-slow' },
        h('h3', {}, trans.__('In a notebook')),
        ...(cells.length === 0
          ? [
              h(
                'p',
                {},
                ...phrase(
                  'No open notebook has run a cell. Open one, run the slow cell, and come back; ' +
                    'or put %1 on its first line.',
                  h('code', {}, MAGIC)
                )
              )
            ]
          : [
              h(
                'p',
                {},
                trans.__(
                  'The cell runs once more, in a new cell below it. Its report names what ' +
                    'holds it back, and what to change.'
                )
              ),
              select
            ]),
        h('h3', {}, trans.__('In a script')),
        h(
          'p',
          {},
          ...phrase(
            'Put this around its loop and run it. Then open the file that it writes in %1 ' +
              'with “Open a Trace”.',
            h('code', {}, 'traces/')
          )
        ),
        h('pre', { tabindex: '0' }, RECORDER),
        h(
          'button',
          {
            type: 'button',
            class: 'jp-mod-styled',
            click: () => {
              Clipboard.copyToSystem(RECORDER);
              setText(said, trans.__('Copied'));
            }
          },
          trans.__('Copy')
        ),
        said
      )
    });
    this.select = select;
  }

  getValue(): number {
    return Number(this.select.value || -1);
  }

  private readonly select: HTMLSelectElement;
}

function named(panel: NotebookPanel, source: string): string {
  const line = source.split('\n').find(words => words.trim() !== '') ?? '';
  return `${clip(panel.title.label, 60)}: ${clip(line.trim(), 60)}`;
}
