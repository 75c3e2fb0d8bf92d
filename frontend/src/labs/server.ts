/** The labs of the Jupyter server: one method for each of its requests. */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import type { Shape } from '../shapes/checks';
import { record, text } from '../shapes/checks';
import type {
  CourseList,
  LabCards,
  LabHints,
  LabList,
  LabOpened,
  LabSolution,
  QuizBegin,
  QuizMark,
  QuizSheet
} from '../shapes/protocol';
import {
  isCourseList,
  isLabCards,
  isLabHints,
  isLabList,
  isLabOpened,
  isLabSolution,
  isQuizBegin,
  isQuizMark,
  isQuizSheet
} from '../shapes/labs';

const isMessage = record<{ message: string }>({ message: text });

export class LabsServer {
  constructor(private readonly settings: ServerConnection.ISettings) {}

  get baseUrl(): string {
    return this.settings.baseUrl;
  }

  /** Which labs there are, whether each can be done here, and how far one is. */
  list(): Promise<LabList> {
    return this.ask('GET', 'labs', isLabList);
  }

  /** What courses of the hub publish that started the server; none without one. */
  courses(): Promise<CourseList> {
    return this.ask('GET', 'courses', isCourseList);
  }

  /** Put a lab's notebook where the server keeps files; give its path. */
  open(lab: string): Promise<LabOpened> {
    return this.ask('POST', `labs/${lab}/open`, isLabOpened);
  }

  /** The hints that are open. */
  hints(lab: string): Promise<LabHints> {
    return this.ask('GET', `labs/${lab}/hints`, isLabHints);
  }

  /** Open one more hint. */
  openHint(lab: string): Promise<LabHints> {
    return this.ask('POST', `labs/${lab}/hints`, isLabHints);
  }

  /** The reference and its discussion, once the rules let see them. */
  solution(lab: string): Promise<LabSolution> {
    return this.ask('GET', `labs/${lab}/solution`, isLabSolution);
  }

  /** How the last submissions went. */
  cards(lab: string): Promise<LabCards> {
    return this.ask('GET', `labs/${lab}/cards`, isLabCards);
  }

  /** The questions of the placement quiz, or of a text. */
  quiz(name: string): Promise<QuizSheet> {
    return this.ask('GET', `quizzes/${name}`, isQuizSheet);
  }

  /** Mark one answer, which takes a lab's engine some seconds. */
  mark(name: string, question: number, answer: string): Promise<QuizMark> {
    const query = URLExt.objectToQueryString({ question, answer });
    return this.ask('GET', `quizzes/${name}/mark${query}`, isQuizMark);
  }

  /** With which lab to begin, given the questions that were not answered right. */
  begin(wrong: readonly number[]): Promise<QuizBegin> {
    const query = URLExt.objectToQueryString({ wrong: wrong.join(',') });
    return this.ask('GET', `quizzes/placement/begin${query}`, isQuizBegin);
  }

  private async ask<T>(
    method: 'GET' | 'POST',
    path: string,
    isAnswer: Shape<T>
  ): Promise<T> {
    const value = await this.request(method, path);
    if (!isAnswer(value)) {
      throw new Error(
        "The server's answer has an unknown form; reload the page."
      );
    }
    return value;
  }

  private async request(
    method: 'GET' | 'POST',
    path: string
  ): Promise<unknown> {
    const answer = await ServerConnection.makeRequest(
      URLExt.join(this.settings.baseUrl, 'warpbook/api/v1', path),
      { method },
      this.settings
    );
    const value: unknown = await answer.json().catch(() => null);
    if (!answer.ok) {
      const said = isMessage(value) ? value.message : '';
      throw new Error(said || `The server answered with ${answer.status}.`);
    }
    return value;
  }
}
