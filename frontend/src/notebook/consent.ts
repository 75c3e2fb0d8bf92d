/** Asks the person whether an assistant may do something; only a person can answer. */

import { Dialog } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';
import { h } from '../core/dom';

export type Consent = 'once' | 'always' | 'refused';

export interface Question {
  readonly title: string;
  /** Who asks for what, and what will happen. */
  readonly words: readonly string[];
  /** What it is about: a cell, a source, an edit. */
  readonly text: string;
  readonly label: string;
  readonly isDiff: boolean;
  readonly allow: string;
  /** What "always" is about; null where each time is asked. */
  readonly always: string | null;
  readonly refuse: string;
}

/** Signs that have letters shown in another order than they are run in. */
const REORDERING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export class ConsentDialog {
  constructor(question: Question) {
    const { title, words, text, label, isDiff, allow, always, refuse } =
      question;
    const shown = h(
      'pre',
      {
        class: isDiff ? 'wb-diff' : '',
        tabindex: '0',
        'aria-label': label
      },
      // whole: what is allowed is what was shown
      text.replace(REORDERING, '\ufffd')
    );
    const body = new Widget({
      node: h(
        'div',
        { class: 'wb-consent' },
        ...words.map(sentence => h('p', {}, sentence)),
        shown
      )
    });
    this.answers = [
      ['refused', Dialog.cancelButton({ label: refuse })],
      ...(always === null
        ? []
        : [['always', Dialog.okButton({ label: always })] as const]),
      ['once', Dialog.okButton({ label: allow })]
    ];
    this.dialog = new Dialog<unknown>({
      title,
      body,
      // a key that was meant for the notebook refuses
      defaultButton: 0,
      buttons: this.answers.map(([, button]) => button)
    });
    // what a script sends, such as one that a cell's output brought, is no person's
    for (const kind of ['click', 'keydown']) {
      this.dialog.node.addEventListener(kind, refuseScripts, true);
    }
  }

  /** Show it, after other dialogs; what is closed is refused. */
  async ask(): Promise<Consent> {
    try {
      const { button } = await this.dialog.launch();
      const given = this.answers.find(([, each]) => each === button);
      return given?.[0] ?? 'refused';
    } catch {
      // it was closed
      return 'refused';
    } finally {
      this.dialog.dispose();
    }
  }

  /** Nobody waits for the answer any more. */
  close(): void {
    this.dialog.dispose();
  }

  private readonly dialog: Dialog<unknown>;
  private readonly answers: readonly (readonly [Consent, Dialog.IButton])[];
}

function refuseScripts(event: Event): void {
  if (!event.isTrusted) {
    event.stopImmediatePropagation();
    event.preventDefault();
  }
}
