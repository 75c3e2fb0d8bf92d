/** Opens a trace: by its path on the server, by upload, dropped on the dashboard. */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  Dialog,
  ICommandPalette,
  showDialog,
  showErrorMessage
} from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import {
  FileBrowserModel,
  FileDialog,
  IDefaultFileBrowser
} from '@jupyterlab/filebrowser';
import { ServerConnection } from '@jupyterlab/services';
import { Widget } from '@lumino/widgets';
import { h } from '../core/dom';
import { text } from '../core/format';
import { gpuIcon } from '../core/icon';
import { trans } from '../core/translation';
import { CATEGORY, DASHBOARD_ID, OPEN_TRACE, TRACE_FACTORY } from './tokens';

const DROPPABLE = 'wb-mod-drop';

export const openTracePlugin: JupyterFrontEndPlugin<void> = {
  id: 'warpbook:open-trace',
  description: 'Opens trace files of the server and of this computer.',
  autoStart: true,
  requires: [IDocumentManager],
  optional: [ICommandPalette, IDefaultFileBrowser],
  activate: (
    app: JupyterFrontEnd,
    documents: IDocumentManager,
    palette: ICommandPalette | null,
    browser: IDefaultFileBrowser | null
  ) => {
    const opener = new TraceOpener(documents, browser);
    app.commands.addCommand(OPEN_TRACE, {
      label: trans.__('Open a Trace'),
      caption: trans.__(
        'The report of a trace file: of this server, or uploaded'
      ),
      icon: gpuIcon,
      execute: ({ path }) =>
        typeof path === 'string' ? opener.open(path) : opener.ask()
    });
    palette?.addItem({ command: OPEN_TRACE, category: CATEGORY });
    acceptFiles(app.shell.node, files => void opener.uploadAll(files));
  }
};

class TraceOpener {
  constructor(
    private readonly documents: IDocumentManager,
    private readonly browser: IDefaultFileBrowser | null
  ) {}

  /** Ask for a path, or for a file of this computer. */
  async ask(): Promise<void> {
    const body = new PathBody();
    const { button, value } = await showDialog({
      title: trans.__('Open a trace'),
      body,
      focusNodeSelector: 'input',
      buttons: [
        Dialog.cancelButton(),
        Dialog.createButton({
          label: trans.__('Upload…'),
          actions: ['upload'],
          accept: true
        }),
        Dialog.createButton({
          label: trans.__('Browse…'),
          actions: ['browse'],
          accept: true
        }),
        Dialog.okButton({ label: trans.__('Open') })
      ],
      defaultButton: 3
    });
    if (!button.accept) {
      return;
    }
    if (button.actions.includes('upload')) {
      chooseFiles(files => void this.uploadAll(files));
    } else if (button.actions.includes('browse') || !value) {
      await this.browse();
    } else {
      await this.open(value);
    }
  }

  /**
   * Open the report of a file, or say why there is none.
   * @param path - in the server's folder, as the file browser has it
   */
  async open(path: string): Promise<void> {
    const local = inFolder(path.trim());
    const { contents } = this.documents.services;
    try {
      const { type } = await contents.get(local, { content: false });
      if (type === 'directory') {
        throw new Error(trans.__('It is a folder: name a file in it.'));
      }
    } catch (error) {
      const isMissing =
        error instanceof ServerConnection.ResponseError &&
        error.response.status === 404;
      await showErrorMessage(
        trans.__('%1 could not be opened', path),
        isMissing
          ? trans.__(
              'There is no such file in the server’s folder (%1). If it is elsewhere, upload it.',
              folder()
            )
          : (error as Error).message
      );
      return;
    }
    this.documents.openOrReveal(local, TRACE_FACTORY);
  }

  /** Upload files to the folder that the file browser shows, and open each. */
  async uploadAll(files: readonly File[]): Promise<void> {
    const model =
      this.browser?.model ?? new FileBrowserModel({ manager: this.documents });
    for (const file of files) {
      if (file.size > mostBytes()) {
        await showErrorMessage(
          trans.__('%1 is too large', file.name),
          trans.__(
            'It has %1, and this server reads traces of at most %2 (WarpbookApp.trace_megabytes). Record fewer steps, or use warpbook analyze in a terminal.',
            text(file.size, 'bytes'),
            text(mostBytes(), 'bytes')
          )
        );
        continue;
      }
      try {
        const { path } = await model.upload(file);
        await this.open(path);
      } catch (error) {
        // declining to overwrite a file rejects with a string
        const words = error instanceof Error ? error.message : String(error);
        await showErrorMessage(
          trans.__('%1 is not uploaded', file.name),
          trans.__(
            '%1. Choose a folder in the file browser that you may write to, or copy the file to the server and open it by its path.',
            words
          )
        );
      }
    }
    if (this.browser === null) {
      model.dispose();
    }
  }

  private async browse(): Promise<void> {
    const { value } = await FileDialog.getOpenFiles({
      manager: this.documents,
      title: trans.__('Open a trace')
    });
    const chosen = value?.find(({ type }) => type !== 'directory');
    if (chosen !== undefined) {
      await this.open(chosen.path);
    }
  }
}

/** A field for a path. */
class PathBody extends Widget implements Dialog.IBodyWidget {
  constructor() {
    const input = h('input', {
      type: 'text',
      class: 'jp-mod-styled',
      placeholder: trans.__('runs/monday/trace.json.gz')
    });
    const words = trans.__(
      'Path of a file in the server’s folder (%1)',
      folder()
    );
    super({
      node: h(
        'div',
        { class: 'wb-open-trace' },
        h('label', {}, words, input),
        Number.isFinite(mostBytes())
          ? h(
              'p',
              { class: 'wb-note' },
              trans.__('At most %1.', text(mostBytes(), 'bytes'))
            )
          : null
      )
    });
    this.input = input;
  }

  getValue(): string {
    return this.input.value.trim();
  }

  private readonly input: HTMLInputElement;
}

function folder(): string {
  return PageConfig.getOption('serverRoot') || '/';
}

/** Of a trace that the server reads. */
function mostBytes(): number {
  return Number(PageConfig.getOption('warpbookTraceBytes') || Infinity);
}

/** Take the server's folder off a path that begins with it, however it is written. */
function inFolder(path: string): string {
  const roots = [PageConfig.getOption('warpbookRoot'), folder()]
    .filter(Boolean)
    .map(root => `${root.replace(/\/$/, '')}/`);
  const root = roots.find(one => path.startsWith(one)) ?? '';
  return path.slice(root.length);
}

function chooseFiles(take: (files: File[]) => void): void {
  const input = h('input', {
    type: 'file',
    multiple: '',
    change: () => take([...(input.files ?? [])])
  });
  input.click();
}

/** Take files that are dropped on the dashboard, wherever it is. */
function acceptFiles(shell: HTMLElement, take: (files: File[]) => void): void {
  const dashboard = ({ target, dataTransfer }: DragEvent) =>
    target instanceof Element && dataTransfer?.types.includes('Files') === true
      ? target.closest(`#${DASHBOARD_ID}`)
      : null;
  shell.addEventListener('dragover', event => {
    const over = dashboard(event);
    if (over !== null) {
      // without it the browser itself opens the file
      event.preventDefault();
      over.classList.add(DROPPABLE);
    }
  });
  shell.addEventListener('dragleave', event =>
    dashboard(event)?.classList.remove(DROPPABLE)
  );
  shell.addEventListener('drop', event => {
    const over = dashboard(event);
    if (over !== null) {
      event.preventDefault();
      over.classList.remove(DROPPABLE);
      take([...(event.dataTransfer?.files ?? [])]);
    }
  });
}
