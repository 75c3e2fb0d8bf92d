/**
 * One stream and what it said per page, whoever comes first.
 *
 * The labextension and the notebook widget are two bundles, maybe of two versions
 * of warpbook, so they meet under a symbol that names the version of this meeting.
 */

import type { Endpoint } from './connection';
import { Connection } from './connection';
import { Statements } from './statements';
import { Store } from './store';

export interface Stream {
  readonly connection: Connection;
  readonly store: Store;
  readonly statements: Statements;
}

const PLACE = Symbol.for('warpbook.stream.v5');
type Page = Window & { [PLACE]?: Stream };

/** Give the page's stream; the endpoint is used only by the first who asks. */
export function sharedStream(endpoint: () => Endpoint): Stream {
  const page = window as Page;
  let stream = page[PLACE];
  if (stream === undefined) {
    const store = new Store();
    const connection = new Connection(endpoint());
    const statements = new Statements(store);
    connection.listen(store);
    connection.listen(statements);
    stream = page[PLACE] = { connection, store, statements };
  }
  return stream;
}
