import { ProtocolError } from '../../core/errors.ts'
import type { Clock, Random } from '../clock.ts'
import {
  MAX_RENDEZVOUS,
  MAX_RENDEZVOUS_BYTES,
  MAX_RENDEZVOUS_PER_ADDRESS,
  RENDEZVOUS_MS,
} from '../limits/rendezvous.ts'
import { networkOf } from '../network.ts'

/** What lies in a session now. */
export interface RendezvousContent {
  readonly data: string
  /** Another one for each write. */
  readonly token: string
  readonly expiresAt: number
  readonly writtenAt: number
}

/**
 * A place where two devices leave each other messages, one at a time, until they trust each other (MSC4108, MSC4388). Who knows its id may
 * read and write it. Sessions are in memory only: they live for minutes, and after a restart of the server people scan the code again.
 */
export interface Rendezvous {
  /**
   * @param address the client's, whose sessions are counted
   * @throws ProtocolError `M_TOO_LARGE`, `M_LIMIT_EXCEEDED`
   */
  create(data: string, address: string): RendezvousContent & { readonly id: string }
  /** @throws ProtocolError `M_NOT_FOUND` for a session that never was, or has expired */
  read(id: string): RendezvousContent
  /**
   * Replaces what lies there. `isWritten` is false if it is not what the writer has seen.
   *
   * @throws ProtocolError `M_NOT_FOUND`, `M_TOO_LARGE`
   */
  write(id: string, seen: string, data: string): { readonly isWritten: boolean; readonly content: RendezvousContent }
  /** @throws ProtocolError `M_NOT_FOUND` */
  end(id: string): void
}

interface Session {
  readonly network: string
  readonly content: RendezvousContent
}

const ID_BYTES = 16
const TOKEN_BYTES = 12

export function createRendezvous({ clock, random }: { readonly clock: Clock; readonly random: Random }): Rendezvous {
  /** In the order in which they expire. */
  const sessions = new Map<string, Session>()
  const counts = new Map<string, number>()

  function remove(id: string, { network }: Session): void {
    sessions.delete(id)
    const left = (counts.get(network) ?? 1) - 1
    if (left > 0) counts.set(network, left)
    else counts.delete(network)
  }

  function dropExpired(): void {
    const now = clock.now()
    for (const [id, session] of sessions) {
      if (session.content.expiresAt > now) return
      remove(id, session)
    }
  }

  function session(id: string): Session {
    dropExpired()
    const found = sessions.get(id)
    if (found === undefined) {
      throw new ProtocolError('M_NOT_FOUND', 'There is no such rendezvous session; it may have expired.')
    }
    return found
  }

  const contentOf = (data: string, expiresAt: number): RendezvousContent => ({
    data,
    token: random.bytes(TOKEN_BYTES).toString('base64url'),
    expiresAt,
    writtenAt: clock.now(),
  })

  function mustFit(network: string): void {
    if ((counts.get(network) ?? 0) < MAX_RENDEZVOUS_PER_ADDRESS) return
    const error = 'Too many devices are being signed in from your network just now. Try again later.'
    throw new ProtocolError('M_LIMIT_EXCEEDED', error, { extra: { retry_after_ms: 10_000 } })
  }

  /** The network that has most gives up its oldest session, the newcomer's own first: whoever begins very many cannot keep others out. */
  function makeRoom(newcomer: string): void {
    if (sessions.size < MAX_RENDEZVOUS) return
    const most = Math.max(...counts.values())
    const isOwn = counts.get(newcomer) === most
    for (const [id, session] of sessions) {
      if (isOwn ? session.network !== newcomer : counts.get(session.network) !== most) continue
      remove(id, session)
      return
    }
  }

  return {
    create(data, address) {
      mustBeShort(data)
      dropExpired()
      const network = networkOf(address)
      mustFit(network)
      makeRoom(network)
      const id = random.bytes(ID_BYTES).toString('base64url')
      const content = contentOf(data, clock.now() + RENDEZVOUS_MS)
      sessions.set(id, { network, content })
      counts.set(network, (counts.get(network) ?? 0) + 1)
      return { id, ...content }
    },
    read: (id) => session(id).content,
    write(id, seen, data) {
      const { network, content: before } = session(id)
      mustBeShort(data)
      if (seen !== before.token) return { isWritten: false, content: before }
      const content = contentOf(data, before.expiresAt)
      sessions.set(id, { network, content })
      return { isWritten: true, content }
    },
    end: (id) => remove(id, session(id)),
  }
}

function mustBeShort(data: string): void {
  if (Buffer.byteLength(data) <= MAX_RENDEZVOUS_BYTES) return
  throw tooLarge()
}

export function tooLarge(): ProtocolError {
  return new ProtocolError('M_TOO_LARGE', `A rendezvous session holds ${MAX_RENDEZVOUS_BYTES} bytes at most.`)
}
