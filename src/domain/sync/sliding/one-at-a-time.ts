import type { Cancellation } from '../../cancellation.ts'
import type { WakeFollower } from '../notifier.ts'

/** The cancellation of a request: its client is gone, or has sent another one on the same connection. */
export interface TurnEnd extends Cancellation {
  readonly isSuperseded: boolean
}

/**
 * A connection has one request at a time. A client that sends another has given the one before up (MSC4186, "Connections"); it may be gone
 * without that we noticed. So the one before ends, and begins to write nothing down after that.
 */
export interface OneAtATime {
  /**
   * Ends the request before, and begins the next. A request that is read late, after the one that its client sent instead, ends itself.
   *
   * @param from the node that holds it, if it is another one
   */
  begin(connection: string, client: Cancellation, from?: WakeFollower): TurnEnd | Promise<TurnEnd>
  /** Ends the request before, because its client has sent another. */
  supersede(connection: string): void
  end(connection: string, turn: TurnEnd): void
}

class Turn implements TurnEnd {
  readonly client: Cancellation
  #listeners: (() => void)[] = []
  isSuperseded = false
  /** Called when it ends. Undefined while nobody waits for that. */
  ended: (() => void) | undefined

  constructor(client: Cancellation) {
    this.client = client
  }

  get aborted(): boolean {
    return this.isSuperseded || this.client.aborted
  }

  addEventListener(type: 'abort', listener: () => void): void {
    this.#listeners.push(listener)
    this.client.addEventListener(type, listener)
  }

  removeEventListener(type: 'abort', listener: () => void): void {
    this.#listeners = this.#listeners.filter((one) => one !== listener)
    this.client.removeEventListener(type, listener)
  }

  supersede(): void {
    this.isSuperseded = true
    for (const listener of this.#listeners) listener()
  }
}

/** So long after the bytes of a request its client's leaving is noticed, if it has left. */
const LEAVING_MS = 50

/** Waits until one of two clients is known to have left, or the running request ends; not for long. */
function oneIsGone(running: Turn, client: Cancellation): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      clearTimeout(timer)
      running.ended = undefined
      running.client.removeEventListener('abort', go)
      client.removeEventListener('abort', go)
      resolve()
    }
    const timer = setTimeout(go, LEAVING_MS)
    running.ended?.()
    running.ended = go
    running.client.addEventListener('abort', go)
    client.addEventListener('abort', go)
  })
}

/** @param began hears of each request, because the one before may be held by another node */
export function createOneAtATime(began: (connection: string, from?: WakeFollower) => void = () => {}): OneAtATime {
  const turns = new Map<string, Turn>()

  function start(connection: string, client: Cancellation, from: WakeFollower | undefined): Turn {
    const turn = new Turn(client)
    if (client.aborted) {
      turn.supersede()
      return turn
    }
    turns.get(connection)?.supersede()
    began(connection, from)
    turns.set(connection, turn)
    return turn
  }

  return {
    begin(connection, client, from) {
      const running = turns.get(connection)
      if (running === undefined || running.aborted || client.aborted) return start(connection, client, from)
      // Of two sockets, that of the later request may be read first.
      return oneIsGone(running, client).then(() => start(connection, client, from))
    },
    supersede(connection) {
      turns.get(connection)?.supersede()
      began(connection)
    },
    end(connection, turn) {
      const running = turns.get(connection)
      if (running !== turn) return
      turns.delete(connection)
      running.ended?.()
    },
  }
}
