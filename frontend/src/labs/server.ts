/** The labs of the Jupyter server: one method for each of its requests. */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import type { Check } from '../checks';
import { list, number, optional, record, string, whole } from '../checks';
import type {
  CourseList,
  LabCards,
  LabHints,
  LabList,
  LabOpened,
  LabSolution
} from '../protocol';
import { card } from './card_checks';

const bool: Check = value => typeof value === 'boolean';
const names = list(string, 50);
const entry = record({
  id: string,
  number: whole,
  title: string,
  track: string,
  language: string,
  minutes: whole,
  difficulty: optional(string),
  goal: string,
  after: names,
  needs: names,
  can_check: bool,
  why: string,
  progress: optional(
    record({
      state: string,
      attempts: whole,
      hints: whole,
      right: whole,
      of: whole
    })
  )
});
const labs = record({
  labs: list(entry, 1000),
  compiler: optional(string),
  gpus: whole,
  notice: string,
  next_lab: optional(string),
  problems: list(string, 1000)
});
const courseLab = record({
  lab: string,
  title: string,
  url: string,
  is_open: bool,
  due_ms: optional(number),
  points: number,
  most_points: number,
  attempts: whole,
  attempts_left: optional(whole)
});
const courses = record({
  courses: list(
    record({
      title: string,
      role: string,
      url: string,
      labs: list(courseLab, 1000)
    }),
    100
  ),
  problem: string
});
const opened = record({ lab: string, path: string });
const hints = record({ lab: string, of: whole, hints: list(string, 100) });
const solution = record({
  lab: string,
  file: string,
  reference: string,
  discussion: string,
  mistakes: list(record({ name: string, reason: string }), 100)
});
const mark = record({
  submission: whole,
  number: whole,
  graded_ms: number,
  passed: bool,
  right: whole,
  of: whole,
  status: string,
  message: string,
  first_failure: string
});
const cards = record({
  lab: string,
  cards: list(mark, 100),
  newest: optional(card)
});

export class LabsServer {
  constructor(private readonly settings: ServerConnection.ISettings) {}

  /** Which labs there are, whether each can be done here, and how far one is. */
  list(): Promise<LabList> {
    return this.ask('GET', 'labs', labs);
  }

  /** What courses of the hub publish that started the server; none without one. */
  courses(): Promise<CourseList> {
    return this.ask('GET', 'courses', courses);
  }

  /** Put a lab's notebook where the server keeps files; give its path. */
  open(lab: string): Promise<LabOpened> {
    return this.ask('POST', `labs/${lab}/open`, opened);
  }

  /** The hints that are open. */
  hints(lab: string): Promise<LabHints> {
    return this.ask('GET', `labs/${lab}/hints`, hints);
  }

  /** Open one more hint. */
  openHint(lab: string): Promise<LabHints> {
    return this.ask('POST', `labs/${lab}/hints`, hints);
  }

  /** The reference and its discussion, once the rules let see them. */
  solution(lab: string): Promise<LabSolution> {
    return this.ask('GET', `labs/${lab}/solution`, solution);
  }

  /** How the last submissions went. */
  cards(lab: string): Promise<LabCards> {
    return this.ask('GET', `labs/${lab}/cards`, cards);
  }

  private async ask<T>(
    method: 'GET' | 'POST',
    path: string,
    check: Check
  ): Promise<T> {
    const answer = await ServerConnection.makeRequest(
      URLExt.join(this.settings.baseUrl, 'warpbook/api/v1', path),
      { method },
      this.settings
    );
    const value: unknown = await answer.json().catch(() => null);
    if (!answer.ok) {
      const said = record({ message: string })(value)
        ? (value as { message: string }).message
        : '';
      throw new Error(said || `The server answered with ${answer.status}.`);
    }
    if (!check(value)) {
      throw new Error(
        "The server's answer has an unknown form; reload the page."
      );
    }
    return value as T;
  }
}
