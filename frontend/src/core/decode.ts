/**
 * Text from the socket -> a message whose shape can be relied upon.
 *
 * The types of protocol.ts are promises of a server that may be older, newer or
 * not ours. What does not have the shape becomes null, and the page goes on. The
 * shapes are generated from the same Python types.
 */

import { record, tagged, text, whole } from '../shapes/checks';
import type { ServerMessage } from '../shapes/protocol';
import { PROTOCOL_VERSION } from '../shapes/protocol';
import { MESSAGES } from '../shapes/stream';

/** A hello that this page can't read, because it speaks another version. */
export interface OtherProtocol {
  readonly type: 'other_protocol';
  readonly protocol: number;
}

const isTyped = record<{ type: string; protocol: unknown }>({
  type: text,
  protocol: () => true
});
const isMessage = tagged(MESSAGES);

/** Decode one message; null for anything that is not one. */
export function decode(data: unknown): ServerMessage | OtherProtocol | null {
  if (typeof data !== 'string') {
    return null;
  }
  let message: unknown;
  try {
    message = JSON.parse(data);
  } catch {
    return null;
  }
  if (!isTyped(message)) {
    return null;
  }
  const { type, protocol } = message;
  if (type === 'hello' && whole(protocol) && protocol !== PROTOCOL_VERSION) {
    return { type: 'other_protocol', protocol: protocol as number };
  }
  return isMessage(message) ? (message as ServerMessage) : null;
}
