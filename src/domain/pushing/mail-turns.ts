import type { Clock } from '../clock.ts'
import { MAX_MAILS_AT_ONCE } from '../limits/mails.ts'
import type { MailQueue } from './mail-queue.ts'

/** Sends mails when they are due, a few at a time. */
export interface MailTurns {
  waits(queue: MailQueue): void
  /** Begins no more, and waits for those that have begun. */
  close(): Promise<void>
}

/** How often to look for what is due. A changed clock is noticed within this time. */
const LOOK_EVERY_MS = 500

export function createMailTurns({ clock }: { readonly clock: Clock }): MailTurns {
  const waiting = new Set<MailQueue>()
  const running = new Set<Promise<void>>()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  function look(): void {
    timer = undefined
    for (const queue of [...waiting]) {
      const { dueAt } = queue
      if (dueAt === undefined) waiting.delete(queue)
      else if (dueAt <= clock.now() && running.size < MAX_MAILS_AT_ONCE) begin(queue)
    }
    lookLater()
  }

  function lookLater(): void {
    if (!isClosed && waiting.size > 0) timer ??= setTimeout(look, LOOK_EVERY_MS).unref()
  }

  function begin(queue: MailQueue): void {
    waiting.delete(queue)
    const turn = queue.run().finally(() => {
      running.delete(turn)
      queue.wake()
    })
    running.add(turn)
  }

  return {
    waits(queue) {
      waiting.add(queue)
      lookLater()
    },
    async close() {
      isClosed = true
      clearTimeout(timer)
      await Promise.all(running)
    },
  }
}
