/** What a page of the hub says of itself, and how it asks the service. */

function content(name: string): string {
  const element = document.querySelector(`meta[name="${name}"]`);
  return element?.getAttribute('content') ?? '';
}

/** The address of the service, with a slash at its end. */
export const root = content('root');
/** The id of the course; empty on pages without one. */
export const course = content('course');
/** Who is logged in. */
export const username = content('username');
const xsrf = content('xsrf');

/** What the service refused, in words for a person. */
export class RefusalError extends Error {
  /** Such as `windows[0].due_ms`, if it is about a field. */
  field = '';
}

/** What did not reach the service: it may be asked again. */
class Away extends RefusalError {}

/** The service marks its answers with this; a gateway before it does not. */
const MARK = 'Warpbook-Service';
const [PATIENCE_MS, AGAIN_MS, MOST_AGAIN_MS] = [1_800_000, 1000, 8000];
const MINUTE_MS = 60_000;

/** Ask until the service has answered, for half an hour.
 *
 * @param say - is given words while the service is away
 * @throws RefusalError, with what to do.
 */
export async function postPatiently(
  path: string,
  body: unknown,
  say: (words: string) => void
): Promise<unknown> {
  const begunMs = Date.now();
  const endMs = begunMs + PATIENCE_MS;
  for (let waitMs = AGAIN_MS; ; waitMs = Math.min(2 * waitMs, MOST_AGAIN_MS)) {
    try {
      return await post(path, body);
    } catch (error) {
      if (!(error instanceof Away) || Date.now() + waitMs > endMs) {
        throw error;
      }
      const minutes = Math.floor((Date.now() - begunMs) / MINUTE_MS);
      const since = minutes > 0 ? ` for ${minutes} min by now` : '';
      say(
        `${error.message} It is tried again by itself${since}: leave this page open. A reload keeps what you hand in.`
      );
    }
    await new Promise(resolve => setTimeout(resolve, waitMs));
  }
}

/** Ask the service's API with JSON.
 *
 * @throws RefusalError, with what to do.
 */
export async function post(path: string, body?: unknown): Promise<unknown> {
  const headers: Record<string, string> = { 'X-XSRFToken': xsrf };
  if (body !== undefined) {
    headers['Content-Type'] = 'application/json';
  }
  let response: Response;
  try {
    response = await fetch(`${root}api/v1/${path}`, {
      method: 'POST',
      headers,
      body: body === undefined ? null : JSON.stringify(body)
    });
  } catch {
    throw new Away('The course service does not answer. Nothing is lost.');
  }
  if (!response.headers.has(MARK)) {
    throw new Away(
      `The hub answers ${response.status}, and not its course service: it may be starting. Nothing is lost.`
    );
  }
  const answer: unknown = await response.json().catch(() => null);
  if (!response.ok || answer === null) {
    // of these it says itself that it can't do it now; an answer may be cut off
    const { ok, status } = response;
    const isAway = ok || status >= 500 || status === 408 || status === 429;
    const refusal = new (isAway ? Away : RefusalError)(
      told(answer, 'error') ?? `The service answers ${status}.`
    );
    refusal.field = told(answer, 'field') ?? '';
    throw refusal;
  }
  return answer;
}

/** Get this page once more, as it is now; null where that is not possible. */
export async function pageNow(): Promise<Document | null> {
  const response = await fetch(location.href, {
    headers: { 'X-XSRFToken': xsrf }
  });
  if (!response.ok || response.redirected) {
    return null;
  }
  return new DOMParser().parseFromString(await response.text(), 'text/html');
}

function told(answer: unknown, name: string): string | null {
  const value = (answer as Record<string, unknown> | null)?.[name];
  return typeof value === 'string' ? value : null;
}
