import type { Duplex } from 'node:stream'
import type { Logger } from 'pino'
import {
  MAX_ASKED_UNDER_WAY,
  MAX_FOLLOWERS,
  MAX_NEWS_BACKLOG_BYTES,
  MAX_WAKES_PER_TICK,
  NEWS_HEARTBEAT_MS,
} from '../../domain/limits/cluster.ts'
import type { Woken } from '../../domain/standby/quiet-syncs.ts'
import type { SyncDesk, SyncFollower } from '../../domain/standby/sync-desk.ts'
import { createWaking } from '../../domain/sync/waking.ts'
import { DueAnswers } from './batched.ts'
import type { BatchesIn } from './batches-in.ts'
import {
  type Frame,
  FrameReader,
  frameOf,
  HAS_VERSION,
  NEWS_PROTOCOL,
  type NumberedQuestion,
  type NumberedSync,
  TAKES_BATCHES,
  type VersionCall,
} from './news-frames.ts'
import { createVersionThread, type VersionThread } from './version-thread.ts'

/** Tells nodes that stand by what wakes syncs, looks at the syncs that they hold, and takes requests of their clients. */
export interface NewsGiver {
  /** Takes the connection of such a node over. */
  enter(socket: Duplex, head: Buffer): void
  /** Ends all of them: this node does not serve any more. */
  end(): void
}

interface Parts {
  readonly secret: string
  readonly now: () => number
  readonly desk: SyncDesk
  readonly batches?: BatchesIn | undefined
  readonly log: Logger
  /** Whether this node still has its place: if not, what it knows may be old. */
  isHeld(): boolean
}

export function createNewsGiver(parts: Parts): NewsGiver {
  const followers = new Set<Duplex>()
  const versions = createVersionThread(parts)
  let nodes = 0
  return {
    enter(socket, head) {
      if (
        !parts.isHeld() ||
        followers.size >= MAX_FOLLOWERS ||
        !giveNews({ ...parts, versions, node: ++nodes }, socket, head)
      ) {
        refuseUpgrade(socket, '503 Service Unavailable')
        return
      }
      followers.add(socket)
      socket.once('close', () => followers.delete(socket))
    },
    end() {
      versions.close()
      for (const socket of followers) socket.destroy()
    },
  }
}

