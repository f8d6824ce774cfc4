import { hash } from 'node:crypto'
import { createCache } from '../../core/cache.ts'
import { SetsByKey } from '../../core/sets-by-key.ts'
import type { Cancellation } from '../cancellation.ts'
import type { Clock } from '../clock.ts'
import { QUIET_MEMORY_BYTES, QUIET_MS } from '../limits/cluster.ts'
import { createHeldSyncs, type HeldSyncs } from '../sync/held-syncs.ts'
import { createNotifier } from '../sync/notifier.ts'
import { RecentChanges } from '../sync/recent-changes.ts'
import { createOneAtATime, type TurnEnd } from '../sync/sliding/one-at-a-time.ts'
import { OnlyWhereServed } from './only-where-served.ts'
import type { AskedSync, Holder, LookedSync } from './sync-desk.ts'

/** What the node that serves found, and after how many of its wakes it began to look. */
export interface FollowedLook extends LookedSync {
  readonly after: number
}

/** The node that serves, as long as everything is heard that wakes syncs there. */
export interface ServingNode {
  /** Undefined for a sync that has to be passed on whole. */
  look(asked: AskedSync): Promise<FollowedLook | undefined>
  /** Where its streams stand. Everything that woke a sync before has been heard then. Undefined if it does not answer. */
  position(): Promise<string | undefined>
  /** Whether a session goes on, although its syncs were ended; false too if it does not answer. */
  isGoingOn(tokenNid: number): Promise<boolean>
}

/** What wakes syncs, and the sessions that may have ended: of all devices of a user if none is named. */
export interface Woken {
  readonly rooms: readonly number[]
  readonly users: readonly number[]
  readonly ended: readonly (readonly [userNid: number, deviceId: string | null])[]
  /** Connections of sliding sync that have a newer request elsewhere. */
  readonly turns: readonly string[]
}

/** The answer of a sync, and whose it was. */
export interface SyncAnswer {
  readonly by: Holder
  readonly body: string | Buffer
}

/**
 * Syncs at a node that stands by. The node that serves looks at each once; as long as it finds no news, and wakes neither the user nor one
 * of the user's rooms, there is none, and this node knows the answer.
 */
export interface QuietSyncs {
  /** Undefined for one that has to be passed on whole, for the rest of its time; the client may be gone by then. */
  answer(asked: AskedSync, timeoutMs: number, client: Cancellation): Promise<SyncAnswer | undefined>
  began(serving: ServingNode): void
  woken(woken: Woken): void
  lost(): void
  /** How many are held. */
  waiting(): number
  /** How many were ended that were held. */
  readonly ended: HeldSyncs['ended']
}

/** A client without news. */
interface Quiet {
  readonly by: Holder
  readonly body: string
  /** Where it goes on. */
  readonly since: string
  readonly presence: AskedSync['presence']
  readonly rooms: readonly number[]
  readonly position: string
  /** When its session ends. */
  readonly endsAt: number
  /** Until then, the node that serves need not hear of the device. */
  readonly until: number
  readonly connection: string | undefined
  /** What it takes in memory, under its name. */
  readonly bytes: number
  /** The look began after so many wakes. */
  readonly after: number
  /** So many wakes were none of its own. */
  seenUpTo: number
}

const QUIET_BYTES = 700
const ROOM_BYTES = 8
const MAX_TURNS = 50_000
const NEXT = /^\{"(?:next_batch|pos)":"([^"\\]*)"/

export function createQuietSyncs({ clock }: { readonly clock: Clock }): QuietSyncs {
  let heard: Heard | undefined
  /** Of sliding syncs that are answered here, the newest of a connection ends those before. */
  const turns = createOneAtATime()
  const forgotten: ((userNid: number, deviceId?: string) => void)[] = []
  const held = createHeldSyncs({
    onForget: (listener) => void forgotten.push(listener),
    isRemembered: () => true,
    // It is known of each sync that is held.
    endOf: () => Number.POSITIVE_INFINITY,
    async verify({ tokenNid }) {
      if ((await heard?.serving.isGoingOn(tokenNid)) !== true) throw new OnlyWhereServed('the session has ended')
    },
  })
  return {
    ended: held.ended,
    async answer(asked, timeoutMs, client) {
      const here = heard
      if (here === undefined) return undefined
      const deadline = clock.now() + timeoutMs
      const isHeard = () => here === heard
      const { token, wish } = asked
      if (!('form' in wish)) return answerTo(here, isHeard, asked, { deadline, client })
      const connection = `${token} ${wish.connId}`
      const end = await turns.begin(connection, client)
      try {
        return await answerTo(here, isHeard, asked, { deadline, client: end })
      } finally {
        turns.end(connection, end)
      }
    },
    began(serving) {
      heard = new Heard(serving, clock, held)
    },
    woken(woken) {
      for (const [userNid, deviceId] of woken.ended)
        for (const listener of forgotten) listener(userNid, deviceId ?? undefined)
      heard?.woken(woken)
    },
    lost() {
      const before = heard
      heard = undefined
      before?.notifier.drain()
    },
    waiting: () => heard?.notifier.waiting() ?? 0,
  }

  async function answerTo(
    here: Heard,
    isHeard: () => boolean,
    asked: AskedSync,
    { deadline, client }: { readonly deadline: number; readonly client: Cancellation & Partial<TurnEnd> },
  ): Promise<SyncAnswer | undefined> {
    let quiet = here.find(asked)
    let last = quiet
    // Whoever does not wait must see what was acknowledged before.
    if (quiet !== undefined && clock.now() >= deadline && (await here.serving.position()) !== quiet.position)
      quiet = undefined
    while (isHeard() && !client.aborted) {
      if (quiet === undefined || !here.isQuiet(quiet)) {
        const found = await here.serving.look(asked)
        if (found === undefined) return undefined
        if (!found.isEmpty) {
          here.keepNext(asked, found)
          return found
        }
        quiet = here.keep(asked, found)
        last = quiet
        if (clock.now() >= deadline) return quiet
        if (!here.isQuiet(quiet)) continue
      } else if (clock.now() >= deadline) return quiet
      const end = await here.hold(quiet, deadline, client)
      if (end === 'without news') return quiet
      // It goes on from where it came.
      if (end === 'over') return { by: quiet.by, body: quiet.body.replace(quiet.since, asked.since) }
      if (clock.now() >= quiet.endsAt) return undefined
    }
    // Whoever was sent after it must not be ended by it.
    return client.isSuperseded === true ? last : undefined
  }
}

