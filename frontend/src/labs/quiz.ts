/** A quiz in the lab browser: one question after another, then how each was answered. */

import { h } from '../core/dom';
import { trans } from '../core/translation';
import { flag, optional, record, text } from '../shapes/checks';
import type { AskedQuestion, QuizMark, QuizSheet } from '../shapes/protocol';
import { problem } from './row';
import type { LabsServer } from './server';
import { marked } from './words';

/** The quiz that says with which lab to begin. */
export const PLACEMENT = 'placement';
const UNKNOWN = '?';
const LETTERS = 'abcdefgh';
const MOST_MARK = 2000;

interface Given {
  readonly answer: string;
  /** Null until it was marked. */
  readonly mark: QuizMark | null;
}

const isGiven = record<Given>({
  answer: text,
  mark: optional(record<QuizMark>({ is_right: flag, words: text }))
});

export class Quiz {
  readonly node = h('section', { class: 'wb-quiz' });

  /**
   * @param openLab - opens the lab of an id
   * @param leave - shows the labs again
   */
  constructor(
    private readonly server: LabsServer,
    private readonly openLab: (id: string, button: HTMLButtonElement) => void,
    private readonly leave: () => void
  ) {}

  /** Ask the questions of a quiz, from the first that has no answer. */
  async ask(name: string): Promise<void> {
    this.name = name;
    this.run += 1;
    const { run } = this;
    this.node.replaceChildren();
    try {
      const sheet = await this.server.quiz(name);
      if (run !== this.run) {
        // another quiz was asked for meanwhile
        return;
      }
      this.sheet = sheet;
      this.given = this.load();
      const open = this.given.findIndex(given => given === null);
      if (open < 0) {
        void this.mark();
      } else {
        this.show(open);
      }
    } catch (error) {
      this.node.replaceChildren(problem(error), this.back());
    }
  }

  private show(at: number): void {
    const { questions, title, notice } = this.sheet;
    const question = questions[at];
    if (question === undefined) {
      this.node.replaceChildren(h('p', {}, notice), this.back());
      return;
    }
    const isLast = at === questions.length - 1;
    const answered = this.given.filter(given => given !== null).length;
    this.draw(
      h('h3', {}, title),
      this.progress(
        trans.__('Question %1 of %2', at + 1, questions.length),
        answered,
        trans.__('%1 answered', answered)
      ),
      this.choices(question, at),
      h(
        'div',
        { class: 'wb-quiz-buttons' },
        ...(at === 0
          ? []
          : [button(trans.__('Previous'), () => this.show(at - 1))]),
        isLast
          ? button(trans.__('Finish'), () => void this.mark())
          : button(trans.__('Next'), () => this.show(at + 1)),
        this.back()
      ),
      h('p', { class: 'wb-note' }, notice)
    );
    this.node.querySelector<HTMLElement>('input:checked, input')?.focus();
  }

  private choices(question: AskedQuestion, at: number): HTMLElement {
    const chosen = this.given[at]?.answer;
    const options = [
      ...question.choices.map((words, place) => [LETTERS[place] ?? '', words]),
      [UNKNOWN, trans.__('I don’t know')]
    ] as const;
    return h(
      'fieldset',
      {},
      h('legend', {}, ...marked(question.ask)),
      question.code === '' ? null : h('pre', { tabindex: '0' }, question.code),
      ...options.map(([letter = '', words = '']) =>
        h(
          'label',
          {},
          h('input', {
            type: 'radio',
            name: `wb-quiz-${at}`,
            value: letter,
            ...(letter === chosen ? { checked: '' } : {}),
            change: () => this.choose(at, letter)
          }),
          h('span', { class: 'wb-note' }, letter),
          question.code === '' || letter === UNKNOWN
            ? h('span', {}, ...marked(words))
            : h('code', {}, words)
        )
      )
    );
  }

  private choose(at: number, answer: string): void {
    if (this.given[at]?.answer !== answer) {
      this.given[at] = { answer, mark: null };
      this.save();
    }
  }

