/** What a page of the hub says of itself, and how it asks the service. */

function content(name: string): string {
  const element = document.querySelector(`meta[name="${name}"]`);
  return element?.getAttribute('content') ?? '';
}

/** The address of the service, with a slash at its end. */
export const root = content('root');
/** The id of the course; empty on pages without one. */
export const course = content('course');
const xsrf = content('xsrf');

/** What the service refused, in words for a person. */
export class Refused extends Error {}

/** Ask the service's API with JSON.
 *
 * @throws Refused, with what to do.
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
    throw new Refused(
      'The course service does not answer. Nothing is lost: try again in a moment.'
    );
  }
  const answer: unknown = await response.json().catch(() => null);
  if (!response.ok) {
    throw new Refused(
      words(answer) ?? `The service answers ${response.status}.`
    );
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

function words(answer: unknown): string | null {
  if (typeof answer === 'object' && answer !== null && 'error' in answer) {
    return String(answer.error);
  }
  return null;
}
