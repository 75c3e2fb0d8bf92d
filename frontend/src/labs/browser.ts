/** All labs by track, in a tab of the main area. */

import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import { h, setText } from '../core/dom';
import { clip } from '../core/format';
import type {
  CourseList,
  LabEntry,
  LabList,
  TextEntry
} from '../shapes/protocol';
import { courseSection } from './course';
import { fits, LabFilters } from './filters';
import { labRow, problem } from './row';
import { PLACEMENT, Quiz } from './quiz';
import type { LabsServer } from './server';
import { textSections } from './texts';
import { trans } from '../core/translation';

/** A row of a lab that is not filtered out; texts are not filtered. */
const SHOWN_LAB = '.wb-lab:not([hidden]):not([data-text])';

export class LabBrowser extends Widget {
  /**
   * @param server - of this page
   * @param openNotebook - shows the notebook at a path
   */
  constructor(
    private readonly server: LabsServer,
    private readonly openNotebook: (path: string) => Promise<unknown>
  ) {
    super();
    this.quiz = new Quiz(
      server,
      (id, button) => void this.open({ id }, button),
      () => this.showLists()
    );
    this.addClass('wb-root');
    this.addClass('wb-labs');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('GPU labs'));
    this.node.append(
      h(
        'header',
        { class: 'wb-labs-top' },
        h('h2', {}, trans.__('GPU labs')),
        this.here,
        h(
          'button',
          { class: 'wb-button', click: () => this.ask(PLACEMENT) },
          trans.__('Quiz: where to begin')
        ),
        h(
          'button',
          { class: 'wb-button', click: () => void this.refresh() },
          trans.__('Refresh')
        )
      ),
      this.said,
      this.quiz.node,
      this.lists
    );
    this.showLists();
  }

  /** Show a quiz in place of the labs. */
  ask(quiz: string): void {
    this.lists.hidden = true;
    this.quiz.node.hidden = false;
    void this.quiz.ask(quiz);
  }

  /** Ask the server again; what is unfolded closes. */
  async refresh(): Promise<void> {
    try {
      const list = await this.server.list();
      this.write(list);
      const courses = await this.server.courses();
      this.writeCourses(courses, list.labs);
      this.writeNext(courses.next_lab ?? list.next_lab);
    } catch (error) {
      this.said.replaceChildren(problem(error));
    }
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    void this.refresh();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    void this.refresh();
  }

  protected override onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    this.node.querySelector('button')?.focus();
  }

  private write(list: LabList): void {
    const { labs, compiler, gpus, notice, problems } = list;
    const devices =
      gpus === 0 ? trans.__('no GPU') : trans._n('%1 GPU', '%1 GPUs', gpus);
    setText(this.notice, clip(notice, 400));
    this.notice.hidden = notice === '';
    setText(
      this.here,
      trans.__(
        'Here: %1, %2',
        compiler === null
          ? trans.__('no compiler')
          : `NVRTC ${clip(compiler, 20)}`,
        devices
      )
    );
    this.said.replaceChildren(
      ...problems.slice(0, 20).map(words => problem(new Error(words)))
    );
    this.writeTexts(list.texts);
    // an unchanged list stays: a person may be reading in it
    const state = JSON.stringify([labs, list.texts]);
    if (state === this.state) {
      return;
    }
    this.state = state;
    const tracks = [...new Set(labs.map(({ track }) => track))];
    this.rows.clear();
    this.labs = labs;
    this.tracks.replaceChildren(...tracks.map(track => this.track(track)));
    this.writeNext(list.next_lab);
    this.filters.offer(this.labs);
    this.filter();
  }

  /** Say which lab comes next, with a button that opens it. */
  private writeNext(id: string | null): void {
    const lab = this.labs.find(candidate => candidate.id === id);
    for (const row of this.rows.values()) {
      row.removeAttribute('data-next');
    }
    this.next.hidden = lab === undefined;
    if (lab === undefined) {
      return;
    }
    this.rows.get(lab.id)?.setAttribute('data-next', '');
    const name = `${lab.number} ${clip(lab.title, 100)}`;
    this.next.replaceChildren(
      h('p', {}, trans.__('Next: %1, about %2 minutes', name, lab.minutes)),
      h(
        'button',
        {
          class: 'wb-button',
          'aria-label': trans.__('Open the next lab, %1', name),
          click: event =>
            void this.open(lab, event.currentTarget as HTMLButtonElement)
        },
        trans.__('Open')
      )
    );
  }

  /** Show the labs that are chosen; what is unfolded in a row stays. */
  private filter(): void {
    const chosen = this.filters.value;
    let shown = 0;
    for (const lab of this.labs) {
      const row = this.rows.get(lab.id);
      if (row !== undefined) {
        row.hidden = !fits(lab, chosen);
        shown += row.hidden ? 0 : 1;
      }
    }
    for (const section of this.tracks.querySelectorAll('section')) {
      section.hidden = section.querySelector(SHOWN_LAB) === null;
    }
    this.filters.tell(shown, this.labs.length);
  }

  private writeTexts(texts: readonly TextEntry[]): void {
    // focus stays where it is in an unchanged list
    const state = JSON.stringify(texts);
    if (state !== this.textsState) {
      this.textsState = state;
      this.texts.replaceChildren(
        ...textSections(
          texts,
          (text, button) => void this.open(text, button),
          ({ id }) => this.ask(id)
        )
      );
    }
  }

  private writeCourses(list: CourseList, labs: readonly LabEntry[]): void {
    if (list.problem !== '') {
      this.courses.replaceChildren(problem(new Error(list.problem)));
      return;
    }
    const byId = new Map(labs.map(lab => [lab.id, lab]));
    this.courses.replaceChildren(
      ...list.courses.map(course =>
        courseSection(course, id => {
          const lab = byId.get(id);
          return lab === undefined
            ? null
            : button => void this.open(lab, button);
        })
      )
    );
  }

  private track(track: string): HTMLElement {
    const labs = this.labs.filter(lab => lab.track === track);
    const passed = labs.filter(({ progress }) => progress?.state === 'passed');
    return h(
      'section',
      { 'aria-label': trans.__('Track %1', clip(track, 40)) },
      h(
        'h3',
        {},
        clip(track, 200),
        h('span', { class: 'wb-note' }, ` ${passed.length} of ${labs.length}`)
      ),
      h(
        'ul',
        { class: 'wb-list wb-labs-list' },
        ...labs.map(lab => this.row(lab))
      )
    );
  }

  private row(lab: LabEntry): HTMLElement {
    const row = labRow(lab, this.server, button => void this.open(lab, button));
    this.rows.set(lab.id, row);
    return row;
  }

  private showLists(): void {
    this.quiz.node.hidden = true;
    this.lists.hidden = false;
    this.node.querySelector('button')?.focus();
  }

  private async open(
    { id }: Pick<LabEntry | TextEntry, 'id'>,
    button: HTMLButtonElement
  ): Promise<void> {
    if (button.getAttribute('aria-disabled') === 'true') {
      return;
    }
    button.setAttribute('aria-disabled', 'true');
    setText(button, trans.__('Opening…'));
    try {
      const { path } = await this.server.open(id);
      await this.openNotebook(path);
    } catch (error) {
      this.said.replaceChildren(problem(error));
    } finally {
      button.removeAttribute('aria-disabled');
      setText(button, trans.__('Open'));
    }
  }

  private readonly here = h('p', { class: 'wb-note' });
  private readonly said = h('div', { class: 'wb-notices' });
  private readonly notice = h('p', { class: 'wb-labs-notice' });
  private readonly next = h('div', { class: 'wb-labs-next' });
  private readonly filters = new LabFilters(() => this.filter());
  private readonly rows = new Map<string, HTMLElement>();
  private labs: readonly LabEntry[] = [];
  private readonly courses = h('div', { class: 'wb-labs-tracks' });
  private readonly tracks = h('div', { class: 'wb-labs-tracks' });
  private readonly texts = h('div', { class: 'wb-labs-tracks' });
  private readonly lists = h(
    'div',
    { class: 'wb-labs-lists' },
    this.notice,
    this.next,
    this.courses,
    this.filters.node,
    this.tracks,
    this.texts
  );
  private readonly quiz: Quiz;
  private state = '';
  private textsState = '';
}