  /** Have the answers marked one by one, and show each mark as it comes. */
  private async mark(): Promise<void> {
    const run = (this.run += 1);
    const { questions, title } = this.sheet;
    const list = h('ol', {});
    const status = h('div');
    const end = h('div', { class: 'wb-quiz-buttons' }, this.back());
    const heading = h('h3', { tabindex: '-1' }, title);
    this.draw(heading, status, list, end);
    // the button that was pressed is gone
    heading.focus();
    try {
      for (const [at, question] of questions.entries()) {
        status.replaceChildren(
          this.progress(
            trans.__('Checking answer %1 of %2', at + 1, questions.length),
            at,
            ''
          )
        );
        const answer = this.given[at]?.answer ?? UNKNOWN;
        const mark =
          this.given[at]?.mark ??
          (await this.server.mark(this.name, at + 1, answer));
        if (run !== this.run) {
          return;
        }
        this.given[at] = { answer, mark };
        this.save();
        list.append(this.row(question, mark));
      }
      await this.finish(status);
    } catch (error) {
      status.replaceChildren(problem(error));
    }
    end.prepend(button(trans.__('Start again'), () => this.restart()));
  }

  private row(question: AskedQuestion, mark: QuizMark): HTMLElement {
    return h(
      'li',
      { 'data-right': `${mark.is_right}` },
      h('strong', {}, ...marked(question.ask)),
      h('p', {}, ...marked(mark.words, MOST_MARK))
    );
  }

  private async finish(status: HTMLElement): Promise<void> {
    const wrong = this.given.flatMap((given, at) =>
      given?.mark?.is_right === true ? [] : [at + 1]
    );
    const of = this.given.length;
    const words = trans.__(
      '%1 of %2 answers are right.',
      of - wrong.length,
      of
    );
    if (this.name !== PLACEMENT) {
      status.replaceChildren(h('p', { role: 'status' }, words));
      return;
    }
    const begin = await this.server.begin(wrong);
    status.replaceChildren(
      h('p', { role: 'status' }, `${words} ${begin.words}`),
      h(
        'button',
        {
          class: 'wb-button',
          click: event =>
            this.openLab(begin.lab, event.currentTarget as HTMLButtonElement)
        },
        trans.__('Open')
      )
    );
  }

  private restart(): void {
    this.given = this.sheet.questions.map(() => null);
    this.save();
    this.show(0);
  }

  private draw(...parts: Node[]): void {
    this.node.setAttribute('aria-label', this.sheet.title);
    this.node.replaceChildren(...parts);
  }

  private progress(words: string, value: number, more: string): HTMLElement {
    const max = this.sheet.questions.length;
    return h(
      'p',
      { class: 'wb-quiz-progress' },
      h('span', { role: 'status' }, words),
      h('progress', { value: `${value}`, max: `${max}`, 'aria-label': words }),
      more
    );
  }

  private back(): HTMLElement {
    return button(trans.__('Back to the labs'), () => {
      this.run += 1;
      this.leave();
    });
  }

  /** Answers are kept in the browser, by what was asked. */
  private save(): void {
    const kept = Object.fromEntries(
      this.sheet.questions.map((question, at) => [
        JSON.stringify(question),
        this.given[at]
      ])
    );
    localStorage.setItem(this.key, JSON.stringify(kept));
  }

  private load(): (Given | null)[] {
    let kept: Record<string, unknown> = {};
    try {
      const value: unknown = JSON.parse(localStorage.getItem(this.key) ?? '{}');
      kept = Object(value) as Record<string, unknown>;
    } catch {
      // what is no JSON was not written here
    }
    return this.sheet.questions.map(question => {
      const given = kept[JSON.stringify(question)];
      return isGiven(given) ? given : null;
    });
  }

  private get key(): string {
    return `warpbook:quiz:${this.server.baseUrl}:${this.name}`;
  }

  private name = PLACEMENT;
  private sheet: QuizSheet = { title: '', questions: [], notice: '' };
  private given: (Given | null)[] = [];
  /** Another run of the form makes what an earlier one waits for void. */
  private run = 0;
}

function button(words: string, click: () => void): HTMLButtonElement {
  return h('button', { class: 'wb-button', click }, words);
}