/** Answers a request for an upgrade that is not followed. */
export function refuseUpgrade(socket: Duplex, status: string): void {
  socket.on('error', () => {})
  // No timeout of the listener ends it any more.
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`, () => socket.destroy())
}

/** What was woken, or ended, since others were last sent it. */
class GatheredWakes {
  rooms = new Set<number>()
  users = new Set<number>()
  ended: Woken['ended'][number][] = []
  turns: string[] = []

  get size(): number {
    return this.rooms.size + this.users.size + this.ended.length + this.turns.length
  }

  /** @param added called when there is something */
  follower(added: () => void, missed: () => void): SyncFollower {
    return {
      missed,
      room: (roomNid) => {
        this.rooms.add(roomNid)
        added()
      },
      user: (userNid) => {
        this.users.add(userNid)
        added()
      },
      ended: (userNid, deviceId) => {
        this.ended.push([userNid, deviceId ?? null])
        added()
      },
      began: (connection) => {
        this.turns.push(connection)
        added()
      },
      // Whoever wants to know asks.
      moved() {},
    }
  }

  take(): Woken {
    const woken = { rooms: [...this.rooms], users: [...this.users], ended: this.ended, turns: this.turns }
    this.rooms = new Set()
    this.users = new Set()
    this.ended = []
    this.turns = []
    return woken
  }
}

/** What is written to a follower: all of a tick in one piece. */
class Outlet {
  readonly #socket: Duplex
  readonly #last: () => readonly Buffer[] | undefined
  #due: Buffer[] = []
  #bytes = 0
  #isScheduled = false

  /** @param last gives what else is written then; undefined if the connection has to end */
  constructor(socket: Duplex, last: () => readonly Buffer[] | undefined) {
    this.#socket = socket
    this.#last = last
  }

  readonly schedule = (): void => {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(this.#flush)
  }

  add(frame: Buffer): void {
    this.#due.push(frame)
    this.#bytes += frame.length
  }

  send(frame: Buffer): void {
    this.add(frame)
    this.schedule()
  }

  isFull(): boolean {
    return this.#socket.writableLength + this.#bytes > MAX_NEWS_BACKLOG_BYTES
  }

  readonly #flush = (): void => {
    this.#isScheduled = false
    if (this.#socket.destroyed) return
    const last = this.#socket.writableLength > 2 * MAX_NEWS_BACKLOG_BYTES ? undefined : this.#last()
    if (last === undefined) {
      this.#socket.destroy()
      return
    }
    const due = this.#due
    due.push(...last)
    this.#socket.write(due.length === 1 ? due[0]! : Buffer.concat(due))
    this.#due = []
    this.#bytes = 0
  }
}

/** @returns false if this node stops */
function giveNews(
  parts: Parts & { readonly versions: VersionThread; readonly node: number },
  socket: Duplex,
  head: Buffer,
): boolean {
  const { desk, batches, log, isHeld, versions, node } = parts
  const gathered = new GatheredWakes()
  const answers = new DueAnswers()
  /** Wakes are numbered by their order. */
  let wakes = 0
  let underWay = 0
  const waking = createWaking()
  const reader = new FrameReader()

  const outlet = new Outlet(socket, () => {
    if (gathered.size > MAX_WAKES_PER_TICK || !isHeld()) return undefined
    takeWakes()
    return answers.take()
  })

  function takeWakes(): void {
    if (gathered.size === 0) return
    wakes += 1
    outlet.add(frameOf('wakes', JSON.stringify(gathered.take())))
  }

  function lookAt(sync: NumberedSync): void {
    if (socket.destroyed) return
    const { id } = sync
    const passOn = (): void => outlet.send(frameOf('answer', JSON.stringify({ id })))
    if (underWay >= MAX_ASKED_UNDER_WAY || outlet.isFull()) {
      passOn()
      return
    }
    underWay += 1
    // What wakes it from now on comes after these.
    takeWakes()
    const after = wakes
    desk
      .look(sync, follower)
      .then((found) => {
        // Long answers for a few must not end what all others hear.
        if (found === undefined || outlet.isFull()) return passOn()
        const { body, ...rest } = found
        outlet.send(frameOf('answer', JSON.stringify({ id, after, ...rest }), body))
      })
      .catch((err: unknown) => {
        log.warn({ err }, 'a sync that another node holds could not be looked at, and is passed on')
        passOn()
      })
      .finally(() => {
        underWay -= 1
      })
  }

  function take({ kind, head: text, body }: Frame): void {
    if (kind === 'batch') {
      batches?.take(text, body, (id, answer) => {
        answers.add(id, answer)
        outlet.schedule()
      })
      return
    }
    if (kind === 'look') {
      const asked = JSON.parse(text) as readonly NumberedSync[]
      waking.add(asked.map((sync) => () => lookAt(sync)))
      waking.run()
      return
    }
    if (kind === 'connect') {
      if (isHeld()) versions.connect(node, JSON.parse(text) as VersionCall)
      return
    }
    const { id, tokenNid } = JSON.parse(text) as NumberedQuestion
    if (kind === 'ping') {
      takeWakes()
      outlet.send(frameOf('answer', JSON.stringify({ id, position: desk.position(), version: versions.version() })))
    } else if (kind === 'verify' && tokenNid !== undefined)
      void desk.isGoingOn(tokenNid).then((goesOn) => outlet.send(frameOf('answer', JSON.stringify({ id, goesOn }))))
  }

  function read(chunk: Buffer): void {
    try {
      for (const frame of reader.read(chunk)) take(frame)
    } catch (err) {
      log.warn({ err }, 'a node that stands by sent what is not understood')
      socket.destroy()
    }
  }

  const follower = gathered.follower(outlet.schedule, () => void socket.destroy())
  const unfollow = desk.follow(follower)
  if (unfollow === undefined) return false
  const beat = setInterval(() => {
    outlet.send(frameOf('beat', '0'))
    versions.beat()
  }, NEWS_HEARTBEAT_MS).unref()
  socket.on('error', () => {})
  socket.once('close', () => {
    clearInterval(beat)
    versions.disconnect(node)
    unfollow()
  })
  const more = `${HAS_VERSION}: 1\r\n${batches === undefined ? '' : `${TAKES_BATCHES}: 1\r\n`}`
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${NEWS_PROTOCOL}\r\n${more}\r\n`)
  if (head.length > 0) read(head)
  socket.on('data', read)
  return true
}
