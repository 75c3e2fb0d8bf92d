/** Where a widget's figures come from: the page's server, else the kernel. */

import type { Connection, Endpoint } from '../core/connection';
import { sharedStream } from '../core/page_stream';
import { Store } from '../core/store';
import type { Comm } from './kernel';
import { KernelConnection } from './kernel';
import { pageEndpoint } from './page';

export interface Feed {
  readonly connection: Pick<Connection, 'status' | 'listen' | 'demand'>;
  readonly store: Store;
  /** Who reads the GPUs, for a sentence. */
  readonly reader: 'server' | 'kernel';
  /** What the person should know of these figures; empty if nothing. */
  readonly note: string;
}

const FROM_KERNEL =
  'These figures come from this kernel, because the page has no Jupyter server ' +
  'with warpbook: they stop while a cell holds the GIL, and when the kernel ends.';

export async function findFeed(comm: Comm): Promise<Feed> {
  const endpoint = pageEndpoint();
  if (endpoint !== null && (await hasWarpbook(endpoint))) {
    const { connection, store } = sharedStream(() => endpoint);
    return { connection, store, reader: 'server', note: '' };
  }
  const connection = new KernelConnection(comm);
  const store = new Store();
  connection.listen(store);
  return { connection, store, reader: 'kernel', note: FROM_KERNEL };
}

async function hasWarpbook(endpoint: Endpoint): Promise<boolean> {
  try {
    return (await endpoint.get('api/v1/capabilities')).status !== 404;
  } catch {
    // the stream finds out why, says so and tries again
    return true;
  }
}