/** All that is known while one node is followed. */
class Heard {
  readonly serving: ServingNode
  readonly notifier = createNotifier()
  readonly #held: HeldSyncs
  readonly #clock: Clock
  readonly #users = new RecentChanges(0)
  readonly #rooms = new RecentChanges(0)
  #wakes = 0
  /** After how many wakes a connection had a newer request elsewhere. */
  readonly #turns = createCache<string, number>(MAX_TURNS)
  readonly #holders = new SetsByKey<string, () => void>()
  readonly #quiet = createCache<string, Quiet>(QUIET_MEMORY_BYTES, {
    sizeOf: ({ bytes }) => bytes,
  })

  constructor(serving: ServingNode, clock: Clock, held: HeldSyncs) {
    this.serving = serving
    this.#clock = clock
    this.#held = held
  }

  woken({ rooms, users, ended, turns }: Woken): void {
    this.#wakes += 1
    for (const connection of turns) {
      this.#turns.set(connection, this.#wakes)
      for (const end of this.#holders.of(connection)) end()
    }
    for (const [nid] of ended) this.#users.record(nid, this.#wakes)
    for (const nid of users) this.#users.record(nid, this.#wakes)
    for (const nid of rooms) {
      this.#rooms.record(nid, this.#wakes)
      this.notifier.wakeRoom(nid)
    }
    this.notifier.wakeUsers(users)
  }

  /** Whether nothing was heard since that may be news for the client. */
  isQuiet(quiet: Quiet): boolean {
    const { by, rooms, seenUpTo } = quiet
    if (!this.#users.isQuietSince(seenUpTo) && this.#users.since(by.userNid, seenUpTo) !== false) return false
    if (!this.#rooms.isQuietSince(seenUpTo)) {
      for (const nid of rooms) if (this.#rooms.since(nid, seenUpTo) !== false) return false
    }
    quiet.seenUpTo = this.#wakes
    return true
  }

  /** The client, if it goes on from where it had no news. */
  find(asked: AskedSync): Quiet | undefined {
    const quiet = this.#quiet.get(nameOf(asked))
    const now = this.#clock.now()
    if (quiet === undefined || quiet.since !== asked.since || quiet.presence !== asked.presence) return undefined
    return now < quiet.until && now < quiet.endsAt && !this.#isPast(quiet) ? quiet : undefined
  }

  /** Whether its connection has had a newer request elsewhere. */
  #isPast({ connection, after }: Quiet): boolean {
    return connection !== undefined && (this.#turns.peek(connection) ?? 0) > after
  }

  /** A client that has got news has no more of it where it goes on, if its look found everything. */
  keepNext(asked: AskedSync, { nothingNew: body, ...found }: FollowedLook): void {
    if (body === undefined) return
    // So far the streams were read.
    const position = NEXT.exec(body)?.[1] ?? found.position
    this.keep(asked, { ...found, body, position })
  }

  keep(asked: AskedSync, { by, body: bytes, rooms, position, endsAt, connection, after }: FollowedLook): Quiet {
    const body = bytes.toString()
    const name = nameOf(asked)
    const quiet: Quiet = {
      by,
      body,
      rooms,
      position,
      since: NEXT.exec(body)?.[1] ?? asked.since,
      presence: asked.presence,
      endsAt: endsAt ?? Number.POSITIVE_INFINITY,
      until: this.#clock.now() + QUIET_MS,
      connection,
      bytes: QUIET_BYTES + name.length + body.length + rooms.length * ROOM_BYTES,
      after,
      seenUpTo: after,
    }
    this.#quiet.set(name, quiet)
    return quiet
  }

  /**
   * Waits for what may be news. `over`: it has to end, because its device holds too many, or another session than its own ended.
   *
   * @throws OnlyWhereServed if its session has ended
   */
  async hold(quiet: Quiet, deadline: number, client: Cancellation): Promise<'without news' | 'over' | undefined> {
    const { by, rooms, endsAt, connection = '' } = quiet
    if (this.#isPast(quiet)) return 'over'
    const wait = this.notifier.wait(
      { userNid: by.userNid, roomNids: rooms },
      Math.min(deadline, endsAt) - this.#clock.now(),
      client,
    )
    const held = this.#held.hold(by)
    held.onOver(wait.cancel)
    if (connection !== '') this.#holders.add(connection, wait.cancel)
    try {
      await wait.woken
      if (this.#isPast(quiet)) return 'over'
      if (held.over !== undefined) {
        await held.over
        return 'over'
      }
      const isDue = !this.notifier.isDraining && !client.aborted && this.#clock.now() >= deadline
      return isDue ? 'without news' : undefined
    } finally {
      this.#holders.delete(connection, wait.cancel)
      held.release()
    }
  }
}

function nameOf({ token, wish }: AskedSync): string {
  if ('form' in wish) return `${token} ${wish.form} ${hash('sha256', wish.body, 'base64')}`
  return `${token} ${wish.stateAfter ?? ''} ${wish.filter ?? ''}`
}
