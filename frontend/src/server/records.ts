/** What is kept of cells, reports and alerts: found again, and opened. */

import type { Connection } from '../core/connection';
import { readJson } from '../core/reading';
import {
  isAlert,
  isCellReport,
  isPostMortem,
  isReceipt,
  isRecordList
} from '../shapes/stream';
import type {
  Alert,
  CellReport,
  KeptRecord,
  PostMortem,
  Receipt,
  RecordList
} from '../shapes/protocol';

export type RecordKind = KeptRecord['kind'];

/** What is searched for; what is empty or null is any. */
export interface Search {
  readonly text: string;
  readonly kinds: readonly RecordKind[];
  readonly notebook: string;
  readonly verdict: string;
  readonly fromMs: number | null;
  readonly toMs: number | null;
  /** Only what began before, for the next page. */
  readonly beforeMs: number | null;
  readonly limit: number;
}

export const ANYTHING: Search = {
  text: '',
  kinds: [],
  notebook: '',
  verdict: '',
  fromMs: null,
  toMs: null,
  beforeMs: null,
  limit: 20
};

export class Records {
  constructor(private readonly connection: Pick<Connection, 'read'>) {}

  /** What matches, the newest first. */
  async find(search: Search): Promise<RecordList> {
    const query = new URLSearchParams({ limit: String(search.limit) });
    const put = (name: string, value: string | number | null) => {
      if (value !== null && value !== '') {
        query.set(name, String(value));
      }
    };
    put('text', search.text);
    put('kind', search.kinds.join(','));
    put('notebook', search.notebook);
    put('verdict', search.verdict);
    put('from_ms', search.fromMs);
    put('to_ms', search.toMs);
    put('before_ms', search.beforeMs);
    return this.read(`records?${query.toString()}`, isRecordList);
  }

  report(id: string): Promise<CellReport> {
    return this.message('report', id, isCellReport);
  }

  receipt(id: string): Promise<Receipt> {
    return this.message('receipt', id, isReceipt);
  }

  alert(id: string): Promise<Alert> {
    return this.message('alert', id, isAlert);
  }

  postMortem(id: string): Promise<PostMortem> {
    return this.message('post_mortem', id, isPostMortem);
  }

  private message<T>(
    kind: RecordKind,
    id: string,
    check: (value: unknown) => value is T
  ): Promise<T> {
    return this.read(`records/${kind}/${encodeURIComponent(id)}`, check);
  }

  private read<T>(
    route: string,
    check: (value: unknown) => value is T
  ): Promise<T> {
    return readJson(this.connection, `api/v1/${route}`, check);
  }
}
