import { MessageChannel } from 'node:worker_threads'

/** What is transferred to a port that is closed belongs to nobody: its memory is freed at once (HTML, "message ports"). */
const nowhere = closedPort()

function closedPort() {
  const { port1 } = new MessageChannel()
  port1.close()
  return port1
}

/**
 * Frees the memory of bytes that nobody needs any more, if it is theirs alone. They are empty afterwards. Without this they would wait for
 * the garbage collector, which lets 32 MB of them gather.
 */
export function releaseBytes({ buffer, byteLength }: Uint8Array): void {
  if (!(buffer instanceof ArrayBuffer) || buffer.byteLength !== byteLength) return
  try {
    nowhere.postMessage(undefined, [buffer])
  } catch {
    // Memory that belongs to somebody else, such as a library.
  }
}
