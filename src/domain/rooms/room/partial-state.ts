import { ProtocolError } from '../../../core/errors.ts'
import type { EventId, RoomId, ServerName } from '../../../core/ids.ts'
import { MAX_SERVERS_MEANWHILE } from '../../limits.ts'

const NONE: ReadonlySet<ServerName> = new Set()

/** Events that wait for the members of a room, and bytes of their JSON. */
export interface Held {
  readonly count: number
  readonly bytes: number
}

/**
 * A room of others that our user is in, and whose members are still to come: most of them were left out of what we were told when we
 * joined (server-server API, `PUT send_join`, `omit_members`).
 */
export class PartialState {
  readonly roomNid: number
  readonly roomId: RoomId
  readonly resident: ServerName
  /** Those in the room by the word of the one that let us in. */
  readonly servers: ReadonlySet<ServerName>
  /** Our join: what is missing is of the state before it. */
  readonly joinId: EventId
  /** Rounds in which no server could be used. */
  failures: number
  readonly whole: Promise<void>
  /** What other servers sent meanwhile, by server. */
  readonly held = new Map<ServerName, Held>()
  #stage: 'members' | 'arrears' | 'over' = 'members'
  #isComplete = false
  #resolve: () => void = () => {}

  constructor(
    of: Pick<PartialState, 'roomNid' | 'roomId' | 'resident' | 'joinId'> & {
      readonly servers: Iterable<ServerName>
      readonly failures?: number
    },
  ) {
    this.roomNid = of.roomNid
    this.roomId = of.roomId
    this.resident = of.resident
    this.servers = new Set([of.resident, ...[...of.servers].slice(0, MAX_SERVERS_MEANWHILE)])
    this.joinId = of.joinId
    this.failures = of.failures ?? 0
    this.whole = new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  /** Most members are not known: nobody is judged by their membership. */
  get lacksMembers(): boolean {
    return this.#stage === 'members'
  }

  /** Those that are told what passes, as long as nobody knows better: of our user's leaving too, when its resync never ended. */
  get serversMeanwhile(): ReadonlySet<ServerName> {
    return this.#isComplete ? NONE : this.servers
  }

  /** What other servers send waits, or what has waited is not all taken in. */
  get holdsEvents(): boolean {
    return this.#stage !== 'over'
  }

  /** All members are there. */
  complete(): void {
    if (this.#stage === 'members') this.#stage = 'arrears'
    this.#isComplete = true
    this.#resolve()
  }

  end(): void {
    this.#stage = 'over'
    this.#resolve()
  }
}

export function membersAreMissing(): ProtocolError {
  const text = 'The members of this room are still being fetched from other servers. Send the request again later.'
  return new ProtocolError('M_UNKNOWN', text, { status: 503, extra: { retry_after_ms: 5_000 } })
}
