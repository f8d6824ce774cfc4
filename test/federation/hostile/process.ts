import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Pdu } from '../../../src/core/event/format.ts'
import type { ServerName } from '../../../src/core/ids.ts'
import type { Forge } from '../../rooms/forge.ts'
import type { Json } from '../../support/api.ts'
import type { Authority } from '../../support/certificate.ts'
import type { TlsRequest } from '../../support/tls-server.ts'
import { type Caller, callerOf, type Home, roomOf } from './peer.ts'

/** A server in the process of hostile servers, which does what it is told to, and in whose name a test asks. */
export interface HostilePeer extends Caller {
  open(version: string, name: string, joinRule?: string): Promise<Forge>
  /** From here on it answers an operation (`make_join`), or whatever it is asked (`*`), so: see `lies.ts` and `manners.ts`. */
  lie(operation: string, lie: string, detail?: Json): Promise<void>
  /** It asks by itself; the answer is nobody's. */
  asks(to: Home, method: string, uri: string): Promise<void>
  /** Users there ask things of it, from elsewhere: who has a token asks for them. Resolves when all have their answers. */
  haveAsked(of: Home, token: string): Promise<void>
  /** Its answers are those of an honest server again, and what it was asked is forgotten. */
  repent(): Promise<void>
  /** What it was asked. */
  requests(): Promise<TlsRequest[]>
  /** What came with a signature of another server inside. */
  signedBy(server: string): Promise<Pdu[]>
  close(): Promise<void>
}

export interface HostileServers {
  open(): Promise<HostilePeer>
  /** How often that one was asked that was asked least. */
  askedAtLeast(): Promise<number>
  /** How many bytes were sent of answers without end. */
  poured(): Promise<number>
  close(): Promise<void>
}

export const PROGRAM = fileURLToPath(new URL('program.ts', import.meta.url))

/** Starts the program of hostile servers. */
export function startHostileServers(authority: Authority): HostileServers {
  const child = spawn(process.execPath, ['--import', 'tsx', PROGRAM, '--told'], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const waiting = new Map<number, (answer: Json) => void>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    const answer = JSON.parse(line)
    waiting.get(answer[0])?.(answer)
    waiting.delete(answer[0])
  })
  const certificate = authority.issue(['localhost'])
  let said = 0

  async function tell(peer: string, verb: string, ...words: readonly Json[]): Promise<Json> {
    const id = ++said
    const answered = new Promise<Json>((resolve) => waiting.set(id, resolve))
    child.stdin.write(`${JSON.stringify([id, peer, verb, ...words])}\n`)
    const [, result, error] = await answered
    if (error !== undefined) throw new Error(error)
    return result
  }

  return {
    async open() {
      const name: ServerName = await tell('', 'open', certificate)
      const caller = callerOf(name)
      const requests = (): Promise<TlsRequest[]> => tell(name, 'requests')
      return {
        ...caller,
        requests,
        async open(version, roomName, joinRule = 'public') {
          const room = { version, name: roomName, joinRule, since: Date.now() }
          await tell(name, 'room', room)
          return roomOf(caller, room)
        },
        lie: (operation, lie, detail) => tell(name, 'lie', operation, lie, detail),
        asks: (to, method, uri) => tell(name, 'ask', to, method, uri),
        haveAsked: (of, token) => tell(name, 'haveAsked', of, token),
        repent: () => tell(name, 'repent'),
        async signedBy(server) {
          const events = (await requests()).flatMap(({ body }) => eventsIn(body))
          return events.filter(({ signatures }) => Object.hasOwn(signatures, server))
        },
        close: () => tell(name, 'close'),
      }
    },
    askedAtLeast: () => tell('', 'askedAtLeast'),
    poured: () => tell('', 'poured'),
    async close() {
      child.stdin.end()
      await ended
    },
  }
}

/** Every event in a request's body. */
function eventsIn(text: string): Pdu[] {
  const body = text === '' ? {} : JSON.parse(text)
  return [body, body.event, ...(body.pdus ?? [])].filter((one) => typeof one?.signatures === 'object')
}
