/** Answers of the server as JSON of a known form, within a limited time. */

import type { Connection } from './connection';
import { trans } from './translation';

/** A request that takes longer has failed. */
const LONGEST_MS = 30_000;
/** Statuses below 500 that pass: log-in, a slow request, a server that starts, load. */
const PASSING = [401, 403, 408, 424, 425, 429];

/** The server answered with a status instead of what was asked for. */
export class HttpError extends Error {
  constructor(
    readonly status: number,
    words: string
  ) {
    super(words);
  }
}

/** The server's answer is none that this page knows. */
export class UnknownForm extends Error {
  constructor() {
    super(
      trans.__("The server's answer has an unknown form; reload the page.")
    );
  }
}

/** Whether the same request would fail again. */
export function isFinal(error: unknown): boolean {
  if (error instanceof UnknownForm) {
    return true;
  }
  // of either bundle: a widget's may have made the stream that the page shares
  const status = (error as Partial<HttpError> | null)?.status;
  return (
    status !== undefined &&
    status >= 400 &&
    status < 500 &&
    !PASSING.includes(status)
  );
}

/**
 * GET JSON from a path below `<base_url>/warpbook/`.
 *
 * It throws `HttpError`, `UnknownForm`, or an error in words where no answer came.
 */
export async function readJson<T>(
  connection: Pick<Connection, 'read'>,
  path: string,
  check: (value: unknown) => value is T
): Promise<T> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), LONGEST_MS);
  let value: unknown;
  try {
    const answer = await connection.read(path, controller.signal);
    value = await answer.json();
  } catch (error) {
    throw controller.signal.aborted
      ? new Error(trans.__('The server did not answer within 30 s.'))
      : error;
  } finally {
    clearTimeout(timer);
  }
  if (!check(value)) {
    throw new UnknownForm();
  }
  return value;
}
