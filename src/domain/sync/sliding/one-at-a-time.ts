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
  /** Ends the request before, and begins the next. @param from the node that holds it, if it is another one */
  begin(connection: string, client: Cancellation, from?: WakeFollower): TurnEnd
  /** Ends the request before, because its client has sent another. */
  supersede(connection: string): void
  end(connection: string, turn: TurnEnd): void
}

class Turn implements TurnEnd {
  readonly #client: Cancellation
  #listeners: (() => void)[] = []
  isSuperseded = false

  constructor(client: Cancellation) {
    this.#client = client
  }

  get aborted(): boolean {
    return this.isSuperseded || this.#client.aborted
  }

  addEventListener(type: 'abort', listener: () => void): void {
    this.#listeners.push(listener)
    this.#client.addEventListener(type, listener)
  }

  removeEventListener(type: 'abort', listener: () => void): void {
    this.#listeners = this.#listeners.filter((one) => one !== listener)
    this.#client.removeEventListener(type, listener)
  }

  supersede(): void {
    this.isSuperseded = true
    for (const listener of this.#listeners) listener()
  }
}

/** @param began hears of each request, because the one before may be held by another node */
export function createOneAtATime(began: (connection: string, from?: WakeFollower) => void = () => {}): OneAtATime {
  const turns = new Map<string, Turn>()
  return {
    begin(connection, client, from) {
      turns.get(connection)?.supersede()
      began(connection, from)
      const turn = new Turn(client)
      turns.set(connection, turn)
      return turn
    },
    supersede(connection) {
      turns.get(connection)?.supersede()
      began(connection)
    },
    end(connection, turn) {
      if (turns.get(connection) === turn) turns.delete(connection)
    },
  }
}
