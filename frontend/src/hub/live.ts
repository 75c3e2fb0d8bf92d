/** The socket on which the service tells what has changed. */

import { changeRows, type Row } from './class_table';
import { refresh } from './fragments';
import { course, post, root } from './page';

interface Place {
  stage: string;
  before: number;
  eta_s: number | null;
}

type Message =
  | { type: 'rows'; rows: Row[] }
  | { type: 'queue' }
  | { type: 'reload' }
  | { type: 'submission'; submission: string }
  | { type: 'place'; submission: string; place: Place };

const LEAST_WAIT_MS = 1000;
const MOST_WAIT_MS = 30_000;
let waitMs = LEAST_WAIT_MS;

/** Follow what happens, for as long as the page is open. */
export async function follow(): Promise<void> {
  try {
    const { ticket } = (await post('ticket')) as { ticket: string };
    open(ticket);
  } catch {
    later();
  }
}

function open(ticket: string): void {
  const lab = document.querySelector<HTMLElement>('[data-lab]')?.dataset['lab'];
  const query = new URLSearchParams({ course, ticket, lab: lab ?? '' });
  const address = new URL(`${root}live?${query.toString()}`, location.href);
  address.protocol = address.protocol.replace('http', 'ws');
  const socket = new WebSocket(address);
  let isFirst = waitMs === LEAST_WAIT_MS;
  socket.onopen = () => {
    say('');
    if (!isFirst) {
      // of what happened meanwhile nobody told
      catchUp();
    }
    isFirst = false;
    waitMs = LEAST_WAIT_MS;
  };
  socket.onmessage = event => hear(JSON.parse(String(event.data)) as Message);
  socket.onclose = later;
}

function later(): void {
  say('Not connected: what is shown may be old. Trying again …');
  waitMs = Math.min(waitMs * 2, MOST_WAIT_MS);
  setTimeout(() => void follow(), waitMs * (0.5 + Math.random() / 2));
}

function hear(message: Message): void {
  switch (message.type) {
    case 'rows':
      changeRows(message.rows);
      break;
    case 'reload':
      catchUp();
      break;
    case 'place':
      showPlace(message.submission, message.place);
      break;
    default:
      if (cares(message.type)) {
        void refresh();
      }
  }
}

function catchUp(): void {
  if (document.getElementById('class') !== null) {
    location.reload();
  } else {
    void refresh();
  }
}

function cares(type: string): boolean {
  return document.querySelector(`[data-live~="${type}"]`) !== null;
}

function showPlace(submission: string, place: Place): void {
  const part = document.querySelector(`[data-place="${submission}"] .place`);
  if (part === null) {
    return;
  }
  const ahead =
    place.before === 0
      ? 'next in the queue'
      : `${place.before} before it in the queue`;
  part.textContent =
    place.eta_s === null
      ? `${ahead}; no grader takes jobs now`
      : `${ahead}; done in ${duration(place.eta_s)}`;
}

function duration(seconds: number): string {
  return seconds < 90
    ? `about ${Math.max(1, Math.round(seconds))} s`
    : `about ${Math.round(seconds / 60)} min`;
}

function say(text: string): void {
  const place = document.getElementById('connection');
  if (place !== null) {
    place.textContent = text;
  }
}
