import { setImmediate } from 'node:timers/promises'
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

/** The end of a socket is read in the round of the event loop after that of its last bytes. The first `setImmediate` is of the round that runs. */
async function socketsAreRead(): Promise<void> {
  await setImmediate()
  await setImmediate()
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

  /** Of two sockets, that of the later request may be read first. */
  async function startUnlessGone(connection: string, client: Cancellation, from: WakeFollower | undefined) {
    await socketsAreRead()
    return start(connection, client, from)
  }

  return {
    begin(connection, client, from) {
      return turns.has(connection) ? startUnlessGone(connection, client, from) : start(connection, client, from)
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
